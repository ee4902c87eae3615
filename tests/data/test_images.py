"""Images of every kind: read upright and in RGB, or rejected with an error; views, and photos in pages."""

import io
import json
import math
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import one_line_error
from softgaze.data import images
from softgaze.data.images import (
    MAX_PAGE_SIDE,
    Box,
    ImageError,
    ImageSize,
    Photo,
    center_square,
    coverage,
    decode_image,
    fit_within,
    full_size,
    load_photo,
    pointing,
    read_image,
    share,
    write_image,
)
from softgaze.errors import ResourceError

Image = pytest.importorskip("PIL.Image", reason="pictures need softgaze[vision]")

shares = st.floats(0, 1)
sizes = st.builds(ImageSize, st.integers(1, 4000), st.integers(1, 4000))


def photo(width: int = 40, height: int = 30) -> np.ndarray:
    """Red grows to the right, green downwards, and blue marks the upper left corner."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[:, :, 0] = np.linspace(0, 255, width)
    pixels[:, :, 1] = np.linspace(0, 255, height)[:, None]
    pixels[: height // 3, : width // 3, 2] = 255
    return pixels


def saved(path: Path, image: Any, **how: Any) -> Path:
    image.save(path, **how)
    return path


def check_rejected(path: Path, why: str) -> None:
    with one_line_error(ImageError, path, why):
        read_image(path, center_square(32))


def noise(width, height):
    return np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)


# --- views ------------------------------------------------------------------------------------------------------


@given(size=sizes, side=st.integers(1, 600))
def test_sizes_of_views(size, side):
    square = center_square(side)(size)
    assert square.size == (side, side)
    left, top, width, height = square.crop.pixels(size)
    assert (width, height) == pytest.approx((min(size), min(size)))
    assert (2 * left + width, 2 * top + height) == pytest.approx(size)
    assert square.to_view(square.crop) == pytest.approx((0, 0, 1, 1))
    assert max(fit_within(side)(size).size) == min(side, max(size))


def test_a_box_outside_the_crop_has_no_area():
    view = center_square(10)(ImageSize(300, 100))
    assert view.to_view(Box(0, 0, 0.3, 1)).area == 0
    assert view.to_view(Box(0, 0, 0.5, 1)) == pytest.approx(Box(0, 0, 0.5, 1))


def test_what_is_in_a_box_of_the_photo_is_in_that_box_of_the_view(tmp_path):
    pixels = np.full((90, 160, 3), 255, dtype=np.uint8)
    pixels[20:50, 60:90] = (255, 0, 0)
    path = tmp_path / "a.png"
    write_image(path, pixels)
    for frame in (fit_within(80), center_square(64), center_square(200)):
        picture = read_image(path, frame)
        red = picture.pixels[:, :, 1] < 128
        rows, columns = red.any(axis=1).nonzero()[0], red.any(axis=0).nonzero()[0]
        size = ImageSize(red.shape[1], red.shape[0])
        seen = Box.of_pixels(columns[0], rows[0], np.ptp(columns) + 1, np.ptp(rows) + 1, size)
        box = Box.of_pixels(60, 20, 30, 30, (160, 90))
        assert seen == pytest.approx(picture.view.to_view(box), abs=1.01 / min(size))
        assert picture.view.size == size


# --- formats and colours ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["png", "bmp", "tiff", "ppm"])
def test_what_is_written_is_read_again(tmp_path, ending):
    write_image(tmp_path / f"a.{ending}", photo())
    picture = read_image(tmp_path / f"a.{ending}")
    assert np.array_equal(picture.pixels, photo())
    assert picture.pixels.dtype == np.uint8
    assert picture.view == full_size(ImageSize(40, 30))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "tiff", "webp"])
def test_a_photo_is_turned_upright(tmp_path, orientation, ending):
    """However it lies in the file, the blue corner comes out where it was seen."""
    from PIL import ImageOps

    turns = Image.Transpose
    inverse = (None, 0, 3, 1, 5, 2, 6, 4)[orientation - 1]  # what a camera held so would have stored
    lying = Image.fromarray(photo())
    lying = lying if inverse is None else lying.transpose(list(turns)[inverse])
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / f"a.{ending}", lying, exif=exif, quality=95)
    picture = read_image(path)
    assert picture.view.image == (40, 30)
    assert abs(picture.pixels.astype(int) - photo()).mean() < 12
    assert np.array_equal(picture.pixels, np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB")))


def test_unreadable_exif_is_ignored(tmp_path):
    for number, exif in enumerate(
        (b"Exif\0\0", b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\x09")
    ):
        path = saved(tmp_path / f"{number}.jpg", Image.fromarray(photo()), exif=exif, quality=95)
        assert abs(read_image(path).pixels.astype(int) - photo()).mean() < 12


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr"])
def test_all_colour_modes_become_rgb(tmp_path, mode):
    image = Image.fromarray(photo()).convert(mode)
    path = saved(tmp_path / f"a.{'tiff' if mode != 'P' else 'png'}", image)
    assert np.array_equal(read_image(path).pixels, np.asarray(image.convert("RGB")))
    if mode == "CMYK":
        path = saved(tmp_path / "a.jpg", image, quality=95)
        assert abs(read_image(path).pixels.astype(int) - photo()).mean() < 6


@pytest.mark.parametrize("ending", ["png", "tiff"])
def test_grey_of_16_bits_is_scaled(tmp_path, ending):
    grey = np.linspace(0, 65535, 1200).astype(np.uint16).reshape(30, 40)
    pixels = read_image(saved(tmp_path / f"a.{ending}", Image.fromarray(grey))).pixels
    assert np.array_equal(pixels, np.rint(grey / 257).astype(np.uint8)[:, :, None].repeat(3, axis=2))


def test_colour_of_16_bits_is_read(tmp_path):
    rows = b"".join(b"\0" + struct.pack(">3H", 0xFFFF, 0x8000, 0) * 4 for _ in range(2))
    (tmp_path / "a.png").write_bytes(png(4, 2, rows, bits=16, colour=2))
    assert (read_image(tmp_path / "a.png").pixels == (255, 128, 0)).all()


@pytest.mark.parametrize("number", [70_000.0, -5.0])
def test_values_without_a_known_range_are_rejected(tmp_path, number):
    for kind in (np.int32, np.float32):
        path = saved(tmp_path / "a.tiff", Image.fromarray(np.full((3, 3), number).astype(kind)))
        check_rejected(path, "beyond 16 bits")


def test_what_is_transparent_shows_white(tmp_path):
    clear = np.zeros((4, 4, 4), dtype=np.uint8)
    clear[:2] = (10, 20, 30, 255)
    for name, image in {
        "rgba.png": Image.fromarray(clear),
        "rgba.webp": Image.fromarray(clear),
        "grey.png": Image.fromarray(clear).convert("LA"),
        "palette.png": Image.fromarray(clear).quantize(4),
    }.items():
        pixels = read_image(saved(tmp_path / name, image, lossless=True)).pixels
        assert (pixels[2:] == 255).all(), name
        assert (pixels[:2] < 40).all(), name
    keyed = saved(tmp_path / "key.png", Image.fromarray(clear[:, :, :3]), transparency=(0, 0, 0))
    assert (read_image(keyed).pixels[2:] == 255).all()


@pytest.mark.parametrize("ending", ["gif", "webp", "png", "tiff"])
def test_of_an_animation_the_first_frame_is_taken(tmp_path, ending):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "lime")]
    path = saved(tmp_path / f"a.{ending}", frames[0], save_all=True, append_images=frames[1:], lossless=True)
    assert (read_image(path).pixels == (255, 0, 0)).all()


def test_what_is_in_the_file_counts_and_not_its_name(tmp_path):
    write_image(tmp_path / "a.png", photo())
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    assert np.array_equal(read_image(tmp_path / "a.jpg").pixels, photo())


# --- damage -----------------------------------------------------------------------------------------------------


def png(width: int, height: int, rows: bytes, bits: int = 8, colour: int = 0) -> bytes:
    """A PNG written by hand: pillow would not write what is wrong."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("width", [9_000, 12_000, 30_000, 2_000_000_000])
def test_a_decompression_bomb_is_rejected_by_its_declared_size(tmp_path, monkeypatch, width):
    def explode(*_: object) -> None:
        raise AssertionError("decoded")

    (tmp_path / "bomb.png").write_bytes(png(width, width, b"\0" * 1000))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", explode)
    check_rejected(tmp_path / "bomb.png", "80,000,000 pixels")


def test_a_huge_view_is_rejected(tmp_path):
    write_image(tmp_path / "line.png", photo(6000, 1))
    with pytest.raises(ImageError, match=r"9000×9000 is more than 80,000,000 pixels"):
        read_image(tmp_path / "line.png", center_square(9000))
    assert read_image(tmp_path / "line.png", center_square(16)).pixels.shape == (16, 16, 3)


def test_files_that_are_no_images_are_rejected(tmp_path):
    (tmp_path / "words.jpg").write_text("not a photo")
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "script.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")
    for name in ("words.jpg", "empty.jpg", "script.eps"):
        check_rejected(tmp_path / name, "not an image of a supported format")
    check_rejected(tmp_path / "folder.jpg", "not a file")
    check_rejected(tmp_path / "gone.jpg", "does not exist")


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "webp", "tiff", "bmp"])
@settings(max_examples=60)
@given(data=st.data())
def test_damaged_bytes_are_a_picture_or_an_error_of_one_line(ending, data):
    buffer = io.BytesIO()
    Image.fromarray(photo()).save(buffer, format={"jpg": "JPEG", "tiff": "TIFF"}.get(ending, ending.upper()))
    raw = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    with suppress(ImageError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "MAX_PIXELS", 100_000)  # what is declared by accident would take its time
        picture = decode_image(io.BytesIO(bytes(raw)), Path("damaged"), center_square(16))
        assert picture.pixels.shape == (16, 16, 3)


def test_a_truncated_photo_is_rejected(tmp_path):
    for ending in ("jpg", "png"):
        write_image(tmp_path / f"a.{ending}", noise(60, 60))
        raw = (tmp_path / f"a.{ending}").read_bytes()
        (tmp_path / f"a.{ending}").write_bytes(raw[: len(raw) // 2])
        check_rejected(tmp_path / f"a.{ending}", "damaged")


def test_the_middle_of_a_flat_photo_stays_flat(tmp_path):
    write_image(tmp_path / "a.png", np.full((50, 70, 3), (9, 99, 199), dtype=np.uint8))
    for frame in (center_square(33), center_square(120), fit_within(7)):
        assert (read_image(tmp_path / "a.png", frame).pixels == (9, 99, 199)).all()


# --- Pillow -----------------------------------------------------------------------------------------------------


def test_a_missing_pillow_is_reported(tmp_path, monkeypatch):
    write_image(tmp_path / "a.png", photo())
    monkeypatch.setitem(sys.modules, "PIL", None)
    for use in (lambda: read_image(tmp_path / "a.png"), lambda: write_image(tmp_path / "b.png", photo())):
        with pytest.raises(ResourceError, match="pip install pillow"):
            use()


def test_importing_data_imports_neither_pillow_nor_torch():
    modules = "captions, features, images"
    code = f"import sys; from softgaze.data import {modules}; from softgaze.data.corpora import scenes"
    code += "; print({'PIL', 'torch'} & set(sys.modules) or None)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "None\n"


def test_the_largest_photo_is_below_where_pillow_itself_begins_to_worry():
    assert math.isqrt(images.MAX_PIXELS) > 8_000
    assert Image.MAX_IMAGE_PIXELS > images.MAX_PIXELS


# --- photos in pages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(64, 64), (900, 300), (300, 1500), (640, 480), (1, 7)])
def test_a_photo_keeps_its_shape_and_is_never_made_larger(tmp_path, size):
    write_image(tmp_path / "a.png", noise(*size))
    photo = load_photo(tmp_path / "a.png")
    shown = Image.open(io.BytesIO(photo.image))
    assert photo.size == size
    assert max(shown.size) == min(max(size), MAX_PAGE_SIDE)
    assert abs(shown.width / shown.height / (size[0] / size[1]) - 1) < 0.02 or min(shown.size) == 1


def test_drawings_are_kept_exactly_and_photos_are_kept_small(tmp_path):
    flat = np.full((64, 64, 3), 240, dtype=np.uint8)
    flat[20:40, 10:30] = (200, 30, 30)
    for name, pixels in {"flat": flat, "noise": noise(64, 64)}.items():
        write_image(tmp_path / f"{name}.png", pixels)
    drawing, grain = (load_photo(tmp_path / f"{name}.png") for name in ("flat", "noise"))
    assert (drawing.media, grain.media) == ("image/png", "image/jpeg")
    assert (np.asarray(Image.open(io.BytesIO(drawing.image))) == flat).all()


@given(st.integers(1, 5000), st.integers(1, 5000), shares, shares, st.binary(max_size=20))
def test_a_photo_comes_back_from_json(width, height, left, top, image):
    photo = Photo(image, "image/png", ImageSize(width, height), Box(left, top, 1.0, 1.0))
    assert Photo.from_dict(json.loads(json.dumps(photo.to_dict()))) == photo


def test_boxes_of_the_photo_are_found_on_what_was_seen_of_it():
    photo = Photo(b"", "image/png", ImageSize(200, 100), Box(0.25, 0.0, 0.75, 1.0))
    assert photo.to_grid(Box(0.25, 0.0, 0.75, 1.0)) == (0, 0, 1, 1)
    assert photo.to_grid(Box(0.5, 0.5, 1.0, 1.0)) == (0.5, 0.5, 1, 1)
    assert photo.to_grid(Box(0.0, 0.0, 0.2, 1.0)).area == 0


@pytest.mark.parametrize("media", ["image/svg+xml", "text/html", '"><script>', "image/png;x"])
def test_a_photo_has_pixels_and_the_media_type_of_an_image(media):
    with pytest.raises(ValueError, match="expected a media type"):
        Photo(b"", media, ImageSize(1, 1))
    with pytest.raises(ValueError, match="0×3 pixels"):
        Photo(b"", "image/png", ImageSize(0, 3))


PIXELS = 24  # boxes of whole pixels can be counted


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    left, right = sorted(draw(st.tuples(st.integers(0, PIXELS), st.integers(0, PIXELS))))
    top, bottom = sorted(draw(st.tuples(st.integers(0, PIXELS), st.integers(0, PIXELS))))
    return Box(left / PIXELS, top / PIXELS, right / PIXELS, bottom / PIXELS)


def counted(several: list[Box]) -> np.ndarray:
    inside = np.zeros((PIXELS, PIXELS))
    for box in several:
        left, top, right, bottom = (round(edge * PIXELS) for edge in box)
        inside[top:bottom, left:right] = 1
    return inside


@given(
    several=st.lists(boxes(), max_size=4), rows=st.sampled_from([1, 2, 3, 6]), columns=st.sampled_from([1, 4, 8, 12])
)
def test_coverage_equals_counted_pixels(several, rows, columns):
    expected = counted(several).reshape(rows, PIXELS // rows, columns, PIXELS // columns).mean(axis=(1, 3))
    assert coverage(several, rows, columns) == pytest.approx(expected)


@given(several=st.lists(boxes(), max_size=4), rows=st.integers(1, 9), columns=st.integers(1, 9))
def test_a_uniform_map_points_by_the_area_of_the_boxes(several, rows, columns):
    even = np.full((rows, columns), 1 / (rows * columns))
    assert pointing(even, several) == pytest.approx(share(several)) == pytest.approx(counted(several).mean())


@given(box=boxes(), weights=st.lists(st.floats(0, 1), min_size=12, max_size=12).filter(sum))
def test_a_box_and_the_area_around_it_share_all_weight(box, weights):
    gaze = np.reshape(weights, (3, 4)) / sum(weights)
    around = [
        Box(0, 0, 1, box.top),
        Box(0, box.bottom, 1, 1),
        Box(0, box.top, box.left, box.bottom),
        Box(box.right, box.top, 1, box.bottom),
    ]
    assert pointing(gaze, [box]) + pointing(gaze, around) == pytest.approx(1)


@given(box=boxes(), width=st.integers(1, 5000), height=st.integers(1, 5000))
def test_pixels_and_back(box, width, height):
    size = (width, height)
    assert Box.of_pixels(*box.pixels(size), size=size) == pytest.approx(box)
    assert box.area == pytest.approx(share([box]))


def test_boxes_are_clipped_to_the_image():
    assert Box.of_pixels(-10, 5, 30, 100, (40, 50)) == Box(0, 0.1, 0.5, 1)
    assert Box.of_pixels(50, 5, 30, 10, (40, 50)).area == 0
