"""The alphabet of our SVG: elements whose text and attributes are safe, whatever is written in them."""

import math
from xml.sax.saxutils import escape, quoteattr

from softgaze.gaze.lettering import clean, isolated

# The fonts of assets/style.css; the generic family comes last, so that what none of them has is looked for everywhere.
FONT = (
    "'Noto Sans', 'Noto Sans CJK KR', 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', 'Segoe UI', "
    "'Noto Sans Arabic', 'DejaVu Sans', system-ui, sans-serif"
)


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """`<name key="value">content</name>`; content is SVG. A `_` in a key is written `-`, at its end not at all."""
    keys = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(written(value))}" for key, value in attributes.items()
    )
    return f"<{name}{keys}>{content}</{name}>" if content else f"<{name}{keys}/>"


def text(across: float, down: float, words: str, anchor: str = "start", /, **attributes: str | float) -> str:
    """Words that stay words: they can be searched, copied and read aloud."""
    return element("text", spelled(isolated(words)), x=across, y=down, text_anchor=anchor, **attributes)


def spelled(words: str) -> str:
    """Any text as XML may hold it."""
    return escape(clean(words))


def written(value: str | float) -> str:
    """A number as short as it can be, to a tenth: paths are made of thousands of them."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def picture(width: float, height: float, content: str, *, title: str, description: str = "") -> str:
    """A whole drawing on white; the title is its name for whoever cannot see it."""
    about = element("title", spelled(title)) + (element("desc", spelled(description)) if description else "")
    paper = element("rect", width="100%", height="100%", fill="#ffffff")
    names = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font_family": FONT}
    view = f"0 0 {written(width)} {written(height)}"
    return element("svg", about + paper + content, **names, viewBox=view, width=width, height=height)


def ticks(end: float) -> list[float]:
    """Round numbers from 0 to `end` or just past it, at most six; a curve that never left 0 still has an axis."""
    end = end if end > 0 else 1.0
    rough = end / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(number * step, 9) for number in range(math.ceil(end / step - 1e-9) + 1)]
