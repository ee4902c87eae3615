"""Beam search, batched over sentences and hypotheses; greedy search is a beam of one.

A sentence is done when `beam_size` of its hypotheses have ended (as in CTranslate2, so that engines agree), or at its
maximum length. Finished hypotheses are collected and ranked at the end, so that none is dropped for a worse unfinished
one. Finished sentences leave the batch. This module needs neither torch nor a model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softgaze.search.decoder import IMPOSSIBLE, Array, Constraints, Decoder, NextTokenLogProbs, Prefixes
from softgaze.search.options import Hypothesis, SearchOptions
from softgaze.special_tokens import EOS

if TYPE_CHECKING:
    from softgaze.search.terms import TermConstraint


class BeamCandidate(NamedTuple):
    """One continuation that a beam search considered at one step."""

    tokens: tuple[int, ...]  # EOS included
    log_prob: float
    ended: bool  # collected as a result; else it was continued or dropped


Finished = list[list[tuple[int, Hypothesis]]]  # of each sentence: hypotheses with the number of their terms
TraceCallback = Callable[[int, BeamCandidate], None]  # called with a sentence's index and a candidate


@dataclass
class BeamState:
    """The live hypotheses of N sentences, W for each: one at first, then the beam size."""

    sentence: Array  # (N,) index in the batch
    num_finished: Array  # (N,) how many hypotheses have ended
    rows: Array  # (N, W) the decoder row each hypothesis continues
    tokens: Array  # (N, W, t)
    totals: Array  # (N, W) log-probabilities
    limits: Array  # (N,) maximum length
    prefixes: Array  # (N, P) forced tokens, −1 where free


@dataclass
class Candidates:
    """The best continuations of each sentence, best first."""

    totals: Array  # (N, C) log-probabilities
    origin: Array  # (N, C) the live hypothesis each continues
    token: Array  # (N, C)
    at_limit: Array  # (N,) whether the maximum length is reached

    def tokens(self, state: BeamState, sentence: Array | int, column: Array | int) -> Array:
        """Return (…, t + 1) all tokens of the selected candidates."""
        before = state.tokens[sentence, self.origin[sentence, column]]
        return np.concatenate([before, self.token[sentence, column][..., None]], -1)


def beam_search(
    decoder: Decoder,
    options: SearchOptions,
    prefixes: Prefixes | None = None,
    max_positions: int | None = None,
    on_candidate: TraceCallback | None = None,
    terms: "TermConstraint | None" = None,
) -> list[list[Hypothesis]]:
    """Return up to `num_hypotheses` hypotheses of each sentence, best first; those with most terms come first.

    `on_candidate` is called with every candidate of every step, best first, including dropped ones.
    """
    constraints = Constraints(options, decoder.lengths, prefixes, max_positions)
    state = init_beam(constraints)
    finished: Finished = [[] for _ in state.sentence]
    while len(state.sentence):
        last = state.tokens[..., -1] if state.tokens.shape[2] else np.full(state.rows.shape, decoder.start)
        log_probs = decoder.step(state.rows, last)
        if terms is not None:
            terms.apply(log_probs, state, decoder.attention)
        candidates = best_candidates(log_probs, options.beam_size, state, constraints, terms)
        ended = collect_finished(candidates, state, options, finished, decoder.forced, terms)
        if on_candidate is not None:
            trace(candidates, ended, state, on_candidate)
        state = advance(candidates, state, options.beam_size)
    ranked = [sorted(own, key=lambda each: (-each[0], -each[1].score)) for own in finished]
    return [[hypothesis for _, hypothesis in own[: options.num_hypotheses]] for own in ranked]


def init_beam(constraints: Constraints) -> BeamState:
    """Return one empty hypothesis for each sentence."""
    count = len(constraints.limits)
    return BeamState(
        sentence=np.arange(count),
        num_finished=np.zeros(count, dtype=int),
        rows=np.arange(count)[:, None],
        tokens=np.empty((count, 1, 0), dtype=np.int64),
        totals=np.zeros((count, 1), dtype=np.float32),
        limits=constraints.limits,
        prefixes=constraints.prefixes,
    )


def best_candidates(
    log_probs: NextTokenLogProbs,
    beam_size: int,
    state: BeamState,
    constraints: Constraints,
    terms: "TermConstraint | None" = None,
) -> Candidates:
    """Return twice the beam size, so that a full beam remains even if every live hypothesis also ends."""
    width, length = state.tokens.shape[1:]
    constraints.apply(log_probs, state.tokens.reshape(state.rows.size, length), state.prefixes.repeat(width, 0))
    if terms is None:
        totals, indices = log_probs.topk(state.totals, 2 * beam_size)
    else:
        best = [log_probs.topk(group, 2 * beam_size) for group in terms.split_groups(state)]
        totals, indices = (np.concatenate(parts, 1) for parts in zip(*best, strict=True))
    if np.isnan(totals).any():
        raise ValueError("the model's logits are NaN: its parameters are damaged, or it overflowed")
    origin, token = np.divmod(indices, log_probs.vocabulary)
    candidates = Candidates(totals, origin, token, state.limits <= length + 1)
    return candidates if terms is None else terms.rank(candidates, state, 2 * beam_size)


def collect_finished(
    candidates: Candidates,
    state: BeamState,
    options: SearchOptions,
    finished: Finished,
    forced: int = 0,
    terms: "TermConstraint | None" = None,
) -> Array:
    """Collect the best `beam_size` candidates that end; at the maximum length all do. Return (N, C): which ended."""
    ended: Array = (candidates.token == EOS) | candidates.at_limit[:, None]
    ended[:, options.beam_size :] = False
    ended &= candidates.totals > IMPOSSIBLE
    for row, column in np.argwhere(ended).tolist():
        tokens, total = candidates.tokens(state, row, column).tolist(), float(candidates.totals[row, column])
        hypothesis = Hypothesis.of(tokens, total, options.length_penalty, forced)
        num_terms = int(terms.counts[row, column]) if terms else 0
        finished[state.sentence[row]].append((num_terms, hypothesis))
    counted = ended if terms is None else ended & terms.is_complete(candidates.totals)
    state.num_finished = state.num_finished + counted.sum(1)
    return ended


def trace(candidates: Candidates, ended: Array, state: BeamState, on_candidate: TraceCallback) -> None:
    """Report every candidate with a finite log-probability."""
    for row, column in np.argwhere(candidates.totals > IMPOSSIBLE).tolist():
        tokens = tuple(candidates.tokens(state, row, column).tolist())
        candidate = BeamCandidate(tokens, float(candidates.totals[row, column]), bool(ended[row, column]))
        on_candidate(int(state.sentence[row]), candidate)


def advance(candidates: Candidates, state: BeamState, beam_size: int) -> BeamState:
    """Keep the best `beam_size` unfinished candidates of the sentences that are not done."""
    is_eos = candidates.token == EOS
    unfinished_first = is_eos.argsort(axis=1, kind="stable")[:, :beam_size]  # (N, W'), best first
    sentences = np.arange(len(is_eos))[:, None]  # indexed directly: `take_along_axis` takes twice as long
    totals = np.where(is_eos, IMPOSSIBLE, candidates.totals)[sentences, unfinished_first]
    live = np.flatnonzero((state.num_finished < beam_size) & ~candidates.at_limit & (totals[:, 0] > IMPOSSIBLE))

    columns, width, rows = unfinished_first[live], state.totals.shape[1], live[:, None]
    return BeamState(
        sentence=state.sentence[live],
        num_finished=state.num_finished[live],
        rows=rows * width + candidates.origin[rows, columns],
        tokens=candidates.tokens(state, rows, columns),
        totals=totals[live],
        limits=state.limits[live],
        prefixes=state.prefixes[live],
    )


def stream_tokens(on_tokens: Callable[[Sequence[int]], None]) -> TraceCallback:
    """Return a trace callback for greedy search that reports the tokens so far at each step, without EOS."""
    length = 0

    def on_candidate(_: int, candidate: BeamCandidate) -> None:
        nonlocal length
        if len(candidate.tokens) > length:  # the first candidate of a step is the best
            length = len(candidate.tokens)
            on_tokens(candidate.tokens[:-1] if candidate.tokens[-1] == EOS else candidate.tokens)

    return on_candidate
