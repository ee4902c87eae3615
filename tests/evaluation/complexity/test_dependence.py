"""Dependence: planted strengths are found, all models are measured at the same words, and gradients are right."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bundles import lines, make_bundle, tokenizer
from checks import TEXT
from softgaze.bundle import Tokenizers
from softgaze.data.corpus import Pair
from softgaze.data.tokenizer import train_tokenizer
from softgaze.evaluation.complexity.dependence import (
    Dependence,
    Link,
    LinkStrength,
    common_edges,
    comparable_pairs,
    compare_models,
    dependence_matrices,
    gradients,
    link_strengths,
    log_odds,
    measure_dependence,
    sample_by_length,
    select_links,
)
from softgaze.evaluation.complexity.report import dependence_chart, dependence_text
from softgaze.explain.recorder import collate_pairs
from softgaze.explain.scoring import TokenizedPair
from softgaze.models import build_model
from softgaze.translator import load

PAIRS = [Pair(*pair) for pair in zip(lines("en", 40), lines("ko", 40), strict=True)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("why")
    models = {
        "rnn": load(make_bundle(directory / "rnn", arch="rnn", options={"width": 16})),
        "other": load(make_bundle(directory / "other")),
    }
    return measure_dependence(models, PAIRS)


def test_words_are_linked_that_are_each_others_maximum():
    """Three source words, two output words; on one line they stand at 0 1 2 3 4."""
    matrix = np.array([[5.0, 1.0, 2.0], [1.0, 7.0, np.nan]])
    links = select_links([[matrix]])
    assert links == [Link(0, 0, 0), Link(0, 1, 1)]
    assert list(link_strengths([matrix], links)) == [LinkStrength(0, 3, 5.0), LinkStrength(0, 3, 7.0)]


def test_a_word_without_a_token_in_one_model_is_linked_for_none():
    whole, part = np.array([[9.0, 1.0]]), np.array([[np.nan, 1.0]])
    assert (select_links([[whole], [part]])) == [Link(0, 1, 0)]


def test_all_models_have_the_same_weight_in_linking():
    quiet, loud = np.diag([2.0, 2.0]), np.array([[900.0, 1000.0], [1000.0, 900.0]])
    assert (select_links([[quiet], [loud]])) == [Link(0, 0, 0), Link(0, 1, 1)]


def test_both_measures_have_gaps_at_the_same_words(tmp_path):
    """So that a link of the one is never a gap of the other."""
    pairs = [Pair("the dog , runs .", "개 , 달려요 !"), Pair("“ a small ” cat.", "작은 ‘ 고양이 ’ .")]
    found = dependence_matrices(load(make_bundle(tmp_path / "model")), pairs)
    for one, other in zip(found["gradient"], found["occlusion"], strict=True):
        assert (np.isnan(one) == np.isnan(other)).all()


def test_only_pairs_with_the_same_words_in_all_models_are_compared(tmp_path):
    """Without spaces words are subwords, and the second tokenizer was trained on other text."""
    model, unspaced = load(make_bundle(tmp_path / "model")), Pair("the dog", "我爱北京天安门")
    assert comparable_pairs({"one": model, "other": model}, [*PAIRS, unspaced]) == [*PAIRS, unspaced]
    chinese = train_tokenizer(["我爱北京", "北京天安门", "爱天安门"] * 20)
    other = SimpleNamespace(bundle=SimpleNamespace(tokenizers=Tokenizers(chinese, chinese)))
    assert comparable_pairs({"one": model, "other": other}, [*PAIRS, unspaced]) == PAIRS


def test_every_link_of_every_model_and_measure_is_in_a_bucket(found):
    assert [(each.model, each.measure) for each in found] == [
        (name, measure) for name in ("rnn", "other") for measure in ("gradient", "occlusion")
    ]
    assert all(len(each.links) == sum(bucket.words for bucket in each.buckets) for each in found)
    assert len({each.edges for each in found}) == 1


def test_all_models_are_measured_at_the_same_words(found):
    for measure in ("gradient", "occlusion"):
        one, other = ([link[:2] for link in each.links] for each in found if each.measure == measure)
        assert one == other
        assert {place for place, _ in one} == set(range(len(PAIRS)))


# --- what distance does, from matrices on --------------------------------------------------------------------------


def drawn_matrices(rng, lengths, spread_of, decay=1.0):
    """Links along the diagonal, as strong as each word happens to be, and less by a factor with each step."""
    strengths = [rng.lognormal(0, spread_of, size=length) * decay**length for length in lengths]
    return [np.diag(each) + 0.05 * rng.lognormal(size=(len(each), len(each))) for each in strengths]


def both(make):
    """Draw new values for either measure."""
    return {measure: make() for measure in ("gradient", "occlusion")}


def against_first(models):
    return [each.relative_to_baseline for each in compare_models(models, dict.fromkeys(models, "rnn")) if each.baseline]


@pytest.mark.parametrize("seed", range(3))
def test_without_an_effect_of_distance_the_interval_contains_one(seed):
    """Where all is noise, a word's most grows with the length of a sentence; where links are, weak words stray."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 30, size=80)
    noise = {name: both(lambda: [rng.lognormal(0, 0.5, size=(n, n)) for n in lengths]) for name in "ab"}
    linked = {name: both(lambda: drawn_matrices(rng, lengths, 0.5)) for name in "ab"}
    for share in [*against_first(noise), *against_first(linked)]:
        assert share.low <= 1 <= share.high


def test_the_ratio_of_pure_noise_is_about_one():
    """Not so if the number that is shown chose its place: the most of many is more than the most of few."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 30, size=300)
    [found, _] = compare_models(
        {"a": both(lambda: [rng.lognormal(0, 0.5, size=(n, n)) for n in lengths])}, {"a": "rnn"}
    )
    assert found.far_to_near.low <= 1 <= found.far_to_near.high


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_forgets_with_distance_is_detected(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 30, size=80)
    models = {
        "a": both(lambda: drawn_matrices(rng, lengths, 0.5)),
        "b": both(lambda: drawn_matrices(rng, lengths, 0.5, decay=0.97)),
    }
    assert all(share.high < 1 for share in against_first(models))
    turned = dict(reversed(models.items()))
    assert all(share.low > 1 for share in against_first(turned))


def test_a_model_compared_with_itself_has_ratio_one(found):
    first = found[0]
    share = replace(first, baseline=first).relative_to_baseline
    assert (share.score, share.low, share.high) == pytest.approx((1, 1, 1))


def planted(decay, sentences=60, length=20):
    """Words at distances 1 to `length` whose strength falls by a factor with each step."""
    links = [
        LinkStrength(sentence, step, 8 * decay**step) for sentence in range(sentences) for step in range(1, length + 1)
    ]
    return Dependence("m", "rnn", "gradient", tuple(links), (5, 10, 15))


def test_a_planted_decay_is_measured():
    assert planted(0.9).far_to_near.score == pytest.approx(0.9**15)
    means = [bucket.strength.score for bucket in planted(0.9).buckets]
    assert means == sorted(means, reverse=True)


def test_a_single_bucket_is_not_compared_with_itself():
    alone = Dependence("m", "rnn", "gradient", (LinkStrength(0, 1, 2.0),), (1,))
    assert alone.far_to_near is None
    assert alone.to_dict()["far_to_near"] is None
    assert "– (one bucket only)" in dependence_text([alone, replace(alone, measure="occlusion")], 1)
    assert ElementTree.fromstring(dependence_chart([alone, replace(alone, measure="occlusion")], 1)) is not None


def ends(near, far):
    """Sentences with one near and one far word each, of given strengths."""
    links = [
        LinkStrength(n, step, s)
        for n, both_ends in enumerate(zip(near, far, strict=True))
        for step, s in zip((1, 9), both_ends, strict=True)
    ]
    return Dependence("m", "rnn", "gradient", tuple(links), (5,))


@pytest.mark.parametrize(
    "near",
    [[0.0] * 20, [-1.0] * 20, [1.0, -1.0] * 10, [3.0] * 6 + [-1.0] * 14],
    ids=["nothing", "less than nothing", "about nothing", "perhaps nothing"],
)
def test_there_is_no_ratio_if_the_near_strength_may_be_zero(near):
    found = ends(near, [-0.6] * 20)
    assert (found.far_to_near, found.missing_ratio) == (None, "near not above 0")
    beside = replace(ends([1.0] * 20, [0.5] * 20), baseline=found)
    assert (beside.relative_to_baseline, beside.missing_comparison) == (None, "first: near not above 0")
    assert (found.to_dict()["missing"], beside.to_dict()["missing"]) == ("near not above 0", "first: near not above 0")
    shown = [found, beside, *(replace(each, measure="occlusion") for each in (found, beside))]
    assert "– (near not above 0)" in dependence_text(shown, 20)
    assert "– (first: near not above 0)" in dependence_text(shown, 20)
    assert "– (near not above 0)" in dependence_chart(shown, 20)
    assert "÷ first model – (first: near not above 0)" in dependence_chart(shown, 20)


def test_there_is_no_comparison_if_the_far_strength_of_the_first_model_may_be_zero():
    first = ends([1.0] * 20, [1.0, -1.0] * 10)
    assert first.far_to_near.score == pytest.approx(0)
    beside = replace(ends([1.0] * 20, [0.5] * 20), baseline=first)
    assert (beside.relative_to_baseline, beside.missing_comparison) == (None, "first: far not above 0")


@pytest.mark.parametrize(("near", "far"), [(2.0, -3.0), (-2.0, -0.5), (0.0, 0.0), (0.7, 0.2)])
def test_negative_strengths_are_drawn_inside_their_panel(near, far):
    found = ends([near] * 20, [far] * 20)
    root = ElementTree.fromstring(dependence_chart([found, replace(found, measure="occlusion")], 20))
    for line in root.findall(".//{*}polyline"):
        heights = [float(place.split(",")[1]) for place in line.attrib["points"].split()]
        assert all(39.9 <= down <= 240.1 for down in heights)
    assert "-0.00" not in dependence_text([ends([-0.001] * 9, [1.0] * 9), replace(found, measure="occlusion")], 20)


def test_confidence_intervals_hold_the_observed_value(found):
    for each in found:
        for bucket in each.buckets:
            assert bucket.strength.low <= bucket.strength.score <= bucket.strength.high


@given(st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=80), min_size=1, max_size=4))
def test_buckets_grow_and_everything_is_in_one(distances):
    edges = common_edges(distances)
    assert list(edges) == sorted(set(edges))
    links = tuple(LinkStrength(0, distance, 1.0) for distance in distances[0])
    buckets = Dependence("m", "rnn", "gradient", links, edges).buckets
    assert sum(bucket.words for bucket in buckets) == len(links)
    assert len(buckets) <= len(edges) + 1


@given(st.lists(st.integers(0, 30), max_size=80), st.integers(1, 30))
def test_pairs_are_spread_over_lengths_and_none_is_empty(counts, most):
    pairs = [Pair(" ".join(["a"] * count), "b") for count in counts]
    chosen = sample_by_length(pairs, most)
    assert len(chosen) == min(most, sum(count > 0 for count in counts))
    assert all(pair.source for pair in chosen)


def test_text_json_and_chart_contain_every_model(found):
    text = dependence_text(found, len(PAIRS))
    assert text.count("rnn  ") == 2
    assert text.count("other (transformer)") == 2
    assert json.loads(json.dumps([each.to_dict() for each in found], allow_nan=False))[0]["arch"] == "rnn"
    root = ElementTree.fromstring(dependence_chart(found, len(PAIRS)))
    assert len(root.findall(".//{*}polyline")) == 4


def test_other_models_are_compared_with_the_first_in_every_output(found):
    records = [each.to_dict() for each in found]
    assert [each["first"] for each in records] == [None, None, "rnn", "rnn"]
    text, picture = dependence_text(found, 37, left_out=3), dependence_chart(found, 37, left_out=3)
    for each in found[2:]:
        assert each.relative_to_baseline is not None or each.missing_comparison in text
        if each.relative_to_baseline:
            assert f"{each.relative_to_baseline.score:.2f} ({each.relative_to_baseline.low:.2f}–" in text
            assert f"; ÷ first model {each.relative_to_baseline.score:.2f} (" in picture
    assert "÷ first model" in text
    assert "1 is not expected" in text
    assert "37 sentence pairs; 3 left out, which the models split into different words" in " ".join(text.split())
    assert "37 sentence pairs; 3 left out" in picture
    assert "÷ first model" not in dependence_text(found[:2], 37)
    assert max(map(len, text.splitlines())) <= 110


# --- gradients

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
GRADIENT_PAIRS = [
    ("the dog runs.", "개 달려요."),
    ("a small red cat sees the old tree", "작은 고양이 나무 봐요"),
    ("man", "개"),
]


def passages():
    return [TokenizedPair.of(*pair, TOKENIZERS) for pair in GRADIENT_PAIRS]


def make(arch, **options):
    torch.manual_seed(0)
    return build_model(arch, source_vocabulary=len(TOKENIZERS.source), width=16, **options).eval()


def test_log_odds_are_those_of_the_probability():
    logits, wanted = torch.randn(2, 3, 7), torch.randint(0, 7, (2, 3))
    chance = logits.softmax(-1).gather(-1, wanted[..., None]).squeeze(-1)
    assert torch.allclose(log_odds(logits, wanted), (chance / (1 - chance)).log(), atol=1e-5)


def test_log_odds_of_certainty_still_have_a_slope():
    logits = torch.tensor([[[60.0, 0.0, -3.0]]], requires_grad=True)
    log_odds(logits, torch.tensor([[0]])).sum().backward()
    assert logits.grad[0, 0, 0] == pytest.approx(1.0)
    logits.grad = None
    logits.log_softmax(-1)[0, 0, 0].backward()
    assert logits.grad[0, 0, 0] == pytest.approx(0.0)  # which is why log-probabilities are not asked


@pytest.mark.parametrize("arch", TEXT)
def test_a_pair_in_a_batch_has_the_gradients_it_has_alone(arch):
    model = make(arch)
    together = gradients(model, TOKENIZERS, passages())
    assert [each.shape for each in together] == [(2, 3), (4, 8), (1, 1)]
    for one, passage in zip(together, passages(), strict=True):
        [alone] = gradients(model, TOKENIZERS, [passage])
        assert np.allclose(one, alone, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("arch", TEXT)
def test_a_gradient_equals_that_of_the_embedding_rows_of_the_word(arch):
    """Of "dog" (source word 1) and the first output word; with a source table of its own, torch tells it, too."""
    model, passage = make(arch, tie="none"), passages()[0]
    [matrix] = gradients(model, TOKENIZERS, [passage])
    source, target = collate_pairs(passage.parts, TOKENIZERS, torch.device("cpu"))
    read, said = (side.core_labels() for side in passage.texts(TOKENIZERS))
    rows = source.values[0, list(read[1].positions)]
    odds = log_odds(model(source, target[:, :-1]), target[:, 1:])[0, list(said[0].positions)].sum()
    table = model.get_parameter("source_embedding.weight")
    [slope] = torch.autograd.grad(odds, table)
    assert matrix[0, 1] == pytest.approx(float(slope[rows].norm() * table[rows].norm().detach()), rel=1e-3)


def test_no_hook_or_gradient_stays_on_the_model():
    model = make("transformer")
    gradients(model, TOKENIZERS, passages())
    assert not model.get_submodule("source_embedding")._forward_hooks
    assert all(parameter.grad is None for parameter in model.parameters())


def test_gradients_are_converted_to_double_on_the_cpu(without_doubles):
    [first, *_] = gradients(make("transformer"), TOKENIZERS, passages())
    assert first.dtype == np.float64
