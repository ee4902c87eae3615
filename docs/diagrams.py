"""Draw the diagrams of the guide: docs/guide/diagrams/*.svg.

    python -m docs.diagrams                 # redraw them
    python -m docs.diagrams --glyphs        # first read the outlines of Hangul syllables from Noto Sans CJK KR

Each drawing has its own background and colours for light and dark, so that it can be read on any page. Hangul is drawn
as outlines from glyphs.json (Noto Sans CJK KR, SIL Open Font License 1.1): it does not depend on the fonts of a reader.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from docs.dark import with_dark_colours
from softgaze.explain.render.heatmap_svg import NOTE_SIZE
from softgaze.explain.render.svg import FAINT, FONT, INK, element, escape_text

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs/guide"
DIAGRAMS = GUIDE / "diagrams"
GLYPHS = DIAGRAMS / "glyphs.json"
NOTEBOOK = ROOT / "examples/attention.ipynb"
HEATMAP = "My cousin came to the market by taxi."  # a sentence that the notebook shows with its gold alignment

HANGUL = re.compile("[가-힣]")
ADVANCE = 0.92  # width of a syllable, in font sizes
UNITS = 1000  # outline units per font size
OUTPUT_WIDTH = 46  # of "output:" and a space in the lines below a map

# class -> (light, dark); as the colours of heat maps: blue for the network, orange for attention.
COLOURS = {
    "card": ("fill:#ffffff", "fill:#1b1d21"),
    "ink": ("fill:#1d1d1b", "fill:#ecece8"),
    "faint": ("fill:#5f5f5a", "fill:#b4b4ae"),
    "box": ("fill:#e8eff7;stroke:#1d4e89", "fill:#203248;stroke:#8db8ea"),
    "look": ("fill:#fbeedd;stroke:#b45309", "fill:#47301a;stroke:#f0b06a"),
    "bar": ("fill:#b45309", "fill:#f0b06a"),
    "no": ("fill:#f1f1ee;stroke:#b9b9b2", "fill:#26282c;stroke:#55585e"),
    "yes": ("fill:#1d4e89;stroke:#ffffff", "fill:#8db8ea;stroke:#1b1d21"),
    "frame": ("fill:none;stroke:#8a8a84", "fill:none;stroke:#85858c"),
    "line": ("fill:none;stroke:#1d1d1b", "fill:none;stroke:#ecece8"),
    "soft": ("fill:none;stroke:#b45309", "fill:none;stroke:#f0b06a"),
    "head": ("fill:#1d1d1b", "fill:#ecece8"),
    "softhead": ("fill:#b45309", "fill:#f0b06a"),
}
SHADES = 16  # shades of a positional encoding


def style() -> str:
    light = "".join(f".{name}{{{value[0]}}}" for name, value in COLOURS.items())
    dark = "".join(f".{name}{{{value[1]}}}" for name, value in COLOURS.items())
    return element("style", f"{light}@media (prefers-color-scheme:dark){{{dark}}}")


# --- parts of a drawing -----------------------------------------------------------------------------------------


def label(x: float, y: float, words: str, size: float = 15, kind: str = "ink", anchor: str = "middle") -> str:
    """Return a text; `a_b` is a with the index b, and Hangul becomes outlines."""
    if HANGUL.search(words):
        return outlines(x, y, words, size, kind, anchor)
    base, *indices = words.split("_")
    content = escape_text(base)
    for part in indices:
        index, space, rest = part.partition(" ")
        content += element("tspan", escape_text(index), dy=f"{size * 0.25:.1f}", font_size=size * 0.7)
        content += element("tspan", escape_text(space + rest), dy=f"{-size * 0.25:.1f}") if rest else ""
    return element("text", content, x=x, y=y, text_anchor=anchor, font_size=size, class_=kind)


def outlines(x: float, y: float, words: str, size: float, kind: str, anchor: str) -> str:
    """Return Hangul words as paths; screen readers read the label."""
    glyphs: dict[str, str] = json.loads(GLYPHS.read_text(encoding="utf-8"))["outlines"]
    advances = [ADVANCE if HANGUL.match(letter) else 0.28 for letter in words]
    position = x - sum(advances) * size * {"start": 0, "middle": 0.5, "end": 1}[anchor]
    paths, scale = "", size / UNITS
    for letter, advance in zip(words, advances, strict=True):
        if letter in glyphs:
            place = f"translate({position:.2f} {y:.2f}) scale({scale:.4f} {-scale:.4f})"
            paths += element("path", d=glyphs[letter], transform=place)
        position += advance * size
    return element("g", paths, role="img", aria_label=words, class_=kind)


def box(x: float, y: float, width: float, height: float, words: str = "", kind: str = "box", size: float = 15) -> str:
    """Return a rounded box around the point (x, y)."""
    place = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height}
    drawn = element("rect", rx=6, stroke_width=1.4, class_=kind, **place)
    return drawn + (label(x, y + size * 0.35, words, size) if words else "")


def arrow(*points: tuple[float, float], kind: str = "line", width: float = 1.4) -> str:
    """Return a line through points with a head at its end."""
    (x0, y0), (x1, y1) = points[-2:]
    angle = math.atan2(y1 - y0, x1 - x0)
    wings = [(x1 - 8 * math.cos(angle + turn), y1 - 8 * math.sin(angle + turn)) for turn in (-0.4, 0.4)]
    head = element("path", d=path([(x1, y1), *wings]) + "Z", class_="softhead" if kind == "soft" else "head")
    end = (x1 - 6 * math.cos(angle), y1 - 6 * math.sin(angle))
    return element("path", d=path([*points[:-1], end]), class_=kind, stroke_width=width) + head


def path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def drawing(width: float, height: float, title: str, description: str, *parts: str) -> str:
    about = element("title", escape_text(title)) + element("desc", escape_text(description))
    card = element("rect", width="100%", height="100%", class_="card")
    names = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font_family": FONT}
    content = about + style() + card + "\n" + "\n".join(parts)
    return element("svg", content, **names, viewBox=f"0 0 {width} {height}", width=width, height=height) + "\n"


# --- the six diagrams -------------------------------------------------------------------------------------------

SOURCE, TARGET = ("I", "see", "a", "dog"), ("나는", "개를", "본다", "⏎")


def encoder_decoder() -> str:
    """Chapter 2: all of the source passes through one vector."""
    parts, left, step, state, again = [], 48, 78, 110, 158
    for index, word in enumerate(SOURCE):
        x = left + index * step
        parts += [box(x, state, 52, 40, f"h_{index + 1}"), label(x, 205, word)]
        parts.append(arrow((x, 186), (x, state + 22)))
        parts += [arrow((x - step + 28, state), (x - 28, state))] if index else []
    context, first = left + 4 * step, left + 5 * step + 12
    parts += [arrow((context - step + 28, state), (context - 24, state), kind="soft")]
    parts += [box(context, state, 44, 66, "c", "look", 18), label(context, state - 44, "one vector", 12, "faint")]
    for index, word in enumerate(TARGET):
        x = first + index * step
        before = ("⇥", *TARGET)[index]
        parts += [box(x, state, 52, 40, f"s_{index + 1}"), label(x, 40, word), label(x, 205, before, kind="faint")]
        parts += [arrow((x, state - 22), (x, 50)), arrow((x, 186), (x, state + 22))]
        parts.append(arrow((x - step + (28 if index else 12), state), (x - 28, state)))
        parts.append(dot(x, again, "bar"))
    last = first + (len(TARGET) - 1) * step
    turns = [(context + 22, state + 24), (context + 36, state + 24), (context + 36, again), (last, again)]
    parts += [element("path", d=path(turns), class_="soft", stroke_width=1.4)]
    parts += [
        label(left + 1.5 * step, 240, "encoder", 14, "faint"),
        label(first + 1.5 * step, 240, "decoder", 14, "faint"),
    ]
    about = (
        "Four source words become four encoder states in a chain; only the last becomes the context c, "
        "which the decoder reads at every step."
    )
    return drawing(740, 258, "Encoder–decoder", about, *parts)


def attention_step() -> str:
    """Chapter 3: one step, from scores to the next word."""
    columns, scores = [110, 210, 310, 410], [0.3, 1.0, 0.4, 3.0]
    total = sum(map(math.exp, scores))
    weights = [math.exp(score) / total for score in scores]
    parts = [box(580, 250, 76, 42, "s_t−1")]
    parts.append(element("rect", x=70, y=140, width=380, height=44, rx=6, stroke_width=1.4, class_="look"))
    parts += [label(20, y, words, 13, "faint", "start") for y, words in ((167, "score"), (77, "weight"))]
    for x, weight, word, index in zip(columns, weights, SOURCE, range(1, 5), strict=True):
        parts += [label(x, 305, word), box(x, 250, 60, 42, f"h_{index}"), label(x, 168, f"e_t,{index}")]
        parts += [arrow((x, 228), (x, 186)), arrow((x, 138), (x, 102), kind="soft")]
        parts.append(element("rect", x=x - 17, y=94 - 62 * weight, width=34, height=62 * weight, class_="bar"))
        parts.append(element("path", d=path([(x - 24, 94), (x + 24, 94)]), stroke_width=1, class_="frame"))
        up = path([(x, 92 - 62 * weight), (x, 20), (578, 20)])
        parts.append(element("path", d=up, class_="soft", stroke_width=0.6 + 2.4 * weight))
    parts += [
        arrow((580, 20), (580, 48), kind="soft", width=3),
        label(260, 122, "softmax", 13, "faint"),
        arrow((580, 228), (580, 162), (452, 162)),
    ]
    parts += [
        box(580, 70, 76, 42, "c_t", "look", 17),
        arrow((618, 70), (652, 70)),
        arrow((618, 250), (676, 250), (676, 93)),
        arrow((706, 128), (706, 93)),
        label(706, 146, "y_t−1", 14, "faint"),
    ]
    parts += [box(690, 70, 72, 42, "s_t"), arrow((690, 48), (690, 34)), label(690, 26, "개를")]
    parts += [label(566, 40, "Σ weight · h", 13, "faint", "end"), label(580, 290, "decoder", 13, "faint")]
    about = (
        "The decoder state is compared with every encoder state; softmax makes weights; their sum is the context c_t."
    )
    return drawing(760, 325, "One step of attention", about, *parts)


def multi_head() -> str:
    """Chapter 5: projections, parallel heads, concatenation."""
    parts = []
    for column, (name, source) in enumerate((("Q", "query source"), ("K", "memory X"), ("V", "memory X"))):
        x = 150 + column * 150
        parts += [label(x, 352, source, 13, "faint"), arrow((x, 336), (x, 312))]
        for back in (2, 1, 0):
            parts.append(box(x + 7 * back, 290 - 7 * back, 96, 38, f"W_{name}" if not back else ""))
        parts.append(arrow((x, 270 - 10), (x, 226)))
    for back in (2, 1, 0):
        words = "softmax(Q Kᵀ / √(D/H)) V" if not back else ""
        parts.append(box(300 + 7 * back, 200 - 7 * back, 400, 48, words, "look"))
    parts += [
        label(560, 180, "H heads,", 13, "faint", "start"),
        label(560, 198, "each of width D/H", 13, "faint", "start"),
    ]
    parts += [arrow((300, 160), (300, 138)), box(300, 116, 220, 40, "[head_1 ; … ; head_H ]")]
    parts += [arrow((300, 95), (300, 74)), box(300, 54, 96, 36, "W_O"), arrow((300, 35), (300, 14))]
    parts += [label(430, 120, "side by side: width D", 13, "faint", "start")]
    about = (
        "Queries, keys and values are projected for each head; the outputs of all heads are concatenated and projected."
    )
    return drawing(700, 366, "Multi-head attention", about, *parts)


def masks() -> str:
    """Chapter 7: padding, causal and both; filled cells may be attended."""
    from torch import tensor

    from softgaze.attention import causal_mask, padding_mask

    size, cell, parts = 5, 30, []
    padding = padding_mask(tensor([3]), size)[0, 0].expand(size, size)
    causal = causal_mask(size).reshape(size, size)
    named = {"padding mask": padding, "causal mask": causal, "both": padding & causal}
    for number, (name, mask) in enumerate(named.items()):
        left, top = 70 + number * 215, 58
        parts.append(label(left + size * cell / 2, 24, name, 15))
        for row in range(size):
            parts.append(label(left - 10, top + row * cell + 20, f"q_{row + 1}", 13, "faint", "end"))
            parts.append(label(left + (row + 0.5) * cell, top - 8, f"k_{row + 1}", 13, "faint"))
            for column in range(size):
                place = {"x": left + column * cell, "y": top + row * cell, "width": cell, "height": cell}
                parts.append(element("rect", stroke_width=1.5, class_="yes" if mask[row, column] else "no", **place))
    parts += [
        element("rect", x=70, y=228, width=16, height=16, class_="yes"),
        label(94, 241, "may attend", 13, "faint", "start"),
    ]
    parts += [
        element("rect", x=200, y=228, width=16, height=16, class_="no"),
        label(224, 241, "−∞", 13, "faint", "start"),
    ]
    about = "Padding: three columns of five are filled. Causal: a lower triangle. Both: their common cells."
    return drawing(680, 260, "Masks", about, *parts)


def encoding(position: int, dimension: int, width: int) -> float:
    """Return one component of a sinusoidal encoding."""
    angle = position / 10000 ** (dimension // 2 * 2 / width)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def positional_encoding(positions: int = 40, width: int = 32) -> str:
    """Chapter 7: the sinusoids, one row for each dimension."""
    cell, row_height, left, top = 14, 10, 90, 30
    cells: dict[int, str] = {}
    for dimension in range(width):
        for position in range(positions):
            level = round((encoding(position, dimension, width) + 1) / 2 * SHADES)
            corner = f"M{left + position * cell} {top + dimension * row_height}h{cell}v{row_height}h-{cell}z"
            cells[level] = cells.get(level, "") + corner
    parts = [element("path", d=area, fill=mixed(level / SHADES)) for level, area in sorted(cells.items())]
    bottom = top + width * row_height
    parts += [label(left + (p + 0.5) * cell, bottom + 18, str(p), 12, "faint") for p in range(0, positions, 5)]
    parts += [label(left - 8, top + (d + 0.9) * row_height, str(d), 12, "faint", "end") for d in range(0, width, 8)]
    parts += [label(left + positions * cell / 2, bottom + 40, "position p", 14), label(46, 20, "dimension", 14)]
    key = left + positions * cell + 24
    for row, value in enumerate((1, 0, -1)):
        parts.append(element("rect", x=key, y=top + row * 26, width=16, height=16, fill=mixed((value + 1) / 2)))
        parts.append(label(key + 24, top + row * 26 + 13, f"{value:+d}" if value else "0", 13, "faint", "start"))
    about = "Waves over the position: short in the first dimensions, long in the last."
    return with_dark_colours(drawing(key + 66, bottom + 54, "Sinusoidal positional encoding", about, *parts))


def mixed(share: float) -> str:
    """Return a colour from orange (0) through white to blue (1)."""
    end = (29, 78, 137) if share >= 0.5 else (180, 83, 9)
    return "#" + "".join(f"{round(255 + (part - 255) * abs(2 * share - 1)):02x}" for part in end)


def transformer_block() -> str:
    """Chapter 8: an encoder layer and a decoder layer with residuals, norms before each part."""
    parts = []
    for x, names, top, count in (
        (190, ("self-attention", "feed-forward"), 184, "encoder layer × N"),
        (520, ("masked self-attention", "cross-attention", "feed-forward"), 52, "decoder layer × N"),
    ):
        parts.append(
            element("rect", x=x - 125, y=top, width=250, height=468 - top, rx=10, stroke_width=1.2, class_="frame")
        )
        parts.append(label(x - 125, 486, count, 13, "faint", "start"))
        for index, name in enumerate(names):
            y, begin = 400 - index * 132, 69 if index else 118  # below the branch: the sum of the part before
            parts += [arrow((x, y + begin), (x, y + 44)), box(x, y + 29, 110, 26, "norm", "no", 13)]
            parts += [arrow((x, y + 15), (x, y + 1)), box(x, y - 18, 172, 36, name, "look" if "att" in name else "box")]
            parts += [arrow((x, y - 37), (x, y - 50 + 1))]
            around = [(x, y + 58), (x + 108, y + 58), (x + 108, y - 58), (x + 9, y - 58)]
            parts += [arrow(*around), plus(x, y - 58), dot(x, y + 58)]
        base = "source" if x < 300 else "target so far"
        parts += [
            box(x, 535, 150, 32, "embedding + positions", "no", 13),
            label(x, 585, base, 14),
            arrow((x, 572), (x, 552)),
        ]
    parts += [arrow((190, 201), (190, 166)), box(190, 152, 110, 26, "norm", "no", 13)]
    parts += [arrow((190, 138), (190, 116), (355, 116), (355, 268), (433, 268), kind="soft", width=2)]
    parts += [label(272, 106, "memory: keys, values", 13, "faint")]
    parts += [arrow((520, 69), (520, 34)), label(520, 24, "norm, linear, softmax → next word", 14)]
    about = (
        "Encoder layer: self-attention, feed-forward. Decoder layer: a cross-attention to the memory between the two."
    )
    return drawing(700, 600, "The Transformer", about, *parts)


def dot(x: float, y: float, kind: str = "head") -> str:
    """Return a junction of two lines."""
    return element("circle", cx=x, cy=y, r=2.6, class_=kind)


def plus(x: float, y: float) -> str:
    circle = element("circle", cx=x, cy=y, r=8, stroke_width=1.3, class_="box")
    return circle + element("path", d=f"M{x - 5} {y}H{x + 5}M{x} {y - 5}V{y + 5}", stroke_width=1.3, class_="line")


def english_korean() -> str:
    """Return the map of a phrasebook sentence that the example notebook shows."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    drawn = ["".join(output.get("image/svg+xml", ())) for output in outputs]
    [svg] = [each for each in drawn if f"<title>Attention: {HEATMAP}" in each]
    return for_pages(svg) + "\n"


def for_pages(svg: str) -> str:
    """Return a figure with dark colours as well, and with outlines instead of Hangul text."""
    return with_dark_colours(re.sub(r"<text ([^>]*)>(output: )?([^<]*)</text>", outlined, svg))


def outlined(match: re.Match[str]) -> str:
    """Return a label, or the line below a map that repeats the output, with its Hangul as outlines."""
    if not HANGUL.search(match[3]):
        return match[0]
    attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', match[1]))
    x, y, anchor = float(attributes["x"]), float(attributes["y"]), attributes.get("text-anchor", "start")
    if match[2]:
        size, fill, before = float(NOTE_SIZE), FAINT, f"<text {match[1]}>{match[2].strip()}</text>"
        x += OUTPUT_WIDTH
    else:
        size, fill, before = float(attributes.get("font-size", 14)), attributes.get("fill", INK), ""
    return before + outlines(x, y, match[3], size, "", anchor).replace(' class=""', f' fill="{fill}"')


DRAWINGS: dict[str, Callable[[], str]] = {
    "encoder-decoder": encoder_decoder,
    "attention-step": attention_step,
    "multi-head": multi_head,
    "masks": masks,
    "positional-encoding": positional_encoding,
    "transformer-block": transformer_block,
    "english-korean": english_korean,
}


def read_glyphs(syllables: Iterable[str]) -> dict[str, str]:
    """Return the outline of each syllable, as typst draws it with Noto Sans CJK KR."""
    import typst

    found = {}
    for syllable in syllables:
        page = "#set page(width: auto, height: auto, margin: 0pt)\n"
        page += f'#set text(font: "Noto Sans CJK KR", size: {UNITS}pt, fallback: false)\n{syllable}'
        svg = typst.compile(page.encode(), format="svg").decode()
        [found[syllable]] = re.findall(r'<symbol[^>]*><path d="([^"]*)"', svg)
    return found


def main() -> int:
    DIAGRAMS.mkdir(exist_ok=True)
    if "--glyphs" in sys.argv[1:]:
        title = re.search(rf"<title>Attention: {re.escape(HEATMAP)} → ([^<]*)", NOTEBOOK.read_text(encoding="utf-8"))
        assert title is not None, f"{NOTEBOOK} does not show {HEATMAP!r}"
        figures = "".join(path.read_text(encoding="utf-8") for path in (GUIDE / "figures").glob("*.svg"))
        syllables = sorted({".", *HANGUL.findall("".join(TARGET) + title[1] + figures)})
        stored = {"font": "Noto Sans CJK KR, SIL Open Font License 1.1", "outlines": read_glyphs(syllables)}
        GLYPHS.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    for name, draw in DRAWINGS.items():
        (DIAGRAMS / f"{name}.svg").write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
