"""Attention over pictures made by hand: the built-in scenes, looked at where their things are."""

import numpy

from softgaze.data.boxes import Box, coverage
from softgaze.data.images import WHOLE, Size, encode_image
from softgaze.data.photo import Photo
from softgaze.data.scenes import caption, draw, scene
from softgaze.gaze import Attention
from softgaze.gaze.words import END_MARK


def looking_at_scene(number=3, side=64, grid=(8, 8), stray=0.15, crop=WHOLE, split="test"):
    """A caption of a scene whose every word looks at the thing it belongs to, and a little everywhere."""
    picture = scene(split, number)
    drawing, text = draw(picture, side), caption(picture)
    words = [*text.text.split(), END_MARK]
    photo = Photo(*encode_image(drawing.pixels), Size(side, side), crop)
    dice = numpy.random.default_rng(number)
    weights = stray * dice.dirichlet(numpy.ones(grid[0] * grid[1]), len(words))
    for place in range(len(words)):
        thing = min(sum(noun < place for noun in text.nouns), len(drawing.boxes) - 1)
        weights[place] += (1 - stray) * inside(photo.to_grid(drawing.boxes[thing]), grid)
    chances = dice.uniform(0.5, 1, len(words))
    return Attention.of(None, words, weights, grid=grid, photo=photo, chances=chances)


def inside(box: Box, grid):
    """An even look at a box, or at everything if nothing of it was seen."""
    covered = coverage([box], *grid).ravel()
    return covered / covered.sum() if covered.sum() else numpy.full(len(covered), 1 / len(covered))


def random_tiles(words=("a", "dog", END_MARK), grid=(3, 4), layers=1, heads=1, seed=0, **options):
    """Any look at a grid."""
    dice = numpy.random.default_rng(seed)
    weights = dice.dirichlet(numpy.ones(grid[0] * grid[1]), (layers, heads, len(words)))
    return Attention.of(None, words, weights, grid=grid, **options)
