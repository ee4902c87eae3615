"""Attention over an image as an SVG figure: the image once for each word, dimmed where the word attends less.

Each image is undimmed at the cell with the largest weight. Below it: the word, its probability and that weight.
"""

import base64
import struct
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softgaze.data.images import Photo
from softgaze.explain.attention_map import Attention
from softgaze.explain.recording import Matrix
from softgaze.explain.render.heatmap_svg import BASELINE, MARGIN, NOTE_LINE, NOTE_SIZE, PAD
from softgaze.explain.render.svg import (
    BLACK,
    FAINT,
    INK,
    LINE,
    WHITE,
    element,
    format_number,
    svg_document,
    text,
)
from softgaze.explain.render.text_layout import isolate, text_width, truncate, wrap
from softgaze.explain.serialization import svg_element

IMAGES_PER_ROW = 5
MAX_SIDE = 190  # the longer side of an image, in pixels
DIM = 0.7  # opacity of black where a word has no attention
MASK_SIZE = 96  # pixels across a smooth mask
LABEL_SIZE, NUMBER_SIZE = 15, 11
LABEL_HEIGHT = LABEL_SIZE * 1.5 + NUMBER_SIZE * 1.4
MIN_CELL, MIN_PRINTED = 17, 0.05  # smallest cell, in pixels, and smallest weight with a number
SMOOTH_NOTE = (
    "each image is brightest where its word has the largest weight, given below it, and dimmed where it has less"
)
RAW_NOTE = "each image in the cells of the model, brightest at the largest weight of its word; numbers are per cent"
CROP_NOTE = "the model does not see the area outside the frame"


@dataclass(frozen=True)
class OverlayLayout:
    """The content of a figure and the position of everything in it."""

    attention: Attention
    grid: tuple[int, int]
    about: str
    raw: bool

    @property
    def photo(self) -> Photo | None:
        return self.attention.recording.photo

    @cached_property
    def size(self) -> tuple[float, float]:
        shape = self.photo.size if self.photo else self.grid[::-1]
        return MAX_SIDE * shape[0] / max(shape), MAX_SIDE * shape[1] / max(shape)

    @cached_property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the grid on an image."""
        return self.photo.crop.pixels(self.size) if self.photo else (0.0, 0.0, *self.size)

    @property
    def is_cropped(self) -> bool:
        """Whether the model saw only a part of the image."""
        return self.photo is not None and self.photo.crop.area < 1 - 1e-6

    @cached_property
    def step(self) -> tuple[float, float]:
        """Distance from one image to the next, horizontally and vertically."""
        longest = max(
            (text_width(self.attention.target[row], LABEL_SIZE) for row in self.attention.word_rows), default=0.0
        )
        return max(self.size[0], min(longest, MAX_SIDE)) + 1.5 * PAD, self.size[1] + LABEL_HEIGHT + PAD

    @property
    def per_row(self) -> int:
        """Images in a row; the first image of the figure is the original."""
        return min(IMAGES_PER_ROW, len(self.attention.word_rows) + 1)

    def corner(self, index: int) -> tuple[float, float]:
        row, column = divmod(index, self.per_row)
        return MARGIN + self.step[0] * column, MARGIN + self.step[1] * row

    @property
    def width(self) -> float:
        return max(2 * MARGIN + self.step[0] * self.per_row, 2 * MAX_SIDE)

    @property
    def notes_y(self) -> float:
        return self.corner(len(self.attention.word_rows))[1] + self.step[1] + NOTE_LINE

    @cached_property
    def notes(self) -> list[str]:
        how = (RAW_NOTE if self.raw else SMOOTH_NOTE) + (f"; {CROP_NOTE}" if self.is_cropped else "")
        paragraphs = [f"output: {isolate(caption(self.attention))}", how, self.about or self.attention.description]
        return [line for paragraph in paragraphs for line in wrap(paragraph, (self.width - 2 * MARGIN) / NOTE_SIZE)]


def caption(attention: Attention) -> str:
    return attention.recording.target.text or "(empty)"


def draw_image_overlay(attention: Attention, *, about: str = "", raw: bool = False, with_data: bool = True) -> str:
    """Return the figure as SVG with the JSON that `Attention.load` reads; `raw` draws cells instead of smooth masks."""
    if attention.grid is None:
        raise ValueError("expected a map over an image grid, got a map over words")
    layout = OverlayLayout(attention, attention.grid, about, raw)
    box = {"width": layout.size[0], "height": layout.size[1]}
    if layout.photo is None:
        image = element("rect", id="photo", fill=WHITE, stroke=LINE, **box)
    else:
        address = f"data:{layout.photo.media};base64,{base64.b64encode(layout.photo.image).decode()}"
        image = element("image", id="photo", href=address, preserveAspectRatio="none", **box)
    x, y = layout.corner(0)
    label_x, label_y = x + layout.size[0] / 2, y + layout.size[1] + LABEL_SIZE * 1.2
    label = text(label_x, label_y, "original", "middle", fill=FAINT, font_size=NUMBER_SIZE)
    original = element("use", href="#photo", x=x, y=y) + label  # every word refers to the one image in defs
    parts = [svg_element(attention) if with_data else "", element("defs", image), original]
    parts += [_draw_word(layout, index, row) for index, row in enumerate(attention.word_rows, 1)]
    notes = [text(MARGIN, layout.notes_y + NOTE_LINE * index, line) for index, line in enumerate(layout.notes)]
    parts.append(element("g", "".join(notes), font_size=NOTE_SIZE, fill=FAINT))
    height = layout.notes_y + NOTE_LINE * len(notes) + MARGIN
    tops = [f"{isolate(word)} ← {top[0][0]} {top[0][1]:.2f}" for word, top in attention.top() if top]
    description = f"{attention.description}; cells are named row,column. {'; '.join(tops)}"
    title = f"Attention over the image: {caption(attention)}"
    return svg_document(layout.width, height, "\n".join(parts), title=title, description=description) + "\n"


def _draw_word(layout: OverlayLayout, index: int, row: int) -> str:
    """Draw the dimmed image of one word and the label below it."""
    x, y = layout.corner(index)
    weights = layout.attention.tiles[row]
    left, top, width, height = layout.frame
    dark = ""
    if layout.is_cropped:
        outer = f"M0 0H{format_number(layout.size[0])}V{format_number(layout.size[1])}H0z"
        a, b, c, d = map(format_number, layout.frame)
        hole = f"M{a} {b}h{c}v{d}h-{c}z"
        dark = element("path", d=outer + hole, fill_rule="evenodd", fill_opacity=f"{DIM:.2f}")
    dark += (_draw_cells if layout.raw else _draw_mask)(layout, weights)
    if layout.is_cropped:
        box = {"x": left, "y": top, "width": width, "height": height}
        dark += element("rect", fill="none", stroke=WHITE, stroke_width=0.8, **box)
    image = element("use", href="#photo", x=x, y=y)
    overlay = element("g", dark, transform=f"translate({format_number(x)} {format_number(y)})")

    middle, below = x + layout.size[0] / 2, y + layout.size[1]
    word = truncate(layout.attention.target[row], MAX_SIDE / LABEL_SIZE)
    label = text(middle, below + LABEL_SIZE * 1.2, word, "middle", fill=INK, font_size=LABEL_SIZE, font_weight="bold")
    probs = layout.attention.word_probs
    numbers = (f"p {probs[row]:.2f} · " if probs else "") + f"max {100 * weights.max():.0f} %"
    numbers = text(middle, below + LABEL_HEIGHT - 2, numbers, "middle", fill=FAINT, font_size=NUMBER_SIZE)
    return image + overlay + label + numbers


# --- dimming ----------------------------------------------------------------------------------------------------


def darkness(weights: Matrix) -> Matrix:
    """Return 0 at the largest weight up to `DIM` at weight 0; `DIM` everywhere if all weights are 0."""
    most = float(weights.max(initial=0.0))
    dark: Matrix = DIM * (1 - weights / most) if most > 0 else np.full(weights.shape, DIM)
    return dark


def _draw_mask(layout: OverlayLayout, weights: Matrix) -> str:
    """Draw the darkness with smooth transitions between cells."""
    left, top, width, height = layout.frame
    halves = darkness(weights).repeat(2, axis=0).repeat(2, axis=1)  # keeps the value in the middle of a cell
    smooth = interpolate(halves, max(1, MASK_SIZE // max(halves.shape)))
    address = f"data:image/png;base64,{base64.b64encode(encode_alpha_png(smooth)).decode()}"
    box = {"x": left, "y": top, "width": width, "height": height}
    return element("image", href=address, preserveAspectRatio="none", **box)


def interpolate(values: Matrix, factor: int) -> Matrix:
    """Enlarge each cell to `factor` × `factor` pixels, linearly between the centres of cells."""
    for axis in (0, 1):
        pixels = (np.arange(values.shape[axis] * factor) + 0.5) / factor - 0.5
        values = np.apply_along_axis(lambda line, at=pixels: np.interp(at, range(len(line)), line), axis, values)
    return values


def encode_alpha_png(opacity: Matrix) -> bytes:
    """Encode black with these opacities as a grey-and-alpha PNG; Pillow is not in the base install."""
    height, width = opacity.shape
    pixels = np.zeros((height, 1 + 2 * width), dtype=np.uint8)  # each line starts with filter type 0
    pixels[:, 2::2] = np.rint(255 * opacity.clip(0, 1))
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 4, 0, 0, 0),
        b"IDAT": zlib.compress(pixels.tobytes(), 9),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks.items()
    )


def _draw_cells(layout: OverlayLayout, weights: Matrix) -> str:
    """Draw each cell with one darkness, and the larger weights in per cent, readable on any image."""
    left, top, full_width, full_height = layout.frame
    rows, columns = layout.grid
    width, height = full_width / columns, full_height / rows
    rects, numbers = [], []
    for ((row, column), dark), weight in zip(np.ndenumerate(darkness(weights)), weights.flat, strict=True):
        x, y = left + full_width * column / columns, top + full_height * row / rows
        rects.append(element("rect", x=x, y=y, width=width, height=height, fill_opacity=f"{dark:.2f}"))
        if weight >= MIN_PRINTED and min(width, height) >= MIN_CELL:
            baseline = y + height / 2 + NUMBER_SIZE * BASELINE
            numbers.append(text(x + width / 2, baseline, f"{100 * weight:.0f}", "middle"))
    cells = element("g", "".join(rects), stroke=WHITE, stroke_width=0.3, stroke_opacity="0.5")
    style: dict[str, str | float] = {"fill": WHITE, "stroke": BLACK, "stroke_width": 2.0, "paint_order": "stroke"}
    return cells + (element("g", "".join(numbers), font_size=NUMBER_SIZE, **style) if numbers else "")
