"""What if: asked in words, for every architecture, under beam search; and what stays as it was."""

from dataclasses import replace

import numpy
import pytest
import torch

from bundles import SMALL, make_bundle, tokenizer
from maps import random_recording
from softgaze.errors import UsageError
from softgaze.gaze import Attention
from softgaze.gaze.what_if import Question, is_spaced
from softgaze.gaze.words import Side
from softgaze.translator import Sampling, load

ARCHES = {
    "rnn-bahdanau": {"width": 16},
    "rnn-luong": {"width": 16},
    "conv": {"width": 16, "encoder_layers": 2, "decoder_layers": 2},
    "transformer": {**SMALL, "decoder_layers": 2},
}
TEXT = "the small dog sees a red cat."
LENGTHS = {"max_length": 9, "min_length": 7, "no_repeat": 1}
OPTIONS = {"beam": 3, "nbest": 2, **LENGTHS}
SPLIT = "The dog runs. A small cat sees the old man. The red tree sleeps."


def opinionated(path, arch, options):
    """Random, with logits far enough apart that it matters where it looks; spells no bytes, so it writes text."""
    found = load(make_bundle(path, arch=arch, options={**options, "tie": "none"}), "cpu")
    torch.manual_seed(5)
    for matrix in (each for each in found.model.parameters() if each.ndim > 1):
        torch.nn.init.normal_(matrix, std=0.2 if arch == "conv" else 0.5)
    found.model.output = torch.nn.Linear(found.model.output.in_features, len(tokenizer())).requires_grad_(False)
    found.model.output.weight.normal_(std=0.5)
    spaced = [piece.startswith("▁") for piece in tokenizer().pieces(range(len(tokenizer())))]
    found.model.output.bias[:] = torch.tensor(spaced)
    found.model.output.bias[4:260] = -30.0
    return found


@pytest.fixture(scope="module", params=ARCHES)
def translator(request, tmp_path_factory):
    return opinionated(tmp_path_factory.mktemp(request.param) / "model", request.param, ARCHES[request.param])


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return opinionated(tmp_path_factory.mktemp("one") / "model", "transformer", ARCHES["transformer"])


@pytest.fixture(scope="module")
def out(translator):
    return translator.translate(TEXT, **OPTIONS)


def every_head(attention):
    """(L, H, T, S) over subwords, with the words of rows and columns."""
    seen = attention.subwords().predicting().plain()
    layers, heads = attention.recording.size("cross")
    stack = numpy.stack([[seen.head(layer, head).weights for head in range(heads)] for layer in range(layers)])
    return stack, [label.word for label in seen.row_labels], [label.word for label in seen.column_labels]


# --- mask


@pytest.mark.parametrize("mask", ["dog", 2, ["dog", "small"], (1, "cat")])
def test_masked_words_are_looked_at_by_nobody(out, mask):
    weights, _, columns = every_head(out.what_if(mask=mask).attention)
    hidden = {"dog": [2], 2: [2], ("dog", "small"): [1, 2], (1, "cat"): [1, 6]}[
        tuple(mask) if type(mask) is list else mask
    ]
    assert not weights[..., [word in hidden for word in columns]].any()
    assert numpy.allclose(weights.sum(-1), 1, atol=1e-5)


def test_when_all_words_are_masked_the_end_is_left(out):
    weights, _, columns = every_head(out.what_if(mask=range(7)).attention)
    assert numpy.allclose(weights[..., [word is None for word in columns]], 1, atol=1e-5)


def test_masking_changes_what_is_written(out):
    changed = [out.what_if(mask=word) for word in range(7)]
    assert any(each.text != out.text for each in changed)
    assert len({round(each.score, 5) for each in changed}) == 7


# --- attend


@pytest.mark.parametrize("step", [0, 1, 2])
def test_all_weight_is_on_the_word_while_another_is_written(out, step):
    weights, rows, columns = every_head(out.what_if(attend={step: "dog"}).attention)
    writing = [word == step for word in rows]
    assert any(writing)
    assert numpy.allclose(weights[..., writing, :][..., [word == 2 for word in columns]].sum(-1), 1, atol=1e-5)
    others = [word not in (step, None) for word in rows]
    assert (weights[..., others, :][..., [word == 2 for word in columns]].sum(-1) < 0.999).any()


def test_only_the_named_heads_are_made_to_look(transformer):
    out = transformer.translate(TEXT, **OPTIONS)
    new = out.what_if(attend={1: "dog"}, where=[(1, 0)])
    weights, rows, columns = every_head(new.attention)
    mass = weights[..., [word == 1 for word in rows], :][..., [word == 2 for word in columns]].sum(-1)  # (L, H, T)
    assert numpy.allclose(mass[1, 0], 1, atol=1e-5)
    assert (mass[0] < 0.999).all()
    assert (mass[1, 1] < 0.999).all()


@pytest.mark.parametrize("step", [2, 3])
def test_words_before_are_written_as_ever(translator, step):
    """With a beam of one; only where the word just before ends depends on what follows it."""
    out = translator.translate(TEXT, beam=1, **LENGTHS)
    before, after = (each.attention.recording.target.words for each in (out, out.what_if(attend={step: "dog"})))
    assert before[: step - 1] == after[: step - 1]
    assert after[step - 1][0] == before[step - 1][0]


# --- ablate and sharpen


def test_an_ablated_head_looks_nowhere(transformer):
    out = transformer.translate(TEXT, **OPTIONS)
    weights, _, _ = every_head(out.what_if(ablate=[(1, 0)]).attention)
    assert not weights[1, 0].any()
    assert numpy.allclose(weights[0].sum(-1), 1, atol=1e-5)
    recording = out.what_if(ablate=[("encoder", 0, 1), ("decoder", None, 0)]).attention.recording
    assert not recording.parts[0].encoder.weights[0, 1].any()
    assert not recording.parts[0].decoder.weights[:, 0].any()


def test_sharper_weights_have_less_entropy(out):
    entropies = [
        Attention.entropy(replace(out, changes=out.what_if(sharpen=factor).changes).attention.layer(0)).mean()
        for factor in (0.5, 1, 2)
    ]
    assert entropies[0] > entropies[1] > entropies[2]


# --- what stays as it is


@pytest.mark.parametrize("question", [{}, {"sharpen": 1}, {"mask": []}, {"attend": {}}, {"ablate": ()}])
def test_no_change_is_the_same_translation(out, question):
    same = out.what_if(**question)
    assert same == out
    assert same.diff().is_same
    assert same.diff().score == 0


def test_the_translation_that_is_asked_stays_as_it_is(translator):
    out = translator.translate(TEXT, **OPTIONS)
    facts, shows, weights = out.to_dict(), out.attention.shows, out.attention.to_numpy()
    new = out.what_if(mask="dog", sharpen=2)
    assert (out.to_dict(), out.attention.shows, out.changes) == (facts, shows, ())
    assert numpy.array_equal(out.attention.weights, weights)
    assert new.before is out
    assert translator.translate(TEXT, **OPTIONS) == out


def test_the_search_is_the_same_search(translator):
    out = translator.translate(TEXT, **OPTIONS, prefix="개")
    new = out.what_if(mask="dog")
    assert new.search == out.search
    assert len(new.alternatives) == 1
    assert new.text.startswith("개")
    assert all(each.before is out and each.changes == new.changes for each in new.alternatives)
    drawn = translator.translate(TEXT, sampling=Sampling(seed=3), max_length=8)
    assert drawn.what_if(mask="dog") == drawn.what_if(mask="dog")


def test_many_questions_at_once_are_the_questions_alone(out):
    questions = [Question(mask=0), Question(), Question(attend={1: "dog"}), Question(sharpen=0.5), Question(mask=3)]
    for question, found in zip(questions, out.what_ifs(questions), strict=True):
        alone = out.what_if(**vars(question))
        assert found.text == alone.text
        assert found.score == pytest.approx(alone.score, abs=1e-4)


# --- what is remembered


def test_changes_add_up(out):
    both = out.what_if(mask="dog").what_if(mask="cat")
    together = out.what_if(mask=["dog", "cat"])
    assert both.text == together.text
    assert both.score == pytest.approx(together.score, abs=1e-5)
    assert both.attention.recording.note == "with “dog” masked, with “cat” masked"
    assert both.before.before is out


def test_what_comes_later_wins(out):
    step = 0
    looked, rows, columns = every_head(out.what_if(mask="dog").what_if(attend={step: "dog"}).attention)
    mass = looked[..., [word == step for word in rows], :][..., [word == 2 for word in columns]].sum(-1)
    assert numpy.allclose(mass, 1, atol=1e-5)
    looked, rows, _ = every_head(out.what_if(attend={step: "dog"}).what_if(mask="dog").attention)
    assert not looked[..., [word == step for word in rows], :].any()


def test_influence_and_honesty_are_those_of_the_change(out):
    new = out.what_if(mask="dog")
    assert new.influence.shape == (len(new.attention.recording.target.words), 7)
    unchanged = replace(new, changes=())
    assert not numpy.allclose(new.influence, unchanged.influence)
    assert -1 <= new.honesty() <= 1
    forced = out.what_if(attend={0: "dog"})
    assert numpy.isfinite(forced.influence).all()


def test_a_figure_says_what_was_changed_and_keeps_saying_it(out, tmp_path):
    new = out.what_if(mask="cat", attend={1: "dog"}, sharpen=2, where=[(0, None)], ablate=[(0, 0)])
    note = (
        "with “cat” masked, with word 1 looking at “dog”, with weights sharpened ×2 in all heads of layer 0, "
        "without head 0 of layer 0"
    )
    assert note in new.attention.shows
    assert note not in out.attention.shows
    assert new.attention.view == out.attention.view
    new.attention.to_json(tmp_path / "map.json")
    assert Attention.load(tmp_path / "map.json").shows == new.attention.shows


# --- a text in parts


def moved(out, new):
    """Which parts are changed, rounding aside."""
    pairs = zip(out.parts, new.parts, strict=True)
    return [abs(one.log_probability - other.log_probability) > 1e-4 for one, other in pairs]


def test_words_are_counted_over_all_parts(translator):
    out = translator.translate(SPLIT, beam=2, **LENGTHS)
    assert len(out.parts) == 3
    assert out.attention.recording.source.words[4] == "small"
    new = out.what_if(mask="small")
    assert moved(out, new) == [False, True, False]
    weights, _, columns = every_head(new.attention)
    assert not weights[..., [word == 4 for word in columns]].any()

    words = out.attention.recording.target
    second = next(number for number in words.word_of[words.word_of.index(-1) + 1 :] if number >= 0)
    new = out.what_if(attend={second: "small"})
    assert moved(out, new) == [False, True, False]
    weights, rows, columns = every_head(new.attention)
    first = new.attention.recording.target.word_of.index(-1) + 1  # the second part's first row
    assert rows[first] is not None
    assert numpy.allclose(weights[..., first, [word == 4 for word in columns]].sum(-1), 1, atol=1e-5)
    with pytest.raises(
        UsageError, match=r"^word 0 of the output cannot look at word 4 of the source: it is in another"
    ):
        out.what_if(attend={0: "small"})


# --- what is refused


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"mask": "dogs"}, "'dogs' is not in the source; did you mean dog\\?"),
        ({"mask": 7}, "the source has words 0 to 6, and no word 7"),
        ({"mask": -1}, "the source has words 0 to 6, and no word -1"),
        ({"mask": [None]}, "a word of the source is given as text or by number, not as None"),
        ({"attend": {99: "dog"}}, r"attend: the output has words 0 to \d+, and no word 99"),
        ({"attend": {"0": "dog"}}, r"attend: the output has words 0 to \d+, and no word '0'"),
        ({"attend": {0: "dog"}, "mask": "dog"}, "'dog' cannot be masked and looked at in one question"),
        ({"ablate": [(9, 0)]}, "there is no layer 9 in the cross-attention: they are 0 to 1"),
        ({"ablate": [(0, 2)]}, "there is no head 2 in the cross-attention: they are 0 to 1"),
        ({"ablate": [("encoders", 0, 0)]}, "this model has no 'encoders' attention; did you mean encoder.*"),
        ({"ablate": [3]}, r"ablate is a list of \(layer, head\) or \(kind, layer, head\), not \[3\]"),
        ({"sharpen": 0}, "sharpen is a number above 0 .*, not 0"),
        ({"sharpen": float("nan")}, "sharpen is a number above 0 .*, not nan"),
        (
            {"mask": "dog", "where": [("decoder", 0, 0)]},
            "where: the self-attention of the decoder looks at no source.*",
        ),
        ({"attend": {0: "dog"}, "where": [("encoder", 0, 0)]}, "where: the self-attention of the encoder writes no .*"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(transformer, question, words):
    with pytest.raises(UsageError, match=f"^{words}$"):
        transformer.translate(TEXT, **OPTIONS).what_if(**question)


def test_a_repeated_word_is_given_by_its_number(transformer):
    out = transformer.translate("the dog sees the cat.", **OPTIONS)
    with pytest.raises(UsageError, match=r"^'the' is in the source 2 times; give its number, one of \[0, 3\]$"):
        out.what_if(mask="the")
    assert "with “the” masked" in out.what_if(mask=3).attention.shows


def test_without_attention_there_is_nothing_to_change(tmp_path):
    out = opinionated(tmp_path / "model", "rnn", {"width": 16}).translate(TEXT, max_length=6)
    with pytest.raises(UsageError, match=r"^there is no attention to change: [^\n]*$"):
        out.what_if(mask="dog")


def test_only_a_what_if_differs_from_something(out):
    with pytest.raises(UsageError, match=r"^only what `what_if` gives"):
        out.diff()


def test_a_diff_is_from_the_translation_that_was_asked(out):
    new = out.what_if(mask="dog")
    pieces = new.diff().pieces
    assert " ".join(text for kind, text in pieces if kind != "added") == " ".join(out.text.split())
    assert " ".join(text for kind, text in pieces if kind != "removed") == " ".join(new.text.split())
    assert new.diff().score == new.score - out.score


@pytest.mark.parametrize(
    ("text", "pieces", "spaced"),
    [
        ("the dog", ["▁the", "▁do", "g"], True),
        ("我喜欢你", ["▁我", "喜欢", "你"], False),
        ("the", ["▁the"], True),
    ],
)
def test_what_divides_words_is_seen_in_the_pieces(text, pieces, spaced):
    assert is_spaced(Side.of(text, [pieces])) == spaced


@pytest.mark.parametrize("question", [{"attend": [(1, "x")]}, {"mask": None}, {"mask": 1.5}])
def test_what_is_no_question_is_one_line(question):
    with pytest.raises(UsageError, match=r"^(attend|mask) is [^\n]*, not [^\n]*$"):
        Question(**question).change(random_recording())
