"""Attention over pictures made by hand, looking where the things of scenes are, and captioners that learnt nothing."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy
import torch

from bundles import lines, tokenizer
from softgaze.bundle import Description, Tokenizers, save_bundle
from softgaze.data.boxes import Box, coverage
from softgaze.data.detector import Detector
from softgaze.data.images import WHOLE, Size, encode_image, write_image
from softgaze.data.photo import Photo
from softgaze.data.readers import Features, Pictures
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


# --- models that have learnt nothing ----------------------------------------------------------------------------

SMALL = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2}
SEEN = Pictures(32, 8)
HEARD = Features(6)


def make_captioner(path, reader=SEEN, decoder="rnn", encoder="cnn", **more):
    """A captioner of pictures in 4×4 cells, or of frames."""
    torch.manual_seed(1)
    options = {**SMALL, "decoder": decoder, "encoder": encoder, **more}
    description = Description(
        arch="captioner",
        size="tiny",
        options=options,
        max_length=12,
        source_language=reader.kind,
        target_language="en",
    )
    both = Tokenizers(reader, tokenizer())
    save_bundle(path, description.build(both), description, both, Detector.train({"en": lines("en")}), {})
    return path


@cache
def picture_bundle():
    """For all tests to read, not to be changed; removed when they are done."""
    return make_captioner(temporary() / "pictures", decoder="transformer")


@cache
def feature_bundle():
    """The same of frames."""
    return make_captioner(temporary() / "features", HEARD, encoder="frames")


def temporary():
    directory = Path(tempfile.mkdtemp(prefix="softgaze-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def write_scenes(folder, count=3, side=48):
    """Pictures of the first scenes of the test set; their paths."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        write_image(path, draw(scene("test", number), side).pixels)
    return paths
