"""Word-level difference of two texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from softgaze.explain.word_spans import is_unspaced_text

Run = tuple[str, str]  # ("same", "removed" or "added", words)
MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}  # the notation of wdiff


@dataclass(frozen=True)
class TextDiff:
    """The difference from one translation to another, with both scores."""

    runs: tuple[Run, ...]
    before: float
    after: float

    @property
    def score(self) -> float:
        return self.after - self.before

    @property
    def is_same(self) -> bool:
        return all(kind == "same" for kind, _ in self.runs)

    def __str__(self) -> str:
        marked = " ".join(MARKS[kind].format(text) for kind, text in self.runs)
        return f"{marked}\nscore {self.before:.2f} → {self.after:.2f} ({self.score:+.2f})".lstrip()


def word_diff(before: str, after: str) -> tuple[Run, ...]:
    """Return runs of equal, removed and added words; of characters in a script without spaces."""

    def runs() -> Iterator[Run]:
        texts = [text.split() for text in (before, after) if text]
        space = "" if texts and all(map(is_unspaced_text, texts)) else " "
        old, new = (text.split() if space else list(text) for text in (before, after))
        for change, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if change == "equal":
                yield "same", space.join(old[start:end])
                continue
            if start < end:
                yield "removed", space.join(old[start:end])
            if new_start < new_end:
                yield "added", space.join(new[new_start:new_end])

    return tuple(runs())
