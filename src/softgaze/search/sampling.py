"""Sampling: draw each next token from the model's distribution, changed by temperature, top-k and top-p.

The random numbers depend on the seed, the source, the index of the sample and the position, never on the batch: a
sentence gets the same samples alone and among others, and different sentences have independent random numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from softgaze.search.decoder import Array, Constraints, Decoder, Prefixes
from softgaze.search.options import Hypothesis, SearchOptions
from softgaze.special_tokens import EOS


@dataclass
class SampleState:
    """The unfinished samples."""

    sentence: Array  # (R,) index in the batch
    sample: Array  # (R,) index among the samples of its sentence
    rows: Array  # (R,) the decoder row each continues
    tokens: Array  # (R, t)
    totals: Array  # (R,) log-probabilities
    last: Array  # (R,) the token to read next
    limits: Array  # (R,) maximum length
    prefixes: Array  # (R, P) forced tokens, −1 where free
    random: list[Iterator[float]]

    def append(self, log_probs: Array, tokens: Array) -> None:
        """Append one token (R,) to each sample."""
        self.last = tokens
        self.totals = self.totals + np.take_along_axis(log_probs, tokens[:, None], 1)[:, 0]
        self.tokens = np.concatenate([self.tokens, tokens[:, None]], 1)

    def select(self, index: Array) -> "SampleState":
        """Return the selected rows."""
        names = ("sentence", "sample", "tokens", "totals", "last", "limits", "prefixes")
        arrays = {name: getattr(self, name)[index] for name in names}
        return SampleState(**arrays, rows=index, random=[self.random[row] for row in index])


def sample(
    decoder: Decoder, options: SearchOptions, prefixes: Prefixes | None = None, max_positions: int | None = None
) -> list[list[Hypothesis]]:
    """Return `num_hypotheses` samples of each sentence, in the order drawn."""
    temperature = 1.0 if options.temperature is None else options.temperature
    constraints = Constraints(options, decoder.lengths, prefixes, max_positions)
    state = init_samples(decoder, options, constraints)
    samples: dict[tuple[int, int], Hypothesis] = {}
    while len(state.sentence):
        log_probs = decoder.step(state.rows[:, None], state.last[:, None])
        constraints.apply(log_probs, state.tokens, state.prefixes)
        values = log_probs.array()  # (R, V)
        if np.isnan(values).any():
            raise ValueError("the model's logits are NaN: its parameters are damaged, or it overflowed")
        random = np.array([next(numbers) for numbers in state.random])
        state.append(values, draw(values / temperature, options.top_k, options.top_p, random))
        ended = (state.last == EOS) | (state.limits <= state.tokens.shape[1])
        for row in np.flatnonzero(ended):
            tokens, total = state.tokens[row].tolist(), float(state.totals[row])
            hypothesis = Hypothesis.of(tokens, total, options.length_penalty, decoder.forced)
            samples[int(state.sentence[row]), int(state.sample[row])] = hypothesis
        state = state.select(np.flatnonzero(~ended))
    return [
        [samples[sentence, index] for index in range(options.num_hypotheses)]
        for sentence in range(len(decoder.lengths))
    ]


def init_samples(decoder: Decoder, options: SearchOptions, constraints: Constraints) -> SampleState:
    """Return `num_hypotheses` empty samples for each sentence, each with its own random numbers."""
    count, samples = len(decoder.lengths), options.num_hypotheses
    sentence = np.arange(count).repeat(samples)
    contents = [row[:length].tobytes() for row, length in zip(decoder.sources, decoder.lengths, strict=True)]
    return SampleState(
        sentence=sentence,
        sample=np.tile(np.arange(samples), count),
        rows=sentence,
        tokens=np.empty((len(sentence), 0), dtype=np.int64),
        totals=np.zeros(len(sentence), dtype=np.float32),
        last=np.full(len(sentence), decoder.start),
        limits=constraints.limits[sentence],
        prefixes=constraints.prefixes[sentence],
        random=[
            random_numbers(f"{options.seed} {index} ".encode() + content)
            for content in contents
            for index in range(samples)
        ],
    )


def random_numbers(key: bytes) -> Iterator[float]:
    """Yield numbers in [0, 1), a different sequence for every key."""
    generator = np.random.Generator(np.random.SFC64(int.from_bytes(blake2b(key, digest_size=16).digest())))
    while True:
        yield float(generator.random())


def draw(scores: Array, top_k: int, top_p: float, random: Array) -> Array:
    """Draw one token (R,) for each row of unnormalised log-probabilities (R, V) by its random number (R,)."""
    tokens = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, tokens, 1).astype(np.float64)
    probs = np.exp(ordered - ordered[:, :1])
    if top_k:
        probs[:, top_k:] = 0.0
    cumulative = probs.cumsum(1)
    probs[cumulative - probs >= top_p * cumulative[:, -1:]] = 0.0
    cumulative = probs.cumsum(1)
    index = (cumulative <= random[:, None] * cumulative[:, -1:]).sum(1)
    num_nonzero = (probs > 0).sum(1)
    drawn: Array = np.take_along_axis(tokens, np.minimum(index, num_nonzero - 1)[:, None], 1)[:, 0]
    return drawn
