"""What-if questions: given in words, for every architecture, under beam search; and counterfactuals for a page."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bundles import SMALL, copier, make_bundle, tokenizer
from softgaze.errors import UsageError
from softgaze.explain import Attention
from softgaze.explain.what_if import ChangeRequest, TextDiff, candidate_questions, is_spaced, word_diff
from softgaze.explain.word_spans import TokenizedText
from softgaze.translator import load

ARCHES = {
    "rnn-bahdanau": {"width": 16},
    "rnn-luong": {"width": 16},
    "conv": {"width": 16, "encoder_layers": 2, "decoder_layers": 2},
    "transformer": {**SMALL, "decoder_layers": 2},
}
TEXT = "the small dog sees a red cat."
LENGTHS = {"max_length": 9, "min_length": 7, "no_repeat_ngram_size": 1}
OPTIONS = {"beam_size": 3, "num_hypotheses": 2, **LENGTHS}
SPLIT = "The dog runs. A small cat sees the old man. The red tree sleeps."


def random_translator(path, arch, options):
    """A random model whose logits are far enough apart that attention matters; it generates no byte tokens."""
    bundle = make_bundle(path, arch=arch, options={**options, "tie": "none"})
    translator = load(bundle, "cpu", engine="torch")  # its weights are replaced
    torch.manual_seed(5)
    for matrix in (parameter for parameter in translator.model.parameters() if parameter.ndim > 1):
        torch.nn.init.normal_(matrix, std=0.2 if arch == "conv" else 0.5)
    translator.model.output = torch.nn.Linear(translator.model.output.in_features, len(tokenizer())).requires_grad_(
        False
    )
    translator.model.output.weight.normal_(std=0.5)
    spaced = [piece.startswith("▁") for piece in tokenizer().pieces(range(len(tokenizer())))]
    translator.model.output.bias[:] = torch.tensor(spaced)
    translator.model.output.bias[4:260] = -30.0
    return translator


@pytest.fixture(scope="module", params=ARCHES)
def translator(request, tmp_path_factory):
    return random_translator(tmp_path_factory.mktemp(request.param) / "model", request.param, ARCHES[request.param])


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return random_translator(tmp_path_factory.mktemp("one") / "model", "transformer", ARCHES["transformer"])


@pytest.fixture(scope="module")
def out(translator):
    return translator.translate(TEXT, **OPTIONS)


def every_head(attention):
    """(L, H, T, S) over subwords, with the words of rows and columns."""
    tokens = attention.subwords().predicting().plain()
    layers, heads = attention.recording.size("cross")
    stack = np.stack([[tokens.head(layer, head).weights for head in range(heads)] for layer in range(layers)])
    return stack, [label.word for label in tokens.row_labels], [label.word for label in tokens.column_labels]


# --- mask


@pytest.mark.parametrize("mask", ["dog", 2, ["dog", "small"], (1, "cat")])
def test_masked_words_get_no_attention(out, mask):
    weights, _, columns = every_head(out.what_if(mask=mask).attention)
    masked = {"dog": [2], 2: [2], ("dog", "small"): [1, 2], (1, "cat"): [1, 6]}[
        tuple(mask) if type(mask) is list else mask
    ]
    assert not weights[..., [word in masked for word in columns]].any()
    assert np.allclose(weights.sum(-1), 1, atol=1e-5)


def test_if_all_words_are_masked_eos_gets_all_weight(out):
    weights, _, columns = every_head(out.what_if(mask=range(7)).attention)
    assert np.allclose(weights[..., [word is None for word in columns]], 1, atol=1e-5)


def test_masking_changes_the_output(out):
    changed = [out.what_if(mask=word) for word in range(7)]
    assert any(each.text != out.text for each in changed)
    assert len({round(each.score, 5) for each in changed}) == 7


# --- attend


@pytest.mark.parametrize("step", [0, 1, 2])
def test_all_weight_is_on_the_forced_word_while_the_output_word_is_generated(out, step):
    weights, rows, columns = every_head(out.what_if(attend={step: "dog"}).attention)
    forced = [word == step for word in rows]
    assert any(forced)
    assert np.allclose(weights[..., forced, :][..., [word == 2 for word in columns]].sum(-1), 1, atol=1e-5)
    others = [word not in (step, None) for word in rows]
    assert (weights[..., others, :][..., [word == 2 for word in columns]].sum(-1) < 0.999).any()


def test_only_the_named_heads_are_forced(transformer):
    out = transformer.translate(TEXT, **OPTIONS)
    new = out.what_if(attend={1: "dog"}, where=[(1, 0)])
    weights, rows, columns = every_head(new.attention)
    mass = weights[..., [word == 1 for word in rows], :][..., [word == 2 for word in columns]].sum(-1)  # (L, H, T)
    assert np.allclose(mass[1, 0], 1, atol=1e-5)
    assert (mass[0] < 0.999).all()
    assert (mass[1, 1] < 0.999).all()


@pytest.mark.parametrize("step", [2, 3])
def test_words_before_the_forced_one_do_not_change(translator, step):
    """With a beam of 1; only the end of the word just before depends on the forced one."""
    out = translator.translate(TEXT, beam_size=1, **LENGTHS)
    before, after = (each.attention.recording.target.words for each in (out, out.what_if(attend={step: "dog"})))
    assert before[: step - 1] == after[: step - 1]
    assert after[step - 1][0] == before[step - 1][0]


# --- ablate and sharpen


def test_an_ablated_head_has_no_weights(transformer):
    out = transformer.translate(TEXT, **OPTIONS)
    weights, _, _ = every_head(out.what_if(ablate=[(1, 0)]).attention)
    assert not weights[1, 0].any()
    assert np.allclose(weights[0].sum(-1), 1, atol=1e-5)
    recording = out.what_if(ablate=[("encoder", 0, 1), ("decoder", None, 0)]).attention.recording
    assert not recording.parts[0].encoder.weights[0, 1].any()
    assert not recording.parts[0].decoder.weights[:, 0].any()


def test_sharper_weights_have_less_entropy(out):
    entropies = [
        Attention.entropy(replace(out, changes=out.what_if(sharpen=factor).changes).attention.layer(0)).mean()
        for factor in (0.5, 1, 2)
    ]
    assert entropies[0] > entropies[1] > entropies[2]


# --- what does not change


@pytest.mark.parametrize("request_", [{}, {"sharpen": 1}, {"mask": []}, {"attend": {}}, {"ablate": ()}])
def test_an_empty_request_returns_the_same_translation(out, request_):
    same = out.what_if(**request_)
    assert same == out
    assert same.diff().is_same
    assert same.diff().score == 0


def test_the_original_translation_does_not_change(translator):
    out = translator.translate(TEXT, **OPTIONS)
    facts, description, weights = out.to_dict(), out.attention.description, out.attention.to_numpy()
    new = out.what_if(mask="dog", sharpen=2)
    assert (out.to_dict(), out.attention.description, out.changes) == (facts, description, ())
    assert np.array_equal(out.attention.weights, weights)
    assert new.original is out
    assert translator.translate(TEXT, **OPTIONS) == out


def test_the_search_options_are_kept(translator):
    out = translator.translate(TEXT, **OPTIONS, prefix="개")
    new = out.what_if(mask="dog")
    assert new.options == out.options
    assert len(new.alternatives) == 1
    assert new.text.startswith("개")
    assert all(each.original is out and each.changes == new.changes for each in new.alternatives)
    drawn = translator.translate(TEXT, temperature=1.0, seed=3, max_length=8)
    assert drawn.what_if(mask="dog") == drawn.what_if(mask="dog")


def test_batched_requests_equal_single_requests(out):
    requests = [
        ChangeRequest(mask=0),
        ChangeRequest(),
        ChangeRequest(attend={1: "dog"}),
        ChangeRequest(sharpen=0.5),
        ChangeRequest(mask=3),
    ]
    for request, batched in zip(requests, out.what_ifs(requests), strict=True):
        alone = out.what_if(**vars(request))
        assert batched.text == alone.text
        assert batched.score == pytest.approx(alone.score, abs=1e-4)


# --- several changes


def test_changes_add_up(out):
    both = out.what_if(mask="dog").what_if(mask="cat")
    together = out.what_if(mask=["dog", "cat"])
    assert both.text == together.text
    assert both.score == pytest.approx(together.score, abs=1e-5)
    assert both.attention.recording.note == "with “dog” masked, with “cat” masked"
    assert both.original.original is out


def test_the_later_change_wins(out):
    step = 0
    weights, rows, columns = every_head(out.what_if(mask="dog").what_if(attend={step: "dog"}).attention)
    mass = weights[..., [word == step for word in rows], :][..., [word == 2 for word in columns]].sum(-1)
    assert np.allclose(mass, 1, atol=1e-5)
    weights, rows, _ = every_head(out.what_if(attend={step: "dog"}).what_if(mask="dog").attention)
    assert not weights[..., [word == step for word in rows], :].any()


def test_occlusion_and_faithfulness_are_those_of_the_change(out):
    new = out.what_if(mask="dog")
    assert new.occlusion.shape == (len(new.attention.recording.target.words), 7)
    unchanged = replace(new, changes=())
    assert not np.allclose(new.occlusion, unchanged.occlusion)
    assert -1 <= new.faithfulness() <= 1
    forced = out.what_if(attend={0: "dog"})
    assert np.isfinite(forced.occlusion).all()


def test_the_description_names_the_changes_and_is_stored(out, tmp_path):
    new = out.what_if(mask="cat", attend={1: "dog"}, sharpen=2, where=[(0, None)], ablate=[(0, 0)])
    note = (
        "with “cat” masked, with word 1 attending to “dog”, with weights sharpened ×2 in all heads of layer 0, "
        "without head 0 of layer 0"
    )
    assert note in new.attention.description
    assert note not in out.attention.description
    assert new.attention.view == out.attention.view
    new.attention.to_json(tmp_path / "map.json")
    assert Attention.load(tmp_path / "map.json").description == new.attention.description


# --- a text in parts


def changed_parts(out, new):
    pairs = zip(out.parts, new.parts, strict=True)
    return [abs(one.log_prob - other.log_prob) > 1e-4 for one, other in pairs]


def test_words_are_counted_over_all_parts(translator):
    out = translator.translate(SPLIT, beam_size=2, **LENGTHS)
    assert len(out.parts) == 3
    assert out.attention.recording.source.words[4] == "small"
    new = out.what_if(mask="small")
    assert changed_parts(out, new) == [False, True, False]
    weights, _, columns = every_head(new.attention)
    assert not weights[..., [word == 4 for word in columns]].any()

    words = out.attention.recording.target
    second = next(number for number in words.word_of[words.word_of.index(-1) + 1 :] if number >= 0)
    new = out.what_if(attend={second: "small"})
    assert changed_parts(out, new) == [False, True, False]
    weights, rows, columns = every_head(new.attention)
    first = new.attention.recording.target.word_of.index(-1) + 1  # the second part's first row
    assert rows[first] is not None
    assert np.allclose(weights[..., first, [word == 4 for word in columns]].sum(-1), 1, atol=1e-5)
    with pytest.raises(UsageError, match=r"^output word 0 cannot attend to source word 4: .*different parts"):
        out.what_if(attend={0: "small"})


# --- invalid requests


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"mask": "dogs"}, "'dogs' is not in the source; did you mean dog\\?"),
        ({"mask": 7}, "there is no source word 7.*0 to 6"),
        ({"mask": -1}, "there is no source word -1.*0 to 6"),
        ({"mask": [None]}, "expected a source word .*got None"),
        ({"attend": {99: "dog"}}, r"attend: there is no output word 99.*"),
        ({"attend": {"0": "dog"}}, r"attend: there is no output word '0'.*"),
        ({"attend": {0: "dog"}, "mask": "dog"}, "'dog' cannot be both masked and attended to"),
        ({"ablate": [(9, 0)]}, "ablate: the cross-attention has no layer 9.*0 to 1"),
        ({"ablate": [(0, 2)]}, "ablate: the cross-attention has no head 2.*0 to 1"),
        ({"ablate": [("encoders", 0, 0)]}, "ablate: this model has no 'encoders' attention; did you mean encoder.*"),
        ({"ablate": [3]}, r"ablate must be a list of \(layer, head\).*got \[3\]"),
        ({"attend": [(1, "x")]}, "attend must be .*, got .*"),
        ({"mask": None}, "mask must be .*, got None"),
        ({"sharpen": 0}, "sharpen must be a number above 0 .*got 0"),
        ({"sharpen": float("nan")}, "sharpen must be a number above 0 .*got nan"),
        ({"mask": "dog", "where": [("decoder", 0, 0)]}, "where: the self-attention of the decoder .*"),
        ({"attend": {0: "dog"}, "where": [("encoder", 0, 0)]}, "where: the self-attention of the encoder .*"),
    ],
)
def test_invalid_requests_are_rejected_in_one_line(transformer, request_, message):
    with pytest.raises(UsageError, match=f"^{message}$"):
        transformer.translate(TEXT, **OPTIONS).what_if(**request_)


def test_a_repeated_word_is_given_by_its_index(transformer):
    out = transformer.translate("the dog sees the cat.", **OPTIONS)
    with pytest.raises(UsageError, match=r"^'the' occurs 2 times .*one of \[0, 3\]$"):
        out.what_if(mask="the")
    assert "with “the” masked" in out.what_if(mask=3).attention.description


def test_without_attention_a_request_is_rejected(tmp_path):
    out = random_translator(tmp_path / "model", "rnn", {"width": 16}).translate(TEXT, max_length=6)
    with pytest.raises(UsageError, match=r"^there is no attention to change: [^\n]*$"):
        out.what_if(mask="dog")


def test_only_a_what_if_has_a_diff(out):
    with pytest.raises(UsageError, match="what_if"):
        out.diff()


def test_a_diff_is_from_the_original_translation(out):
    new = out.what_if(mask="dog")
    runs = new.diff().runs
    assert " ".join(text for kind, text in runs if kind != "added") == " ".join(out.text.split())
    assert " ".join(text for kind, text in runs if kind != "removed") == " ".join(new.text.split())
    assert new.diff().score == new.score - out.score


@pytest.mark.parametrize(
    ("text", "tokens", "spaced"),
    [
        ("the dog", ["▁the", "▁do", "g"], True),
        ("我喜欢你", ["▁我", "喜欢", "你"], False),
        ("the", ["▁the"], True),
    ],
)
def test_whether_spaces_separate_words_is_seen_in_the_tokens(text, tokens, spaced):
    assert is_spaced(TokenizedText.of(text, [tokens])) == spaced


# --- counterfactuals for a page

SENTENCE = "the small dog sees the cat."


@pytest.fixture(scope="module")
def small_out(tmp_path_factory):
    options = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
    return load(make_bundle(tmp_path_factory.mktemp("page") / "model", options=options), "cpu").translate(
        SENTENCE, beam_size=2, max_length=6
    )


@pytest.fixture(scope="module")
def answers(small_out):
    return small_out.explanation.counterfactuals()


def test_there_is_a_counterfactual_for_every_word_head_and_factor(small_out, answers):
    layer = small_out.attention.view.layer
    assert [(each.kind, each.values, each.source_word) for each in answers] == [
        *(("mask", {"word": f"“{word.strip('.')}”"}, index) for index, word in enumerate(SENTENCE.split())),
        *(("ablate", {"layer": layer, "head": head}, None) for head in range(2)),
        ("sharpen", {"factor": 2.0}, None),
        ("sharpen", {"factor": 0.5}, None),
    ]


def test_a_counterfactual_is_the_what_if_of_its_question(small_out, answers):
    for each in answers[: len(SENTENCE.split())]:
        new = small_out.what_if(mask=each.source_word)
        assert (each.text, each.diff) == (new.text, new.diff().runs)
        assert (each.score, each.before) == pytest.approx((new.score, small_out.score), abs=1e-5)
        assert each.attention.description == new.attention.description
        assert np.allclose(each.attention.weights, new.attention.weights, atol=1e-5)


VIEWS = [({"layer": 0, "head": None}, [0]), ({"layer": 1, "head": 1}, [1]), ({"layer": None, "head": None}, [0, 1])]


@pytest.mark.parametrize(("view", "layers"), [*VIEWS, ({"kind": "encoder", "layer": 0, "head": None}, [0, 1])])
def test_the_heads_are_those_of_the_map_that_is_shown(small_out, view, layers):
    shown = small_out.attention.with_view(**view)
    answers = small_out.explanation.counterfactuals(shown)
    heads = [each.values for each in answers if each.kind == "ablate"]
    assert heads == [{"layer": layer, "head": head} for layer in layers for head in range(2)]
    assert {each.attention.view for each in answers} == {shown.view}


@pytest.mark.parametrize("limit", range(12))
def test_words_and_heads_share_the_limit(small_out, limit):
    kinds = [each.kind for each in candidate_questions(small_out.attention.with_view(layer=None, head=None), limit)]
    assert len(kinds) == limit
    assert abs(kinds.count("mask") - kinds.count("ablate")) <= 1 or kinds.count("ablate") == 4


def test_there_are_no_counterfactuals_without_attention(small_out, tmp_path):
    assert small_out.translator.translate("").explanation.counterfactuals() == []
    assert copier(tmp_path).translate("the dog").explanation.counterfactuals() == []


# --- differences of texts

TEXTS = st.lists(st.sampled_from(["the", "dog", "개", "sleeps", "학교에", "a"]), max_size=8).map(" ".join)


def test_runs_of_same_removed_and_added_words():
    runs = word_diff("나는 학교에 매일 가요", "나는 집에 가요 네")
    assert runs == (
        ("same", "나는"),
        ("removed", "학교에 매일"),
        ("added", "집에"),
        ("same", "가요"),
        ("added", "네"),
    )


@given(before=TEXTS, after=TEXTS)
def test_both_texts_can_be_restored(before, after):
    runs = word_diff(before, after)
    assert " ".join(text for kind, text in runs if kind != "added") == before
    assert " ".join(text for kind, text in runs if kind != "removed") == after
    assert all(text for _, text in runs)
    assert TextDiff(runs, 0, 0).is_same == (before == after)


def test_a_script_without_spaces_is_compared_by_characters():
    assert word_diff("我喜欢狗", "我喜欢猫") == (("same", "我喜欢"), ("removed", "狗"), ("added", "猫"))
    assert word_diff("", "我喜欢猫") == (("added", "我喜欢猫"),)


def test_a_diff_is_printed_like_wdiff():
    diff = TextDiff(word_diff("나는 학교에 가요", "나는 집에 가요"), -0.5, -0.75)
    assert str(diff) == "나는 [-학교에-] {+집에+} 가요\nscore -0.50 → -0.75 (-0.25)"
    assert str(TextDiff((), 0, 0)) == "score 0.00 → 0.00 (+0.00)"
