"""The beam, seen from above: everything that was considered, and the translation as it was."""

import json

import numpy
import pytest
from rich.cells import cell_len

from bundles import SMALL, make_bundle
from softgaze.errors import UsageError
from softgaze.gaze.tree import LEGEND, Beam, Log, Node
from softgaze.gaze.words import END_MARK
from softgaze.symbols import END
from softgaze.translator import Sampling, load

OPTIONS = {"beam": 3, "nbest": 3, "max_length": 7, "min_length": 2}
TEXT = "the small dog sees a red cat."
LONG = "The dog runs. A small cat sees the old man. The red tree sleeps."


@pytest.fixture(scope="module", params=["rnn", "rnn-luong", "transformer"])
def translator(request, tmp_path_factory):
    options = {"transformer": SMALL}.get(request.param, {"width": 16})
    return load(make_bundle(tmp_path_factory.mktemp("beam") / "model", arch=request.param, options=options), "cpu")


@pytest.fixture(scope="module")
def out(translator):
    return translator.translate(TEXT, **OPTIONS)


def test_asking_for_the_beam_changes_nothing(translator):
    out = translator.translate(TEXT, **OPTIONS)
    before = out.to_dict()
    assert out.beam is out.beam
    assert out.to_dict() == before
    assert translator.translate(TEXT, **OPTIONS) == out


def test_the_results_of_the_search_are_in_the_tree(out):
    """The translation won; its alternatives ended."""
    results = [each for each in out.beam.hypotheses if each.status != "pruned"]
    wanted = [out, *out.alternatives]
    assert [each.status for each in results] == ["won"] + ["ended"] * (len(results) - 1)
    assert [each.tokens for each in results[:3]] == [each.tokens for each in wanted]
    assert [each.text for each in results[:3]] == [each.text for each in wanted]
    assert [each.score for each in results[:3]] == pytest.approx([each.score for each in wanted], abs=1e-5)


def test_every_node_adds_its_token_to_the_one_above(out):
    for node in out.beam.tree().walk():
        totals = [child.total for child in node.children]
        assert totals == sorted(totals, reverse=True)
        for child in node.children:
            assert child.total == pytest.approx(node.total + child.log_probability, abs=1e-4)
            assert child.log_probability <= 0
        assert bool(node.children) == (node.status == "kept") or node.status == "won"


def test_every_leaf_is_a_hypothesis_and_one_of_them_won(out):
    leaves = [node for node in out.beam.tree().walk() if not node.children]
    assert sorted(node.status for node in leaves) == sorted(each.status for each in out.beam.hypotheses)
    assert [node.status for node in leaves].count("won") == 1
    assert {node.text for node in leaves} == {each.text for each in out.beam.hypotheses}


def test_each_step_considers_twice_the_beam_and_goes_on_with_the_beam(out):
    level, width = [out.beam.tree()], []
    while level:
        level = [child for node in level for child in node.children]
        width.append((len(level), sum(bool(node.children) for node in level)))
    assert all(considered <= 6 and kept <= 3 for considered, kept in width)
    assert width[1][0] == 6


def test_losing_hypotheses_have_attention_of_their_own(out):
    lost = next(each for each in out.beam.hypotheses if each.status == "pruned" and len(each.tokens) > 1)
    if out.attention is None:  # arch rnn
        assert lost.attention is None
        return
    assert lost.attention.subwords().target == (*lost.tokens, END_MARK)
    assert lost.attention.view == out.attention.view
    assert numpy.allclose(lost.attention.weights.sum(axis=1), 1, atol=1e-5)
    won = out.beam.hypotheses[0].attention
    assert numpy.allclose(won.weights, out.attention.weights, atol=1e-5)


def test_a_changed_translation_shows_its_own_beam(out):
    if out.attention is None:
        return
    new = out.what_if(mask="dog")
    assert new.beam.hypotheses[0].tokens == new.tokens
    assert "with “dog” masked" in new.beam.hypotheses[-1].attention.shows


def test_each_part_has_its_tree(translator):
    out = translator.translate(LONG, **OPTIONS)
    assert len(out.beam.roots) == len(out.parts) == 3
    won = [each for each in out.beam.hypotheses if each.status == "won"]
    assert [each.part for each in won] == [0, 1, 2]
    if out.attention is not None:
        assert won[1].attention.source == (*["A", "small", "cat", "sees", "the", "old", "man."], END_MARK)
    with pytest.raises(ValueError, match=r"^there are 3 trees"):
        out.beam.tree(3)


def test_empty_text_has_no_tree(translator):
    assert translator.translate("").beam.hypotheses == ()


def test_samples_have_no_beam(translator):
    with pytest.raises(UsageError, match=r"^a translation that was sampled had no beam"):
        _ = translator.translate(TEXT, sampling=Sampling(), max_length=4).beam


WORDS = {4: "▁나는", 5: "▁dog", 6: "▁학교에", END: END_MARK}
BY_HAND = Log(
    {
        (4,): (-0.5, False),
        (5,): (-1.0, False),
        (4, 6): (-0.6, False),
        (4, END): (-2.0, True),
        (4, 6, END): (-0.7, True),
    },
    (4, 6, END),
    WORDS.__getitem__,
    lambda tokens: "".join(WORDS[token] for token in tokens if token != END),
)


def test_columns_line_up_whatever_the_script():
    *lines, legend = str(BY_HAND.root()).splitlines()
    assert legend == LEGEND
    assert len({cell_len(line[: line.rindex(".")]) for line in lines}) == 1
    assert lines[1].startswith("├ ▁나는")
    assert lines[2].startswith("│ ├ ▁학교에")
    assert lines[5].endswith("✗")


def test_statuses_say_what_became_of_each():
    assert [(node.token, node.status) for node in BY_HAND.root().walk()] == [
        ("⇥", "won"),
        ("▁나는", "won"),
        ("▁학교에", "won"),
        (END_MARK, "won"),
        (END_MARK, "ended"),
        ("▁dog", "pruned"),
    ]


def test_json_holds_the_whole_tree(tmp_path):
    def read(stored):
        return Node(**{**stored, "children": tuple(read(each) for each in stored["children"])})

    BY_HAND.root().to_json(tmp_path / "tree.json")
    assert read(json.loads((tmp_path / "tree.json").read_text(encoding="utf-8"))) == BY_HAND.root()


def test_an_empty_text_has_no_tree():
    with pytest.raises(ValueError, match="nothing was searched for an empty text"):
        Beam((), ()).tree()
