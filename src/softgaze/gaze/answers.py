"""Counterfactuals worked out in advance, so that a saved page can answer "what if" without a model. Needs no torch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from softgaze.gaze.attention import Attention
from softgaze.gaze.difference import difference

if TYPE_CHECKING:
    from softgaze.gaze.what_if import Question

MOST = 64  # answers of one page: of a long text, those about its first words
FACTORS = (2.0, 0.5)


class Answer(NamedTuple):
    """What would have been written, had the model looked elsewhere."""

    kind: str  # "mask", "ablate" or "sharpen"
    question: str  # a plain phrase: without “school”
    source_word: int | None  # the number of the word it is about
    text: str
    score: float
    diff: tuple[tuple[str, str], ...]  # ("same" | "removed" | "added", text), from what was written to this
    attention: Attention | None  # recorded with the change
    before: float = math.nan  # the score of what was written


class Asked(Protocol):
    """What is needed of a `Translation`, which this layer does not know."""

    @property
    def text(self) -> str:
        """What was written."""

    @property
    def score(self) -> float:
        """How good the model finds it."""

    @property
    def attention(self) -> Attention | None:
        """Where it looked."""

    def what_ifs(self, questions: Sequence["Question"]) -> Sequence["Asked"]:
        """One for each question."""

    def asked(self) -> Any:
        """The translator."""


class Prepared(NamedTuple):
    """A question before it is asked."""

    kind: str
    phrase: str
    source_word: int | None
    question: "Question"


def answers(translation: Asked, shown: Attention | None = None, most: int = MOST) -> list[Answer]:
    """Without each source word, without each head that is shown, with sharper and with flatter weights.

    `shown` is a map of the translation, its own unless given. At most so many answers, all written in one search and
    recorded in one pass. None for what never looked at anything.
    """
    if translation.attention is None:
        return []
    shown = shown or translation.attention
    prepared = list(questions(shown, most))
    found = translation.what_ifs([each.question for each in prepared])
    maps = [like(shown, each) for each in translation.asked().attentions(found)]
    return [
        Answer(
            each.kind,
            each.phrase,
            each.source_word,
            new.text,
            new.score,
            difference(translation.text, new.text),
            seen,
            before=translation.score,
        )
        for each, new, seen in zip(prepared, found, maps, strict=True)
    ]


def like(shown: Attention, found: Attention | None) -> Attention | None:
    """What was found, seen as the map that is shown, so that the two can be compared."""
    return replace(shown, recording=found.recording) if found is not None else None


def questions(attention: Attention, most: int) -> Iterator[Prepared]:
    """In the order a page shows them; where there is no room for all, words and heads share it."""
    ends, heads, words = list(about_sharpness())[:most], list(about_heads(attention)), list(about_words(attention))
    room = most - len(ends)
    words = words[: max(room - len(heads), (room + 1) // 2)]
    yield from (*words, *heads[: room - len(words)], *ends)


def about_words(attention: Attention) -> Iterator[Prepared]:
    """Each word that has a piece to look at."""
    from softgaze.gaze.what_if import Question, quoted

    source = attention.recording.source
    for number in sorted(set(source.word_of) & set(range(len(source.words)))):
        yield Prepared("mask", f"without {quoted(source.words[number])}", number, Question(mask=number))


def about_heads(attention: Attention) -> Iterator[Prepared]:
    """Each head of the layer that is shown; of a mean of layers, the heads of all."""
    from softgaze.gaze.what_if import Question

    layers, heads = attention.recording.size("cross")
    shown = attention.view.layer if attention.view.kind == "cross" else None
    for layer, head in product(range(layers) if shown is None else [shown], range(heads)):
        yield Prepared("ablate", f"without head {head} of layer {layer}", None, Question(ablate=[(layer, head)]))


def about_sharpness() -> Iterator[Prepared]:
    """Sharper, and flatter."""
    from softgaze.gaze.what_if import Question

    for factor in FACTORS:
        phrase = f"with weights {'sharper' if factor > 1 else 'flatter'} (×{factor:g})"
        yield Prepared("sharpen", phrase, None, Question(sharpen=factor))
