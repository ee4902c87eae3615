"""Comprehensiveness and sufficiency: a model whose output words each need one source word."""

import numpy as np
import pytest

from bundles import copier, lines, make_bundle
from softgaze.explain.erasure import MARGIN, SHARES, compare_maps, erasure_scores, most_faithful
from softgaze.explain.occlusion import occlusion_scores
from softgaze.explain.scoring import TokenizedPair
from softgaze.translator import load


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(make_bundle(tmp_path_factory.mktemp("erasure") / "tiny"), "cpu", engine="torch")


def test_scores_equal_a_calculation_by_hand(model):
    tokenizers = model.bundle.tokenizers
    pair = TokenizedPair.of("dog runs", "개 자요", tokenizers)
    [scores] = erasure_scores(model.engine, tokenizers, [pair], [[np.array([[1.0, 0.0], [0.0, 1.0]])]])

    def probs(source):
        words = TokenizedPair.of(source, "개 자요", tokenizers)
        text = words.texts(tokenizers)[1]
        [log_probs] = model.engine.log_probs(words.parts)
        return [np.exp(log_probs[list(label.positions)].sum()) for label in text.core_labels()]

    complete, dog, runs = probs("dog runs"), probs("dog"), probs("runs")
    # Of two words, every share erases one: the word of largest weight, or the other one.
    assert scores.comprehensiveness == pytest.approx((complete[0] - runs[0] + complete[1] - dog[1]) / 2, abs=1e-5)
    assert scores.sufficiency == pytest.approx((complete[0] - dog[0] + complete[1] - runs[1]) / 2, abs=1e-5)
    assert scores.words == 2


def test_occlusion_is_more_faithful_than_a_random_map_and_than_its_reverse(tmp_path):
    copy = copier(tmp_path)
    tokenizers, sources = copy.bundle.tokenizers, lines("en", 12)
    pairs = [TokenizedPair.of(source, source, tokenizers) for source in sources]
    occlusions = [np.nan_to_num(each) for each in occlusion_scores(copy.model, tokenizers, pairs)]
    random = np.random.default_rng(0)
    maps = [(each, -each, random.random(each.shape)) for each in occlusions]
    best, worst, chance = erasure_scores(copy.model, tokenizers, pairs, maps)
    assert best.comprehensiveness >= chance.comprehensiveness >= worst.comprehensiveness
    assert best.comprehensiveness > worst.comprehensiveness
    assert len({best.words, worst.words, chance.words}) == 1
    assert best.words > len(SHARES)


def test_a_source_of_one_word_is_left_out(model):
    pair = TokenizedPair.of("dog", "개", model.bundle.tokenizers)
    [scores] = erasure_scores(model.engine, model.bundle.tokenizers, [pair], [[np.ones((1, 1))]])
    assert scores.words == 0
    assert np.isnan(scores.comprehensiveness)


def test_maps_are_compared_on_sentences_of_the_given_lengths(model):
    translations = [model.score("dog runs", "개 자요"), model.score("dog runs dog runs dog", "개 자요")]
    scores = compare_maps(model, translations, range(2, 4))
    assert set(scores) == {"selected map", "random", "occlusion", "gradient", "gradient-norm", "contribution"}
    assert {each.words for each in scores.values()} == {2}
    assert compare_maps(model, translations, range(50, 60)) == {}


def test_attention_is_shown_unless_an_attribution_is_clearly_more_faithful():
    def stored(**values):
        names = {"selected": "selected map"}
        return {names.get(k, k): {"comprehensiveness": v, "sufficiency": 0.1} for k, v in values.items()}

    assert most_faithful({}) is None
    assert most_faithful(stored(selected=0.5, random=0.9, occlusion=0.9)) is None
    assert most_faithful(stored(selected=0.5, contribution=0.5 + MARGIN / 2, gradient=0.4)) is None
    assert most_faithful(stored(selected=0.5, contribution=0.5 + 2 * MARGIN, gradient=0.4)) == "contribution"
