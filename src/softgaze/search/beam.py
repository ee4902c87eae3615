"""Beam search, batched over sentences and beams; greedy search is a beam of one.

A sentence is done when as many hypotheses as the beam is wide have ended (as in CTranslate2, so that engines agree),
or at its maximum length. Ended hypotheses are kept aside and ranked with all others at the end, so none is ever dropped
for an unfinished worse one. Done sentences leave the batch. This file knows nothing of models, words or torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

from softgaze.search.hypothesis import Considered, Hypothesis, hypothesis
from softgaze.search.rules import Rules
from softgaze.search.settings import check_penalty, check_whole
from softgaze.search.steps import NEVER, Array, Chances, Steps
from softgaze.symbols import BEGIN, END

if TYPE_CHECKING:
    from softgaze.models.base import Seq2Seq, Source, Watch

Witness = Callable[[int, Considered], None]  # told the number of a sentence, and what was considered for it


def greedy(
    model: "Seq2Seq", source: "Source", *, rules: Rules = Rules(), watch: "Watch | None" = None
) -> list[Hypothesis]:
    """The likeliest next token, again and again: one hypothesis for each sentence."""
    return [best[0] for best in beam_search(model, source, beam=1, rules=rules, watch=watch)]


def beam_search(
    model: "Seq2Seq",
    source: "Source",
    *,
    beam: int = 5,
    nbest: int = 1,
    length_penalty: float = 1.0,
    rules: Rules = Rules(),
    watch: "Watch | None" = None,
    witness: Witness | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence up to `nbest` hypotheses, best first, ranked by log-probability / length^`length_penalty`.

    A `witness` is told of every candidate of every step, best first, those that are given up among them.
    """
    from softgaze.search.torch_steps import TorchSteps

    check_beam(beam, nbest, length_penalty)
    return search_beams(TorchSteps(model, source, watch), beam, nbest, length_penalty, rules, witness)


def check_beam(beam: int, nbest: int, length_penalty: float) -> None:
    """Refuse what no search can give."""
    check_whole(1, beam=beam, nbest=nbest)
    if nbest > beam:
        raise ValueError(f"a beam of {beam} cannot give {nbest} best; widen the beam or ask for fewer")
    check_penalty(length_penalty)


def search_beams(
    steps: Steps,
    beam: int,
    nbest: int = 1,
    length_penalty: float = 1.0,
    rules: Rules = Rules(),
    witness: Witness | None = None,
) -> list[list[Hypothesis]]:
    """The search itself, on any engine."""
    front = first_front(steps, rules)
    ended: list[list[Hypothesis]] = [[] for _ in front.sentence]
    while len(front.sentence):
        chances = steps.read(front.rows, front.written[..., -1] if front.written.shape[2] else front.begin())
        candidates = best_candidates(chances, beam, front, rules)
        ends = harvest(candidates, front, beam, length_penalty, ended)
        if witness is not None:
            testify(candidates, ends, front, witness)
        front = move_on(candidates, front, beam)
    return [sorted(found, key=lambda each: -each.score)[:nbest] for found in ended]


@dataclass
class Front:
    """The live hypotheses of N sentences, W for each (one at first, then the beam)."""

    sentence: Array  # (N,) which sentence of the batch
    ended: Array  # (N,) how many of its hypotheses have ended
    rows: Array  # (N, W) which row of the step before each goes on from
    written: Array  # (N, W, t) tokens so far
    totals: Array  # (N, W) their log-probability
    longest: Array  # (N,) maximum length
    forced: Array  # (N, P) prefix, −1 where free

    def begin(self) -> Array:
        """(N, W) what is read before anything is written."""
        return numpy.full(self.rows.shape, BEGIN)


@dataclass
class Candidates:
    """The best continuations of each sentence, best first."""

    totals: Array  # (N, C)
    origin: Array  # (N, C) which live hypothesis each continues
    token: Array  # (N, C)
    full: Array  # (N,) the maximum length is reached

    def written(self, front: Front, sentence: Array | int, number: Array | int) -> Array:
        """(…, t + 1) what one or more of them would say."""
        before = front.written[sentence, self.origin[sentence, number]]
        return numpy.concatenate([before, self.token[sentence, number][..., None]], -1)


def first_front(steps: Steps, rules: Rules) -> Front:
    """Every sentence with one empty hypothesis."""
    count = len(steps.lengths)
    return Front(
        sentence=numpy.arange(count),
        ended=numpy.zeros(count, dtype=int),
        rows=numpy.arange(count)[:, None],
        written=numpy.empty((count, 1, 0), dtype=numpy.int64),
        totals=numpy.zeros((count, 1), dtype=numpy.float32),
        longest=rules.longest(steps.lengths),
        forced=rules.forced(count),
    )


def best_candidates(chances: Chances, beam: int, front: Front, rules: Rules) -> Candidates:
    """Twice the beam, so that a beam of unfinished ones remains even if every live hypothesis also ends."""
    width, length = front.written.shape[1:]
    rules.apply(chances, front.written.reshape(front.rows.size, length), front.forced.repeat(width, 0))
    totals, places = chances.best(front.totals, 2 * beam)
    if numpy.isnan(totals).any():
        raise ValueError("the model's logits are not numbers: its parameters are broken, or it overflowed")
    origin, token = numpy.divmod(places, chances.vocabulary)
    return Candidates(totals, origin, token, front.longest <= length + 1)


def harvest(
    candidates: Candidates, front: Front, beam: int, length_penalty: float, ended: list[list[Hypothesis]]
) -> Array:
    """Set aside those of the best `beam` candidates that end; at the maximum length all of them do. (N, C): which."""
    ends: Array = (candidates.token == END) | candidates.full[:, None]
    ends[:, beam:] = False
    ends &= candidates.totals > NEVER
    for row, column in numpy.argwhere(ends).tolist():
        tokens, total = candidates.written(front, row, column).tolist(), float(candidates.totals[row, column])
        ended[front.sentence[row]].append(hypothesis(tokens, total, length_penalty))
    front.ended = front.ended + ends.sum(1)
    return ends


def testify(candidates: Candidates, ends: Array, front: Front, witness: Witness) -> None:
    """Tell of all candidates that were possible at all."""
    for row, column in numpy.argwhere(candidates.totals > NEVER).tolist():
        tokens = tuple(candidates.written(front, row, column).tolist())
        told = Considered(tokens, float(candidates.totals[row, column]), bool(ends[row, column]))
        witness(int(front.sentence[row]), told)


def first_of_each_step(tell: Callable[[Sequence[int]], None]) -> Witness:
    """A witness of a beam of one that tells of the best tokens so far, without the END."""
    length = 0

    def witness(_: int, told: Considered) -> None:
        nonlocal length
        if len(told.tokens) > length:
            length = len(told.tokens)
            tell(told.tokens[:-1] if told.tokens[-1] == END else told.tokens)

    return witness


def move_on(candidates: Candidates, front: Front, beam: int) -> Front:
    """The best `beam` unfinished candidates of the sentences that are not done."""
    over = candidates.token == END
    open_first = over.argsort(axis=1, kind="stable")[:, :beam]  # (N, W'), best first
    totals = numpy.take_along_axis(numpy.where(over, NEVER, candidates.totals), open_first, 1)
    live = numpy.flatnonzero((front.ended < beam) & ~candidates.full & (totals[:, 0] > NEVER))

    chosen, width = open_first[live], front.totals.shape[1]
    origin = numpy.take_along_axis(candidates.origin[live], chosen, 1)
    return Front(
        sentence=front.sentence[live],
        ended=front.ended[live],
        rows=live[:, None] * width + origin,
        written=candidates.written(front, live[:, None], chosen),
        totals=totals[live],
        longest=front.longest[live],
        forced=front.forced[live],
    )
