"""Whether an engine gives the results of torch: log-probabilities and greedy text, token by token."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from softgaze.bundle import Bundle
from softgaze.engines.base import EncodedSource, Engine
from softgaze.explain.scoring import IdPair
from softgaze.search import Hypothesis, SearchOptions
from softgaze.special_tokens import EOS, SPECIAL_TOKENS

TOLERANCE = 1e-4  # of log-probabilities
HELD_OUT_PAIRS = 8
RANDOM_LENGTHS = (1, 4, 12, 40)  # of generated sources; the longest is also scored at the model's maximum length
MAX_GENERATED = 40  # tokens decoded for a generated source, which need not end by itself


@dataclass(frozen=True)
class ConversionProof:
    """The differences between torch and a conversion on a few sentences."""

    max_log_prob_difference: float  # relative to log-probabilities below −1
    different: int  # greedy outputs that differ, other than at a near tie
    sentences: int
    held_out: int  # how many of the sentences are text; the others are random tokens

    @property
    def is_same(self) -> bool:
        return self.different == 0 and self.max_log_prob_difference < TOLERANCE

    def __str__(self) -> str:
        kinds = f"{self.held_out} held-out sentences" if self.held_out else "generated tokens"
        return (
            f"log-probabilities differ by up to {self.max_log_prob_difference:.1g}, {self.different} of "
            f"{self.sentences} greedy outputs differ ({kinds})"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def prove(bundle: Bundle, reference: Engine, converted: Engine) -> ConversionProof:
    """Compare a conversion with torch on held-out sentences, if there are any, and on random tokens."""
    held_out, random = held_out_pairs(bundle), random_pairs(bundle, reference.max_positions)
    texts, tokens = sources_of(bundle, held_out), sources_of(bundle, random)
    greedy, short = SearchOptions(beam_size=1), SearchOptions(beam_size=1, max_length=MAX_GENERATED)
    different, written = 0, []
    for sources, options in ((texts, greedy), (tokens[: len(RANDOM_LENGTHS)], short)):
        ours, theirs = ([best for [best] in search(engine, sources, options)] for engine in (reference, converted))
        for source, one, other in zip(sources, ours, theirs, strict=True):
            pair = IdPair(bundle.tokenizers.source.strip_eos(source.ids), with_eos(one))
            written.append(pair)
            different += pair.target != with_eos(other) and not is_near_tie(reference, pair, with_eos(other))
    difference = max_log_prob_difference(reference, converted, [*held_out, *random, *written])
    return ConversionProof(difference, different, len(written), len(texts))


def search(engine: Engine, sources: Sequence[EncodedSource], options: SearchOptions) -> list[list[Hypothesis]]:
    return next(iter(engine.search([sources], options)))


def held_out_pairs(bundle: Bundle) -> list[IdPair]:
    """Return the first held-out pairs that the model was trained for; none without text."""
    source, target = bundle.tokenizers.source, bundle.tokenizers.target
    pairs = (bundle.held_out or [])[: 2 * HELD_OUT_PAIRS] if source.is_text else []
    encoded = zip(source.encode([one for one, _ in pairs]), target.encode([two for _, two in pairs]), strict=True)
    longest = source.max_items(bundle.description.max_length)
    return [IdPair(one, (*two, EOS)) for one, two in encoded if 0 < len(one) < longest and 0 < len(two) < longest][
        :HELD_OUT_PAIRS
    ]


def random_pairs(bundle: Bundle, max_positions: int | None) -> list[IdPair]:
    """Return pairs of random tokens; the last is as long as the model allows."""
    draw, longest = np.random.default_rng(0), bundle.description.max_length
    if max_positions is not None:
        longest = min(longest, max_positions - 1)
    sizes, first = (len(bundle.tokenizers.source), len(bundle.tokenizers.target)), len(SPECIAL_TOKENS)
    lengths = [min(length, longest) for length in (*RANDOM_LENGTHS, longest)]
    return [IdPair(*(draw.integers(first, size, length).tolist() for size in sizes)) for length in lengths]


def sources_of(bundle: Bundle, pairs: Sequence[IdPair]) -> list[EncodedSource]:
    return [EncodedSource(bundle.tokenizers.source.add_eos(pair.source)) for pair in pairs]


def with_eos(hypothesis: Hypothesis) -> tuple[int, ...]:
    """Return the generated tokens, EOS included if the search was not cut."""
    return (*hypothesis.tokens, EOS) if hypothesis.finished else hypothesis.tokens


def is_near_tie(reference: Engine, pair: IdPair, other: Sequence[int]) -> bool:
    """Whether the first tokens in which two outputs differ are nearly equally likely to `reference`."""
    tokens = zip(pair.target, other, strict=False)
    position = next((index for index, (one, two) in enumerate(tokens) if one != two), None)
    if position is None:
        return False
    prefixes = [IdPair(pair.source, target[: position + 1]) for target in (pair.target, other)]
    one, two = (float(values[-1]) for values in reference.log_probs(prefixes))
    return abs(one - two) < TOLERANCE


def max_log_prob_difference(one: Engine, other: Engine, pairs: Sequence[IdPair]) -> float:
    """Return the largest difference of a target token's log-probability, relative where it is below −1."""
    scores = zip(one.log_probs(pairs), other.log_probs(pairs), strict=True)
    return max((float((np.abs(a - b) / np.maximum(1, np.abs(a))).max(initial=0)) for a, b in scores), default=0.0)
