"""Counterfactuals worked out in advance, so that a saved page can answer "what if" without a model. Needs no torch."""

from typing import NamedTuple

from softgaze.gaze.attention import Attention


class Answer(NamedTuple):
    """What would have been written, had the model looked elsewhere."""

    kind: str  # "mask", "attend", "ablate" or "sharpen"
    question: str  # a plain phrase: without “school”
    source_word: int | None  # the number of the word it is about
    text: str
    score: float
    diff: tuple[tuple[str, str], ...]  # ("same" | "removed" | "added", text), from what was written to this
    attention: Attention | None  # recorded with the change
