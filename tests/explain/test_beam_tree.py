"""The beam tree contains every candidate of the search and does not change the translation."""

import json

import numpy as np
import pytest
from rich.cells import cell_len

from bundles import SMALL, make_bundle
from softgaze.errors import UsageError
from softgaze.explain.beam_tree import LEGEND, BeamNode, SearchLog
from softgaze.explain.word_spans import EOS_MARK
from softgaze.special_tokens import EOS
from softgaze.translator import load

OPTIONS = {"beam_size": 3, "num_hypotheses": 3, "max_length": 7, "min_length": 2}
TEXT = "the small dog sees a red cat."
LONG = "The dog runs. A small cat sees the old man. The red tree sleeps."


@pytest.fixture(scope="module", params=["rnn", "rnn-luong", "transformer"])
def translator(request, tmp_path_factory):
    options = {"transformer": SMALL}.get(request.param, {"width": 16})
    return load(make_bundle(tmp_path_factory.mktemp("beam") / "model", arch=request.param, options=options), "cpu")


@pytest.fixture(scope="module")
def out(translator):
    return translator.translate(TEXT, **OPTIONS)


def test_the_beam_trace_changes_nothing(translator):
    out = translator.translate(TEXT, **OPTIONS)
    before = out.to_dict()
    assert out.beam is out.beam
    assert out.to_dict() == before
    assert translator.translate(TEXT, **OPTIONS) == out


def test_the_results_of_the_search_are_in_the_tree(out):
    """The translation won; its alternatives ended."""
    results = [each for each in out.beam.hypotheses if each.status != "pruned"]
    expected = [out, *out.alternatives]
    assert [each.status for each in results] == ["won"] + ["ended"] * (len(results) - 1)
    assert [each.tokens for each in results[:3]] == [each.tokens for each in expected]
    assert [each.text for each in results[:3]] == [each.text for each in expected]
    assert [each.score for each in results[:3]] == pytest.approx([each.score for each in expected], abs=1e-5)


def test_every_node_adds_its_log_prob_to_its_parent(out):
    for node in out.beam.tree().walk():
        totals = [child.total for child in node.children]
        assert totals == sorted(totals, reverse=True)
        for child in node.children:
            assert child.total == pytest.approx(node.total + child.log_prob, abs=1e-4)
            assert child.log_prob <= 0
        assert bool(node.children) == (node.status == "kept") or node.status == "won"


def test_every_leaf_is_a_hypothesis_and_one_of_them_won(out):
    leaves = [node for node in out.beam.tree().walk() if not node.children]
    assert sorted(node.status for node in leaves) == sorted(each.status for each in out.beam.hypotheses)
    assert [node.status for node in leaves].count("won") == 1
    assert {node.text for node in leaves} == {each.text for each in out.beam.hypotheses}


def test_each_step_has_twice_the_beam_as_candidates(out):
    level, width = [out.beam.tree()], []
    while level:
        level = [child for node in level for child in node.children]
        width.append((len(level), sum(bool(node.children) for node in level)))
    assert all(candidates <= 6 and kept <= 3 for candidates, kept in width)
    assert width[1][0] == 6


def test_pruned_hypotheses_have_attention(out):
    pruned = next(each for each in out.beam.hypotheses if each.status == "pruned" and len(each.tokens) > 1)
    if out.attention is None:  # arch rnn
        assert pruned.attention is None
        return
    assert pruned.attention.subwords().target == (*pruned.tokens, EOS_MARK)
    assert pruned.attention.view == out.attention.view
    assert np.allclose(pruned.attention.weights.sum(axis=1), 1, atol=1e-5)
    won = out.beam.hypotheses[0].attention
    assert np.allclose(won.weights, out.attention.weights, atol=1e-5)


def test_a_changed_translation_has_its_own_beam(out):
    if out.attention is None:
        return
    new = out.what_if(mask="dog")
    assert new.beam.hypotheses[0].tokens == new.tokens
    assert "with “dog” masked" in new.beam.hypotheses[-1].attention.description


def test_each_part_has_a_tree(translator):
    out = translator.translate(LONG, **OPTIONS)
    assert len(out.beam.roots) == len(out.parts) == 3
    won = [each for each in out.beam.hypotheses if each.status == "won"]
    assert [each.part for each in won] == [0, 1, 2]
    if out.attention is not None:
        assert won[1].attention.source == (*["A", "small", "cat", "sees", "the", "old", "man."], EOS_MARK)
    with pytest.raises(ValueError, match="no part 3"):
        out.beam.tree(3)


def test_empty_text_has_no_tree(translator):
    beam = translator.translate("").beam
    assert beam.hypotheses == ()
    with pytest.raises(ValueError, match="text is empty"):
        beam.tree()


def test_samples_have_no_beam(translator):
    with pytest.raises(UsageError, match="sampl"):
        _ = translator.translate(TEXT, temperature=1.0, max_length=4).beam


WORDS = {4: "▁나는", 5: "▁dog", 6: "▁학교에", EOS: EOS_MARK}
LOG = SearchLog(
    {
        (4,): (-0.5, False),
        (5,): (-1.0, False),
        (4, 6): (-0.6, False),
        (4, EOS): (-2.0, True),
        (4, 6, EOS): (-0.7, True),
    },
    (4, 6, EOS),
    WORDS.__getitem__,
    lambda tokens: "".join(WORDS[token] for token in tokens if token != EOS),
)


def test_columns_line_up_in_any_script():
    *lines, legend = str(LOG.root()).splitlines()
    assert legend == LEGEND
    assert len({cell_len(line[: line.rindex(".")]) for line in lines}) == 1
    assert lines[1].startswith("├ ▁나는")
    assert lines[2].startswith("│ ├ ▁학교에")
    assert lines[5].endswith("✗")


def test_statuses():
    assert [(node.token, node.status) for node in LOG.root().walk()] == [
        ("⇥", "won"),
        ("▁나는", "won"),
        ("▁학교에", "won"),
        (EOS_MARK, "won"),
        (EOS_MARK, "ended"),
        ("▁dog", "pruned"),
    ]


def test_json_contains_the_whole_tree(tmp_path):
    def read(stored):
        return BeamNode(**{**stored, "children": tuple(read(child) for child in stored["children"])})

    LOG.root().to_json(tmp_path / "tree.json")
    assert read(json.loads((tmp_path / "tree.json").read_text(encoding="utf-8"))) == LOG.root()
