"""Attention over images of scenes, and untrained captioners."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch

from bundles import lines, tokenizer
from softgaze.bundle import Description, Tokenizers, save_bundle
from softgaze.data.corpora.scenes import draw, load
from softgaze.data.images import FULL_IMAGE, Box, ImageSize, Photo, coverage, encode_image, write_image
from softgaze.data.language_id import LanguageDetector
from softgaze.data.processors import FeatureProcessor, ImageProcessor
from softgaze.explain import Attention
from softgaze.explain.word_spans import EOS_MARK


def scene_attention(number=3, side=64, grid=(8, 8), noise=0.15, crop=FULL_IMAGE, split="test"):
    """A caption of a scene; each word attends to its object, with a share of `noise` elsewhere."""
    scene = load(split)[number]
    drawing = draw(scene, side)
    words = [*scene.captions["en"].split(), EOS_MARK]
    photo = Photo(*encode_image(drawing.pixels), ImageSize(side, side), crop)
    rng = np.random.default_rng(number)
    weights = noise * rng.dirichlet(np.ones(grid[0] * grid[1]), len(words))
    for position in range(len(words)):
        index = min(sum(noun < position for noun in scene.nouns()), len(drawing.boxes) - 1)
        weights[position] += (1 - noise) * uniform_inside(photo.to_grid(drawing.boxes[index]), grid)
    probs = rng.uniform(0.5, 1, len(words))
    return Attention.of(None, words, weights, grid=grid, photo=photo, token_probs=probs)


def uniform_inside(box: Box, grid):
    """Uniform attention inside a box, or everywhere if the box is outside the grid."""
    covered = coverage([box], *grid).ravel()
    return covered / covered.sum() if covered.sum() else np.full(len(covered), 1 / len(covered))


def random_image_attention(words=("a", "dog", EOS_MARK), grid=(3, 4), layers=1, heads=1, seed=0, **options):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(grid[0] * grid[1]), (layers, heads, len(words)))
    return Attention.of(None, words, weights, grid=grid, **options)


# --- untrained models ----------------------------------------------------------------------------

SMALL = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2}
IMAGES = ImageProcessor(32, 8)
FEATURES = FeatureProcessor(6)


def make_captioner(path, processor=IMAGES, decoder="rnn", encoder="cnn", **more):
    """A captioner of images in 4×4 cells, or of feature frames."""
    torch.manual_seed(1)
    options = {**SMALL, "decoder": decoder, "encoder": encoder, **more}
    description = Description(
        arch="captioner",
        size="tiny",
        options=options,
        max_length=12,
        source_language=processor.kind,
        target_language="en",
    )
    tokenizers = Tokenizers(processor, tokenizer())
    detector = LanguageDetector.train({"en": lines("en")})
    save_bundle(path, description.build(tokenizers), description, tokenizers, detector, {})
    return path


@cache
def image_bundle():
    """Shared by all tests, which must not change it; removed at exit."""
    return make_captioner(temporary() / "pictures", decoder="transformer")


@cache
def feature_bundle():
    """The same for feature frames."""
    return make_captioner(temporary() / "features", FEATURES, encoder="frames")


def temporary():
    directory = Path(tempfile.mkdtemp(prefix="softgaze-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def write_scenes(folder, count=3, side=48):
    """Write the first scenes of the test set as images."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        write_image(path, draw(load("test")[number], side).pixels)
    return paths
