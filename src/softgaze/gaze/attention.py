"""One map of where each output looked: its tokens, its weights, and what exactly is shown.

Knows nothing of models: `watching` makes recordings, of which this is a view; `terminal`, `svg` and `page` draw it,
`stored` keeps it. Every method returns a new object, or a number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from softgaze.data.photo import Photo
from softgaze.errors import did_you_mean
from softgaze.gaze.alignment import Alignment
from softgaze.gaze.recording import Array, Matrix, Part, Recording, Stack, shares
from softgaze.gaze.view import KINDS, Choice, View
from softgaze.gaze.words import WORD_START, Label, Side, named

if TYPE_CHECKING:
    from softgaze.gaze.figure import Figure


class Comparison(NamedTuple):
    """How far two maps of the same sentence are apart."""

    distance: float  # mean over words of what would have to move, 0 (the same) to 1
    same_top: float  # share of words that look most at the same thing
    rows: tuple[float, ...]  # the distance of each word
    difference: Matrix  # the other map less this one, (words, columns)


@dataclass(frozen=True, eq=False)
class Attention:
    """Weights (T, S) over `source`, a row for each of `target`; rows sum to 1. `shows` says which map this is.

    (Rows of Luong's local-p attention sum to less: its window lowers weights after the softmax.)
    """

    recording: Recording
    view: View
    choice: Choice | None = None  # what a measurement found best, shown or not

    @classmethod
    def of(
        cls,
        source: Sequence[str] | None,
        target: Sequence[str],
        weights: Any,
        *,
        grid: tuple[int, int] | None = None,
        photo: Photo | None = None,
        chances: Sequence[float] = (),
    ) -> "Attention":
        """From words and weights of one's own: (T, S), or (H, T, S), or (L, H, T, S). An END is written "⏎".

        With a `grid` of (rows, columns) there is no source: its cells are looked at, row by row, on a `photo` if there
        is one. `chances` are the probabilities of the words.
        """
        if (source is None) == (grid is None):
            raise ValueError("what is looked at has words or a grid of cells: give one of them")
        stack = numpy.asarray(weights, dtype=numpy.float32)
        if not (numpy.isfinite(stack) & (stack >= 0)).all():
            raise ValueError("weights are numbers from 0 up, and some of these are negative, infinite or no number")
        stack = stack.reshape((1,) * (4 - stack.ndim) + stack.shape)  # (L, H, T, S)
        norms: Array = numpy.ones((*stack.shape[:2], stack.shape[3]), dtype=numpy.float32)
        side = Side.plain(cell_names(*grid), grid) if grid else Side.plain(source or ())
        parts = (Part(Stack(stack, norms)),)
        given = tuple(map(float, chances))
        return cls(Recording(side, Side.plain(target), parts, photo=photo, chances=given), View())

    # --- what is shown

    @cached_property
    def row_labels(self) -> list[Label]:
        """What each row stands for."""
        return self.as_rows(self.labels(self.row_side))

    def as_rows(self, labels: list[Label]) -> list[Label]:
        """Labels of words with the places of their rows."""
        if not self.view.is_shifted:
            return labels
        rows = len(self.recording.target.pieces)
        read = [
            each._replace(places=tuple(place + 1 for place in each.places)) for each in labels if each.word is not None
        ]
        if any(place >= rows for label in read for place in label.places):
            raise ValueError("this map has no row for the end of the sentence, so its rows have only one meaning")
        return read

    @cached_property
    def column_labels(self) -> list[Label]:
        """What each column stands for."""
        return self.labels(self.column_side)

    @property
    def row_side(self) -> Side:
        """The sentence that looks."""
        return self.recording.source if self.view.kind == "encoder" else self.recording.target

    @property
    def column_side(self) -> Side:
        """The sentence that is looked at."""
        return self.recording.target.as_read() if self.view.kind == "decoder" else self.recording.source

    def labels(self, side: Side) -> list[Label]:
        """In the unit of the view."""
        return side.whole_words() if self.view.unit == "words" else side.subwords()

    @property
    def source(self) -> tuple[str, ...]:
        """What was looked at: the words, or subwords, of the columns."""
        return tuple(label.text for label in self.column_labels)

    @property
    def target(self) -> tuple[str, ...]:
        """What looked: the words, or subwords, of the rows."""
        return tuple(label.text for label in self.row_labels)

    @cached_property
    def weights(self) -> Matrix:
        """(T, S). Pieces of a word are summed as columns and averaged as rows, so rows still sum to 1."""
        weights = gathered(self.recording.map(self.view), self.row_labels, self.column_labels)
        weights.flags.writeable = False
        return weights

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the picture that is looked at; None where it is no picture, or looks at itself."""
        grid = self.recording.source.grid
        return (grid[0], grid[1]) if grid and self.view.kind == "cross" else None

    def tile(self, word: str | int) -> Matrix:
        """Where one output word looked on the grid, (rows, columns)."""
        found: Matrix = self.tiles[self.row_of(word)]
        return found

    @cached_property
    def tiles(self) -> Matrix:
        """(T, rows, columns): the weights as they lie on the grid; marks are no part of it."""
        if self.grid is None:
            raise ValueError("these columns lie on no grid; attention[word] says where a word looked")
        cells = [label.word is not None for label in self.column_labels]
        found: Matrix = self.weights[:, cells].reshape(len(self.weights), *self.grid)
        return found

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of the word of each row, all its pieces together; empty where nobody asked."""
        if not self.recording.chances or self.view.kind == "encoder":
            return ()
        written = [each for each in self.labels(self.row_side) if each.word is not None or not self.view.is_shifted]
        return tuple(math.prod(self.recording.chances[place] for place in label.places) for label in written)

    @property
    def rows(self) -> str:
        """What a row means: "predicting" its word, or "reading" it."""
        return self.view.rows

    @property
    def shows(self) -> str:
        """Which map this is, in words, for every figure."""
        text = self.view.describe(*self.recording.size(self.view.kind))
        if self.recording.note:
            text = f"{text}; {self.recording.note}"
        chosen = self.choice is not None and replace(self.choice.view, unit=self.view.unit) == self.view
        return f"{text}; {self.choice.describe()}" if chosen and self.choice else text

    # --- other views of the same recording

    def words(self) -> "Attention":
        """Words as rows and columns: the whitespace tokens of the text."""
        return self.seen(unit="words")

    def subwords(self) -> "Attention":
        """Pieces of words as rows and columns, as the model has them."""
        return self.seen(unit="subwords")

    def predicting(self) -> "Attention":
        """The row of a word is where the model looked to predict it."""
        return self.seen(rows="predicting")

    def reading(self) -> "Attention":
        """The row of a word is where the model looked right after reading it, to predict the one that follows."""
        return self.seen(rows="reading")

    def layer(self, number: int) -> "Attention":
        """The mean of a layer's heads."""
        return self.seen(layer=number, head=None, measure=self.plain_measure)

    def head(self, layer: int, head: int) -> "Attention":
        """One head of one layer."""
        return self.seen(layer=layer, head=head, measure=self.plain_measure)

    def mean(self) -> "Attention":
        """The mean of all layers and heads."""
        return self.seen(layer=None, head=None, measure=self.plain_measure)

    def rollout(self) -> "Attention":
        """Weights followed through all layers down to the words (Abnar & Zuidema 2020)."""
        return self.seen(layer=None, head=None, measure="rollout")

    def norms(self) -> "Attention":
        """Weights times the lengths of the values: a large weight on nothing is nothing (Kobayashi 2020)."""
        return self.seen(measure="norms")

    def plain(self) -> "Attention":
        """Weights as the model has them."""
        return self.seen(measure="weights")

    def cross(self) -> "Attention":
        """Where the decoder looked at the source."""
        return self.of_kind("cross")

    def encoder(self) -> "Attention":
        """Which words of the source looked at each other."""
        return self.of_kind("encoder")

    def decoder(self) -> "Attention":
        """Which words of the output were looked at while writing it."""
        return self.of_kind("decoder")

    def of_kind(self, kind: str) -> "Attention":
        """Another kind of attention; its layers are others, so the mean of all comes first."""
        return self if kind == self.view.kind else self.seen(kind=kind, layer=None, head=None)

    @property
    def plain_measure(self) -> str:
        """A rollout knows no single layer."""
        return "weights" if self.view.measure == "rollout" else self.view.measure

    def seen(self, **changes: Any) -> "Attention":
        """Another view, which must be there."""
        other = replace(self, view=replace(self.view, **changes))
        for part in self.recording.parts[:1]:
            part.map(other.view)  # a layer, head or kind that is not there is refused here, not when it is drawn
        return other

    # --- numbers

    def entropy(self) -> Matrix:
        """Of each row, in nats: 0 looks at one thing, log S at everything alike."""
        logs = numpy.log(numpy.where(self.weights > 0, self.weights, 1.0))
        entropy: Matrix = -(self.weights * logs).sum(axis=1)
        return entropy

    def coverage(self) -> Matrix:
        """Of each column, what all words of the output together looked at it; about 0 was never used."""
        words = [label.word is not None for label in self.row_labels]
        covered: Matrix = self.weights[words].sum(axis=0)
        return covered

    @property
    def sink(self) -> float:
        """The mean share of a row that goes to marks (the end of the sentence): looking at nothing in particular."""
        marks = [label.word is None for label in self.column_labels]
        return float(self.weights[:, marks].sum(axis=1).mean()) if len(self.weights) else 0.0

    def word_weights(self) -> Matrix:
        """(target words, source words), whatever is shown: what alignments are made of.

        Without the marks, and without punctuation that is attached to a word: "home." is linked for what it means.
        """
        return gathered(self.recording.map(self.view), self.as_rows(self.row_side.cores()), self.column_side.cores())

    def __getitem__(self, word: str | int) -> dict[str, float]:
        """Where one output word looked: {source word: weight}, most first; a source word that is repeated adds up."""
        row = self.row_of(word)
        looked: dict[str, float] = {}
        for name, weight in zip(self.source, self.weights[row].tolist(), strict=True):
            looked[name] = looked.get(name, 0.0) + weight
        return dict(sorted(looked.items(), key=lambda each: -each[1]))

    def row_of(self, word: str | int) -> int:
        """The only row of a word, marks around it aside, or the row of a number."""
        if isinstance(word, int) and not isinstance(word, bool):
            if not -len(self.target) <= word < len(self.target):
                raise IndexError(f"the output has rows 0 to {len(self.target) - 1}, and no row {word}")
            return word
        if not isinstance(word, str):
            raise KeyError(f"a word of the output is given as text or by number, not as {word!r}")
        rows = named(word, [text if text == word else text.removeprefix(WORD_START) for text in self.target])
        if not rows:
            raise KeyError(f"{word!r} is not in the output; {did_you_mean(word, self.target)}")
        if len(rows) > 1:
            raise KeyError(f"{word!r} is in the output {len(rows)} times; give its number, one of {rows}")
        return rows[0]

    def top(self, count: int = 1) -> list[tuple[str, list[tuple[str, float]]]]:
        """For each output word the `count` it looked at most, with their weights."""
        if count < 1:
            raise ValueError(f"at least 1 word can be the most looked at, not {count}")
        order = (-self.weights).argsort(axis=1, kind="stable")[:, :count]
        return [
            (word, [(self.source[column], float(self.weights[row, column])) for column in order[row]])
            for row, word in enumerate(self.target)
        ]

    def compare(self, other: "Attention") -> Comparison:
        """With another map of the same sentence, word by word; the row of END, which not every map has, is left out."""
        mine, theirs = (each.words() for each in (self, other))
        rows = [[label for label in each.row_labels if label.word is not None] for each in (mine, theirs)]
        if [label.text for label in rows[0]] != [label.text for label in rows[1]] or mine.source != theirs.source:
            raise ValueError("only maps of the same source and output can be compared word by word")
        first, second = (each.weights[[label.word is not None for label in each.row_labels]] for each in (mine, theirs))
        moved = abs(second - first).sum(axis=1) / 2
        same = first.argmax(axis=1) == second.argmax(axis=1) if first.size else numpy.ones(0)
        distance, same_top = (float(moved.mean()), float(same.mean())) if len(moved) else (0.0, 1.0)
        return Comparison(distance, same_top, tuple(moved.tolist()), second - first)

    def alignment(self, threshold: float | None = None) -> Alignment:
        """Links (source word, target word), counted from 0 over the words of both texts.

        Each output word is linked to the word it looked at most, where looks at what many look at count for less
        (`mutual`); or, with a threshold, to all words that have so much of its look.
        """
        if self.view.kind != "cross":
            shown = KINDS[self.view.kind]
            raise ValueError(
                f"links are between source and output, and the {shown} sees only one of them: use .cross()"
            )
        weights = self.word_weights()
        if threshold is None:
            found = enumerate(mutual(weights))
            return Alignment(frozenset((int(each.argmax()), row) for row, each in found if each.any()))
        if not 0 < threshold <= 1:
            raise ValueError(f"a threshold is a share above 0 and at most 1, not {threshold}")
        return Alignment(frozenset((int(column), int(row)) for row, column in numpy.argwhere(weights >= threshold)))

    # --- leaving softgaze

    def to_numpy(self) -> Matrix:
        """The weights, as an array of one's own."""
        return self.weights.copy()

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything: what is shown, and all other layers and heads; written to `path` if given."""
        from softgaze.gaze.stored import to_json

        text = to_json(self)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def to_html(self, path: str | Path | None = None, **options: Any) -> str:
        """A page to play with, offline; written to `path` if given. The options are those of `gaze.page.page`.

        Where columns lie on a photo, it is that of `gaze.photo_page.photo_page`.
        """
        from softgaze.files import write_text
        from softgaze.gaze.page import page
        from softgaze.gaze.photo_page import photo_page

        text = page(self, **options) if self.grid is None else photo_page([self], **options)
        if path is not None:
            write_text(Path(path), text)
        return text

    @classmethod
    def load(cls, path: str | Path) -> "Attention":
        """From a JSON file, or the JSON inside an HTML or SVG file that softgaze wrote."""
        from softgaze.gaze.stored import load

        return load(Path(path))

    def plot(
        self,
        gold: Alignment | None = None,
        *,
        about: str = "",
        sides: tuple[str, str] = ("query", "key"),
        raw: bool = False,
    ) -> "Figure":
        """A picture for a paper, to `.save("a.svg")`, .png or .pdf; `gold` links between words are outlined.

        `about` says what weights of one's own are, which are no map of a model, and `sides` what their rows and
        columns are, if no queries and keys: then numbers are shares of a row, and columns are not summed. Where columns
        lie on a photo, it is drawn once a word, dimmed where the word did not look; `raw` shows the cells and numbers.
        """
        from softgaze.gaze.figure import Figure
        from softgaze.gaze.svg import svg
        from softgaze.gaze.tiles import tiles

        if self.grid is None and raw:
            raise ValueError("these columns lie on no grid, whose cells could be shown raw")
        return Figure(
            svg(self, gold=gold, about=about, sides=sides) if self.grid is None else tiles(self, about=about, raw=raw)
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """For notebooks."""
        from softgaze.gaze.notebook import bundle

        return bundle(self)

    def __str__(self) -> str:
        from softgaze.gaze.terminal import heat_map

        return heat_map(self)

    def __repr__(self) -> str:
        return f"<Attention {len(self.target)} × {len(self.source)}: {self.shows}>"


def cell_names(rows: int, columns: int) -> list[str]:
    """What the cells of a grid are called, row by row: by row and column from 1."""
    return [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]


def gathered(pieces: Matrix, rows: Sequence[Label], columns: Sequence[Label]) -> Matrix:
    """Maps (…, Q, K) of pieces as (…, rows, columns): rows averaged over their pieces, columns summed."""
    found = summed(summed(pieces, columns).swapaxes(-1, -2), rows)
    return (found / [max(len(row.places), 1) for row in rows]).swapaxes(-1, -2)


def summed(values: Matrix, labels: Sequence[Label]) -> Matrix:
    """(…, places) as (…, labels): what belongs to a label is added up."""
    owners: Any = (..., [number for number, label in enumerate(labels) for _ in label.places])
    found: Matrix = numpy.zeros((*values.shape[:-1], len(labels)))
    numpy.add.at(found, owners, values[..., [place for label in labels for place in label.places]])
    return found


def mutual(weights: Matrix) -> Matrix:
    """The share of each row × the share of each column, (…, T, S): who looks at a word that is looked at by few others.

    What everybody looks at a little would else be linked to whoever looks nowhere in particular.
    """
    found: Matrix = shares(weights) * shares(weights.swapaxes(-1, -2)).swapaxes(-1, -2)
    return found


def sharpest(recording: Recording) -> View:
    """The layer whose heads together look at the fewest things: what to show of a model nobody measured."""
    layers, _ = recording.size("cross")
    views = [View(layer=layer) for layer in range(layers)]
    return min(views, key=lambda view: float(Attention(recording, view).entropy().mean()))
