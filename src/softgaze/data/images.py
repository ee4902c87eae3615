"""Boxes in images, and reading image files as arrays of RGB bytes: upright, cropped and scaled.

Any file becomes an image or an `ImageError`:

* JPEG, PNG, GIF, WebP, BMP, TIFF and PPM are read, detected by content.
* The first frame of an animation is used. EXIF orientation is applied; unreadable EXIF is ignored.
* All colour modes become RGB, transparency on white. 16-bit grey is scaled to 8 bits; values without a known range
  (floats, 32-bit grey beyond 16 bits) are rejected.
* The declared size is checked before decoding: a file of a few kilobytes may unpack to gigabytes.

Pillow is imported when the first image is read. It comes with `softgaze[vision]`, which also brings torch; an exported
model needs Pillow alone.
"""

import base64
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from softgaze.errors import DataError, ResourceError

if TYPE_CHECKING:
    from PIL import Image

Array = npt.NDArray[Any]

MAX_PIXELS = 80_000_000  # more than usual cameras have, less than Pillow's own limit
MAX_PAGE_SIDE = 640  # pixels of an image in a page
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
MEDIA_TYPES = ("image/jpeg", "image/png")


# --- boxes: shares of width and height ---


class Box(NamedTuple):
    """A rectangle with edges from 0 to 1, measured from the left and from the top."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of_pixels(cls, left: float, top: float, width: float, height: float, size: tuple[float, float]) -> "Box":
        """Create a box from pixels of an image of `size` (width, height), clipped to the image."""
        edges = (left / size[0], top / size[1], (left + width) / size[0], (top + height) / size[1])
        return cls(*(min(max(edge, 0.0), 1.0) for edge in edges))

    def pixels(self, size: tuple[float, float]) -> tuple[float, float, float, float]:
        """Return left, top, width and height in an image of `size` (width, height), as in COCO files."""
        width, height = size
        return self.left * width, self.top * height, (self.right - self.left) * width, (self.bottom - self.top) * height

    @property
    def area(self) -> float:
        return max(self.right - self.left, 0.0) * max(self.bottom - self.top, 0.0)


def coverage(boxes: Sequence[Box], rows: int, columns: int) -> Array:
    """Return the exact share of each cell of a grid (rows, columns) that lies in at least one box."""
    x_edges = _edges([(box.left, box.right) for box in boxes], columns)
    y_edges = _edges([(box.top, box.bottom) for box in boxes], rows)
    x, y = (x_edges[1:] + x_edges[:-1]) / 2, (y_edges[1:] + y_edges[:-1]) / 2
    inside = np.zeros((len(y), len(x)), dtype=bool)
    for box in boxes:
        inside |= np.outer((box.top < y) & (y < box.bottom), (box.left < x) & (x < box.right))
    areas = inside * np.outer(np.diff(y_edges), np.diff(x_edges)) * rows * columns
    cells = np.zeros((rows, columns))
    np.add.at(cells, ((y * rows).astype(int)[:, None], (x * columns).astype(int)[None, :]), areas)
    return cells


def _edges(spans: Iterable[tuple[float, float]], cells: int) -> Array:
    """Return all coordinates along one side where a cell or a box starts or ends."""
    return np.unique([*(np.arange(cells + 1) / cells), *(edge for span in spans for edge in span)])


def pointing(weights: Array, boxes: Sequence[Box]) -> float:
    """Return how much of an attention map (rows, columns) lies in the boxes; a cell's weight is spread evenly."""
    return float((weights * coverage(boxes, *weights.shape)).sum())


def share(boxes: Sequence[Box]) -> float:
    """Return the share of the image that the boxes cover: the `pointing` of a uniform attention map."""
    return float(coverage(boxes, 1, 1)[0, 0])


# --- image files ---


class ImageError(DataError):
    """An image that cannot be read."""

    def __init__(self, path: Path, why: str, remedy: str) -> None:
        super().__init__(f"{path}: {why}; {remedy}")
        self.path, self.why, self.remedy = path, why, remedy


# --- which part of an image is used -----------------------------------------------------------------------------


class ImageSize(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


@dataclass(frozen=True)
class ImageView:
    """The part of an image that is used, and the size it is scaled to."""

    image: ImageSize  # upright
    crop: Box
    size: ImageSize

    def to_view(self, box: Box) -> Box:
        """Map a box of the image to the view, clipped; a box outside of the view has no area."""
        width, height = self.crop.right - self.crop.left, self.crop.bottom - self.crop.top
        left, right = ((edge - self.crop.left) / width for edge in (box.left, box.right))
        top, bottom = ((edge - self.crop.top) / height for edge in (box.top, box.bottom))
        return Box(*(min(max(edge, 0.0), 1.0) for edge in (left, top, right, bottom)))


ViewRule = Callable[[ImageSize], ImageView]
FULL_IMAGE = Box(0.0, 0.0, 1.0, 1.0)


def full_size(image: ImageSize) -> ImageView:
    return ImageView(image, FULL_IMAGE, image)


def fit_within(side: int) -> ViewRule:
    """View the whole image, scaled down so that no side has more than `side` pixels."""

    def view(image: ImageSize) -> ImageView:
        scale = min(1.0, side / max(image))
        return ImageView(image, FULL_IMAGE, ImageSize(*(max(1, round(length * scale)) for length in image)))

    return view


def center_square(side: int) -> ViewRule:
    """View the largest central square, scaled to `side` pixels."""

    def view(image: ImageSize) -> ImageView:
        across, down = ((length - min(image)) / 2 / length for length in image)
        return ImageView(image, Box(across, down, 1 - across, 1 - down), ImageSize(side, side))

    return view


# --- reading ----------------------------------------------------------------------------------------------------


class LoadedImage(NamedTuple):
    """RGB bytes (height, width, 3), and which part of the file they show."""

    pixels: Array
    view: ImageView


def read_image(path: Path, view_rule: ViewRule = full_size) -> LoadedImage:
    """Read an image file; raise an `ImageError` if that fails."""
    try:
        if not path.is_file():
            raise ImageError(path, "not a file" if path.exists() else "does not exist", "check the name and the folder")
        with path.open("rb") as stream:
            return decode_image(stream, path, view_rule)
    except OSError as error:
        raise ImageError(path, f"cannot be read: {(error.strerror or str(error)).lower()}", "check the file") from error


def decode_image(stream: BinaryIO, name: Path, view_rule: ViewRule = full_size) -> LoadedImage:
    """Read an image from a seekable stream; `name` identifies it in errors."""
    pillow = _pillow()
    try:
        with warnings.catch_warnings():  # Pillow warns of damaged metadata, and of sizes that are rejected below
            warnings.simplefilter("ignore")
            with pillow.open(stream, formats=FORMATS) as image:
                return _load(image, name, view_rule)
    except ImageError:
        raise
    except pillow.UnidentifiedImageError as error:
        formats = ", ".join(FORMATS)
        raise ImageError(name, f"not an image of a supported format ({formats})", "convert or remove it") from error
    except pillow.DecompressionBombError as error:
        raise ImageError(name, f"more than {MAX_PIXELS:,} pixels", "scale it down") from error
    except MemoryError as error:
        raise ImageError(name, "does not fit into memory", "scale it down") from error
    except Exception as error:  # decoders raise errors of every kind on broken files
        why = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(name, f"damaged ({why})", "replace it") from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ResourceError("images need Pillow, which is not installed; pip install pillow") from None
    return Image


def _load(image: "Image.Image", name: Path, view_rule: ViewRule) -> LoadedImage:
    from PIL import ImageOps

    _check_size(ImageSize(*image.size), name)
    image.load()  # before EXIF is read, which in some formats follows the pixels
    try:
        upright = ImageOps.exif_transpose(image)
    except Exception:  # as for decoders
        upright = image
    view = view_rule(ImageSize(*upright.size))
    _check_size(view.size, name)
    left, top, width, height = view.crop.pixels(view.image)
    crop = left, top, min(left + width, view.image.width), min(top + height, view.image.height)
    rgb = _to_rgb(upright, name)
    if view.size != rgb.size or crop != (0, 0, *rgb.size):
        rgb = rgb.resize(view.size, resample=_pillow().Resampling.BICUBIC, box=crop, reducing_gap=3.0)
    return LoadedImage(np.asarray(rgb), view)


def _check_size(size: ImageSize, name: Path) -> None:
    if min(size) < 1:
        raise ImageError(name, f"has no pixels ({size.width}×{size.height})", "replace it")
    if math.prod(size) > MAX_PIXELS:
        raise ImageError(name, f"{size.width}×{size.height} is more than {MAX_PIXELS:,} pixels", "scale or crop it")


def _to_rgb(image: "Image.Image", name: Path) -> Any:
    if image.mode == "F" or image.mode.startswith("I"):
        grey = np.asarray(image)
        if grey.dtype.kind == "f" or grey.min() < 0 or grey.max() > 0xFFFF:
            raise ImageError(name, "values beyond 16 bits have no known range", "convert to 8 or 16 bits")
        scaled = (grey.astype(np.uint32) * 255 + 0x7FFF) // 0xFFFF
        return _pillow().fromarray(scaled.astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        transparent = image.convert("RGBA")
        white = _pillow().new("RGBA", transparent.size, "white")
        return _pillow().alpha_composite(white, transparent).convert("RGB")
    return image.convert("RGB")


# --- writing ----------------------------------------------------------------------------------------------------


def write_image(path: Path, pixels: Array) -> None:
    """Write bytes (height, width, 3) in the format that the file name implies."""
    _pillow().fromarray(pixels).save(path)


def encode_image(pixels: Array) -> tuple[bytes, str]:
    """Encode bytes (height, width, 3) as JPEG or PNG, whichever is smaller, and return the media type."""
    image, files = _pillow().fromarray(pixels), dict[str, bytes]()
    for media_type in MEDIA_TYPES:
        stream = BytesIO()
        image.save(stream, media_type.removeprefix("image/"), quality=88, optimize=True)
        files[media_type] = stream.getvalue()
    smallest = min(files, key=lambda media_type: len(files[media_type]))
    return files[smallest], smallest


@dataclass(frozen=True)
class Photo:
    """An encoded image to draw attention on; the grid of the model covers `crop` of it."""

    image: bytes
    media: str
    size: ImageSize  # of the original, upright
    crop: Box = FULL_IMAGE

    def __post_init__(self) -> None:
        if self.media not in MEDIA_TYPES:
            raise ValueError(f"expected a media type of {', '.join(MEDIA_TYPES)}, got {self.media!r}")
        if min(self.size) < 1:
            raise ValueError(f"an image of {self.size[0]}×{self.size[1]} pixels has no pixels")

    def to_grid(self, box: Box) -> Box:
        """Map a box of the image to the grid, clipped; a box outside of the crop has no area."""
        return ImageView(self.size, self.crop, self.size).to_view(box)

    def to_dict(self) -> dict[str, Any]:
        image = base64.b64encode(self.image).decode()
        return {"image": image, "media": self.media, "size": list(self.size), "crop": list(self.crop)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Photo":
        image = base64.b64decode(stored["image"], validate=True)
        width, height = map(int, stored["size"])
        return cls(image, str(stored["media"]), ImageSize(width, height), Box(*map(float, stored["crop"])))


def load_photo(path: Path, view_rule: ViewRule = full_size) -> Photo:
    """Read an image for a page; `view_rule` is that of the model."""
    pixels, view = read_image(path, fit_within(MAX_PAGE_SIDE))
    return Photo(*encode_image(pixels), view.image, view_rule(view.image).crop)
