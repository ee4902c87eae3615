"""What changed from one text to another, word by word. Needs no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from softgaze.gaze.words import is_unspaced

Piece = tuple[str, str]  # "same", "removed" or "added", and the words
MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}  # as wdiff writes it


@dataclass(frozen=True)
class Difference:
    """From a translation to another: pieces in order, and both scores."""

    pieces: tuple[Piece, ...]
    before: float
    after: float

    @property
    def score(self) -> float:
        """How much the score rose; below 0 it fell."""
        return self.after - self.before

    @property
    def is_same(self) -> bool:
        """Whether the texts are the same."""
        return all(kind == "same" for kind, _ in self.pieces)

    def __str__(self) -> str:
        marked = " ".join(MARKS[kind].format(text) for kind, text in self.pieces)
        return f"{marked}\nscore {self.before:.2f} → {self.after:.2f} ({self.score:+.2f})".lstrip()


def difference(before: str, after: str) -> tuple[Piece, ...]:
    """Runs of words that stayed, went or came; of characters in a script without spaces."""
    return tuple(runs(before, after))


def runs(before: str, after: str) -> Iterator[Piece]:
    """In order; what went stands before what came."""
    texts = [text.split() for text in (before, after) if text]
    space = "" if texts and all(map(is_unspaced, texts)) else " "
    old, new = (text.split() if space else list(text) for text in (before, after))
    for change, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if change == "equal":
            yield "same", space.join(old[start:end])
            continue
        if start < end:
            yield "removed", space.join(old[start:end])
        if new_start < new_end:
            yield "added", space.join(new[new_start:new_end])
