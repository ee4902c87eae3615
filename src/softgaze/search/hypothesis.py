"""What a search returns."""

import math
from typing import NamedTuple

from softgaze.symbols import END


class Hypothesis(NamedTuple):
    """One target a search wrote, without BEGIN and END."""

    tokens: tuple[int, ...]
    score: float  # what hypotheses are ranked by: log-probability / length^α, END counted
    log_probability: float
    finished: bool  # False: cut at the maximum length


def hypothesis(written: list[int], log_probability: float, length_penalty: float) -> Hypothesis:
    """From tokens whose last is END, or is not because the search had to stop."""
    finished = written[-1] == END
    tokens = tuple(written[:-1] if finished else written)
    return Hypothesis(tokens, log_probability / len(written) ** length_penalty, log_probability, finished)


def check_penalty(length_penalty: float) -> None:
    """Refuse an α that ranks nothing."""
    if not math.isfinite(length_penalty):
        raise ValueError(f"a length penalty of {length_penalty} ranks nothing; 0 is none, 1 the mean per token")
