"""One attention map: its rows and columns, its weights, and numbers computed from them.

An `Attention` is a view of a recording and runs no model. Every method returns a new object, or a number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softgaze.data.images import Photo
from softgaze.errors import did_you_mean
from softgaze.explain.alignment import Alignment
from softgaze.explain.recording import (
    BY_ENTROPY,
    BY_GUIDING,
    BY_TOOLKIT,
    KINDS,
    UNITS,
    Array,
    AttentionStack,
    Matrix,
    PartAttention,
    Recording,
    SelectedMap,
    View,
    normalize_rows,
)
from softgaze.explain.word_spans import WORD_START, Label, TokenizedText, find_word

if TYPE_CHECKING:
    from softgaze.explain.render.svg import Figure
MIN_RELIABILITY = 0.6  # a map with a smaller share of right links comes with a warning
UNUSED = 0.1  # a source word with a smaller sum of weights over all output words was not used


class MapComparison(NamedTuple):
    """The difference of two maps of one sentence."""

    distance: float  # mean total variation distance of the words, 0 (equal) to 1
    same_top: float  # share of words with the same largest weight
    rows: tuple[float, ...]  # the distance of each word
    difference: Matrix  # the other map minus this one, (words, columns)


@dataclass(frozen=True)
class LinkReliability:
    """The probability that the link of each output word is right, None for a word without a link; see `reliability`."""

    links: tuple[float | None, ...]

    @property
    def value(self) -> float:
        """The share of the links that can be expected to be right."""
        links = [link for link in self.links if link is not None]
        return float(np.mean(links)) if links else 0.0

    @property
    def is_low(self) -> bool:
        """Whether the map should not be relied on."""
        return self.value < MIN_RELIABILITY

    def describe(self) -> str:
        """Describe the reliability for a caption; a low one is a warning."""
        share = f"about {self.value:.0%} of the links of this sentence are right"
        return f"do not rely on this map: {share}" if self.is_low else share

    def describe_sentence(self) -> str:
        """Describe the reliability for the caption of an attribution or of another map than the selected one."""
        share = f"about {self.value:.0%} of the links of the selected attention map are right"
        return f"do not rely on maps of this sentence: {share}" if self.is_low else share

    def to_dict(self) -> dict[str, Any]:
        """Return the reliability as JSON types."""
        return {"value": round(self.value, 4), "is_low": self.is_low, "links": [*self.links]}


@dataclass(frozen=True, eq=False)
class Attention:
    """Weights (T, S), a row for each of `target` and a column for each of `source`; rows sum to 1.

    `description` says which map this is. (Rows of Luong's local-p attention sum to less: its window scales the weights
    after the softmax.)
    """

    recording: Recording
    view: View
    selected_map: SelectedMap | None = None  # the map selected for the model, whether shown or not
    reliability: LinkReliability | None = None  # of the selected map on this sentence; None if it was not measured

    @classmethod
    def of(
        cls,
        source: Sequence[str] | None,
        target: Sequence[str],
        weights: Any,
        *,
        grid: tuple[int, int] | None = None,
        photo: Photo | None = None,
        token_probs: Sequence[float] = (),
    ) -> "Attention":
        """Build a map from words and weights (T, S), (H, T, S) or (L, H, T, S); EOS is written "⏎".

        With a `grid` of (rows, columns) the source is None: columns are the cells, row by row, over a `photo` if given.
        """
        if (source is None) == (grid is None):
            raise ValueError("give either the source words or a grid, not both and not neither")
        stack = np.asarray(weights, dtype=np.float32)
        if not (np.isfinite(stack) & (stack >= 0)).all():
            raise ValueError("weights must be finite and not negative")
        stack = stack.reshape((1,) * (4 - stack.ndim) + stack.shape)  # (L, H, T, S)
        norms: Array = np.ones((*stack.shape[:2], stack.shape[3]), dtype=np.float32)
        if grid:
            cells = [f"{row},{column}" for row in range(1, grid[0] + 1) for column in range(1, grid[1] + 1)]
            keys = TokenizedText.from_words(cells, grid)
        else:
            keys = TokenizedText.from_words(source or ())
        parts = (PartAttention(AttentionStack(stack, norms)),)
        probs = tuple(map(float, token_probs))
        queries = TokenizedText.from_words(target)
        return cls(Recording(keys, queries, parts, photo=photo, token_probs=probs), View())

    # --- rows, columns and weights

    @cached_property
    def row_labels(self) -> list[Label]:
        return self.to_row_labels(self._labels(self.query_text))

    @cached_property
    def column_labels(self) -> list[Label]:
        return self._labels(self.key_text)

    @cached_property
    def word_rows(self) -> list[int]:
        """The rows of words, without BOS and EOS."""
        return [row for row, label in enumerate(self.row_labels) if label.word is not None]

    @cached_property
    def word_columns(self) -> list[int]:
        """The columns of words, without BOS and EOS."""
        return [column for column, label in enumerate(self.column_labels) if label.word is not None]

    def to_row_labels(self, labels: list[Label]) -> list[Label]:
        """Return target labels with the positions of their rows, which may be shifted."""
        if not self.view.is_shifted:
            return labels
        rows = len(self.recording.target.tokens)
        shifted = [
            label._replace(positions=tuple(position + 1 for position in label.positions))
            for label in labels
            if label.word is not None
        ]
        if any(position >= rows for label in shifted for position in label.positions):
            raise ValueError('this map has no EOS row, so rows="reading" is not defined for it')
        return shifted

    @property
    def query_text(self) -> TokenizedText:
        return self.recording.source if self.view.kind == "encoder" else self.recording.target

    @property
    def key_text(self) -> TokenizedText:
        return self.recording.target.decoder_input() if self.view.kind == "decoder" else self.recording.source

    def _labels(self, text: TokenizedText) -> list[Label]:
        return text.word_labels() if self.view.unit == "words" else text.token_labels()

    @property
    def source(self) -> tuple[str, ...]:
        """The words, or subwords, of the columns."""
        return tuple(label.text for label in self.column_labels)

    @property
    def target(self) -> tuple[str, ...]:
        """The words, or subwords, of the rows."""
        return tuple(label.text for label in self.row_labels)

    @cached_property
    def weights(self) -> Matrix:
        """(T, S). Tokens of a word are summed as columns and averaged as rows, so rows still sum to 1."""
        weights = group_tokens(self.recording.map(self.view), self.row_labels, self.column_labels)
        weights.flags.writeable = False
        return weights

    @property
    def grid(self) -> tuple[int, int] | None:
        """(rows, columns) of the image the columns lie on; None for text and for self-attention."""
        grid = self.recording.source.grid
        return (grid[0], grid[1]) if grid and self.view.kind == "cross" else None

    @cached_property
    def tiles(self) -> Matrix:
        """(T, rows, columns): the weights on the grid, without BOS and EOS."""
        if self.grid is None:
            raise ValueError("this map has no image grid; use attention[word] for the weights of a word")
        tiles: Matrix = self.weights[:, self.word_columns].reshape(len(self.weights), *self.grid)
        return tiles

    def tile(self, word: str | int) -> Matrix:
        """Return the weights of one output word on the grid, (rows, columns)."""
        tile: Matrix = self.tiles[self.row_of(word)]
        return tile

    @property
    def word_probs(self) -> tuple[float, ...]:
        """The probability of each row's word, the product of its tokens; empty if it was not recorded."""
        if not self.recording.token_probs or self.view.kind == "encoder":
            return ()
        labels = [
            label for label in self._labels(self.query_text) if label.word is not None or not self.view.is_shifted
        ]
        return tuple(
            math.prod(self.recording.token_probs[position] for position in label.positions) for label in labels
        )

    @property
    def rows(self) -> str:
        """The meaning of a row: "predicting" its word, or "reading" it."""
        return self.view.rows

    @property
    def description(self) -> str:
        """A description of this map for captions; it begins with the warning, if there is one."""
        return "; ".join(filter(None, [self.warning, self.details]))

    @property
    def warning(self) -> str:
        """The reliability of this sentence if it is too low to rely on the map."""
        return self.reliability_text if self.reliability is not None and self.reliability.is_low else ""

    @property
    def details(self) -> str:
        """The description without the warning."""
        about = self.map_description
        if self.recording.attribution:
            about = f"{self.recording.attribution}, {UNITS[self.view.unit]}; each row is the attribution of its word"
        return "; ".join(filter(None, [about, "" if self.warning else self.reliability_text]))

    @property
    def map_description(self) -> str:
        """The part of the description that is the same for every sentence."""
        parts = [self.view.describe(*self.recording.size(self.view.kind)), self.recording.note]
        if self.is_selected and self.selected_map is not None:
            parts.append(self.selected_map.describe())
        return "; ".join(filter(None, parts))

    @property
    def is_selected(self) -> bool:
        """Whether this is the map selected for the model, in words or subwords."""
        return self.selected_map is not None and replace(self.selected_map.view, unit=self.view.unit) == self.view

    @property
    def reliability_text(self) -> str:
        """How far maps of this sentence can be relied on; empty for weights that come from no model."""
        if self.reliability is not None:
            is_own = self.is_selected and not self.recording.attribution
            return self.reliability.describe() if is_own else self.reliability.describe_sentence()
        return "reliability not measured" if self.selected_map is not None or self.recording.attribution else ""

    # --- other views of the same recording

    def words(self) -> "Attention":
        """Show words, the whitespace tokens of the text."""
        return self.with_view(unit="words")

    def subwords(self) -> "Attention":
        """Show the tokens of the model."""
        return self.with_view(unit="subwords")

    def predicting(self) -> "Attention":
        """Label each row with the word it predicts."""
        return self.with_view(rows="predicting")

    def reading(self) -> "Attention":
        """Label each row with the word just read, to predict the next one."""
        return self.with_view(rows="reading")

    def layer(self, index: int) -> "Attention":
        """Show the mean of a layer's heads."""
        return self.with_view(layer=index, head=None, measure=self._layer_measure)

    def head(self, layer: int, head: int) -> "Attention":
        """Show one head of one layer."""
        return self.with_view(layer=layer, head=head, measure=self._layer_measure)

    def mean(self) -> "Attention":
        """Show the mean of all layers and heads."""
        return self.with_view(layer=None, head=None, measure=self._layer_measure)

    def rollout(self) -> "Attention":
        """Show the attention rollout through all layers (Abnar & Zuidema 2020)."""
        return self.with_view(layer=None, head=None, measure="rollout")

    def norms(self) -> "Attention":
        """Show weights times the norms of the values (Kobayashi 2020)."""
        return self.with_view(measure="norms")

    def plain(self) -> "Attention":
        """Show the weights themselves."""
        return self.with_view(measure="weights")

    def cross(self) -> "Attention":
        """Show the cross-attention."""
        return self._of_kind("cross")

    @property
    def has_encoder_attention(self) -> bool:
        """Whether the self-attention of the encoder was recorded."""
        return any(part.encoder is not None for part in self.recording.parts)

    def encoder(self) -> "Attention":
        """Show the self-attention of the encoder."""
        return self._of_kind("encoder")

    def decoder(self) -> "Attention":
        """Show the self-attention of the decoder."""
        return self._of_kind("decoder")

    def _of_kind(self, kind: str) -> "Attention":
        # Layer and head indices of one kind mean nothing in another, so the mean comes first.
        return self if kind == self.view.kind else self.with_view(kind=kind, layer=None, head=None)

    @property
    def _layer_measure(self) -> str:
        """The measure for a single layer, which a rollout does not have."""
        return "weights" if self.view.measure == "rollout" else self.view.measure

    def with_view(self, **changes: Any) -> "Attention":
        """Return another view; raise if the model has no such kind, layer or head."""
        other = replace(self, view=replace(self.view, **changes))
        for part in self.recording.parts[:1]:
            part.map(other.view)  # raises here rather than when the map is drawn
        return other

    # --- numbers

    def entropy(self) -> Matrix:
        """Return the entropy of each row in nats: 0 is one column, log S is uniform."""
        logs = np.log(np.where(self.weights > 0, self.weights, 1.0))
        entropy: Matrix = -(self.weights * logs).sum(axis=1)
        return entropy

    def coverage(self) -> Matrix:
        """Return the sum of each column over the output words; about 0 means unused."""
        coverage: Matrix = self.weights[self.word_rows].sum(axis=0)
        return coverage

    @property
    def sink(self) -> float:
        """The mean share of a row on BOS and EOS (an attention sink)."""
        marks = [label.word is None for label in self.column_labels]
        return float(self.weights[:, marks].sum(axis=1).mean()) if len(self.weights) else 0.0

    def word_weights(self) -> Matrix:
        """Return (target words, source words) without BOS, EOS and attached punctuation, for alignments."""
        rows, columns = self.to_row_labels(self.query_text.core_labels()), self.key_text.core_labels()
        return group_tokens(self.recording.map(self.view), rows, columns)

    def eos_weights(self) -> Matrix:
        """Return (target words,): the weights on the special tokens of the source."""
        rows, columns = self.to_row_labels(self.query_text.core_labels()), self.key_text.word_labels()
        special = [label for label in columns if label.word is None]
        weights: Matrix = group_tokens(self.recording.map(self.view), rows, special).sum(axis=1)
        return weights

    @property
    def is_guided(self) -> bool:
        """Whether this is the map of a head that learned alignments, where words without a link attend to EOS."""
        selected = self.selected_map
        shown = replace(self.view, unit=selected.view.unit) if selected else None
        return selected is not None and selected.by == BY_GUIDING and selected.view == shown

    def __getitem__(self, word: str | int) -> dict[str, float]:
        """Return {source word: weight} of one output word, largest first; repeated source words are summed."""
        weights: dict[str, float] = {}
        for name, weight in zip(self.source, self.weights[self.row_of(word)].tolist(), strict=True):
            weights[name] = weights.get(name, 0.0) + weight
        return dict(sorted(weights.items(), key=lambda item: -item[1]))

    def row_of(self, word: str | int) -> int:
        """Return the row of an output word, given by its text, if it is unique, or by its row index."""
        if isinstance(word, int) and not isinstance(word, bool):
            if not -len(self.target) <= word < len(self.target):
                raise IndexError(f"row {word} does not exist; the output has rows 0 to {len(self.target) - 1}")
            return word
        if not isinstance(word, str):
            raise KeyError(f"expected an output word as text or a row index, got {word!r}")
        rows = find_word(word, [text if text == word else text.removeprefix(WORD_START) for text in self.target])
        if not rows:
            raise KeyError(f"{word!r} is not in the output; {did_you_mean(word, self.target)}")
        if len(rows) > 1:
            raise KeyError(f"{word!r} occurs {len(rows)} times in the output; give its row, one of {rows}")
        return rows[0]

    def top(self, count: int = 1) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return the `count` source words with the largest weights for each output word."""
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        order = (-self.weights).argsort(axis=1, kind="stable")[:, :count]
        return [
            (word, [(self.source[column], float(self.weights[row, column])) for column in order[row]])
            for row, word in enumerate(self.target)
        ]

    def compare(self, other: "Attention") -> MapComparison:
        """Compare with another map of the same sentence word by word, without EOS, which not every map has."""
        maps = [self.words(), other.words()]
        texts = [([attention.target[row] for row in attention.word_rows], attention.source) for attention in maps]
        if texts[0] != texts[1]:
            raise ValueError("maps can be compared only if they have the same source and the same output")
        first, second = (attention.weights[attention.word_rows] for attention in maps)
        moved = abs(second - first).sum(axis=1) / 2
        same = first.argmax(axis=1) == second.argmax(axis=1) if first.size else np.ones(0)
        distance, same_top = (float(moved.mean()), float(same.mean())) if len(moved) else (0.0, 1.0)
        return MapComparison(distance, same_top, tuple(moved.tolist()), second - first)

    def alignment(self, threshold: float | None = None) -> Alignment:
        """Return links (source word, target word), counted from 0 over the words of both texts.

        Each output word is linked to its largest weight after `row_column_normalize`; with a threshold, to all words
        of at least that weight. A word has no link in a guided map if EOS has a larger weight than any source word.
        """
        if self.view.kind != "cross":
            raise ValueError(
                f"an alignment needs the cross-attention, and this is the {KINDS[self.view.kind]}: use .cross()"
            )
        weights = self.word_weights()
        if threshold is None:
            eos = self.eos_weights() if self.is_guided else np.zeros(len(weights))
            linked = np.flatnonzero(weights.any(axis=1) & (weights.max(axis=1, initial=0.0) >= eos)).tolist()
            normalized = row_column_normalize(weights)
            return Alignment(frozenset((int(normalized[row].argmax()), row) for row in linked))
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must be above 0 and at most 1, got {threshold}")
        return Alignment(frozenset((int(column), int(row)) for row, column in np.argwhere(weights >= threshold)))

    # --- output

    def to_numpy(self) -> Matrix:
        """Return a copy of the weights."""
        return self.weights.copy()

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON, all layers and heads included; write it to `path` if given."""
        from softgaze.explain.serialization import to_json

        text = to_json(self)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def to_html(self, path: str | Path | None = None, **options: Any) -> str:
        """Return an interactive page that works offline; write it to `path` if given."""
        from softgaze.atomic_io import write_text
        from softgaze.explain.render.pages import attention_page, image_page

        text = attention_page(self, **options) if self.grid is None else image_page([self], **options)
        if path is not None:
            write_text(Path(path), text)
        return text

    @classmethod
    def load(cls, path: str | Path) -> "Attention":
        """Load a map from a JSON file, or from an HTML or SVG file that softgaze wrote."""
        from softgaze.explain.serialization import load

        return load(Path(path))

    def plot(
        self,
        gold: Alignment | None = None,
        *,
        about: str = "",
        sides: tuple[str, str] = ("query", "key"),
        raw: bool = False,
    ) -> "Figure":
        """Draw a figure, to `.save("a.svg")`, .png or .pdf; `gold` links are outlined.

        `about` replaces the description, for weights that come from no model, and `sides` names their rows and columns.
        A map over a photo becomes one dimmed photo for each word; `raw` draws the cells with their numbers instead.
        """
        from softgaze.explain.render.heatmap_svg import draw_heatmap
        from softgaze.explain.render.image_overlay import draw_image_overlay
        from softgaze.explain.render.svg import Figure

        if self.grid is None and raw:
            raise ValueError("raw=True needs a map over an image grid")
        if self.grid is None:
            return Figure(draw_heatmap(self, gold=gold, about=about, sides=sides))
        return Figure(draw_image_overlay(self, about=about, raw=raw))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from softgaze.explain.render.pages import notebook_mimebundle

        return notebook_mimebundle(self)

    def __str__(self) -> str:
        from softgaze.explain.render.terminal import text_heatmap

        return text_heatmap(self)

    def __repr__(self) -> str:
        return f"<Attention {len(self.target)} × {len(self.source)}: {self.description}>"


def group_tokens(weights: Matrix, rows: Sequence[Label], columns: Sequence[Label]) -> Matrix:
    """Turn token maps (…, Q, K) into (…, rows, columns): average the tokens of a row, sum those of a column."""

    def sum_labels(values: Matrix, labels: Sequence[Label]) -> Matrix:  # (…, tokens) -> (…, labels)
        label_of: Any = (..., [index for index, label in enumerate(labels) for _ in label.positions])
        sums: Matrix = np.zeros((*values.shape[:-1], len(labels)))
        np.add.at(sums, label_of, values[..., [position for label in labels for position in label.positions]])
        return sums

    sums = sum_labels(sum_labels(weights, columns).swapaxes(-1, -2), rows)
    return (sums / [max(len(row.positions), 1) for row in rows]).swapaxes(-1, -2)


def row_column_normalize(weights: Matrix) -> Matrix:
    """Multiply row-normalised by column-normalised weights, (…, T, S).

    A source word that every output word attends to a little would otherwise be linked to all words with flat attention.
    """
    normalized: Matrix = normalize_rows(weights) * normalize_rows(weights.swapaxes(-1, -2)).swapaxes(-1, -2)
    return normalized


def sharpest_layer(recording: Recording) -> View:
    """Return the layer with the lowest mean entropy, the default for a model without a selected map."""
    layers, _ = recording.size("cross")
    views = [View(layer=layer) for layer in range(layers)]
    return min(views, key=lambda view: float(Attention(recording, view).entropy().mean()))


def default_attention(
    recording: Recording, selected_map: SelectedMap | None, alignment_head: tuple[int, int] | None = None
) -> Attention | None:
    """Return the map to show first: the selected one, else that of the alignment head, else the sharpest layer.

    None without cross-attention.
    """
    if "cross" not in recording.kinds:
        return None
    if selected_map is None and alignment_head is not None:
        layers, heads = recording.size("cross")
        if alignment_head[0] < layers and alignment_head[1] < heads:  # an engine may record fewer
            selected_map = SelectedMap(View(layer=alignment_head[0], head=alignment_head[1]), 0.0, BY_TOOLKIT, 0)
    selected_map = selected_map or SelectedMap(sharpest_layer(recording), 0.0, BY_ENTROPY, 0)
    return Attention(recording, selected_map.view, selected_map)
