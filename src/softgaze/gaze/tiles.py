"""Where each word looked in a photo: the photo once a word, dimmed where the word did not look. Our own SVG.

Each photo keeps its shape, and is as bright as it is where its word looked most; what nobody looked at stays visible,
since nothing is painted over it. Below stand the word, its probability, and what its brightest cell got.
"""

import base64
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy

from softgaze.data.photo import Photo
from softgaze.gaze.attention import Attention
from softgaze.gaze.colours import BLACK, FAINT, INK, LINE, WHITE
from softgaze.gaze.drawing import element, picture, text, written
from softgaze.gaze.lettering import cut, isolated, width_of, wrapped
from softgaze.gaze.recording import Matrix
from softgaze.gaze.sheet import MARGIN, NOTE, NOTE_LINE, PAD
from softgaze.gaze.stored import svg_element

ACROSS = 5  # photos side by side
SIDE = 190  # the longer side of a photo
DIM = 0.7  # how dark it is where nobody looked
SMOOTH = 96  # dots across a mask: enough that no cell shows
LETTER, NUMBER = 15, 11
UNDER = LETTER * 1.5 + NUMBER * 1.4  # room for what stands below a photo
ROOM_FOR_NUMBER, PRINTED = 17, 0.05  # pixels of a cell that can hold its weight, and the least one that is written
SMOOTH_NOTE = (
    "each photo is brightest where its word looked most, by the share given below it, and dimmed where it looked less"
)
RAW_NOTE = (
    "each photo in the cells that the model has, brightest at the one its word looked at most; numbers are per cent"
)
UNSEEN = "outside the frame the model saw nothing"


@dataclass(frozen=True)
class Album:
    """Where the photos stand."""

    attention: Attention
    grid: tuple[int, int]
    about: str
    raw: bool

    @property
    def photo(self) -> Photo | None:
        """What is dimmed; without one there is paper."""
        return self.attention.recording.photo

    @cached_property
    def words(self) -> list[int]:
        """Rows that are words: the end of a sentence says nothing."""
        return [row for row, label in enumerate(self.attention.row_labels) if label.word is not None]

    @cached_property
    def size(self) -> tuple[float, float]:
        """Of one photo: its longer side is always the same."""
        shape = self.photo.size if self.photo else self.grid[::-1]
        return SIDE * shape[0] / max(shape), SIDE * shape[1] / max(shape)

    @cached_property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the grid on a photo."""
        return self.photo.crop.pixels(self.size) if self.photo else (0.0, 0.0, *self.size)

    @cached_property
    def step(self) -> tuple[float, float]:
        """From one photo to the next: across, and down."""
        longest = max((width_of(self.attention.target[row], LETTER) for row in self.words), default=0.0)
        return max(self.size[0], min(longest, SIDE)) + 1.5 * PAD, self.size[1] + UNDER + PAD

    @property
    def across(self) -> int:
        """Photos in a line; the first is as it was given."""
        return min(ACROSS, len(self.words) + 1)

    def place(self, number: int) -> tuple[float, float]:
        """Where a photo begins."""
        return MARGIN + self.step[0] * (number % self.across), MARGIN + self.step[1] * (number // self.across)

    @property
    def width(self) -> float:
        """Of the whole drawing."""
        return max(2 * MARGIN + self.step[0] * self.across, 2 * SIDE)

    @property
    def below(self) -> float:
        """Where the notes begin."""
        lines = -(-(len(self.words) + 1) // self.across)
        return MARGIN + self.step[1] * lines + NOTE_LINE

    @cached_property
    def notes(self) -> list[str]:
        """What is shown."""
        said = self.about or self.attention.shows
        how = RAW_NOTE if self.raw else SMOOTH_NOTE
        outside = f"; {UNSEEN}" if self.is_framed else ""
        paragraphs = [f"output: {isolated(caption_of(self.attention))}", how + outside, said]
        room = (self.width - 2 * MARGIN) / NOTE
        return [line for paragraph in paragraphs for line in wrapped(paragraph, room)]

    @property
    def is_framed(self) -> bool:
        """Whether the model saw only a part of the photo."""
        return self.photo is not None and self.photo.crop.area < 1 - 1e-6


def tiles(attention: Attention, *, about: str = "", raw: bool = False) -> str:
    """The picture as SVG, with the numbers inside that `Attention.load` reads; `raw` shows the cells themselves."""
    return drawn_tiles(attention, svg_element(attention), about=about, raw=raw)


def drawn_tiles(attention: Attention, numbers: str = "", *, about: str = "", raw: bool = False) -> str:
    """The picture with or without the numbers inside."""
    if attention.grid is None:
        raise ValueError("only columns that lie on a grid can be drawn as photos")
    album = Album(attention, attention.grid, about, raw)
    parts = [numbers, defined(album), whole(album)]
    parts += [tile(album, number, row) for number, row in enumerate(album.words, 1)]
    parts.append(notes(album))
    height = album.below + NOTE_LINE * len(album.notes) + MARGIN
    title = f"Where each word looked: {caption_of(attention)}"
    return picture(album.width, height, "\n".join(parts), title=title, description=description(attention)) + "\n"


def caption_of(attention: Attention) -> str:
    """What was written."""
    return attention.recording.target.text or "(empty)"


def defined(album: Album) -> str:
    """The photo, which stands in the file once however often it is drawn."""
    width, height = album.size
    box = {"width": width, "height": height}
    if album.photo is None:
        shown = element("rect", id="photo", fill=WHITE, stroke=LINE, **box)
    else:
        shown = element("image", id="photo", href=album.photo.address, preserveAspectRatio="none", **box)
    return element("defs", shown)


def whole(album: Album) -> str:
    """The photo as it was given."""
    across, down = album.place(0)
    below = down + album.size[1] + LETTER * 1.2
    return photo(across, down) + text(
        across + album.size[0] / 2, below, "as given", "middle", fill=FAINT, font_size=NUMBER
    )


def photo(across: float, down: float) -> str:
    """The photo at a place."""
    return element("use", href="#photo", x=across, y=down)


def tile(album: Album, number: int, row: int) -> str:
    """One word: the dimmed photo, and what stands below it."""
    across, down = album.place(number)
    weights = album.attention.tiles[row]
    moved = {"transform": f"translate({written(across)} {written(down)})"}
    dark = element("g", outside(album) + (cells if album.raw else mask)(album, weights) + border(album), **moved)
    return photo(across, down) + dark + label(album, row, across + album.size[0] / 2, down + album.size[1])


def label(album: Album, row: int, middle: float, down: float) -> str:
    """The word, its probability, and how much of its look the brightest cell got."""
    word = cut(album.attention.target[row], SIDE / LETTER)
    said = text(middle, down + LETTER * 1.2, word, "middle", fill=INK, font_size=LETTER, font_weight="bold")
    most = f"most {100 * album.attention.tiles[row].max():.0f} %"
    chances = album.attention.probabilities
    numbers = f"p {chances[row]:.2f} · {most}" if chances else most
    return said + text(middle, down + UNDER - 2, numbers, "middle", fill=FAINT, font_size=NUMBER)


# --- dimming ----------------------------------------------------------------------------------------------------


def darkness(weights: Matrix) -> Matrix:
    """From 0, where most was looked, to `DIM`; a word that looked nowhere, or everywhere alike, lights nothing up."""
    most = float(weights.max(initial=0.0))
    dark: Matrix = DIM * (1 - weights / most) if most > 0 else numpy.full(weights.shape, DIM)
    return dark


def outside(album: Album) -> str:
    """What the model did not see is as dark as can be."""
    if not album.is_framed:
        return ""
    left, top, width, height = map(written, album.frame)
    whole_photo = f"M0 0H{written(album.size[0])}V{written(album.size[1])}H0z"
    hole = f"M{left} {top}h{width}v{height}h-{width}z"
    return element("path", d=whole_photo + hole, fill_rule="evenodd", fill_opacity=f"{DIM:.2f}")


def border(album: Album) -> str:
    """Around what the model saw, if that is not everything."""
    left, top, width, height = album.frame
    box = {"x": left, "y": top, "width": width, "height": height}
    return element("rect", fill="none", stroke=WHITE, stroke_width=0.8, **box) if album.is_framed else ""


def mask(album: Album, weights: Matrix) -> str:
    """Darkness that runs smoothly from one cell to the next."""
    left, top, width, height = album.frame
    halves = darkness(weights).repeat(2, axis=0).repeat(2, axis=1)  # so that the middle of a cell stays as it is
    smooth = smoothed(halves, max(1, SMOOTH // max(halves.shape)))
    address = f"data:image/png;base64,{base64.b64encode(png(smooth)).decode()}"
    box = {"x": left, "y": top, "width": width, "height": height}
    return element("image", href=address, preserveAspectRatio="none", **box)


def smoothed(values: Matrix, factor: int) -> Matrix:
    """Each cell as `factor` × `factor` dots, on straight lines between the middles of cells."""
    for axis in (0, 1):
        size = values.shape[axis]
        dots = (numpy.arange(size * factor) + 0.5) / factor - 0.5
        values = numpy.apply_along_axis(
            lambda line, dots=dots: numpy.interp(dots, range(len(line)), line), axis, values
        )
    return values


def png(darkness: Matrix) -> bytes:
    """Black of these opacities, from 0 to 1, as a PNG file: grey and alpha, a byte each."""
    height, width = darkness.shape
    dots = numpy.zeros((height, 1 + 2 * width), dtype=numpy.uint8)  # a line begins with its filter, which is none
    dots[:, 2::2] = numpy.rint(255 * darkness.clip(0, 1))
    header = struct.pack(">IIBBBBB", width, height, 8, 4, 0, 0, 0)
    chunks = {b"IHDR": header, b"IDAT": zlib.compress(dots.tobytes(), 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in chunks.items())


def chunk(name: bytes, data: bytes) -> bytes:
    """As PNG has them: length, name, data, checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


# --- cells as they are ------------------------------------------------------------------------------------------


def cells(album: Album, weights: Matrix) -> str:
    """Every cell alike all over, lines between them, and the weights that are worth a number."""
    dark = [
        element("rect", x=x, y=y, width=width, height=height, fill_opacity=f"{shade:.2f}")
        for (x, y, width, height), shade in zip(boxes(album), darkness(weights).flat, strict=True)
    ]
    group = element("g", "".join(dark), stroke=WHITE, stroke_width=0.3, stroke_opacity="0.5")
    return group + "".join(numbers_of(album, weights))


def boxes(album: Album) -> Iterator[tuple[float, float, float, float]]:
    """Left, top, width and height of each cell, row by row."""
    left, top, width, height = album.frame
    rows, columns = album.grid
    downs = [top + height * row / rows for row in range(rows + 1)]
    acrosses = [left + width * column / columns for column in range(columns + 1)]
    for upper, lower in pairwise(downs):
        for near, far in pairwise(acrosses):
            yield near, upper, far - near, lower - upper


def numbers_of(album: Album, weights: Matrix) -> Iterator[str]:
    """Weights in hundredths, in cells with room for them; white on a black rim, to be read on any photo."""
    rim: dict[str, str | float] = {
        "fill": WHITE,
        "stroke": BLACK,
        "stroke_width": 2.0,
        "paint_order": "stroke",
        "font_size": NUMBER,
    }
    for (x, y, width, height), weight in zip(boxes(album), weights.flat, strict=True):
        if weight >= PRINTED and min(width, height) >= ROOM_FOR_NUMBER:
            yield text(x + width / 2, y + height / 2 + NUMBER * 0.36, f"{100 * weight:.0f}", "middle", **rim)


# --- words ------------------------------------------------------------------------------------------------------


def notes(album: Album) -> str:
    """Line by line."""
    lines = [text(MARGIN, album.below + NOTE_LINE * number, line) for number, line in enumerate(album.notes)]
    return element("g", "".join(lines), font_size=NOTE, fill=FAINT)


def description(attention: Attention) -> str:
    """What is seen, for whoever cannot see it."""
    looked = [f"{isolated(word)} ← {top[0][0]} {top[0][1]:.2f}" for word, top in attention.top() if top]
    return f"{attention.shows}; cells are called row,column. {'; '.join(looked)}"
