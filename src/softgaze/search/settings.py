"""What can be asked of a search, checked without torch: every engine is asked in these words."""

import math
from dataclasses import dataclass
from typing import Any

from softgaze.errors import UsageError

LARGEST_PENALTY = 10
COLDEST = 1e-6  # below this, dividing by the temperature overflows


@dataclass(frozen=True)
class Sampling:
    """Draw each token instead of searching for the likeliest; the same seed draws the same text, in any batch."""

    temperature: float = 1.0  # below 1 bolder, above 1 wilder
    top_k: int = 0  # only the k likeliest tokens; 0: all
    top_p: float = 1.0  # only the likeliest tokens that together have this probability
    seed: int = 0


@dataclass(frozen=True)
class Search:
    """How to look for a translation. Lengths are subwords, and hold for each part of a text that had to be split."""

    beam: int = 5  # hypotheses kept at each step; 1 is greedy
    nbest: int = 1  # how many translations: the best and nbest − 1 alternatives, or this many samples
    length_penalty: float = 1.0  # α in log-probability / length^α, END counted
    sampling: Sampling | None = None  # draw instead; the beam then has no meaning
    max_length: int | None = None  # None: twice the source and twenty more
    min_length: int = 0
    no_repeat: int = 0  # n: no n subwords in a row are written twice
    prefix: str = ""  # whole words every translation must begin with
    batch_tokens: int | None = None  # padded source tokens × hypotheses at once; None: what suits the engine

    def __post_init__(self) -> None:
        if self.nbest < 1 or self.beam < 1 or (self.batch_tokens is not None and self.batch_tokens < 1):
            raise UsageError("beam, nbest and batch_tokens start at 1")
        if self.sampling is None and self.nbest > self.beam:
            raise UsageError(
                f"a beam of {self.beam} cannot give the {self.nbest} best; widen the beam, or ask for less"
            )

    @property
    def width(self) -> int:
        """Hypotheses that are written at the same time for one source."""
        return self.beam if self.sampling is None else self.nbest

    def budget(self, batch_tokens: int) -> int:
        """Padded source tokens at once, if `batch_tokens` suit the engine and nobody asked for others."""
        return max((self.batch_tokens or batch_tokens) // self.width, 1)

    def check(self) -> None:
        """Refuse the rest of what cannot work."""
        drawn = self.sampling or Sampling()
        try:
            check_lengths(self.min_length, self.max_length, self.no_repeat)
            check_penalty(self.length_penalty)
            check_sampling(self.nbest, drawn.temperature, drawn.top_k, drawn.top_p)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def longest(self, source: int, prefix: int = 0, places: int | None = None) -> int:
        """After how many tokens a sentence is cut."""
        return longest(source, prefix, self.min_length, self.max_length, places)


def longest(source: int, prefix: int, min_length: int, max_length: int | None, places: int | None = None) -> int:
    """After how many tokens, END counted, a sentence is cut: its own source decides, never its neighbours.

    There is always room for one token after a forced prefix, but never for more than the model has places for.
    """
    free = max(2 * source + 20, min_length + 1) if max_length is None else max_length
    whole = max(free, prefix + 1)
    return whole if places is None else min(whole, places)


# --- checks -----------------------------------------------------------------------------------------------------


def check_whole(least: int, **numbers: Any) -> None:
    """Counts must be whole numbers, and not below `least`."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} is a whole number from {least} up, not {value!r}")


def check_lengths(min_length: int, max_length: int | None, no_repeat: int) -> None:
    """Refuse lengths that exclude each other."""
    check_whole(0, min_length=min_length, no_repeat=no_repeat)
    if max_length is not None:
        check_whole(1, max_length=max_length)
    if max_length is not None and min_length > max_length:
        raise ValueError(f"min_length {min_length} is above max_length {max_length}")


def check_penalty(length_penalty: float) -> None:
    """Refuse an α that ranks nothing, or whose powers are no longer numbers."""
    if not -LARGEST_PENALTY <= length_penalty <= LARGEST_PENALTY:
        raise ValueError(
            f"a length penalty of {length_penalty} is not from −{LARGEST_PENALTY} to {LARGEST_PENALTY}; "
            "0 is none, 1 the mean per token"
        )


def check_sampling(samples: int, temperature: float, top_k: int, top_p: float) -> None:
    """Refuse what cannot be drawn from."""
    check_whole(1, samples=samples)
    check_whole(0, top_k=top_k)
    if not COLDEST <= temperature < math.inf:
        raise ValueError(
            f"a temperature of {temperature} is not a number from {COLDEST} up; for the likeliest token use greedy"
        )
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p is a share above 0 and at most 1, not {top_p}")
