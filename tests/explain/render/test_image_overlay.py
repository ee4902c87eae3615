"""Dimmed images: their size follows the image, their darkness the weights, and words are only text."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from pictures import random_image_attention, scene_attention
from softgaze.data.images import Box, ImageSize, Photo, encode_image
from softgaze.explain import Attention
from softgaze.explain.render.image_overlay import (
    DIM,
    MAX_SIDE,
    darkness,
    draw_image_overlay,
    encode_alpha_png,
    interpolate,
)
from softgaze.explain.word_spans import EOS_MARK

NAMES = {"svg": "http://www.w3.org/2000/svg"}
SHARES = arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 1))


def read(drawing):
    return ElementTree.fromstring(drawing)


def texts(drawing):
    return ["".join(element.itertext()) for element in read(drawing).iterfind(".//svg:text", NAMES)]


def of_size(width, height, crop=Box(0, 0, 1, 1), **options):
    pixels = np.full((height, width, 3), 200, dtype=np.uint8)
    return random_image_attention(photo=Photo(*encode_image(pixels), ImageSize(width, height), crop), **options)


# --- darkness ---------------------------------------------------------------------------------------------------


@given(SHARES)
def test_largest_weight_is_undimmed_and_darkness_falls_with_weight(weights):
    dark = darkness(weights)
    assert ((dark >= 0) & (dark <= DIM + 1e-12)).all()
    assert dark.min() == pytest.approx(0 if weights.max() > 0 else DIM)
    order = weights.ravel().argsort()
    assert (np.diff(dark.ravel()[order]) <= 1e-12).all()


def test_uniform_attention_dims_nothing():
    assert (darkness(np.full((3, 3), 1 / 9)) == 0).all()


@given(SHARES, st.sampled_from([1, 2, 5]))
def test_interpolation_stays_between_its_cells(weights, factor):
    smooth = interpolate(weights, factor)
    assert smooth.shape == tuple(size * factor for size in weights.shape)
    assert weights.min() - 1e-12 <= smooth.min()
    assert smooth.max() <= weights.max() + 1e-12
    if factor % 2:  # the middle pixel of a cell has its value
        assert np.allclose(smooth[factor // 2 :: factor, factor // 2 :: factor], weights)


@given(SHARES)
def test_mask_is_a_png_whose_opacity_is_the_darkness(weights):
    image = Image.open(io.BytesIO(encode_alpha_png(weights)))
    assert image.mode == "LA"
    dots = np.asarray(image)
    assert (dots[..., 0] == 0).all()
    assert abs(dots[..., 1] / 255 - weights).max() <= 0.5 / 255 + 1e-9


# --- the figure ------------------------------------------------------------------------------------------------


def test_one_image_for_each_word_and_the_original():
    attention = scene_attention()
    words = [label.text for label in attention.row_labels if label.word is not None]
    drawing = draw_image_overlay(attention)
    assert len(read(drawing).findall(".//svg:use", NAMES)) == len(words) + 1
    shown = texts(drawing)
    assert [text for text in shown if text in words] == words
    for prob, word in zip(attention.word_probs, words, strict=False):
        most = 100 * attention.tiles[words.index(word)].max()
        assert f"p {prob:.2f} · max {most:.0f} %" in shown or words.count(word) > 1
    assert EOS_MARK not in shown


def test_without_probabilities_none_are_shown():
    assert not any(text.startswith("p ") for text in texts(draw_image_overlay(random_image_attention())))


@pytest.mark.parametrize("size", [(64, 64), (90, 30), (30, 120), (7, 5)])
def test_image_keeps_its_shape(size):
    photo = read(draw_image_overlay(of_size(*size))).find(".//svg:defs/svg:image", NAMES)
    width, height = float(photo.get("width")), float(photo.get("height"))
    assert max(width, height) == MAX_SIDE
    assert width / height == pytest.approx(size[0] / size[1], rel=0.01)


def test_mask_covers_the_crop_and_the_rest_is_dark():
    crop = Box(0.25, 0.0, 0.75, 1.0)
    drawing = read(draw_image_overlay(of_size(200, 100, crop)))
    masks = drawing.findall(".//svg:g/svg:image", NAMES)
    assert {(element.get("x"), element.get("width")) for element in masks} == {
        (f"{MAX_SIDE / 4:.1f}", f"{MAX_SIDE / 2:.0f}")
    }
    assert len(drawing.findall(".//svg:path[@fill-rule='evenodd']", NAMES)) == len(masks) == 2
    whole = read(draw_image_overlay(of_size(200, 100)))
    assert not whole.findall(".//svg:path[@fill-rule='evenodd']", NAMES)


def test_masks_contain_the_weights():
    attention = scene_attention()
    masks = re.findall(r'<image href="data:image/png;base64,([^"]+)"[^>]*x=', draw_image_overlay(attention))
    for row, text in enumerate(masks):
        dots = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))[..., 1] / 255
        factor = len(dots) // 8
        cells = dots.reshape(8, factor, 8, factor).mean(axis=(1, 3))
        assert cells.argmin() == attention.tiles[row].argmin() or cells.min() < 0.25
        assert np.corrcoef(cells.ravel(), -attention.tiles[row].ravel())[0, 1] > 0.9
    assert len(masks) == len(attention.target) - 1


def test_raw_shows_every_cell_and_the_larger_numbers():
    attention = random_image_attention(grid=(3, 4))
    drawing = read(draw_image_overlay(attention, raw=True))
    cells = drawing.findall(".//svg:g/svg:g/svg:rect", NAMES)
    assert len(cells) == 2 * 12
    shares = [float(element.get("fill-opacity")) for element in cells]
    wanted = np.concatenate([darkness(tile).ravel() for tile in attention.tiles[:2]])
    assert np.allclose(shares, wanted, atol=0.006)
    numbers = [text for text in texts(draw_image_overlay(attention, raw=True)) if text.isdigit()]
    assert numbers == [f"{100 * element:.0f}" for element in attention.tiles[:2].ravel() if element >= 0.05]
    assert not drawing.findall(".//svg:g/svg:image", NAMES)


def test_cells_too_small_for_a_number_have_none():
    assert not [
        text for text in texts(draw_image_overlay(random_image_attention(grid=(16, 16)), raw=True)) if text.isdigit()
    ]


def test_figure_can_be_saved_and_loaded(tmp_path):
    attention = scene_attention()
    for name in ("a.svg", "a.png", "a.pdf"):
        attention.plot().save(tmp_path / name)
    assert np.allclose(Attention.load(tmp_path / "a.svg").tiles, attention.tiles, atol=1e-4)
    light = np.asarray(Image.open(tmp_path / "a.png").convert("L"))
    assert light.min() < 60  # masks are drawn


def test_hostile_words_are_only_text():
    words = ["</text><script>alert(1)</script>", "\x00\u202e", "개", EOS_MARK]
    drawing = draw_image_overlay(random_image_attention(words, (2, 2)))
    assert not read(drawing).findall(".//svg:script", NAMES)
    assert "</text><script>alert(1)</script>"[:6] in "".join(texts(drawing))


@pytest.mark.parametrize("words", [[EOS_MARK], []])
def test_empty_caption_is_the_original_alone(words):
    drawing = draw_image_overlay(random_image_attention(words, (2, 2)))
    assert len(read(drawing).findall(".//svg:use", NAMES)) == 1


def test_long_words_and_many_words_stay_in_the_figure():
    attention = random_image_attention([*(["uncharacteristically" * 3] * 13), EOS_MARK], (2, 3))
    drawing = read(draw_image_overlay(attention))
    width, height = float(drawing.get("width")), float(drawing.get("height"))
    for element in drawing.iterfind(".//svg:use", NAMES):
        assert 0 <= float(element.get("x")) <= width - MAX_SIDE
        assert 0 <= float(element.get("y")) <= height - MAX_SIDE * 2 / 3
    rows = {element.get("y") for element in drawing.iterfind(".//svg:use", NAMES)}
    assert len(rows) == 3


def test_map_without_a_grid_is_rejected():
    with pytest.raises(ValueError, match="image grid"):
        draw_image_overlay(Attention.of(["a"], ["b"], [[1.0]]))
