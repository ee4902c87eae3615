"""Options and results of a search. Every engine, the command line and the server use these types."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.errors import UsageError
from softgaze.special_tokens import EOS

if TYPE_CHECKING:
    from softgaze.glossary import Glossary

MAX_LENGTH_PENALTY = 10
MIN_TEMPERATURE = 1e-6  # dividing by a lower temperature overflows


@dataclass(frozen=True)
class SearchOptions:
    """How to search for a translation. Lengths count subwords, for each part of a text that had to be split."""

    beam_size: int = 5  # hypotheses kept at each step; 1 is greedy search
    num_hypotheses: int = 1  # translations returned: the best and its alternatives, or the number of samples
    length_penalty: float = 1.0  # α in log-probability / length^α, EOS counted
    max_length: int | None = None  # None: twice the source length plus 20
    min_length: int = 0
    no_repeat_ngram_size: int = 0  # n: no n-gram of subwords is generated twice; 0: off
    prefix: str = ""  # words every translation begins with
    glossary: "Glossary | None" = None  # terms with fixed translations
    temperature: float | None = None  # None: beam search; a number: sample at this temperature, ignoring beam_size
    top_k: int = 0  # sample from the k most probable tokens; 0: all
    top_p: float = 1.0  # sample from the most probable tokens that together have this probability
    seed: int = 0  # of the samples
    split_sentences: bool = False  # translate each sentence of a text alone; False: only where the text is too long
    batch_tokens: int | None = None  # padded source tokens × hypotheses in one batch; None: the engine's default

    def __post_init__(self) -> None:
        for name, minimum in _MINIMUM.items():
            value = getattr(self, name)
            optional = name in ("max_length", "batch_tokens") and value is None
            if not optional and (not isinstance(value, int) or isinstance(value, bool) or value < minimum):
                raise UsageError(f"{name} must be an integer of at least {minimum}, got {value!r}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise UsageError(f"min_length {self.min_length} is above max_length {self.max_length}")
        if not -MAX_LENGTH_PENALTY <= self.length_penalty <= MAX_LENGTH_PENALTY:
            raise UsageError(
                f"length_penalty must be between -{MAX_LENGTH_PENALTY} and {MAX_LENGTH_PENALTY}, "
                f"got {self.length_penalty}; 0 is none, 1 the mean log-probability per token"
            )
        if self.temperature is None and self.num_hypotheses > self.beam_size:
            raise UsageError(
                f"num_hypotheses {self.num_hypotheses} is above beam_size {self.beam_size}; "
                "raise beam_size or ask for fewer hypotheses"
            )
        if self.temperature is None and (self.top_k or self.top_p != 1 or self.seed):
            raise UsageError("top_k, top_p and seed apply to sampling only; set temperature too (1.0 for the model's)")
        if self.temperature is not None and not MIN_TEMPERATURE <= self.temperature < math.inf:
            raise UsageError(
                f"temperature must be a number of at least {MIN_TEMPERATURE}, got {self.temperature}; "
                "for the most probable token use beam_size 1 instead"
            )
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p must be above 0 and at most 1, got {self.top_p}")

    @classmethod
    def of(cls, options: "SearchOptions | None", fields: dict[str, Any]) -> "SearchOptions":
        """Return `options`, or the defaults, with some fields replaced."""
        options = options or cls()
        return replace(options, **fields) if fields else options

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON types, with the digest of the glossary."""
        return {**vars(self), "glossary": self.glossary and self.glossary.digest}

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are drawn at random instead of searched for."""
        return self.temperature is not None

    def batch_budget(self, default: int) -> int:
        """Return the padded source tokens per batch, from `batch_tokens` or an engine's default."""
        rows = self.num_hypotheses if self.is_sampling else self.beam_size
        return max((self.batch_tokens or default) // rows, 1)

    def length_limit(self, source_length: int, prefix_length: int = 0, max_positions: int | None = None) -> int:
        """Return the most tokens, EOS counted, that may be generated for a source of this length.

        One token always fits after a forced prefix, but the model's positions are never exceeded: recorded attention
        needs one for the last token, too.
        """
        limit = self.max_length
        if limit is None:
            limit = max(2 * source_length + 20, self.min_length + 1)
        limit = max(limit, prefix_length + 1)
        return limit if max_positions is None else min(limit, max(max_positions - 1, 1))


_MINIMUM = {
    "beam_size": 1,
    "num_hypotheses": 1,
    "max_length": 1,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "top_k": 0,
    "batch_tokens": 1,
}


class Hypothesis(NamedTuple):
    """One generated target, without BOS and EOS."""

    tokens: tuple[int, ...]
    score: float  # hypotheses are ranked by log-probability / length^α, EOS counted
    log_prob: float
    finished: bool  # False: cut at the maximum length

    @classmethod
    def of(cls, tokens: Sequence[int], log_prob: float, length_penalty: float, forced: int = 0) -> "Hypothesis":
        """Build a hypothesis from tokens that end with EOS unless the search was cut.

        The length counts `forced` language tokens before them, as in other toolkits.
        """
        finished, length = tokens[-1] == EOS, len(tokens) + forced
        text = tuple(tokens[:-1] if finished else tokens)
        return cls(text, log_prob / length**length_penalty, log_prob, finished)
