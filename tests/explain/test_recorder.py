"""The recorder returns the real weights of every attention, batched or alone."""

import numpy as np
import pytest
import torch

from bundles import tokenizer
from checks import TEXT
from softgaze.bundle import Tokenizers
from softgaze.explain import Attention, SelectedMap, TokenizedPair, View, record_attention
from softgaze.explain.attention_map import default_attention
from softgaze.explain.recorder import TorchScorer
from softgaze.explain.scoring import IdPair, batches
from softgaze.explain.word_spans import EOS_MARK
from softgaze.models import Source, build_model
from softgaze.special_tokens import BOS, EOS

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIRS = [
    ("the dog runs.", "개 달려요."),
    ("a small red cat sees the tree.", "작은 고양이 나무 봐요."),
    ("man", "고양이"),
]
ATTENTIVE = [arch for arch in TEXT if arch != "rnn"]


def make(arch, **options):
    torch.manual_seed(0)
    return build_model(arch, source_vocabulary=len(TOKENIZERS.source), width=16, **options).eval()


@pytest.fixture(params=ATTENTIVE)
def model(request):
    return make(request.param)


def tokenized_pairs():
    return [TokenizedPair.of(*pair, TOKENIZERS) for pair in PAIRS]


def test_rows_sum_to_one_in_every_kind(model):
    for (source, target), recording in zip(PAIRS, record_attention(model, TOKENIZERS, tokenized_pairs()), strict=True):
        attention = default_attention(recording, None)
        assert attention.source == (*source.split(), EOS_MARK)
        assert attention.target == (*target.split(), EOS_MARK)
        for kind in recording.kinds:
            assert np.allclose(attention.with_view(kind=kind, layer=None, head=None).weights.sum(axis=1), 1, atol=1e-5)


def test_a_sentence_in_a_batch_is_recorded_as_if_alone(model):
    together = record_attention(model, TOKENIZERS, tokenized_pairs())
    alone = [record_attention(model, TOKENIZERS, [pair])[0] for pair in tokenized_pairs()]
    for one, other in zip(together, alone, strict=True):
        for kind in one.kinds:
            for name in ("weights", "norms"):
                first, second = (getattr(getattr(each.parts[0], kind), name) for each in (one, other))
                assert np.allclose(first, second, atol=1e-5)


def test_the_row_of_a_word_is_the_step_that_predicted_it(model):
    [recording] = record_attention(model, TOKENIZERS, tokenized_pairs()[:1])
    [ids] = tokenized_pairs()[0].parts
    state = model.start(model.encode(Source.of([[*ids.source, EOS]])))
    rows = []
    for token in [BOS, *ids.target]:
        step = model.step(torch.tensor([token]), state)
        state = step.state
        rows.append(step.weights[0].detach().numpy())  # (H, S) of the last layer
    assert np.allclose(recording.parts[0].cross.weights[-1], np.stack(rows, 1), atol=1e-5)


def test_a_transformer_records_all_layers_heads_and_kinds():
    model = make("transformer", encoder_layers=3, decoder_layers=2, heads=4)
    [recording] = record_attention(model, TOKENIZERS, tokenized_pairs()[:1])
    assert recording.kinds == ("cross", "encoder", "decoder")
    assert [recording.size(kind) for kind in recording.kinds] == [(2, 4), (3, 4), (2, 4)]


def test_norms_are_those_of_the_values():
    model = make("transformer", encoder_layers=1, decoder_layers=1, heads=2)
    [recording] = record_attention(model, TOKENIZERS, tokenized_pairs()[:1])
    [ids] = tokenized_pairs()[0].parts
    memory = model.encode(Source.of([[*ids.source, EOS]]))
    values = model.decoder[0].cross.project_kv(memory.values).values  # (B, H, S, D)
    assert np.allclose(recording.parts[0].cross.norms[0], values[0].norm(dim=-1).detach().numpy(), atol=1e-5)


def test_shared_value_heads_have_a_norm_for_every_head():
    model = make("transformer", heads=4, key_heads=2)
    [recording] = record_attention(model, TOKENIZERS, tokenized_pairs()[:1])
    assert recording.parts[0].cross.norms.shape[1] == 4


def test_a_model_without_attention_records_nothing():
    [recording] = record_attention(make("rnn"), TOKENIZERS, tokenized_pairs()[:1])
    assert recording.kinds == ()
    assert default_attention(recording, None) is None


@pytest.mark.parametrize("pair", [("", "개"), ("the dog", ""), ("", "")])
def test_an_empty_side_has_no_map(model, pair):
    assert (
        default_attention(record_attention(model, TOKENIZERS, [TokenizedPair.of(*pair, TOKENIZERS)])[0], None) is None
    )


def test_parts_are_independent_blocks_of_one_map(model):
    one, two = (TokenizedPair.of(*pair, TOKENIZERS) for pair in PAIRS[:2])
    both = TokenizedPair(f"{one.source} {two.source}", f"{one.target} {two.target}", (*one.parts, *two.parts))
    whole, first, second = (
        default_attention(recording, SelectedMap(View(), 0, "", 0))
        for recording in record_attention(model, TOKENIZERS, [both, one, two])
    )
    rows, columns = first.weights.shape
    assert np.allclose(whole.weights[:rows, :columns], first.weights, atol=1e-5)
    assert np.allclose(whole.weights[rows:, columns:], second.weights, atol=1e-5)
    assert whole.source == first.source + second.source


def test_the_selected_map_is_shown_and_described():
    selected = SelectedMap(View(layer=1, head=2, rows="reading", measure="norms"), 0.9, "occlusion", 7)
    [recording] = record_attention(make("transformer"), TOKENIZERS, tokenized_pairs()[:1])
    attention = default_attention(recording, selected)
    assert attention.view == selected.view
    assert "selected by occlusion" in attention.description
    assert isinstance(attention, Attention)


def test_batches_hold_every_pair_once_within_the_budget():
    pairs = [IdPair([1] * length, [1] * (length // 2)) for length in (3, 9, 1, 30, 4, 4, 8)]
    batched = list(batches(pairs, 20))
    assert sorted(index for indices in batched for index in indices) == list(range(len(pairs)))
    for indices in batched:
        longest = max(len(pairs[index].source) + 1 for index in indices)
        assert len(indices) == 1 or longest * len(indices) <= 20
    assert list(batches([])) == []


def test_log_probs_are_converted_to_double_on_the_cpu(without_doubles):
    [log_probs] = TorchScorer(make("transformer"), TOKENIZERS).log_probs(tokenized_pairs()[0].parts)
    assert log_probs.dtype == np.float64
