"""Confidence of words: what counts as right, the fit, reliability, and words in the same position."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundles import SMALL, copier, lines, make_bundle
from softgaze.bundle import CONFIDENCE, add_facts
from softgaze.errors import DataError, UsageError
from softgaze.evaluation.confidence_metrics import Reliability, area_under_curve, reliability_chart
from softgaze.explain.confidence import Calibration, features_of, matched_words
from softgaze.explain.word_spans import TokenizedText
from softgaze.search import SearchOptions
from softgaze.translator import load

WORDS = st.lists(st.sampled_from("abc"), max_size=6)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(make_bundle(tmp_path_factory.mktemp("confidence") / "tiny", options=SMALL), "cpu", engine="torch")


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, 1):
        above, row = row, [i]
        for j, other_word in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (word != other_word)))
    return row[-1]


# --- right words


def test_punctuation_around_a_word_does_not_count():
    matched = matched_words(["The", "dog,", "which", "slept", "."], ["The", "dog", "that", "slept", "."])
    assert matched.tolist() == [True, True, False, True, True]


@given(WORDS, WORDS)
def test_right_words_are_those_of_a_minimal_edit_distance(words, reference):
    matched = matched_words(words, reference)
    assert matched_words(words, words).all()
    kept = [word for word, is_kept in zip(words, matched, strict=True) if is_kept]
    rest = iter(reference)
    assert all(word in rest for word in kept)  # in the order of the reference
    assert edit_distance(words, reference) >= max(len(words), len(reference)) - len(kept)


# --- calibration


def sample(count, seed=1):
    """Words whose outcomes follow a known logistic function of their features."""
    random = np.random.default_rng(seed)
    logs = -random.exponential(1.0, (count, 3))
    features = np.concatenate([logs, np.exp(logs)], axis=1)
    known = Calibration((-1.0, 0.5, 0.2, 0.1, 2.0, 0.5, 0.3), 0, 0)
    return features, random.random(count) < known.probs(features), known


def test_a_fit_recovers_the_probabilities_and_is_reliable_on_other_words():
    features, is_right, known = sample(20_000)
    fitted = Calibration.fit(features, is_right, 7)
    other, outcomes, _ = sample(20_000, seed=2)
    assert np.abs(fitted.probs(other) - known.probs(other)).mean() < 0.01
    assert Reliability.of(fitted.probs(other), outcomes).ece < 0.02
    assert Reliability.of(np.exp(other[:, 0]), outcomes).ece > 0.05
    assert Calibration.of_facts(fitted.to_facts()) == fitted


def test_too_few_words_or_equal_outcomes_are_not_fitted():
    features, is_right, _ = sample(500)
    assert Calibration.fit(features[:50], is_right[:50], 1) is None
    assert Calibration.fit(features, np.ones(500, bool), 1) is None


@pytest.mark.parametrize("stored", [{}, {"weights": [1.0], "sentences": 1, "words": 1}, [1], {"weights": "x"}])
def test_a_damaged_calibration_is_rejected(stored):
    with pytest.raises(DataError, match="confidence"):
        Calibration.of_facts({CONFIDENCE: stored})


def test_reliability_compares_bins_with_outcomes():
    confidence, is_right = np.array([0.95, 0.95, 0.15, 0.15]), np.array([True, True, False, True])
    reliability = Reliability.of(confidence, is_right)
    assert reliability.ece == pytest.approx((2 * 0.05 + 2 * 0.35) / 4)
    assert reliability.auc == pytest.approx((1 + 1 + 0.5) / 3)
    assert (reliability.words, reliability.right) == (4, 0.75)
    assert np.isnan(area_under_curve(confidence, np.ones(4, bool)))
    low, high = reliability.bins[0].interval
    assert 0 <= low < 0.5 < high <= 1
    features, outcomes, known = sample(1000)
    drawn = reliability_chart({"a model": Reliability.of(known.probs(features), outcomes)})
    assert "a model" in drawn
    assert "not calibrated" in drawn


def test_features_sum_the_tokens_of_a_word_without_its_punctuation():
    text = TokenizedText.of("big dogs.", [["▁big", "▁dog", "s", "."]], after=())
    features = features_of(text, np.array([-1.0, -0.5, -0.25, -9.0]))
    np.testing.assert_allclose(features[:, :3], [[-1.0, -0.875, 0.0], [-0.75, -0.875, -1.0]])
    np.testing.assert_allclose(features[:, 3:], np.exp(features[:, :3]))


# --- translations


def test_confidence_is_the_probability_of_the_word_until_it_is_calibrated(model, tmp_path):
    translations = model.translate([*lines("en", 5), ""])
    for translation, confidence in zip(translations, model.confidences(translations), strict=True):
        assert "".join(confidence.words) == "".join(translation.text.split())
        assert not confidence.to_dict()["calibrated"]
        if translation.finished:
            assert np.log(confidence.values).sum() >= translation.log_prob - 1e-4  # without EOS and punctuation
    path = make_bundle(tmp_path / "calibrated")
    add_facts(path, Calibration((0.0,) * 7, 3, 100).to_facts())
    assert load(path, "cpu").translate("the dog").confidence.values == pytest.approx(0.5)


def test_a_certain_model_is_certain(tmp_path):
    copied = copier(tmp_path).translate("the small dog runs.")
    assert copied.confidence.words == ("the", "small", "dog", "runs.")
    assert copied.confidence.values == pytest.approx(1, abs=1e-3)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(lines("en", 20)), st.integers(0, 5), st.integers(1, 5))
def test_alternatives_keep_the_words_before_and_differ_in_the_word(model, source, index, count):
    translation = model.translate(source, SearchOptions(beam_size=2, max_length=12))
    words = translation.confidence.words
    index = min(index, len(words) - 1)
    found = translation.alternatives_at(index, count)
    assert 0 < len(found) <= count
    probs = [alternative.probability for alternative in found]
    assert probs == sorted(probs, reverse=True)
    assert sum(probs) <= 1 + 1e-4
    assert len({alternative.word for alternative in found}) == len(found)
    before = "".join(words[:index])
    for alternative in found:
        rest = "".join(alternative.translation.text.split()).removeprefix(before)
        assert rest.startswith("".join(alternative.word.split()))


def test_a_long_text_continues_in_the_part_of_the_word(model):
    text = "The dog runs. A small cat sees the old man, the red tree and a dog! Does the man sleep? " * 2
    translation = model.translate(text, SearchOptions(beam_size=1, max_length=8))
    assert len(translation.parts) > 2
    index = len(translation.confidence.words) - 1
    for alternative in translation.alternatives_at(index, 2):
        assert alternative.translation.parts[:-1] == translation.parts[:-1]


@pytest.mark.parametrize(("index", "count"), [(99, 5), (-1, 5), (0, 0), (0, 99)])
def test_a_missing_word_is_rejected(model, index, count):
    with pytest.raises(UsageError):
        model.translate("the dog").alternatives_at(index, count)
