"""The page as a person sees it: in a real browser, offline. Its arithmetic is that of `Attention`, for every view."""

from dataclasses import asdict
from itertools import product

import numpy
import pytest

from maps import random_recording
from softgaze.gaze import Attention, Choice, View
from softgaze.gaze.honesty import honesty
from softgaze.gaze.page import page

CHOICE = Choice(View(layer=1, head=0), 0.125, "influence", 24)  # a score that is rounded to even: 0.12


def views(recording):
    """Every map there is."""
    for kind in recording.kinds:
        layers, heads = recording.size(kind)
        fields = (
            [None, *range(layers)],
            [None, *range(heads)],
            ("predicting", "reading"),
            ("weights", "norms", "rollout"),
        )
        for layer, head, rows, measure, unit in product(*fields, ("words", "subwords")):
            yield View(kind, layer, head, rows, measure, unit)


def one_part(seed):
    pieces = [(["▁a", "▁do", "g", "▁sleeps"], ["▁개", "가", "▁자", "요"])]
    return random_recording(pieces, "a dog sleeps", "개가 자요", seed)


READ = """views => views.map(view => {
  const map = mapOf(recording, view), weights = wordWeights(recording, view);
  return {
    source: map.columns.map(each => each.text), target: map.rows.map(each => each.text),
    weights: Array.from(map.values), shows: showsOf(recording, view, facts.names, facts.choice),
    entropy: entropies(map), coverage: coverages(map), sink: sinkOf(map), pharaoh: linksOf(recording, view),
    honesty: view.kind === "cross" ? honestyOf(weights, influence) : null,
  };
})"""


@pytest.mark.parametrize("recording", [random_recording(seed=1), one_part(2)], ids=["two parts", "one part"])
def test_every_view_is_computed_as_python_does(open_page, recording):
    shape = len(recording.target.words), len(recording.source.words)
    influence = numpy.random.default_rng(0).normal(size=shape)
    influence[0, 1] = numpy.nan
    every = list(views(recording))
    opened = open_page(page(Attention(recording, View(), CHOICE), influence=influence))
    for view, found in zip(every, opened.evaluate(READ, [asdict(view) for view in every]), strict=True):
        wanted = Attention(recording, view, CHOICE)
        assert (tuple(found["source"]), tuple(found["target"]), found["shows"]) == (
            wanted.source,
            wanted.target,
            wanted.shows,
        )
        assert abs(numpy.reshape(found["weights"], wanted.weights.shape) - wanted.weights).max() < 1e-4
        numpy.testing.assert_allclose(found["entropy"], wanted.entropy(), atol=1e-3)
        numpy.testing.assert_allclose(found["coverage"], wanted.coverage(), atol=1e-3)
        assert found["sink"] == pytest.approx(wanted.sink, abs=1e-4)
        assert {tuple(link) for link in found["pharaoh"]} == wanted.alignment().links
        if view.kind == "cross":
            assert found["honesty"] == pytest.approx(honesty(wanted, influence), abs=1e-6)
