"""Photos dimmed where nobody looked: as large as the photo asks, as dark as the weights say, and safe to open."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from pictures import looking_at_scene, random_tiles
from softgaze.data.boxes import Box
from softgaze.data.images import Size, encode_image
from softgaze.data.photo import Photo
from softgaze.gaze import Attention
from softgaze.gaze.tiles import DIM, SIDE, darkness, png, smoothed, tiles
from softgaze.gaze.words import END_MARK

NAMES = {"svg": "http://www.w3.org/2000/svg"}
SHARES = arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 1))


def read(drawing):
    return ElementTree.fromstring(drawing)


def texts(drawing):
    return ["".join(each.itertext()) for each in read(drawing).iterfind(".//svg:text", NAMES)]


def of_size(width, height, crop=Box(0, 0, 1, 1), **options):
    pixels = numpy.full((height, width, 3), 200, dtype=numpy.uint8)
    return random_tiles(photo=Photo(*encode_image(pixels), Size(width, height), crop), **options)


# --- how dark ---------------------------------------------------------------------------------------------------


@given(SHARES)
def test_the_most_looked_at_cell_is_not_dimmed_and_more_weight_is_never_darker(weights):
    dark = darkness(weights)
    assert ((dark >= 0) & (dark <= DIM + 1e-12)).all()
    assert dark.min() == pytest.approx(0 if weights.max() > 0 else DIM)
    order = weights.ravel().argsort()
    assert (numpy.diff(dark.ravel()[order]) <= 1e-12).all()


def test_a_look_at_everything_alike_dims_nothing():
    assert (darkness(numpy.full((3, 3), 1 / 9)) == 0).all()


@given(SHARES, st.sampled_from([1, 2, 5]))
def test_smoothing_stays_between_the_cells_and_one_dot_a_cell_is_the_cells(weights, factor):
    smooth = smoothed(weights, factor)
    assert smooth.shape == tuple(size * factor for size in weights.shape)
    assert weights.min() - 1e-12 <= smooth.min()
    assert smooth.max() <= weights.max() + 1e-12
    if factor % 2:  # the dot in the middle of a cell is the cell
        assert numpy.allclose(smooth[factor // 2 :: factor, factor // 2 :: factor], weights)


@given(SHARES)
def test_a_mask_is_a_png_of_black_whose_opacity_is_the_darkness(weights):
    image = Image.open(io.BytesIO(png(weights)))
    assert image.mode == "LA"
    dots = numpy.asarray(image)
    assert (dots[..., 0] == 0).all()
    assert abs(dots[..., 1] / 255 - weights).max() <= 0.5 / 255 + 1e-9


# --- the drawing ------------------------------------------------------------------------------------------------


def test_one_tile_a_word_and_the_photo_itself():
    attention = looking_at_scene()
    words = [label.text for label in attention.row_labels if label.word is not None]
    drawing = tiles(attention)
    assert len(read(drawing).findall(".//svg:use", NAMES)) == len(words) + 1
    written = texts(drawing)
    assert [text for text in written if text in words] == words
    for chance, word in zip(attention.probabilities, words, strict=False):
        most = 100 * attention.tiles[words.index(word)].max()
        assert f"p {chance:.2f} · most {most:.0f} %" in written or words.count(word) > 1
    assert END_MARK not in written


def test_without_probabilities_none_are_claimed():
    assert not any(text.startswith("p ") for text in texts(tiles(random_tiles())))


@pytest.mark.parametrize("size", [(64, 64), (90, 30), (30, 120), (7, 5)])
def test_the_photo_keeps_its_shape(size):
    photo = read(tiles(of_size(*size))).find(".//svg:defs/svg:image", NAMES)
    width, height = float(photo.get("width")), float(photo.get("height"))
    assert max(width, height) == SIDE
    assert width / height == pytest.approx(size[0] / size[1], rel=0.01)


def test_the_mask_lies_on_what_the_model_saw_and_the_rest_is_dark():
    crop = Box(0.25, 0.0, 0.75, 1.0)
    drawing = read(tiles(of_size(200, 100, crop)))
    masks = drawing.findall(".//svg:g/svg:image", NAMES)
    assert {(each.get("x"), each.get("width")) for each in masks} == {(f"{SIDE / 4:.1f}", f"{SIDE / 2:.0f}")}
    assert len(drawing.findall(".//svg:path[@fill-rule='evenodd']", NAMES)) == len(masks) == 2
    whole = read(tiles(of_size(200, 100)))
    assert not whole.findall(".//svg:path[@fill-rule='evenodd']", NAMES)


def test_masks_hold_the_weights():
    attention = looking_at_scene()
    found = re.findall(r'<image href="data:image/png;base64,([^"]+)"[^>]*x=', tiles(attention))
    for row, text in enumerate(found):
        dots = numpy.asarray(Image.open(io.BytesIO(base64.b64decode(text))))[..., 1] / 255
        factor = len(dots) // 8
        cells = dots.reshape(8, factor, 8, factor).mean(axis=(1, 3))
        assert cells.argmin() == attention.tiles[row].argmin() or cells.min() < 0.25
        assert numpy.corrcoef(cells.ravel(), -attention.tiles[row].ravel())[0, 1] > 0.9
    assert len(found) == len(attention.target) - 1


def test_raw_shows_every_cell_and_the_numbers_of_those_that_matter():
    attention = random_tiles(grid=(3, 4))
    drawing = read(tiles(attention, raw=True))
    cells = drawing.findall(".//svg:g/svg:g/svg:rect", NAMES)
    assert len(cells) == 2 * 12
    shares = [float(each.get("fill-opacity")) for each in cells]
    wanted = numpy.concatenate([darkness(tile).ravel() for tile in attention.tiles[:2]])
    assert numpy.allclose(shares, wanted, atol=0.006)
    numbers = [text for text in texts(tiles(attention, raw=True)) if text.isdigit()]
    assert numbers == [f"{100 * each:.0f}" for each in attention.tiles[:2].ravel() if each >= 0.05]
    assert not drawing.findall(".//svg:g/svg:image", NAMES)


def test_cells_too_small_for_a_number_have_none():
    assert not [text for text in texts(tiles(random_tiles(grid=(16, 16)), raw=True)) if text.isdigit()]


def test_it_comes_back_and_is_saved_as_every_kind(tmp_path):
    attention = looking_at_scene()
    for name in ("a.svg", "a.png", "a.pdf"):
        attention.plot().save(tmp_path / name)
    assert numpy.allclose(Attention.load(tmp_path / "a.svg").tiles, attention.tiles, atol=1e-4)
    light = numpy.asarray(Image.open(tmp_path / "a.png").convert("L"))
    assert light.min() < 60  # masks are drawn


def test_hostile_words_are_only_text():
    words = ["</text><script>alert(1)</script>", "\x00\u202e", "개", END_MARK]
    drawing = tiles(random_tiles(words, (2, 2)))
    assert not read(drawing).findall(".//svg:script", NAMES)
    assert "</text><script>alert(1)</script>"[:6] in "".join(texts(drawing))


@pytest.mark.parametrize("words", [[END_MARK], []])
def test_a_caption_without_words_is_drawn_as_the_photo_alone(words):
    drawing = tiles(random_tiles(words, (2, 2)))
    assert len(read(drawing).findall(".//svg:use", NAMES)) == 1


def test_long_words_and_many_words_stay_on_the_sheet():
    attention = random_tiles([*(["uncharacteristically" * 3] * 13), END_MARK], (2, 3))
    drawing = read(tiles(attention))
    width, height = float(drawing.get("width")), float(drawing.get("height"))
    for each in drawing.iterfind(".//svg:use", NAMES):
        assert 0 <= float(each.get("x")) <= width - SIDE
        assert 0 <= float(each.get("y")) <= height - SIDE * 2 / 3
    rows = {each.get("y") for each in drawing.iterfind(".//svg:use", NAMES)}
    assert len(rows) == 3


def test_what_lies_on_no_grid_is_refused():
    with pytest.raises(ValueError, match="on a grid"):
        tiles(Attention.of(["a"], ["b"], [[1.0]]))
