import pytest
import torch
from torch.nn import functional

import checks
from checks import RAGGED, SMALL, TEXT, VOCABULARY
from softgaze import attention
from softgaze.models import MODELS, Source
from softgaze.models.base import SingleSiteHook
from softgaze.special_tokens import PAD


def test_every_model_of_the_registry_is_checked():
    assert SMALL.keys() == MODELS.keys()


@pytest.mark.parametrize("arch", MODELS)
def test_an_exported_step_serves_any_batch(arch):
    checks.an_exported_step_serves_any_batch(SMALL[arch])


def test_a_source_is_padded_to_its_longest_sentence():
    values, lengths = Source.of([[5, 6, 7], [8]])
    assert values.tolist() == [[5, 6, 7], [8, PAD, PAD]]
    assert lengths.tolist() == [3, 1]


@pytest.mark.parametrize(("arch", "attentions"), [("rnn-luong", 1), ("conv", 2), ("transformer", 2 + 2 + 2)])
def test_only_attention_with_a_hook_does_without_the_fused_kernel(arch, attentions, monkeypatch):
    calls, kernel, recorder = [], functional.scaled_dot_product_attention, checks.Recorder()

    def counted(*arguments, **options):
        calls.append(1)
        return kernel(*arguments, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", counted)
    monkeypatch.setattr(attention, "faster_kernel", lambda *_: "fused")  # a CPU prefers plain products here
    plain = SMALL[arch].model(*RAGGED)
    assert len(calls) == attentions
    SMALL[arch].model(*RAGGED, checks.Recorder())
    assert len(calls) == attentions
    hooked = SMALL[arch].model(*RAGGED, SingleSiteHook("cross", 0, recorder))
    assert len(calls) == 2 * attentions - 1
    assert list(recorder.seen) == [("cross", 0)]
    checks.same(hooked, plain)


@pytest.mark.parametrize("arch", TEXT)
def test_two_sentences_in_flight_do_not_meet(arch):
    """State lives in the State, never on the module: one model serves two requests."""
    model, other = SMALL[arch].model, checks.batch_of([2, 3], 4, seed=1)
    alone = [step.logits for step in checks.steps(model, RAGGED)]
    together = [step.logits for step, _ in zip(checks.steps(model, RAGGED), checks.steps(model, other), strict=True)]
    assert all(torch.equal(one, two) for one, two in zip(alone, together, strict=True))


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentences", "sentence"),
    [([], "a batch needs at least one source"), ([[5], []], "source 1 of the batch is empty")],
)
def test_an_empty_source_is_refused(sentences, sentence):
    with pytest.raises(ValueError, match=sentence):
        Source.of(sentences)


GOOD = torch.tensor([[4, 5, 6], [7, 8, PAD]])
TWO = torch.tensor([3, 2])
BAD_SOURCES = {
    "no-rows": (GOOD[:0], TWO[:0], "a batch needs at least one source"),
    "no-tokens": (GOOD[:, :0], TWO * 0, "source 0 of the batch is empty"),
    "length-of-zero": (GOOD, TWO * 0, "source 0 of the batch is empty"),
    "length-too-long": (GOOD, TWO + 1, "a length of 4 exceeds the 3 tokens of the batch"),
    "one-length-for-two": (GOOD, TWO[:1], "got .2, 3. with .1,."),
    "one-dimension": (GOOD[0], TWO, "got .3,. with .2,."),
    "id-too-high": (GOOD + VOCABULARY, TWO, f"source token {VOCABULARY + 8} is outside the vocabulary of {VOCABULARY}"),
    "negative-id": (GOOD - 5, TWO, "source token -5 is outside the vocabulary"),
    "not-integers": (GOOD.float(), TWO, "expected source tokens .* got .* of torch.float32"),
    "lengths-not-integers": (GOOD, TWO.double(), "integer lengths"),
}


@pytest.mark.parametrize("arch", TEXT)
@pytest.mark.parametrize(("values", "lengths", "sentence"), BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_a_bad_source_is_one_clear_sentence(arch, values, lengths, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        SMALL[arch].model.encode(Source(values, lengths))
    assert "\n" not in str(caught.value)


BAD_TARGETS = {
    "no-tokens": (GOOD[:, :0], "the target has no tokens"),
    "id-too-high": (GOOD + VOCABULARY, f"target token {VOCABULARY + 8} is outside the vocabulary of {VOCABULARY}"),
    "negative-id": (GOOD - 5, "target token -5 is outside the vocabulary"),
    "another-batch": (GOOD[:1], "expected 2 rows of target tokens, one per source, got 1"),
    "not-integers": (GOOD.float(), "expected target tokens .* got .* of torch.float32"),
}


@pytest.mark.parametrize("arch", TEXT)
@pytest.mark.parametrize(("target", "sentence"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_a_bad_target_is_one_clear_sentence(arch, target, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        SMALL[arch].model(Source(GOOD, TWO), target)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "sentences",
    [[[1.5, 2.7]], [5, 6], ["dog"], [[[4]]], [[[4.0], [5.0, 6.0]]]],
    ids=["halves", "flat", "words", "3-D", "ragged"],
)
def test_sources_are_sequences_of_ids(sentences):
    with pytest.raises(ValueError, match="sequence of token ids"):
        Source.of(sentences)


@pytest.mark.parametrize("arch", TEXT)
def test_a_step_reads_one_token_for_each_row_of_the_state(arch):
    model = SMALL[arch].model
    state = model.start(model.encode(RAGGED.source))
    rows = len(RAGGED.source.lengths)
    with pytest.raises(ValueError, match=f"expected {rows} rows of target tokens, one per source, got 1"):
        model.step(torch.tensor([5]), state)
    for token in (torch.tensor(5), torch.full((rows, 1), 5)):
        with pytest.raises(ValueError, match="one token per row"):
            model.step(token, state)
