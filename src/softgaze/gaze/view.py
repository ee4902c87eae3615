"""Which of all the maps of a recording is looked at, in a form that can be stored, compared and put into words."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from softgaze.errors import DataError, pick

KINDS = {
    "cross": "cross-attention",
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
}
# Papers differ in this, and the wrong one is garbage: a row is one step of the decoder, which reads a word and then
# predicts the next, so it may be called by either.
ROWS = {"predicting": "to predict its word", "reading": "after reading its word"}
MEASURES = {
    "weights": "weights",
    "norms": "weights × lengths of the values",
    "rollout": "weights followed through all layers (rollout)",
}
UNITS = {"words": "words with their punctuation", "subwords": "subwords"}
LINKED = "words without punctuation attached to them"  # what links are made of, whatever is shown


@dataclass(frozen=True)
class View:
    """One map. Layers and heads are counted from 0; None is the mean of all."""

    kind: str = "cross"
    layer: int | None = None
    head: int | None = None
    rows: str = "predicting"
    measure: str = "weights"
    unit: str = "words"

    def __post_init__(self) -> None:
        for name, table in (("kind", KINDS), ("rows", ROWS), ("measure", MEASURES), ("unit", UNITS)):
            pick(name, getattr(self, name), table)
        for name in ("layer", "head"):
            number = getattr(self, name)
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
                raise ValueError(f"a {name} is a number from 0 up, or None for the mean of all, not {number!r}")

    @property
    def is_shifted(self) -> bool:
        """Whether the row of a word is the step after the one that wrote it. An encoder reads all words at once."""
        return self.rows == "reading" and self.kind != "encoder"

    def describe(self, layers: int, heads: int, unit: str | None = None) -> str:
        """What a figure says of itself, among so many layers and heads; `unit` if it is of other words than shown."""
        parts = [KINDS[self.kind]]
        if self.measure != "rollout":
            parts += [self.describe_one("layer", layers), self.describe_one("head", heads)]
        rows = ROWS["reading" if self.kind == "encoder" else self.rows]
        parts += [MEASURES[self.measure], unit or UNITS[self.unit]]
        return f"{', '.join(parts)}; a row is where the model looked {rows}"

    def describe_one(self, name: str, count: int) -> str:
        """Which layer or head, and of how many."""
        number = getattr(self, name)
        if count == 1:
            return f"one {name}"
        return f"mean of {count} {name}s" if number is None else f"{name} {number} of 0–{count - 1}"


@dataclass(frozen=True)
class Choice:
    """The map that a measurement found to show best what a model looks at, and how well it did."""

    view: View
    score: float
    by: str  # what it was compared with
    sentences: int  # how many it was measured on

    def describe(self) -> str:
        """For the foot of a figure."""
        return f"chosen by {self.by}: {self.score:.2f} on {self.sentences} sentences"

    def to_dict(self) -> dict[str, Any]:
        """For a bundle's facts and for JSON; flat, since a person reads it."""
        return {**asdict(self.view), "score": self.score, "by": self.by, "sentences": self.sentences}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Choice":
        """What `to_dict` wrote; further keys are left alone."""
        try:
            view = View(**{each.name: stored[each.name] for each in fields(View)})
            return cls(view, float(stored["score"]), str(stored["by"]), int(stored["sentences"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the stored choice of an attention map cannot be read: {error}") from error
