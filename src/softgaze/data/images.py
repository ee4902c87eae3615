"""Photos from files as arrays of bytes: upright, red-green-blue, of the size asked for. Knows no captions or models.

Whatever a file holds, it becomes a picture or an `ImageError` of one line, never a crash:

* JPEG, PNG, GIF, WebP, BMP, TIFF and PPM are read, by what is in the file and not by its name; nothing else is tried.
* Of an animation the first frame is taken. A photo is turned upright as its EXIF says; unreadable EXIF says nothing.
* Grey, palette, CMYK and other colours become RGB. What is transparent shows white. 16-bit grey is scaled to 8 bits;
  numbers without a known range (floats, 32-bit grey beyond 16 bits) are refused.
* The declared width × height is looked at before anything is decoded: beyond `LARGEST` pixels it is refused, since a
  file of a few kilobytes may unfold to gigabytes.

Pillow does the reading, and is imported when the first picture is read. It comes with `softgaze[vision]`, which also
brings torch; an exported model needs Pillow alone.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy
import numpy.typing

from softgaze.data.boxes import Box
from softgaze.errors import DataError, ResourceError

if TYPE_CHECKING:
    from PIL import Image

Array = numpy.typing.NDArray[Any]

LARGEST = 80_000_000  # pixels: above every usual camera, below where pillow itself begins to worry
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
_ORIENTATION = 0x0112  # the EXIF tag


class ImageError(DataError):
    """One image that cannot be read: `path`, why, and what helps."""

    def __init__(self, path: Path, why: str, remedy: str) -> None:
        super().__init__(f"{path}: {why}; {remedy}")
        self.path, self.why, self.remedy = path, why, remedy


# ------------------------------------------------------------------------------------------------------------- framing


class Size(NamedTuple):
    """Pixels across and down."""

    width: int
    height: int


@dataclass(frozen=True)
class Framing:
    """Which part of a photo is seen, and at what size: enough to map places of either onto the other."""

    photo: Size  # upright
    crop: Box  # in shares of the photo
    view: Size

    def to_view(self, box: Box) -> Box:
        """Where a box of the photo is in the view; what lies outside is cut off, and a box outside has no area."""
        width, height = self.crop.right - self.crop.left, self.crop.bottom - self.crop.top
        left, right = ((edge - self.crop.left) / width for edge in (box.left, box.right))
        top, bottom = ((edge - self.crop.top) / height for edge in (box.top, box.bottom))
        return Box(*(min(max(edge, 0.0), 1.0) for edge in (left, top, right, bottom)))

    def to_photo(self, box: Box) -> Box:
        """Where a box of the view is in the photo."""
        width, height = self.crop.right - self.crop.left, self.crop.bottom - self.crop.top
        left, right = (self.crop.left + edge * width for edge in (box.left, box.right))
        top, bottom = (self.crop.top + edge * height for edge in (box.top, box.bottom))
        return Box(left, top, right, bottom)


Frame = Callable[[Size], Framing]
WHOLE = Box(0.0, 0.0, 1.0, 1.0)


def untouched(photo: Size) -> Framing:
    """The photo as it is."""
    return Framing(photo, WHOLE, photo)


def shorter_side(side: int) -> Frame:
    """All of the photo, its shorter side so many pixels long."""

    def frame(photo: Size) -> Framing:
        scale = side / min(photo)
        return Framing(
            photo, WHOLE, Size(max(side, round(photo.width * scale)), max(side, round(photo.height * scale)))
        )

    return frame


def at_most(side: int) -> Frame:
    """All of the photo, neither side longer than so many pixels; a smaller photo stays as it is."""

    def frame(photo: Size) -> Framing:
        scale = min(1.0, side / max(photo))
        return Framing(photo, WHOLE, Size(*(max(1, round(length * scale)) for length in photo)))

    return frame


def centre_square(side: int) -> Frame:
    """The largest square in the middle of the photo, so many pixels wide."""

    def frame(photo: Size) -> Framing:
        across, down = ((length - min(photo)) / 2 / length for length in photo)
        return Framing(photo, Box(across, down, 1 - across, 1 - down), Size(side, side))

    return frame


# ------------------------------------------------------------------------------------------------------------- reading


class Picture(NamedTuple):
    """Bytes (height, width, 3) in red, green and blue, and which part of which photo they are."""

    pixels: Array
    framing: Framing


Complain = Callable[[ImageError], None]


def read_image(path: Path, frame: Frame = untouched) -> Picture:
    """One picture from a file; an `ImageError` if it cannot be."""
    try:
        if not path.is_file():
            raise ImageError(path, "is no file" if path.exists() else "does not exist", "check the name and the folder")
        with path.open("rb") as stream:
            return decode_image(stream, path, frame)
    except OSError as error:
        raise ImageError(path, f"cannot be read: {(error.strerror or str(error)).lower()}", "check the file") from error


def decode_image(stream: BinaryIO, name: Path, frame: Frame = untouched) -> Picture:
    """One picture from a stream that can seek; `name` stands for it in errors."""
    pillow = _pillow()
    try:
        with warnings.catch_warnings():  # pillow warns of damaged metadata and of sizes that are refused below
            warnings.simplefilter("ignore")
            with pillow.open(stream, formats=FORMATS) as image:
                return _picture(image, name, frame)
    except ImageError:
        raise
    except pillow.UnidentifiedImageError as error:
        raise ImageError(
            name, f"not an image of a kind we read ({', '.join(FORMATS)})", "convert or remove it"
        ) from error
    except pillow.DecompressionBombError as error:
        raise ImageError(name, f"more than {LARGEST:,} pixels", "scale it down") from error
    except MemoryError as error:
        raise ImageError(name, "does not fit into memory", "scale it down") from error
    except Exception as error:  # decoders meet broken files with errors of every kind
        raise ImageError(
            name, f"damaged ({' '.join(str(error).split()) or type(error).__name__})", "replace it"
        ) from error


def survey_images(paths: Iterable[Path], frame: Frame, complain: Complain) -> Iterator[Picture | None]:
    """Every picture, None for one that cannot be read; `complain` is told why."""
    for path in paths:
        try:
            yield read_image(path, frame)
        except ImageError as error:
            complain(error)
            yield None


def _pillow() -> Any:
    """`PIL.Image`, or one line that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise ResourceError("pictures need pillow, which is not installed; pip install pillow") from None
    return Image


def _picture(image: "Image.Image", name: Path, frame: Frame) -> Picture:
    """Decode what was opened, once its size is found bearable."""
    _check_size(Size(*image.size), name)
    image.load()  # of an animation the first frame; TIFF is turned by this, and some EXIF comes after the pixels
    turn = _turn(image)
    upright = image if turn is None else image.transpose(turn)
    framing = frame(Size(*upright.size))
    _check_size(framing.view, name)
    crop = _edges(framing)
    colours = _in_colour(upright, name)
    if framing.view != colours.size or crop != (0, 0, *colours.size):
        colours = colours.resize(framing.view, resample=_pillow().Resampling.BICUBIC, box=crop, reducing_gap=3.0)
    return Picture(numpy.asarray(colours), framing)


def _check_size(size: Size, name: Path) -> None:
    if min(size) < 1:
        raise ImageError(name, f"has no pixels ({size.width}×{size.height})", "replace it")
    if math.prod(size) > LARGEST:
        raise ImageError(name, f"{size.width}×{size.height} is more than {LARGEST:,} pixels", "scale or crop it")


def _edges(framing: Framing) -> tuple[float, float, float, float]:
    """The crop in pixels, for pillow."""
    left, top, width, height = framing.crop.pixels(framing.photo)
    return left, top, min(left + width, framing.photo.width), min(top + height, framing.photo.height)


def _turn(image: "Image.Image") -> Any:
    """What makes the photo upright, if it is not."""
    turns = _pillow().Transpose
    try:
        orientation: Any = image.getexif().get(_ORIENTATION)
    except Exception:  # as for decoders; a photo whose EXIF cannot be read is taken as it lies
        return None
    return {
        2: turns.FLIP_LEFT_RIGHT,
        3: turns.ROTATE_180,
        4: turns.FLIP_TOP_BOTTOM,
        5: turns.TRANSPOSE,
        6: turns.ROTATE_270,
        7: turns.TRANSVERSE,
        8: turns.ROTATE_90,
    }.get(orientation)


def _in_colour(image: "Image.Image", name: Path) -> Any:
    """The same picture in RGB, on white where it is transparent."""
    if image.mode == "F" or image.mode.startswith("I"):
        return _pillow().fromarray(_eight_bits(numpy.asarray(image), name)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        seen = image.convert("RGBA")
        paper = _pillow().new("RGBA", seen.size, "white")
        return _pillow().alpha_composite(paper, seen).convert("RGB")
    return image.convert("RGB")


def _eight_bits(grey: Array, name: Path) -> Array:
    """16-bit grey scaled to 8 bits; floats and wider numbers have no range that could be known."""
    if grey.dtype.kind == "f" or grey.min() < 0 or grey.max() > 0xFFFF:
        raise ImageError(name, "numbers beyond 16 bits, whose black and white are not known", "convert to 8 or 16 bits")
    return ((grey.astype(numpy.uint32) * 255 + 0x7FFF) // 0xFFFF).astype(numpy.uint8)


# ------------------------------------------------------------------------------------------------------------- writing


def write_image(path: Path, pixels: Array) -> None:
    """Write bytes (height, width, 3) as the kind of image that the name says."""
    _pillow().fromarray(pixels).save(path)


def encode_image(pixels: Array) -> tuple[bytes, str]:
    """Bytes (height, width, 3) as a file for a page, and its kind: JPEG, or PNG where that is smaller (drawings)."""
    image, files = _pillow().fromarray(pixels), dict[str, bytes]()
    for kind in ("jpeg", "png"):
        stream = BytesIO()
        image.save(stream, kind, quality=88, optimize=True)
        files[f"image/{kind}"] = stream.getvalue()
    media = min(files, key=lambda each: len(files[each]))
    return files[media], media
