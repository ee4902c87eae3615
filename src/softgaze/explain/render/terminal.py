"""An attention map as plain text: a heat map for any width and direction of characters, and a summary in words.

The summary takes words without their attached punctuation, as in alignments, so a weight may differ from that of the
cell in the map. The page computes the same summary in `assets/attention.js`: change both together.
"""

import math
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len

from softgaze.explain.attention_map import UNUSED, Attention, group_tokens
from softgaze.explain.recording import Matrix
from softgaze.explain.render.text_layout import LEFT_TO_RIGHT_MARK, clean, is_right_to_left, isolate, wrap
from softgaze.explain.word_spans import ATTACHED, Label, TokenizedText

SHADES = " ░▒▓█"
THRESHOLDS = (0.08, 0.25, 0.45, 0.7)  # of each shade but the first
IMAGE_CELLS = {shade: 2 * shade for shade in SHADES} | {" ": "· "}  # dots make the edges of an image visible
SPACING, MARK_SPACING = "  ", "    "  # between words; between words and BOS or EOS
LEGEND = "  ".join(f"{shade} ≥ {least:.2f}" for shade, least in zip(SHADES[1:], THRESHOLDS, strict=True))
MAX_LISTED = 3  # strongest words listed

# Meaning of a rank correlation, from the best down.
FAITHFULNESS = (
    (0.6, "the most attended words are mostly those that mattered"),
    (0.3, "the most attended words are partly those that mattered"),
    (0.1, "attention says little about what mattered"),
    (-1.0, "attention does not show what mattered"),
)


class Column(NamedTuple):
    position: int
    word: str
    spacing: str  # before it

    @property
    def width(self) -> int:
        return cell_len(self.word)


def text_heatmap(attention: Attention, width: int | None = None) -> str:
    """Return a text map: source words on top, one line for each output word, split into blocks that fit `width`.

    A map over an image is drawn as one small image for each word.
    """
    width = width or shutil.get_terminal_size().columns
    if attention.grid is not None:
        return _image_heatmap(attention, width)
    margin = max((cell_len(clean(word)) for word in attention.target), default=0)
    columns = [
        Column(position, clean(label.text), MARK_SPACING if is_apart else SPACING)
        for position, (label, is_apart) in enumerate(_with_boundaries(attention.column_labels))
    ]
    blocks = []
    for block in _split_columns(columns, width - margin):
        lines = [_line(" " * margin, [column.spacing + isolate(column.word) for column in block])]
        for row, (label, is_apart) in enumerate(_with_boundaries(attention.row_labels)):
            weights = attention.weights[row]
            cells = [column.spacing + _shade(weights[column.position]) * column.width for column in block]
            lines += [*[""] * is_apart, _line(pad_to(clean(label.text), margin), cells)]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, "\n".join([LEGEND, *wrap(clean(attention.description), width, cell_len)])])


def _with_boundaries(labels: Sequence[Label]) -> Iterator[tuple[Label, bool]]:
    """Yield each label, and whether it is a word after a mark or a mark after a word."""
    for previous, label in pairwise([*labels[:1], *labels]):
        yield label, (previous.word is None) != (label.word is None)


def _split_columns(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Split the columns into blocks of at most `width` cells, with at least one column each."""
    blocks: list[list[Column]] = [[]]
    used = 0
    for column in columns:
        needed = len(column.spacing) + column.width
        if blocks[-1] and used + needed > width:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += needed
    return blocks


def _line(start: str, cells: Sequence[str]) -> str:
    """Join one line; the mark keeps a terminal from reversing a line that starts right-to-left."""
    line = (start + "".join(cells)).rstrip()
    return LEFT_TO_RIGHT_MARK + line if is_right_to_left(line) else line


def _shade(weight: float) -> str:
    return SHADES[sum(weight >= least for least in THRESHOLDS)]


def pad_to(word: str, width: int) -> str:
    return isolate(word) + " " * (width - cell_len(word))


def _image_heatmap(attention: Attention, width: int) -> str:
    blocks = []
    for row in attention.word_rows:
        tile = attention.tiles[row]
        most = max(float(tile.max()), 1e-12)
        cells = ["".join(IMAGE_CELLS[_shade(weight / most)] for weight in line) for line in tile]
        blocks.append([clean(attention.target[row]), *cells])
    block_width = max((cell_len(line) for block in blocks for line in block), default=1)
    per_row = max(1, (width + len(SPACING)) // (block_width + len(SPACING)))
    rows = [
        "\n".join(
            _line("", [SPACING + pad_to(cells, block_width) for cells in lines])
            for lines in zip(*blocks[start : start + per_row], strict=True)
        )
        for start in range(0, len(blocks), per_row)
    ]
    legend = [f"{LEGEND} of the largest weight of each word", clean(attention.description)]
    return "\n\n".join([*rows, "\n".join(line for text in legend for line in wrap(text, width, cell_len))])


# --- in words --------------------------------------------------------------------------------------------------


def summarize(attention: Attention) -> str:
    """Return, for example, `학교에 ← school 0.83, 갔어요 ← went 0.71; 1 source word unused: very`."""
    weights = _core_weights(attention)
    links = [(row, int(weights[row].argmax())) for row in attention.word_rows if weights[row].any()]
    strongest = sorted(sorted(links, key=lambda link: -weights[link])[:MAX_LISTED])
    listed = [
        f"{attention.target[row]} ← {attention.source[column]} {weights[row, column]:.2f}" for row, column in strongest
    ]
    noun = "cell" if attention.grid else "word" if attention.view.unit == "words" else "subword"
    if attention.view.kind != "decoder" and not attention.grid:
        noun = f"source {noun}"
    names = [attention.source[column] for column in unused_columns(attention)]
    unused = f"{len(names)} {noun}{'s' if len(names) > 1 else ''} unused: {list_words(names)}"
    return f"{', '.join(listed) or 'no word attends to anything'}; {unused if names else f'every {noun} was used'}"


def unused_columns(attention: Attention) -> list[int]:
    """Return the columns of words whose weights sum to less than `UNUSED` over the output words."""
    coverage = _core_weights(attention)[attention.word_rows].sum(axis=0)
    return [column for column in attention.word_columns if coverage[column] < UNUSED]


def _core_weights(attention: Attention) -> Matrix:
    """Return (T, S) as shown, but words without their attached punctuation."""
    if attention.view.unit == "subwords":
        return attention.weights

    def labels(text: TokenizedText) -> list[Label]:
        core_of = text.core_of
        return [
            label._replace(positions=tuple(token for token in label.positions if core_of[token] != ATTACHED))
            for label in text.word_labels()
        ]

    rows, columns = attention.to_row_labels(labels(attention.query_text)), labels(attention.key_text)
    return group_tokens(attention.recording.map(attention.view), rows, columns)


def list_words(words: Sequence[str]) -> str:
    """Join the first words and count the rest; not with commas, which words may end in."""
    limit = 2 * MAX_LISTED
    more = [f"and {len(words) - limit} more"] if len(words) > limit else []
    return " · ".join([*words[:limit], *more])


def describe_faithfulness(value: float) -> str:
    if math.isnan(value):
        return "unknown: the sentence is too short to rank its words"
    return f"{value:.2f}: {next(words for least, words in FAITHFULNESS if value >= least)}"


def describe_entropy(attention: Attention) -> str:
    columns = len(attention.source)
    values = attention.entropy()
    mean = float(values.mean()) if len(values) else 0.0
    return f"{mean:.2f} nats on average (0: one column, {math.log(max(columns, 1)):.2f}: uniform over {columns})"


def describe_coverage(attention: Attention) -> str:
    coverage = attention.coverage()
    columns = sorted(attention.word_columns, key=coverage.__getitem__)
    if not columns:
        return "no words to cover"
    least, most = (f"{attention.source[column]} {coverage[column]:.2f}" for column in (columns[0], columns[-1]))
    return f"from {least} to {most} (each {'source' if attention.view.kind == 'encoder' else 'output'} word gives 1)"


def describe_source_share(shares: Sequence[float], words: Sequence[str]) -> str:
    if not words:
        return "no words"
    mean, (least, word) = sum(shares) / len(shares), min(zip(shares, words, strict=True))
    return f"{100 * mean:.0f} % on average, the rest from earlier output words (least: {word} {100 * least:.0f} %)"


def describe_sink(attention: Attention) -> str:
    return f"{100 * attention.sink:.0f} % of the attention is on BOS and EOS"
