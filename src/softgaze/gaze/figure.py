"""A picture that can be kept: SVG as it is, PNG and PDF made of it by typst (the extra `plots`)."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from softgaze.errors import ResourceError, UsageError
from softgaze.files import write_bytes

# A page as large as the drawing. Without a date, the same drawing is the same file.
PAGE = """
#set document(title: sys.inputs.title, date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.drawing), format: "svg", alt: sys.inputs.title)
"""
SIZE = re.compile(r'<svg\b[^>]*\swidth="([\d.]+)" height="([\d.]+)"')
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
METADATA = re.compile(r"<metadata\b.*?</metadata>", re.DOTALL)
DOTS = 96  # an inch, as SVG has it
SHARP = 3.0  # dots of a PNG for each of the drawing: enough for print
MOST = 40e6  # dots of a PNG, so that a long sentence still opens


@dataclass(frozen=True)
class Figure:
    """A drawing of softgaze; a notebook shows it, `save` keeps it."""

    svg: str

    def save(self, path: str | Path) -> Path:
        """As .svg, .png or .pdf, whichever the name says; an old file stays until the new one is complete."""
        path = Path(path)
        if path.suffix.lower() not in WRITERS:
            raise UsageError(f"{path}: a picture is saved as {', '.join(WRITERS)}; end the name with one of them")
        write_bytes(path, WRITERS[path.suffix.lower()](self.svg))
        return path

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Figure {' × '.join(f'{side:g}' for side in size_of(self.svg))}>"


def size_of(svg: str) -> tuple[float, float]:
    """Width and height of a drawing."""
    found = SIZE.search(svg)
    if found is None:
        raise ValueError("a Figure is made of an SVG that says its width and height")
    return float(found[1]), float(found[2])


def to_svg(svg: str) -> bytes:
    """As it is."""
    return svg.encode()


def to_png(svg: str) -> bytes:
    """Sharp enough for print, as far as a picture of its size can be."""
    width, height = size_of(svg)
    return typeset(svg, "png", DOTS * min(SHARP, (MOST / (width * height)) ** 0.5))


def to_pdf(svg: str) -> bytes:
    """Lines and letters, which can be searched and copied."""
    return typeset(svg, "pdf")


def typeset(svg: str, kind: Literal["png", "pdf"], dots: float = DOTS) -> bytes:
    """One page; typst takes the fonts of the system."""
    if find_spec("typst") is None:
        raise ResourceError(f"a {kind.upper()} needs typst, which is not installed; pip install 'softgaze[plots]'")
    import typst

    found = TITLE.search(svg)
    inputs = {"drawing": METADATA.sub("", svg), "title": html.unescape(found[1]) if found else ""}
    made = typst.compile(PAGE.encode(), format=kind, ppi=dots, sys_inputs=inputs)
    return made


WRITERS: dict[str, Callable[[str], bytes]] = {".svg": to_svg, ".png": to_png, ".pdf": to_pdf}
