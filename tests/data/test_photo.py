"""A photo that an attention lies on: read once, small enough for a page, and the same after it was kept."""

import io
import json

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from softgaze.data.boxes import Box
from softgaze.data.images import Size, write_image
from softgaze.data.photo import LONGEST, Photo, photo_of

EDGES = st.floats(0, 1)


def noise(width, height):
    return numpy.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=numpy.uint8)


@pytest.mark.parametrize("size", [(64, 64), (900, 300), (300, 1500), (640, 480), (1, 7)])
def test_a_photo_keeps_its_shape_and_is_never_made_larger(tmp_path, size):
    write_image(tmp_path / "a.png", noise(*size))
    photo = photo_of(tmp_path / "a.png")
    shown = Image.open(io.BytesIO(photo.image))
    assert photo.size == size
    assert max(shown.size) == min(max(size), LONGEST)
    assert abs(shown.width / shown.height / (size[0] / size[1]) - 1) < 0.02 or min(shown.size) == 1


def test_drawings_are_kept_exactly_and_photos_are_kept_small(tmp_path):
    flat = numpy.full((64, 64, 3), 240, dtype=numpy.uint8)
    flat[20:40, 10:30] = (200, 30, 30)
    for name, pixels in {"flat": flat, "noise": noise(64, 64)}.items():
        write_image(tmp_path / f"{name}.png", pixels)
    drawing, grain = (photo_of(tmp_path / f"{name}.png") for name in ("flat", "noise"))
    assert (drawing.media, grain.media) == ("image/png", "image/jpeg")
    assert (numpy.asarray(Image.open(io.BytesIO(drawing.image))) == flat).all()


@given(st.integers(1, 5000), st.integers(1, 5000), EDGES, EDGES, st.binary(max_size=20))
def test_a_photo_comes_back_from_json(width, height, left, top, image):
    photo = Photo(image, "image/png", Size(width, height), Box(left, top, 1.0, 1.0))
    assert Photo.from_dict(json.loads(json.dumps(photo.to_dict()))) == photo


def test_boxes_of_the_photo_are_found_on_what_was_seen_of_it():
    photo = Photo(b"", "image/png", Size(200, 100), Box(0.25, 0.0, 0.75, 1.0))
    assert photo.to_grid(Box(0.25, 0.0, 0.75, 1.0)) == (0, 0, 1, 1)
    assert photo.to_grid(Box(0.5, 0.5, 1.0, 1.0)) == (0.5, 0.5, 1, 1)
    assert photo.to_grid(Box(0.0, 0.0, 0.2, 1.0)).area == 0


@pytest.mark.parametrize("media", ["image/svg+xml", "text/html", '"><script>', "image/png;x"])
def test_only_pictures_of_dots_are_shown(media):
    with pytest.raises(ValueError, match="a photo to show is one of"):
        Photo(b"", media, Size(1, 1))


def test_a_photo_without_size_is_refused():
    with pytest.raises(ValueError, match="0×3 pixels"):
        Photo(b"", "image/png", Size(0, 3))
