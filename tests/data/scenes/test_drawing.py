"""Pixels and boxes: each thing in its colour where it should be, and the boxes tight around it."""

from dataclasses import replace

import numpy
import pytest

from softgaze.data.boxes import Box
from softgaze.data.scenes import SHAPES, SIDE, Scene, Scenes, Thing, draw
from softgaze.data.scenes.drawing import OUTLINES


def edges(box: Box, side: int) -> tuple[int, int, int, int]:
    scaled = [edge * side for edge in box]
    assert scaled == pytest.approx(numpy.rint(scaled)), "boxes are of whole pixels"
    left, top, right, bottom = (round(edge) for edge in scaled)
    return left, top, right, bottom


def alone(scene: Scene, thing: Thing) -> Scene:
    return replace(scene, rows=((thing,),))


@pytest.mark.parametrize("side", [SIDE, 97])
def test_boxes_hold_all_that_is_not_paper_and_not_a_pixel_more(scenes: Scenes, side: int):
    for scene in scenes.train[:100]:
        drawing = draw(scene, side)
        assert drawing.pixels.shape == (side, side, 3)
        assert drawing.pixels.dtype == numpy.uint8
        for thing, box in zip(scene.things, drawing.boxes, strict=True):
            inked = (draw(alone(scene, thing), side).pixels != scene.paper).any(axis=2)
            left, top, right, bottom = edges(box, side)
            assert inked[top:bottom, left:right].sum() == inked.sum()
            rows, columns = inked.any(axis=1).nonzero()[0], inked.any(axis=0).nonzero()[0]
            assert (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) == (left, top, right, bottom)


def test_things_do_not_touch_and_none_is_cut_off(scenes: Scenes):
    for scene in scenes.train[:300]:
        drawing = draw(scene)
        covered = numpy.zeros((SIDE, SIDE), dtype=int)
        for box in drawing.boxes:
            left, top, right, bottom = edges(box, SIDE)
            assert 0 < left < right < SIDE
            assert 0 < top < bottom < SIDE
            covered[top:bottom, left:right] += 1
        assert covered.max() == 1
        assert (drawing.pixels[covered == 0] == scene.paper).all()


def test_a_thing_has_pixels_of_its_colour(scenes: Scenes):
    for scene in scenes.train[:100]:
        pixels = draw(scene).pixels
        for thing, box in zip(scene.things, draw(scene).boxes, strict=True):
            left, top, right, bottom = edges(box, SIDE)
            pure = (pixels[top:bottom, left:right] == thing.colour.rgb).all(axis=2)
            assert pure.mean() > 0.1


def test_every_shape_has_an_outline_that_stays_in_its_circle():
    assert set(OUTLINES) == {shape.english for shape in SHAPES}
    x, y = numpy.meshgrid(numpy.linspace(-1.5, 1.5, 301), numpy.linspace(-1.5, 1.5, 301))
    for outline in OUTLINES.values():
        inside = outline(x, y)
        assert 0.1 < inside.mean() * 9 / numpy.pi < 1
        assert numpy.hypot(x, y)[inside].max() <= 1.0001


def test_shapes_of_one_size_are_told_apart(scenes: Scenes):
    """Even small ones, at the size we train on, differ in many pixels."""
    scene = next(one for one in scenes.train if one.things[0].size.english == "small")
    seen = [draw(alone(scene, replace(scene.things[0], shape=shape, turn=0.0))).pixels.astype(int) for shape in SHAPES]
    for place, one in enumerate(seen):
        for other in seen[:place]:
            assert (abs(one - other).max(axis=2) > 60).sum() >= 20


def test_a_larger_picture_is_the_same_picture(scenes: Scenes):
    for scene in scenes.train[:20]:
        small, large = draw(scene, 60).pixels, draw(scene, 240).pixels
        shrunk = large.reshape(60, 4, 60, 4, 3).mean(axis=(1, 3))
        assert abs(small - shrunk).max() < 40
        assert abs(small - shrunk).mean() < 0.5
