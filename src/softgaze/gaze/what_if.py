"""What if the model looked elsewhere? From words, as a person asks, to changes of weights in each part of a text.

Words of the source are given as text, or by number where they are repeated; numbers count from 0 over the whole text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from softgaze.errors import UsageError, did_you_mean
from softgaze.gaze.edits import Ablate, Edit, Force, Heads, Mask, Sharpen
from softgaze.gaze.influence import apart
from softgaze.gaze.recording import Recording
from softgaze.gaze.view import KINDS
from softgaze.gaze.words import NO_WORD, QUOTES, Side, by_character, by_space, named

Word = str | int
HeadName = tuple[int | None, int | None] | tuple[str, int | None, int | None]  # (layer, head) or (kind, layer, head)

READ_BY = ("cross", "encoder")  # kinds of attention that look at the source


@dataclass(frozen=True)
class Change:
    """An answered "what if": the edits of each part of a text, and what a figure says of them."""

    note: str
    parts: tuple[tuple[Edit, ...], ...]

    @property
    def is_none(self) -> bool:
        """Whether everything stays as it is."""
        return not any(self.parts)


@dataclass(frozen=True)
class Question:
    """What to change. Heads are (layer, head) of the cross-attention or (kind, layer, head); None means all of them."""

    mask: Word | Sequence[Word] = ()  # source words that may not be looked at
    attend: Mapping[int, Word] | None = None  # {target word: the source word it must look at}
    ablate: Sequence[HeadName] = ()  # heads that look nowhere
    sharpen: float = 1.0  # the power of the weights: above 1 sharper, below 1 flatter
    where: Sequence[HeadName] | None = None  # heads that are masked, made to attend, sharpened; None: cross-attention

    def change(self, recording: Recording) -> Change:
        """The question, put to what was recorded of a translation."""
        heads = self.heads(recording, "where", self.where or [(None, None)])
        hidden = [word_number(recording.source, each) for each in one_or_several(self.mask)]
        looks = self.looks(recording, hidden)
        off = self.heads(recording, "ablate", self.ablate)
        check_kinds(heads, masks=bool(hidden), forces=bool(looks))
        check_factor(self.sharpen)
        sources, targets = (list(apart(side.word_of)) for side in (recording.source, recording.target))
        edits = [
            (
                *mask_edits(hidden, words, heads),
                *([] if self.sharpen == 1 else [Sharpen(heads, float(self.sharpen))]),
                *force_edits(looks, words, written, heads, is_spaced(recording.target)),
                *([Ablate(off)] if off else []),
            )
            for words, written in zip(sources, targets, strict=True)
        ]
        return Change(self.describe(recording, hidden, looks, heads, off), tuple(edits))

    def heads(self, recording: Recording, name: str, named: Sequence[HeadName]) -> tuple[Heads, ...]:
        """Which must be there."""
        if isinstance(named, str) or not all(isinstance(each, tuple) and len(each) in (2, 3) for each in named):
            raise UsageError(f"{name} is a list of (layer, head) or (kind, layer, head), not {named!r}")
        found = tuple(Heads(*each) if len(each) == 3 else Heads("cross", *each) for each in named)
        for each in found:
            check_head(recording, each)
        return found

    def looks(self, recording: Recording, hidden: Sequence[int]) -> dict[int, int]:
        """{target word: source word}, which must be in the same part and not hidden by the same question."""
        found = {}
        if not isinstance(self.attend, Mapping | None):
            raise UsageError(f"attend is {{number of an output word: source word}}, not {self.attend!r}")
        for step, word in (self.attend or {}).items():
            words = recording.target.words
            if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < len(words):
                raise UsageError(f"attend: the output has words 0 to {len(words) - 1}, and no word {step!r}")
            found[step] = word_number(recording.source, word)
            if found[step] in hidden:
                raise UsageError(f"{word!r} cannot be masked and looked at in one question")
            check_same_part(recording, step, found[step])
        return found

    def describe(
        self,
        recording: Recording,
        hidden: Sequence[int],
        looks: Mapping[int, int],
        heads: Sequence[Heads],
        off: Sequence[Heads],
    ) -> str:
        """For the foot of a figure."""
        words = [quoted(word) for word in recording.source.words]
        parts = []
        if hidden:
            parts.append(f"with {listed(words[number] for number in hidden)} masked")
        parts += [f"with word {step} looking at {words[number]}" for step, number in looks.items()]
        if self.sharpen != 1:
            parts.append(f"with weights {'sharpened' if self.sharpen > 1 else 'flattened'} ×{self.sharpen:g}")
        if parts and self.where:
            parts[-1] += f" in {listed(map(head_name, heads))}"
        if off:
            parts.append(f"without {listed(map(head_name, off))}")
        return ", ".join(parts)


# --- words ------------------------------------------------------------------------------------------------------


def word_number(side: Side, word: Word) -> int:
    """The number of a source word: given as such, or as a text that occurs once; marks around it do not count."""
    if isinstance(word, int) and not isinstance(word, bool):
        if not 0 <= word < len(side.words):
            raise UsageError(f"the source has words 0 to {len(side.words) - 1}, and no word {word}")
        return with_pieces(side, word)
    if not isinstance(word, str):
        raise UsageError(f"a word of the source is given as text or by number, not as {word!r}")
    found = named(word, side.words)
    if not found:
        raise UsageError(f"{word!r} is not in the source; {did_you_mean(word, side.words)}")
    if len(found) > 1:
        raise UsageError(f"{word!r} is in the source {len(found)} times; give its number, one of {found}")
    return with_pieces(side, found[0])


def quoted(word: str) -> str:
    """Without the marks around it, if there is more to it."""
    return f"“{word.strip(QUOTES) or word}”"


def with_pieces(side: Side, number: int) -> int:
    """A word that the model reads at all."""
    if number not in side.word_of:
        raise UsageError(f"the model reads nothing of {side.words[number]!r} (word {number} of the source)")
    return number


def check_same_part(recording: Recording, step: int, word: int) -> None:
    """A text that was split was read and written part by part."""
    sides = (recording.source, recording.target)
    both = zip(*(apart(side.word_of) for side in sides), strict=True)
    if not any(word in read and step in written for read, written in both):
        raise UsageError(f"word {step} of the output cannot look at word {word} of the source: it is in another part")


def is_spaced(side: Side) -> bool:
    """Whether spaces divide its words, or every piece is one."""
    pieces = [piece for piece, word in zip(side.pieces, side.word_of, strict=True) if word != NO_WORD]
    numbers = [word for word in side.word_of if word != NO_WORD]
    return by_space(pieces)[0] == numbers or by_character(pieces)[0] != numbers


def one_or_several(words: Word | Sequence[Word]) -> list[Word]:
    """A text is one word, not its letters."""
    if not isinstance(words, str | int | Iterable):
        raise UsageError(f"mask is a source word or a list of them, as text or by number, not {words!r}")
    return [words] if isinstance(words, str | int) else list(words)


def places_of(number: int, words: Sequence[int]) -> tuple[int, ...]:
    """Of a word among the pieces of a part."""
    return tuple(place for place, own in enumerate(words) if own == number)


# --- edits ------------------------------------------------------------------------------------------------------


def mask_edits(hidden: Iterable[int], words: Sequence[int], heads: tuple[Heads, ...]) -> list[Edit]:
    """Of one part."""
    places = tuple(sorted(place for number in set(hidden) for place in places_of(number, words)))
    return [Mask(heads, places)] if places else []


def force_edits(
    looks: Mapping[int, int], words: Sequence[int], written: Sequence[int], heads: tuple[Heads, ...], spaced: bool
) -> list[Edit]:
    """Of one part, whose words a search counts from 0."""
    own = list(dict.fromkeys(written))
    found = tuple((own.index(step), places_of(number, words)) for step, number in looks.items() if step in own)
    seen = tuple(each for each in found if each[1])
    return [Force(heads, seen, spaced)] if seen else []


# --- heads ------------------------------------------------------------------------------------------------------


def check_head(recording: Recording, head: Heads) -> None:
    """Refuse what the model does not have."""
    if head.kind not in recording.kinds:
        raise UsageError(f"this model has no {head.kind!r} attention; {did_you_mean(str(head.kind), recording.kinds)}")
    for name, number, count in zip(("layer", "head"), head[1:], recording.size(head.kind), strict=True):
        if number is not None and (not isinstance(number, int) or not 0 <= number < count):
            raise UsageError(f"there is no {name} {number} in the {KINDS[head.kind]}: they are 0 to {count - 1}")


def check_kinds(heads: Sequence[Heads], *, masks: bool, forces: bool) -> None:
    """A source word can be hidden only from who looks at the source, and only a decoder writes word by word."""
    for each in heads:
        if (masks and each.kind not in READ_BY) or (forces and each.kind != "cross"):
            what = "looks at no source word" if each.kind not in READ_BY else "writes no word that could look"
            raise UsageError(f"where: the {KINDS[each.kind]} {what}; name heads of the cross-attention")


def check_factor(factor: float) -> None:
    """Refuse a power that gives no weights."""
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not isfinite(factor) or factor <= 0:
        raise UsageError(f"sharpen is a number above 0 (1 changes nothing, 2 is sharper, 0.5 flatter), not {factor!r}")


def head_name(head: Heads) -> str:
    """In words."""
    layer = "all layers" if head.layer is None else f"layer {head.layer}"
    name = f"all heads of {layer}" if head.head is None else f"head {head.head} of {layer}"
    return name if head.kind == "cross" else f"{name} ({KINDS[head.kind]})"


def listed(names: Iterable[str]) -> str:
    """a, b and c."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
