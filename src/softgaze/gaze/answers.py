"""Counterfactuals worked out in advance, so that a saved page can answer "what if" without a model. Needs no torch."""

import math
from collections.abc import Iterator, Sequence
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


def answers(translation: Asked, most: int = MOST) -> list[Answer]:
    """Without each source word, without each head of the layer that is shown, with sharper and with flatter weights.

    At most so many, all written in one search and recorded in one pass. None for what never looked at anything.
    """
    if translation.attention is None:
        return []
    prepared = list(questions(translation.attention, most))
    found = translation.what_ifs([each.question for each in prepared])
    maps = translation.asked().attentions(found)
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


def questions(attention: Attention, most: int) -> Iterator[Prepared]:
    """Words last to be counted, since they are as many as there is room for; in the order a page shows them."""
    others = [*about_heads(attention), *about_sharpness()][:most]
    words = list(about_words(attention))[: most - len(others)]
    yield from (*words, *others)


def about_words(attention: Attention) -> Iterator[Prepared]:
    """Each word that has a piece to look at."""
    from softgaze.gaze.what_if import Question, quoted

    source = attention.recording.source
    for number in sorted(set(source.word_of) & set(range(len(source.words)))):
        yield Prepared("mask", f"without {quoted(source.words[number])}", number, Question(mask=number))


def about_heads(attention: Attention) -> Iterator[Prepared]:
    """Each head of the layer that is shown; of all layers, the last."""
    from softgaze.gaze.what_if import Question

    layers, heads = attention.recording.size("cross")
    shown = attention.view.layer if attention.view.kind == "cross" else None
    layer = layers - 1 if shown is None else shown
    for head in range(heads):
        yield Prepared("ablate", f"without head {head} of layer {layer}", None, Question(ablate=[(layer, head)]))


def about_sharpness() -> Iterator[Prepared]:
    """Sharper, and flatter."""
    from softgaze.gaze.what_if import Question

    for factor in FACTORS:
        phrase = f"with weights {'sharper' if factor > 1 else 'flatter'} (×{factor:g})"
        yield Prepared("sharpen", phrase, None, Question(sharpen=factor))
