"""A figure that can be saved as SVG, or as PNG and PDF with typst (the extra `plots`)."""

import html
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from softgaze.atomic_io import write_bytes
from softgaze.errors import ResourceError, UsageError

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
