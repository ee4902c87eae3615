"""Occlusion equals scoring each variant alone; faithfulness is Spearman's correlation; planted reasons are found."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bundles import tokenizer
from checks import TEXT
from planted import Planted
from softgaze.bundle import Tokenizers
from softgaze.explain import Attention, TokenizedPair, View, record_attention
from softgaze.explain.interventions import MaskTokens
from softgaze.explain.occlusion import (
    _OcclusionPlan,
    faithfulness,
    occlusion_scores,
    unsupported_words,
    word_faithfulness,
    word_support,
)
from softgaze.explain.recording import HeadSelector
from softgaze.explain.scoring import IdPair, scorer_for
from softgaze.models import Source, build_model
from softgaze.special_tokens import BOS, EOS

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIRS = [("the dog runs.", "개 달려요."), ("a small red cat sees the old tree", "작은 고양이 나무 봐요"), ("man", "개")]
LONG = PAIRS[1]


def tokenize(pair):
    return TokenizedPair.of(*pair, TOKENIZERS)


def make(arch):
    torch.manual_seed(0)
    return build_model(arch, source_vocabulary=len(TOKENIZERS.source), width=16).eval()


def stepwise_log_probs(model, source, target):
    state, total = model.start(model.encode(Source.of([[*source, EOS]]))), []
    for token, following in zip([BOS, *target], target, strict=False):
        step = model.step(torch.tensor([token]), state)
        state = step.state
        total.append(float(step.logits[0].detach().log_softmax(-1)[following]))
    return total


@pytest.mark.parametrize("arch", TEXT)
def test_batched_log_probs_are_those_of_the_steps(arch):
    model, parts = make(arch), [tokenize(pair).parts[0] for pair in PAIRS]
    for part, log_probs in zip(parts, scorer_for(model, TOKENIZERS).log_probs(parts), strict=True):
        assert np.allclose(log_probs, stepwise_log_probs(model, *part[:2]), atol=1e-4)


@pytest.mark.parametrize("arch", TEXT)
def test_the_score_of_a_word_is_the_log_prob_lost_without_it(arch):
    """Leave out source word 1, then word 2 without its punctuation; also for a model without attention."""
    model = make(arch)
    scores = occlusion_scores(model, TOKENIZERS, [tokenize(pair) for pair in PAIRS])
    [ids] = tokenize(PAIRS[0]).parts
    without = tokenizer().encode(["the runs."])[0]
    lost = np.array(stepwise_log_probs(model, *ids[:2])) - np.array(stepwise_log_probs(model, without, ids.target))
    _, target = tokenize(PAIRS[0]).texts(TOKENIZERS)
    expected = [sum(lost[position] for position in label.positions) for label in target.core_labels()]
    assert scores[0].shape == (2, 3)
    assert np.allclose(scores[0][:, 1], expected, atol=1e-4)
    assert [each.shape for each in scores] == [(2, 3), (4, 8), (1, 1)]
    stopped = tokenizer().encode(["the dog."])[0]
    lost = np.array(stepwise_log_probs(model, *ids[:2])) - np.array(stepwise_log_probs(model, stopped, ids.target))
    expected = [sum(lost[position] for position in label.positions) for label in target.core_labels()]
    assert np.allclose(scores[0][:, 2], expected, atol=1e-4)


@pytest.mark.parametrize("arch", ["rnn-luong", "transformer"])
def test_the_last_row_is_that_of_eos(arch):
    model = make(arch)
    pairs = [tokenize(pair) for pair in PAIRS]
    scores = occlusion_scores(model, TOKENIZERS, pairs, include_eos=True)
    for one, other in zip(scores, occlusion_scores(model, TOKENIZERS, pairs), strict=True):
        assert np.array_equal(one[:-1], other)
    [ids] = pairs[0].parts
    whole, without = [*ids.target, EOS], tokenizer().encode(["the runs."])[0]
    expected = stepwise_log_probs(model, ids.source, whole)[-1] - stepwise_log_probs(model, without, whole)[-1]
    assert scores[0][-1, 1] == pytest.approx(expected, abs=1e-4)


def test_words_of_another_part_are_unknown():
    one, two = tokenize(PAIRS[0]), tokenize(PAIRS[1])
    both = TokenizedPair(f"{one.source} {two.source}", f"{one.target} {two.target}", (*one.parts, *two.parts))
    whole, first, second = occlusion_scores(make("transformer"), TOKENIZERS, [both, one, two])
    rows, columns = first.shape
    assert np.allclose(whole[:rows, :columns], first, atol=1e-4)
    assert np.allclose(whole[rows:, columns:], second, atol=1e-4)
    assert np.isnan(whole[:rows, columns:]).all()
    assert np.isnan(whole[rows:, :columns]).all()


def test_an_empty_side_has_no_scores():
    scores = occlusion_scores(make("conv"), TOKENIZERS, [tokenize(("", "개")), tokenize(("a", ""))])
    assert [each.size for each in scores] == [0, 0]
    [log_probs] = scorer_for(make("transformer"), TOKENIZERS).log_probs([IdPair([5], [])])
    assert log_probs.size == 0


def planted_faithfulness(model, view):
    [recording] = record_attention(model, TOKENIZERS, [tokenize(LONG)])
    [occlusion] = occlusion_scores(model, TOKENIZERS, [tokenize(LONG)])
    return faithfulness(Attention(recording, view), occlusion)


def test_a_planted_head_is_faithful_and_its_opposite_is_not():
    model = Planted(tokenize(LONG), len(tokenizer()), faithful=(1, 0))
    assert planted_faithfulness(model, View(layer=1, head=0)) > 0.95
    assert planted_faithfulness(model, View(layer=0, head=0)) < -0.95


def test_a_map_one_step_late_is_faithful_only_as_reading():
    model = Planted(tokenize(LONG), len(tokenizer()), late=True)
    right, wrong = (planted_faithfulness(model, View(layer=1, head=0, rows=rows)) for rows in ("reading", "predicting"))
    assert right > 0.95
    assert wrong < 0.6


def test_interventions_follow_their_tokens_when_words_are_left_out():
    plain = tokenize(("the dog runs", "개"))
    [part] = plain.parts
    masked = replace(plain, parts=(part._replace(interventions=(MaskTokens((HeadSelector(),), (1,)),)),))
    variants = _OcclusionPlan(masked, TOKENIZERS).variants()
    positions = [[each.positions for each in variant.interventions] for variant in variants]
    assert positions == [[(1,)], [(0,)], [()], [(1,)]]  # as it is, then without each word


# --- faithfulness


rows = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=7)


def as_matrix(row):
    return np.array([row])


def pearson_of_mean_ranks(first, second):
    order = [[sorted(row).index(x) + (row.count(x) - 1) / 2 for x in row] for row in (first, second)]
    return np.corrcoef(*order)[0, 1]


@given(
    st.integers(2, 7).flatmap(lambda size: st.tuples(*[st.lists(st.integers(-3, 3), min_size=size, max_size=size)] * 2))
)
def test_it_is_the_correlation_of_mean_ranks(pair):
    first, second = pair
    correlation = word_faithfulness(as_matrix(first).astype(float), as_matrix(second).astype(float))[0]
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx(pearson_of_mean_ranks(first, second))


@given(rows)
def test_monotonic_functions_correlate_fully(row):
    values = as_matrix(row)
    if len(set(row)) > 1:
        assert word_faithfulness(values, np.exp(values))[0] == pytest.approx(1)
        assert word_faithfulness(values, -values)[0] == pytest.approx(-1)


def test_unknown_scores_are_ignored():
    weights, occlusion = np.array([[0.1, 0.9, 0.3, 0.2]]), np.array([[1.0, np.nan, 3.0, 2.0]])
    assert word_faithfulness(weights, occlusion)[0] == pytest.approx(1)


def test_faithfulness_is_the_mean_over_words_without_eos():
    attention = Attention.of(["a", "b", "⏎"], ["x", "y", "⏎"], [[0.1, 0.2, 0.7], [0.3, 0.2, 0.5], [0, 0, 1]])
    assert faithfulness(attention, np.array([[1.0, 2.0], [1.0, 2.0]])) == pytest.approx(0)
    assert faithfulness(attention, np.array([[1.0, 2.0], [2.0, 1.0]])) == pytest.approx(1)
    assert np.isnan(faithfulness(Attention.of(["a"], ["x"], [[1.0]]), np.array([[2.0]])))  # nothing to rank
    with pytest.raises(ValueError, match="expected occlusion scores of shape"):
        word_faithfulness(np.ones((1, 2)), np.ones((1, 3)))


# --- support


def test_a_word_is_supported_by_a_source_word_that_makes_it_likely():
    occlusion = np.array([[5.0, 0.0], [0.0, 0.0], [0.1, -3.0], [np.nan, 4.0]])
    support = word_support(occlusion, np.array([-0.1, -0.1, -9.0, -9.0]))
    np.testing.assert_allclose(support, [5 / 6.1, 0, 0.1 / 10.1, 4 / 14], atol=1e-9)
    assert unsupported_words(["dog", ".", "xyz", "cat"], support) == (2,)  # punctuation is not flagged
    assert unsupported_words(["dog", "and", "xyz", "cat"], support) == (1, 2)
