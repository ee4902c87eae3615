"""Recording is one more look at the same model: real weights of every attention, nothing changed, batched or alone."""

import numpy
import pytest
import torch

from bundles import tokenizer
from checks import TEXT
from softgaze.bundle import Tokenizers
from softgaze.gaze import Attention, Choice, Passage, View, record
from softgaze.gaze.passages import Spoken, batches, shown
from softgaze.gaze.watching import Watched
from softgaze.gaze.words import END_MARK
from softgaze.models import Source, build
from softgaze.symbols import BEGIN, END

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIRS = [
    ("the dog runs.", "개 달려요."),
    ("a small red cat sees the tree.", "작은 고양이 나무 봐요."),
    ("man", "고양이"),
]
ATTENTIVE = [arch for arch in TEXT if arch != "rnn"]


def make(arch, **options):
    torch.manual_seed(0)
    return build(arch, source_vocabulary=len(TOKENIZERS.source), width=16, **options).eval()


@pytest.fixture(params=ATTENTIVE)
def model(request):
    return make(request.param)


def passages():
    return [Passage.of(*pair, TOKENIZERS) for pair in PAIRS]


def test_rows_are_shares_of_the_source_and_its_end(model):
    for (source, target), recording in zip(PAIRS, record(model, TOKENIZERS, passages()), strict=True):
        attention = shown(recording, None)
        assert attention.source == (*source.split(), END_MARK)
        assert attention.target == (*target.split(), END_MARK)
        for kind in recording.kinds:
            assert numpy.allclose(attention.of_kind(kind).weights.sum(axis=1), 1, atol=1e-5)


def test_a_sentence_in_a_batch_is_recorded_as_if_alone(model):
    together = record(model, TOKENIZERS, passages())
    alone = [record(model, TOKENIZERS, [passage])[0] for passage in passages()]
    for one, other in zip(together, alone, strict=True):
        for kind in one.kinds:
            for name in ("weights", "norms"):
                first, second = (getattr(getattr(each.parts[0], kind), name) for each in (one, other))
                assert numpy.allclose(first, second, atol=1e-5)


def test_the_row_of_a_word_is_the_look_that_predicted_it(model):
    [recording] = record(model, TOKENIZERS, passages()[:1])
    [spoken] = passages()[0].parts
    state = model.start(model.encode(Source.of([[*spoken.source, END]])))
    rows = []
    for token in [BEGIN, *spoken.target]:
        step = model.step(torch.tensor([token]), state)
        state = step.state
        rows.append(step.weights[0].detach().numpy())  # (H, S) of the last layer
    assert numpy.allclose(recording.parts[0].cross.weights[-1], numpy.stack(rows, 1), atol=1e-5)


def test_a_transformer_shows_all_layers_heads_and_kinds():
    model = make("transformer", encoder_layers=3, decoder_layers=2, heads=4)
    [recording] = record(model, TOKENIZERS, passages()[:1])
    assert recording.kinds == ("cross", "encoder", "decoder")
    assert [recording.size(kind) for kind in recording.kinds] == [(2, 4), (3, 4), (2, 4)]


def test_the_lengths_are_those_of_the_values_that_were_looked_at():
    model = make("transformer", encoder_layers=1, decoder_layers=1, heads=2)
    [recording] = record(model, TOKENIZERS, passages()[:1])
    [spoken] = passages()[0].parts
    memory = model.encode(Source.of([[*spoken.source, END]]))
    values = model.decoder[0].cross.remember(memory.values).values  # (B, H, S, D)
    assert numpy.allclose(recording.parts[0].cross.norms[0], values[0].norm(dim=-1).detach().numpy(), atol=1e-5)


def test_shared_value_heads_have_a_length_for_every_head():
    model = make("transformer", heads=4, key_heads=2)
    [recording] = record(model, TOKENIZERS, passages()[:1])
    assert recording.parts[0].cross.norms.shape[1] == 4


def test_a_model_that_never_looks_has_nothing_to_show():
    [recording] = record(make("rnn"), TOKENIZERS, passages()[:1])
    assert recording.kinds == ()
    assert shown(recording, None) is None


@pytest.mark.parametrize("pair", [("", "개"), ("the dog", ""), ("", "")])
def test_nothing_looks_at_nothing(model, pair):
    assert shown(record(model, TOKENIZERS, [Passage.of(*pair, TOKENIZERS)])[0], None) is None


def test_parts_are_recorded_apart_and_shown_together(model):
    one, two = (Passage.of(*pair, TOKENIZERS) for pair in PAIRS[:2])
    both = Passage(f"{one.source} {two.source}", f"{one.target} {two.target}", (*one.parts, *two.parts))
    whole, first, second = (
        shown(each, Choice(View(), 0, "", 0)) for each in record(model, TOKENIZERS, [both, one, two])
    )
    rows, columns = first.weights.shape
    assert numpy.allclose(whole.weights[:rows, :columns], first.weights, atol=1e-5)
    assert numpy.allclose(whole.weights[rows:, columns:], second.weights, atol=1e-5)
    assert whole.source == first.source + second.source


def test_what_was_chosen_is_shown_and_said():
    choice = Choice(View(layer=1, head=2, rows="reading", measure="norms"), 0.9, "influence", 7)
    [recording] = record(make("transformer"), TOKENIZERS, passages()[:1])
    attention = shown(recording, choice)
    assert attention.view == choice.view
    assert "chosen by influence" in attention.shows
    assert isinstance(attention, Attention)


def test_batches_hold_every_part_once_and_keep_to_their_budget():
    parts = [Spoken([1] * length, [1] * (length // 2)) for length in (3, 9, 1, 30, 4, 4, 8)]
    found = list(batches(parts, tokens=20))
    assert sorted(number for numbers in found for number in numbers) == list(range(len(parts)))
    for numbers in found:
        longest = max(len(parts[number].source) + 1 for number in numbers)
        assert len(numbers) == 1 or longest * len(numbers) <= 20
    assert list(batches([])) == []


def test_log_probabilities_are_fetched_before_they_are_made_double(without_doubles):
    [found] = Watched(make("transformer"), TOKENIZERS).log_probabilities(passages()[0].parts)
    assert found.dtype == numpy.float64
