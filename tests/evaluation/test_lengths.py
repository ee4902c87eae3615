"""A curve is the scores of its buckets; together they hold every sentence."""

import pytest

from evaluation.systems import noisy, sentences
from softgaze.evaluation.buckets import make_buckets, source_lengths
from softgaze.evaluation.counts import count_system
from softgaze.evaluation.lengths import length_curve, length_differences
from softgaze.metrics import score

REFERENCES = sentences()
WRITTEN, OTHERS = noisy(REFERENCES, 0.2), noisy(REFERENCES, 0.5)
BUCKETS = make_buckets(source_lengths(REFERENCES))
ONE, OTHER = (count_system(texts, REFERENCES) for texts in (WRITTEN, OTHERS))


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_each_point_is_the_score_of_its_sentences(name):
    curve = length_curve("a", ONE, BUCKETS, name)
    assert sum(point.sentences for point in curve.points) == len(REFERENCES)
    assert len(curve.points) == len(BUCKETS) > 2
    for bucket, point in zip(BUCKETS, curve.points, strict=True):
        chosen = [WRITTEN[each] for each in bucket.members], [REFERENCES[each] for each in bucket.members]
        assert point.estimate.score == pytest.approx(getattr(score(*chosen, ter=False), name), abs=1e-9)
        assert point.estimate.low <= point.estimate.score <= point.estimate.high


def test_differences_are_between_the_points_of_two_curves():
    curves = [length_curve("a", each, BUCKETS, "chrf").points for each in (ONE, OTHER)]
    for one, other, apart in zip(*curves, length_differences(ONE, OTHER, BUCKETS, "chrf"), strict=True):
        assert apart.score == pytest.approx(one.estimate.score - other.estimate.score)
        assert apart.is_significant
