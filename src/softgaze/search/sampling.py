"""Sampling: draw each next token from the model's distribution, sharpened or cut as asked.

The random numbers depend on the seed, the source, the number of the sample and the place in the sentence, never on the
batch: a sentence gets the same samples alone and among others, and different sentences share no luck.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy

from softgaze.search.hypothesis import Hypothesis, hypothesis
from softgaze.search.rules import Rules
from softgaze.search.settings import check_penalty, check_sampling
from softgaze.search.steps import Array, Steps
from softgaze.symbols import BEGIN, END

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq, Source, Watch


def sample(
    model: "Seq2Seq",
    source: "Source",
    *,
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    length_penalty: float = 1.0,
    rules: Rules = Rules(),
    watch: "Watch | None" = None,
) -> list[list[Hypothesis]]:
    """`samples` hypotheses for each sentence, in the order drawn; `top_k` 0 and `top_p` 1 cut nothing."""
    from softgaze.search.torch_steps import TorchSteps

    check_sampling(samples, temperature, top_k, top_p)
    check_penalty(length_penalty)
    steps = TorchSteps(model, source, watch)
    return draw_samples(steps, samples, temperature, top_k, top_p, seed, length_penalty, rules)


def draw_samples(
    steps: Steps,
    samples: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    length_penalty: float = 1.0,
    rules: Rules = Rules(),
) -> list[list[Hypothesis]]:
    """Sampling itself, on any engine."""
    rows = first_rows(steps, samples, seed, rules)
    drawn: dict[tuple[int, int], Hypothesis] = {}
    while len(rows.sentence):
        chances = steps.read(rows.before[:, None], rows.last[:, None])
        rules.apply(chances, rows.written, rows.forced)
        allowed = chances.array()  # (R, V)
        if numpy.isnan(allowed).any():
            raise ValueError("the model's logits are not numbers: its parameters are broken, or it overflowed")
        rows.add(allowed, draw(allowed / temperature, top_k, top_p, numpy.array([next(each) for each in rows.noise])))
        ends = (rows.last == END) | (rows.longest <= rows.written.shape[1])
        for row in numpy.flatnonzero(ends):
            tokens, total = rows.written[row].tolist(), float(rows.totals[row])
            drawn[int(rows.sentence[row]), int(rows.number[row])] = hypothesis(tokens, total, length_penalty)
        rows = rows.only(numpy.flatnonzero(~ends))
    return [[drawn[sentence, number] for number in range(samples)] for sentence in range(len(steps.lengths))]


@dataclass
class Rows:
    """The samples still being written."""

    sentence: Array  # (R,) which sentence of the batch
    number: Array  # (R,) which of its samples
    before: Array  # (R,) which row of the step before each goes on from
    written: Array  # (R, t) tokens so far
    totals: Array  # (R,) their log-probability
    last: Array  # (R,) the token to read next
    longest: Array  # (R,) maximum length
    forced: Array  # (R, P) prefix, −1 where free
    noise: list[Iterator[float]]

    def add(self, allowed: Array, tokens: Array) -> None:
        """One token (R,) more in each."""
        self.last = tokens
        self.totals = self.totals + numpy.take_along_axis(allowed, tokens[:, None], 1)[:, 0]
        self.written = numpy.concatenate([self.written, tokens[:, None]], 1)

    def only(self, index: Array) -> "Rows":
        """Some of the rows."""
        names = ("sentence", "number", "written", "totals", "last", "longest", "forced")
        arrays = {name: getattr(self, name)[index] for name in names}
        return Rows(**arrays, before=index, noise=[self.noise[row] for row in index])


def first_rows(steps: Steps, samples: int, seed: int, rules: Rules) -> Rows:
    """Every sentence `samples` times, with nothing written."""
    count = len(steps.lengths)
    sentence = numpy.arange(count).repeat(samples)
    return Rows(
        sentence=sentence,
        number=numpy.tile(numpy.arange(samples), count),
        before=sentence,
        written=numpy.empty((len(sentence), 0), dtype=numpy.int64),
        totals=numpy.zeros(len(sentence), dtype=numpy.float32),
        last=numpy.full(len(sentence), BEGIN),
        longest=rules.longest(steps.lengths)[sentence],
        forced=rules.forced(count)[sentence],
        noise=all_noise(steps, samples, seed),
    )


def all_noise(steps: Steps, samples: int, seed: int) -> list[Iterator[float]]:
    """One source of luck for each sample of each sentence, seeded by what the sentence says."""
    real = zip(steps.sources, steps.lengths, strict=True)
    texts = [row[:length].tobytes() for row, length in real]
    return [random_numbers(f"{seed} {number} ".encode() + text) for text in texts for number in range(samples)]


def random_numbers(key: bytes) -> Iterator[float]:
    """Numbers from 0 up to 1, others for every key."""
    generator = numpy.random.Generator(numpy.random.SFC64(int.from_bytes(blake2b(key, digest_size=16).digest())))
    while True:
        yield float(generator.random())


def draw(scores: Array, top_k: int, top_p: float, luck: Array) -> Array:
    """One token (R,) for each row of unnormalised log-probabilities (R, V): the one at `luck` (R,) of what is kept."""
    tokens = numpy.argsort(-scores, axis=1, kind="stable")
    ordered = numpy.take_along_axis(scores, tokens, 1).astype(numpy.float64)
    probabilities = numpy.exp(ordered - ordered[:, :1])
    if top_k:
        probabilities[:, top_k:] = 0.0
    reached = probabilities.cumsum(1)
    probabilities[reached - probabilities >= top_p * reached[:, -1:]] = 0.0
    reached = probabilities.cumsum(1)
    place = (reached <= luck[:, None] * reached[:, -1:]).sum(1)
    kept = (probabilities > 0).sum(1)
    drawn: Array = numpy.take_along_axis(tokens, numpy.minimum(place, kept - 1)[:, None], 1)[:, 0]
    return drawn
