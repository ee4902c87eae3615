"""Terms in beam search, placed by attention: when a hypothesis attends to a source term, it may start the target term.

At each step a hypothesis that attends to a term is continued both freely and with the first token of each target form.
Hypotheses are compared with others that have as many terms (Post & Vilar 2018), so an improbable term is not pruned in
favour of a free continuation. A hypothesis that turns to other source words without its term is kept only if there is
room. Without attention a term may start anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softgaze.search.decoder import IMPOSSIBLE, Array, NextTokenLogProbs
from softgaze.special_tokens import EOS

if TYPE_CHECKING:
    from softgaze.search.beam import BeamState, Candidates

MIN_ATTENTION = 0.3  # to a source term, of all attention of a step, with which its target may start
MAX_TERMS = 62  # of one source: they are bits of an integer
MISSED = 1 << 20  # added to the rank of a hypothesis that turned away from a term


class SourceTerm(NamedTuple):
    """A term in the tokens of a source."""

    positions: tuple[int, ...]  # of its source tokens
    forms: tuple[tuple[int, ...], ...]  # target tokens
    first_forms: tuple[tuple[int, ...], ...] = ()  # those at the start of a target, if they differ
    is_whole_word: bool = True  # the next token starts a word; False where particles or words follow without a space


@dataclass
class Node:
    """A node of the trie of a term's forms."""

    term: int  # index in its sentence
    children: dict[int, int] = field(default_factory=dict)  # token -> node
    is_end: bool = False


class TermConstraint:
    """The terms of one batch; the state of all rows of the last step."""

    def __init__(self, terms: Sequence[Sequence[SourceTerm]], inside_word: Array) -> None:
        self.terms = [own[:MAX_TERMS] for own in terms]
        is_spaced = all(term.is_whole_word for own in terms for term in own)
        self.inside_word = inside_word & is_spaced  # (V,) whether a token continues a word
        self.nodes = [Node(0)]  # node 0: in no term
        self.roots = [[self._trie(k, term.forms) for k, term in enumerate(own)] for own in self.terms]
        self.first_roots = [
            [self._trie(k, term.first_forms or term.forms) for k, term in enumerate(own)] for own in self.terms
        ]
        rows = len(self.terms)
        self.met = np.zeros(rows, np.int64)  # (R,) bits of the terms in each row
        self.met_at_boundary = self.met  # the same, if the next token starts a word
        self.missed = self.met  # (R,) bits of terms that a row turned away from
        self.attended = self.met  # (R,) bits of the terms that a row attends to
        self.node = np.zeros(rows, np.int64)  # (R,) the term that a row is in
        self.continuations: dict[tuple[int, int], int] = {}  # (row, token) of a started term -> node
        self.counts = np.zeros((rows, 1), np.int64)  # (N, C) terms of each candidate

    def _trie(self, term: int, forms: Sequence[Sequence[int]]) -> int:
        root = len(self.nodes)
        self.nodes.append(Node(term))
        for form in forms:
            at = root
            for token in form:
                if token not in self.nodes[at].children:
                    self.nodes[at].children[token] = len(self.nodes)
                    self.nodes.append(Node(term))
                at = self.nodes[at].children[token]
            self.nodes[at].is_end = at != root
        return root

    # --- one step

    def apply(self, log_probs: NextTokenLogProbs, state: "BeamState", attention: Array | None) -> None:
        """Update the state of the rows; force the rest of started terms, and find the tokens that may start one."""
        if state.tokens.shape[2]:
            self._read(state)
        self._attend(state, attention)
        self.continuations = self._find_continuations(state)
        inside = np.flatnonzero(self.node)
        at_end = np.array([row for row in inside if self.nodes[self.node[row]].is_end], np.int64)
        if self.continuations:
            rows, tokens = np.array([*self.continuations]).T
            self.started = log_probs.gather(rows, tokens)
            log_probs.forbid_in(rows, tokens)
        log_probs.forbid_rows(np.setdiff1d(inside, at_end))
        tokens = np.flatnonzero(self.inside_word)
        log_probs.forbid_in(at_end.repeat(len(tokens)), np.tile(tokens, len(at_end)))

    def _read(self, state: "BeamState") -> None:
        """Read the last token of each row."""
        rows, last = state.rows.ravel(), state.tokens[..., -1].ravel()
        self.met = np.where(self.inside_word[last], self.met[rows], self.met_at_boundary[rows])
        self.missed, self.attended = self.missed[rows], self.attended[rows]
        self.node = np.array(
            [self.continuations.get(pair, 0) for pair in zip(rows.tolist(), last.tolist(), strict=True)]
        )
        self.met_at_boundary = self.met.copy()
        width = state.rows.shape[1]
        for line, sentence in enumerate(state.sentence.tolist()):
            block = slice(line * width, (line + 1) * width)
            if self.terms[sentence]:
                self._match_tails(block, sentence, state.tokens[line])

    def _match_tails(self, block: slice, sentence: int, tokens: Array) -> None:
        """Find the terms that the rows of one sentence just completed, whether they were forced or not."""
        node, met = self.node[block], self.met_at_boundary[block]
        ended = np.array([self.nodes[one].is_end for one in node])
        met |= np.where(ended, 1 << np.array([self.nodes[one].term for one in node]), 0)
        free = node == 0
        for k, term in enumerate(self.terms[sentence]):
            for form in {*term.forms, *term.first_forms}:
                if len(form) > tokens.shape[1]:
                    continue
                hit = free & (met >> k & 1 == 0) & (tokens[:, -len(form) :] == form).all(1)
                met |= hit.astype(np.int64) << k
                free &= ~hit

    def _attend(self, state: "BeamState", attention: Array | None) -> None:
        """Find the terms that rows attend to, and those that they turned away from."""
        width, before = state.rows.shape[1], self.attended
        if attention is None:
            self.attended = np.full(state.rows.size, -1)
            return
        self.attended = np.zeros(state.rows.size, np.int64)
        for line, sentence in enumerate(state.sentence.tolist()):
            block = slice(line * width, (line + 1) * width)
            for k, term in enumerate(self.terms[sentence]):
                weights = attention[block][:, list(term.positions)].sum(1)
                self.attended[block] |= (weights >= MIN_ATTENTION).astype(np.int64) << k
        self.missed = (self.missed | before & ~self.attended) & ~self.met_at_boundary & ~self._in_term()

    def _in_term(self) -> Array:
        """Return (R,) the bit of the term that each row is in."""
        terms = np.array([self.nodes[one].term for one in self.node])
        return np.where(self.node > 0, 1 << terms, 0)

    def _find_continuations(self, state: "BeamState") -> dict[tuple[int, int], int]:
        """Return the tokens with which rows continue or start a term."""
        width, found = state.rows.shape[1], {}
        roots = self.roots if state.tokens.shape[2] else self.first_roots
        position = state.tokens.shape[2]
        for row in range(state.rows.size):
            line = row // width
            sentence, node = int(state.sentence[line]), self.nodes[self.node[row]]
            if position < state.prefixes.shape[1] and state.prefixes[line, position] >= 0:
                continue
            children = dict(node.children) if self.node[row] else {}
            if not self.node[row] or node.is_end:
                waiting = int(self.attended[row] & ~self.met_at_boundary[row])
                for k, root in enumerate(roots[sentence]):
                    if waiting >> k & 1:
                        children = {**self.nodes[root].children, **children}
            found.update({(row, token): child for token, child in children.items()})
        return found

    # --- candidates

    def split_groups(self, state: "BeamState") -> list[Array]:
        """Return the totals (N, W) of the n-th group of each sentence, −inf elsewhere.

        The rows of a group have as many terms; of several groups, none hides the others.
        """
        groups = (np.bitwise_count(self.met_at_boundary).astype(np.int64) - MISSED * self._num_missed()).reshape(
            state.rows.shape
        )
        ordered = np.sort(groups, axis=1)[:, ::-1]
        is_new = np.concatenate([np.ones((len(groups), 1), bool), ordered[:, 1:] != ordered[:, :-1]], 1)
        found = []
        for nth in range(int(is_new.sum(1).max())):
            own = np.where(is_new & (is_new.cumsum(1) == nth + 1), ordered, -MISSED * MISSED).max(1, keepdims=True)
            found.append(np.where(groups == own, state.totals, IMPOSSIBLE).astype(state.totals.dtype))
        return found

    def _num_missed(self) -> Array:
        missed: Array = np.bitwise_count(self.missed).astype(np.int64)
        return missed

    def rank(self, candidates: "Candidates", state: "BeamState", size: int) -> "Candidates":
        """Add the continuations of terms, and return the best `size` candidates; groups take turns."""
        lines, columns = candidates.totals.shape
        width = state.rows.shape[1]
        extra: list[list[tuple[float, int, int, int]]] = [[] for _ in range(lines)]
        for (row, token), log_prob in zip(self.continuations, self.started if self.continuations else (), strict=True):
            line, origin = divmod(row, width)
            total = float(state.totals[line, origin] + log_prob)
            extra[line].append((total, origin, token, self.nodes[self.continuations[row, token]].term))
        most = max(map(len, extra))
        padded = [own + [(IMPOSSIBLE, 0, EOS, 0)] * (most - len(own)) for own in extra]
        table = np.array(padded, np.float64).reshape(lines, most, 4)
        totals = np.concatenate([candidates.totals, table[..., 0].astype(candidates.totals.dtype)], 1)
        origins, tokens = (
            np.concatenate([one, table[..., at].astype(np.int64)], 1)
            for at, one in ((1, candidates.origin), (2, candidates.token))
        )
        rows = np.arange(lines)[:, None] * width + origins
        met = self.met_at_boundary[rows]
        met[:, columns:] |= 1 << table[..., 3].astype(np.int64)
        counts = np.bitwise_count(met).astype(np.int64)
        order = turns(totals, counts, self._num_missed()[rows])[:, :size]
        index = np.arange(lines)[:, None]
        self.counts = counts[index, order]
        return type(candidates)(totals[index, order], origins[index, order], tokens[index, order], candidates.at_limit)

    def is_complete(self, totals: Array) -> Array:
        """Return (N, C) whether a candidate has as many terms as any other candidate of its sentence."""
        most = np.where(totals > IMPOSSIBLE, self.counts, 0).max(1, keepdims=True)
        complete: Array = self.counts >= most
        return complete


def turns(totals: Array, met: Array, missed: Array) -> Array:
    """Return (N, C) an order in which groups with as many terms take turns, each with its best candidate first."""
    groups = met - MISSED * missed
    rank = np.empty(totals.shape, np.int64)
    for line in range(len(totals)):
        by_total = np.argsort(-totals[line], kind="stable")
        for group in np.unique(groups[line]):
            members = by_total[groups[line][by_total] == group]
            rank[line, members] = np.arange(len(members))
    rank += MISSED * (missed + (totals == IMPOSSIBLE) * MISSED)
    return np.lexsort((-groups, rank), axis=-1)
