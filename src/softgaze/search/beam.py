"""Beam search, batched over sentences and beams; greedy search is a beam of one.

A sentence is done when as many hypotheses as the beam is wide have ended (as in CTranslate2, so that engines agree),
or at its maximum length. Ended hypotheses are kept aside and ranked with all others at the end, so none is ever dropped
for an unfinished worse one. Done sentences leave the batch. This file knows nothing of models, words or subwords.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq, Source, Watch
from softgaze.search.hypothesis import Considered, Hypothesis, hypothesis
from softgaze.search.rules import NEVER, Rules, check_ready
from softgaze.search.settings import check_penalty, check_whole
from softgaze.symbols import BEGIN, END

Witness = Callable[[int, Considered], None]  # told the number of a sentence, and what was considered for it


def greedy(model: Seq2Seq, source: Source, *, rules: Rules = Rules(), watch: Watch | None = None) -> list[Hypothesis]:
    """The likeliest next token, again and again: one hypothesis for each sentence."""
    return [best[0] for best in beam_search(model, source, beam=1, rules=rules, watch=watch)]


@torch.no_grad()
def beam_search(
    model: Seq2Seq,
    source: Source,
    *,
    beam: int = 5,
    nbest: int = 1,
    length_penalty: float = 1.0,
    rules: Rules = Rules(),
    watch: Watch | None = None,
    witness: Witness | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence up to `nbest` hypotheses, best first, ranked by log-probability / length^`length_penalty`.

    A `witness` is told of every candidate of every step, best first, those that are given up among them.
    """
    check_whole(1, beam=beam, nbest=nbest)
    if nbest > beam:
        raise ValueError(f"a beam of {beam} cannot give {nbest} best; widen the beam or ask for fewer")
    check_penalty(length_penalty)
    front = first_front(model, source, rules, watch)
    ended: list[list[Hypothesis]] = [[] for _ in front.sentence]
    while len(front.sentence):
        scores = next_scores(model, front, rules, watch)
        candidates = best_candidates(scores, beam, front)
        ends = harvest(candidates, front, beam, length_penalty, ended)
        if witness is not None:
            testify(candidates, ends, front, witness)
        front = move_on(candidates, front, beam, ended)
    return [sorted(found, key=lambda each: -each.score)[:nbest] for found in ended]


@dataclass
class Front:
    """The live hypotheses of N sentences, W for each (one at first, then the beam)."""

    sentence: Tensor  # (N,) which sentence of the batch
    written: Tensor  # (N, W, t) tokens so far
    totals: Tensor  # (N, W) their log-probability
    last: Tensor  # (N · W,) the token to read next
    state: Any  # of N · W rows
    longest: Tensor  # (N,) maximum length
    forced: Tensor  # (N, P) prefix, −1 where free


@dataclass
class Candidates:
    """The best continuations of each sentence, best first."""

    totals: Tensor  # (N, C)
    origin: Tensor  # (N, C) which live hypothesis each continues
    token: Tensor  # (N, C)
    written: Tensor  # (N, C, t + 1)
    full: Tensor  # (N,) the maximum length is reached


def first_front(model: Seq2Seq, source: Source, rules: Rules, watch: Watch | None) -> Front:
    """Every sentence with one empty hypothesis."""
    check_ready(model)
    state = model.start(model.encode(source, watch))
    device, count = source.lengths.device, len(source.lengths)
    return Front(
        sentence=torch.arange(count, device=device),
        written=torch.empty(count, 1, 0, dtype=torch.long, device=device),
        totals=torch.zeros(count, 1, device=device),
        last=torch.full((count,), BEGIN, device=device),
        state=state,
        longest=rules.longest(source.lengths),
        forced=rules.forced(count, device),
    )


def next_scores(model: Seq2Seq, front: Front, rules: Rules, watch: Watch | None) -> Tensor:
    """Total log-probability of every continuation: (N, W, V). The model's state moves on."""
    logits, front.state, _ = model.step(front.last, front.state, watch)
    width = front.totals.shape[1]
    allowed = rules.apply(logits, front.written.flatten(0, 1), front.forced.repeat_interleave(width, 0))
    return front.totals[..., None] + allowed.view(*front.totals.shape, -1)


def best_candidates(scores: Tensor, beam: int, front: Front) -> Candidates:
    """Twice the beam, so that a beam of unfinished ones remains even if every live hypothesis also ends."""
    vocabulary = scores.shape[-1]
    flat = scores.flatten(1)
    totals, index = flat.topk(min(2 * beam, flat.shape[1]))
    origin, token = index // vocabulary, index % vocabulary
    before = front.written.gather(1, origin[..., None].expand(-1, -1, front.written.shape[2]))
    written = torch.cat([before, token[..., None]], -1)
    return Candidates(totals, origin, token, written, front.longest <= written.shape[2])


def harvest(
    candidates: Candidates, front: Front, beam: int, length_penalty: float, ended: list[list[Hypothesis]]
) -> Tensor:
    """Set aside those of the best `beam` candidates that end; at the maximum length all of them do. (N, C): which."""
    ends = (candidates.token == END) | candidates.full[:, None]
    ends[:, beam:] = False
    ends &= candidates.totals > NEVER
    for row, column in ends.nonzero().tolist():
        tokens, total = candidates.written[row, column].tolist(), float(candidates.totals[row, column])
        ended[int(front.sentence[row])].append(hypothesis(tokens, total, length_penalty))
    return ends


def testify(candidates: Candidates, ends: Tensor, front: Front, witness: Witness) -> None:
    """Tell of all candidates that were possible at all."""
    possible = candidates.totals > NEVER
    for row, column in possible.nonzero().tolist():
        tokens = tuple(candidates.written[row, column].tolist())
        told = Considered(tokens, float(candidates.totals[row, column]), bool(ends[row, column]))
        witness(int(front.sentence[row]), told)


def move_on(candidates: Candidates, front: Front, beam: int, ended: list[list[Hypothesis]]) -> Front:
    """The best `beam` unfinished candidates of the sentences that are not done."""
    open_first = (candidates.token == END).int().argsort(dim=1, stable=True)[:, :beam]  # (N, W'), best first
    totals = candidates.totals.gather(1, open_first).masked_fill(candidates.token.gather(1, open_first) == END, NEVER)
    enough = torch.tensor([len(ended[number]) >= beam for number in front.sentence.tolist()], device=totals.device)
    live = (~(enough | candidates.full) & (totals[:, 0] > NEVER)).nonzero().flatten()

    chosen = open_first[live]
    width = front.totals.shape[1]
    rows = (live[:, None] * width + candidates.origin[live].gather(1, chosen)).flatten()
    written = candidates.written[live].gather(1, chosen[..., None].expand(-1, -1, candidates.written.shape[2]))
    return Front(
        sentence=front.sentence[live],
        written=written,
        totals=totals[live],
        last=written[..., -1].flatten(),
        state=front.state.reorder(rows) if len(live) else front.state,
        longest=front.longest[live],
        forced=front.forced[live],
    )
