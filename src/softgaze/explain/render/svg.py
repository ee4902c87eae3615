"""SVG elements and colours of all figures, and a figure saved as SVG, or as PNG and PDF with typst (extra `plots`)."""

import html
import math
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from softgaze.atomic_io import write_bytes
from softgaze.errors import ResourceError, UsageError
from softgaze.explain.render.text_layout import clean, isolate

# As in assets/style.css. The generic family comes last: typst takes the first family that has the character.
FONT = (
    "'Noto Sans', 'Noto Sans CJK KR', 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', 'Segoe UI', "
    "'Noto Sans Arabic', 'DejaVu Sans', system-ui, sans-serif"
)

# --- elements ---------------------------------------------------------------------------------------------------


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """Return `<name key="value">content</name>`; `_` in a key becomes `-`, and a trailing `_` is dropped."""
    keys = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(format_number(value))}" for key, value in attributes.items()
    )
    return f"<{name}{keys}>{content}</{name}>" if content else f"<{name}{keys}/>"


def text(x: float, y: float, words: str, anchor: str = "start", /, **attributes: str | float) -> str:
    """Return a text element: the text of a figure can be searched, copied and read by a screen reader."""
    return element("text", escape_text(isolate(words)), x=x, y=y, text_anchor=anchor, **attributes)


def escape_text(words: str) -> str:
    return escape(clean(words))


def format_number(value: str | float) -> str:
    """Round to one decimal: paths contain thousands of numbers."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def svg_document(width: float, height: float, content: str, *, title: str, description: str = "") -> str:
    """Return a whole drawing on white; screen readers announce the title and the description."""
    about = element("title", escape_text(title)) + (element("desc", escape_text(description)) if description else "")
    background = element("rect", width="100%", height="100%", fill=WHITE)
    names = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font_family": FONT}
    view_box = f"0 0 {format_number(width)} {format_number(height)}"
    return element("svg", about + background + content, **names, viewBox=view_box, width=width, height=height)


def ticks(end: float) -> list[float]:
    """Return at most seven round numbers from 0 to `end` or just above it; an axis of zeros ends at 1."""
    end = end if end > 0 else 1.0
    rough = end / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(index * step, 9) for index in range(math.ceil(end / step - 1e-9) + 1)]


# --- colours, as in assets/style.css ----------------------------------------------------------------------------

HUE = (29, 78, 137)  # of weight 1; one hue from white to dark, so that a map can be printed in grey
INK, FAINT, LINE, GOLD = "#1d1d1b", "#6b6b66", "#d9d9d4", "#b45309"
GREY = "#c4c4be"
BLACK, WHITE = "#000000", "#ffffff"
WHITE_INK = 0.7655  # weight from which white has more contrast on a cell than black; tests measure it
# Lines of a chart. Tests check that colour-blind readers can distinguish them, and their contrast on white.
SERIES = ("#0f3d95", "#b85c03", "#268261", "#9c4f8d", "#1d1c1c", "#594411")


def shade(weight: float) -> str:
    return "#" + "".join(f"{round(255 + weight * (full - 255)):02x}" for full in HUE)


def ink_on(weight: float) -> str:
    """Return black or white, whichever has more contrast on the shade of a weight."""
    return WHITE if weight >= WHITE_INK else BLACK


# --- the figure ---

# Typst is used because it finds fallback fonts for every script and writes PDF text that can be copied. A page as large
# as the drawing, and without a date, so that equal drawings make equal files.
TYPST_PAGE = """
#set document(title: sys.inputs.title, date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.drawing), format: "svg", alt: sys.inputs.title)
"""
SIZE = re.compile(r'<svg\b[^>]*\swidth="([\d.]+)" height="([\d.]+)"')
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
METADATA = re.compile(r"<metadata\b.*?</metadata>", re.DOTALL)
SVG_PPI = 96
PNG_SCALE = 3.0  # pixels for each SVG pixel, sharp enough for print
MAX_PIXELS = 40e6  # of a PNG
SUFFIXES = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class Figure:
    """An SVG drawing; notebooks show it, `save` writes it."""

    svg: str

    @property
    def size(self) -> tuple[float, float]:
        match = SIZE.search(self.svg)
        if match is None:
            raise ValueError("expected an SVG with width and height")
        return float(match[1]), float(match[2])

    def save(self, path: str | Path) -> Path:
        """Write .svg, .png or .pdf, by the suffix of `path`; an old file stays until the new one is complete."""
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            raise UsageError(f"{path}: figures are saved as {', '.join(SUFFIXES)}; use one of these suffixes")
        if suffix == ".svg":
            content = self.svg.encode()
        elif suffix == ".png":
            width, height = self.size
            content = self._typeset("png", SVG_PPI * min(PNG_SCALE, (MAX_PIXELS / (width * height)) ** 0.5))
        else:
            content = self._typeset("pdf", SVG_PPI)
        write_bytes(path, content)
        return path

    def _typeset(self, kind: Literal["png", "pdf"], ppi: float) -> bytes:
        if find_spec("typst") is None:
            raise ResourceError(f"{kind.upper()} needs typst, which is not installed; pip install 'softgaze[plots]'")
        import typst

        title = TITLE.search(self.svg)
        inputs = {"drawing": METADATA.sub("", self.svg), "title": html.unescape(title[1]) if title else ""}
        content: bytes = typst.compile(TYPST_PAGE.encode(), format=kind, ppi=ppi, sys_inputs=inputs)
        return content

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Figure {' × '.join(f'{side:g}' for side in self.size)}>"
