"""What a search returns."""

from typing import NamedTuple

from softgaze.symbols import END


class Hypothesis(NamedTuple):
    """One target a search wrote, without BEGIN and END."""

    tokens: tuple[int, ...]
    score: float  # what hypotheses are ranked by: log-probability / length^α, END counted
    log_probability: float
    finished: bool  # False: cut at the maximum length


class Considered(NamedTuple):
    """What a beam search had before it at one step: one more token after a hypothesis that it kept."""

    tokens: tuple[int, ...]  # END among them
    log_probability: float
    ended: bool  # set aside as a result; else it was kept, and has continuations, or given up


def hypothesis(written: list[int], log_probability: float, length_penalty: float) -> Hypothesis:
    """From tokens whose last is END, or is not because the search had to stop."""
    finished = written[-1] == END
    tokens = tuple(written[:-1] if finished else written)
    return Hypothesis(tokens, log_probability / len(written) ** length_penalty, log_probability, finished)
