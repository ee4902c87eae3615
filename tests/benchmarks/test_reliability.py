"""Confidence intervals of the bins of the reliability diagram."""

import numpy as np

from benchmarks.reliability import bootstrap_interval
from softgaze.evaluation.confidence_metrics import ReliabilityBin


def test_an_interval_holds_the_share_of_right_links():
    """Texts whose links are right with a probability of 0.7: 19 of 20 intervals should hold it."""
    random, links = np.random.default_rng(1), np.full(40, 10)
    shares = random.binomial(links, 0.7, size=(200, 40)) / links
    held = [low <= 0.7 <= high for low, high in (bootstrap_interval(own, links) for own in shares)]
    assert 0.88 < np.mean(held) < 1


def test_links_that_are_wrong_together_make_an_interval_wider():
    links = np.full(20, 10)
    low, high = bootstrap_interval(np.repeat([0.0, 1.0], 10), links)
    narrow = ReliabilityBin(200, 0.5, 0.5)
    assert high - low > 1.5 * (narrow.interval[1] - narrow.interval[0])
    assert ReliabilityBin(200, 0.5, 0.5, (low, high)).interval == (low, high)
    assert bootstrap_interval(np.ones(1), np.ones(1)) == (0.0, 1.0)
