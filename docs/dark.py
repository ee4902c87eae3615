"""Add colours for a dark background to drawings: `python -m docs.dark FILE.svg …` rewrites files.

A style rule overrides the attributes of the drawing where a reader prefers dark pages; in print it stays light.
"""

import re
import sys
from pathlib import Path

from softgaze.explain.render.svg import BLACK, FAINT, GREY, HUE, INK, LINE, SERIES, WHITE, WHITE_INK

CARD = "#1b1d21"
COLOURS = {
    WHITE: CARD,
    BLACK: "#ffffff",
    INK: "#ecece8",
    FAINT: "#b4b4ae",
    LINE: "#3a3c40",
    GREY: "#6a6c71",
    "#f1f1ee": "#2a2c31",  # the shaded range of a chart
    # bars of a benchmark
    "#1f2937": "#ecece8",
    "#6b7280": "#b4b4ae",
    "#94a3b8": "#64748b",
    "#c2410c": "#f0803c",
    **dict(zip(SERIES, ("#457df3", "#e17b30", "#30eb90", "#c774b0", "#faf8f6", "#fed922"), strict=True)),
}
RAMPS = {HUE: (125, 180, 245), (180, 83, 9): (240, 176, 106)}  # of weights and of the other sign: light, dark
TURN = 0.63  # lightness at the weight from which the ink on a cell is white on light pages, and dark on dark ones
STYLE = re.compile(r"<style>@media \(prefers-color-scheme:dark\)\{[^<]*</style>")


def with_dark_colours(svg: str) -> str:
    """Return a light drawing with dark colours as well, whether or not it had them."""
    svg = STYLE.sub("", svg)
    used = sorted(set(re.findall(r'\b(fill|stroke)="(#[0-9a-f]{6})"', svg)))
    if not used:  # a diagram with its own colours
        return svg
    rules = "".join(f'[{name}="{light}"]{{{name}:{dark_colour(light)}}}' for name, light in used)
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(r"<svg\b[^>]*>", lambda head: head[0] + style, svg, count=1)


def dark_colour(light: str) -> str:
    """Return the dark counterpart of a colour of our drawings."""
    if light in COLOURS:
        return COLOURS[light]
    parts = [int(light[start : start + 2], 16) for start in (1, 3, 5)]
    for end, dark_end in RAMPS.items():
        share = (255 - parts[0]) / (255 - end[0])
        if all(abs(255 + share * (full - 255) - part) <= 2 for full, part in zip(end, parts, strict=True)):
            card = [int(CARD[start : start + 2], 16) for start in (1, 3, 5)]
            mix = share * TURN / WHITE_INK if share < WHITE_INK else 1 - (1 - share) * (1 - TURN) / (1 - WHITE_INK)
            return "#" + "".join(f"{round(a + mix * (b - a)):02x}" for a, b in zip(card, dark_end, strict=True))
    raise ValueError(f"{light} has no dark counterpart; add it to docs/dark.py")


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_dark_colours(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
