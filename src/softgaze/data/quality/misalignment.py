"""Find ranges of lines that are shifted against their translations, without a dictionary.

1. Words are hashed by prefix and get a vector from the pairs they occur in (random projection), so a word and its
   translation, which occur in the same pairs, get similar vectors. Lines are scored with vectors learned from the other
   half of the corpus; otherwise a shifted range would score high by its own rare words.
2. A logistic regression on similarity, shared names and numbers, length ratio and final punctuation separates pairs as
   they are from pairs a few lines apart. Its log odds are the evidence that source line n translates target line n + k.
3. A Viterbi path through all offsets k, with a cost per change of offset, gives the shifted ranges.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softgaze.data.quality.rules import Array, Lines, Window, log_ratio

# --- vectors of words and lines ---------------------------------------------------------------------------------

_WIDTH, _NAME_WIDTH, _NUMBER_WIDTH = 64, 64, 16
_VOCABULARY = 30_000


def overlap(rows: int, others: int, shift: int) -> tuple[slice, slice]:
    """Return which of `rows` have a partner `shift` further on among `others`, and which these partners are."""
    first, last = max(0, -shift), max(0, -shift, min(rows, others - shift))
    return slice(first, last), slice(first + shift, last + shift)


class SampleBlock(NamedTuple):
    """Consecutive rows to learn from, with the offset at which their targets are assumed to be."""

    fold: int  # half of the corpus, 0 or 1
    source: Lines
    targets: Lines  # with context on both sides
    left: int  # context lines before the first row
    offsets: Array  # candidates
    offset: int

    def spans(self, offset: int) -> tuple[slice, slice]:
        """Return which sources have a target at `offset`, and which targets these are."""
        return overlap(len(self.source.length), len(self.targets.length), self.left + offset)


class WordVectors:
    """Vectors of the words of both sides, learned once from each half of the sample."""

    def __init__(self, sample: list[SampleBlock]) -> None:
        folds: list[list[tuple[Lines, Lines]]] = [[], []]
        for block in sample:
            here, there = block.spans(block.offset)
            folds[block.fold].append((block.source.select(here), block.targets.select(there)))
        self.pairs = sum(len(source.length) for pairs in folds for source, _ in pairs)
        self.vocabulary: list[Array] = []
        self.rarity: list[Array] = []
        for side in (0, 1):
            tokens = np.concatenate([pair[side].token for pairs in folds for pair in pairs])
            words, counts = np.unique(tokens, return_counts=True)
            keep = (counts >= 3) & (counts < 0.3 * self.pairs)
            smallest = np.sort(counts[keep])[-_VOCABULARY:][:1]
            keep &= counts >= (smallest[0] if len(smallest) else 1)
            self.vocabulary.append(words[keep])
            self.rarity.append(np.log(self.pairs / counts[keep]))
        self.vectors = [[self._learn([pair[side] for pair in pairs], side) for side in (0, 1)] for pairs in folds]

    def _learn(self, blocks: list[Lines], side: int) -> Array:
        """Sum the random codes of the pairs that a word occurs in, minus the expectation for its frequency."""
        sizes = [len(lines.length) for lines in blocks]
        first_rows, pairs, words = np.cumsum([0, *sizes]), sum(sizes), len(self.vocabulary[side])
        rng = np.random.default_rng(0)  # equal codes on both sides bring translations together
        columns, signs = rng.integers(0, _WIDTH, (pairs, 4)), rng.choice(np.array([-1.0, 1.0]), (pairs, 4))
        vectors, counts = np.zeros(words * _WIDTH), np.zeros(words)
        for start in range(0, len(blocks), 32):  # a compromise between time and memory
            word_indices, rows = [], []
            for lines, first_row in zip(blocks[start : start + 32], first_rows[start:], strict=False):
                known, index = self.lookup(lines, side)
                word_indices.append(index)
                rows.append(lines.token_line[known] + first_row)
            word, row = np.concatenate(word_indices), np.concatenate(rows)
            flat = (word[:, None] * _WIDTH + columns[row]).ravel()
            vectors += np.bincount(flat, signs[row].ravel(), minlength=len(vectors))
            counts += np.bincount(word, minlength=words)
        total = np.bincount(columns.ravel(), signs.ravel(), minlength=_WIDTH)
        centred = vectors.reshape(words, _WIDTH) - counts[:, None] / max(1, pairs) * total
        return np.asarray(_normalize(centred) * self.rarity[side][:, None], np.float32)

    def lookup(self, lines: Lines, side: int) -> tuple[Array, Array]:
        """Return the positions of known tokens, and their indices in the vocabulary."""
        vocabulary = self.vocabulary[side]
        if not len(vocabulary):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        index = np.minimum(np.searchsorted(vocabulary, lines.token), len(vocabulary) - 1)
        known = np.flatnonzero(vocabulary[index] == lines.token)
        return known, index[known]

    def embed(self, lines: Lines, side: int, fold: int) -> Array:
        """Return the normalised sum of word vectors of each line, learned from the other fold."""
        known, word = self.lookup(lines, side)
        total = np.zeros((len(lines.length), _WIDTH), np.float32)
        if len(known):
            line = lines.token_line[known]
            firsts = np.flatnonzero(np.diff(line, prepend=-1))
            total[line[firsts]] = np.add.reduceat(self.vectors[1 - fold][side][word], firsts, axis=0)
        return _normalize(total)


def _normalize(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True)))


def _hash_vectors(tokens: Array, lines: Array, count: int, width: int) -> Array:
    """Return a unit vector per line from the hashes of its tokens: equal tokens give equal entries."""
    column, sign = (tokens >> np.uint64(40)) % np.uint64(width), 1.0 - 2.0 * ((tokens >> np.uint64(63)) > 0)
    flat = lines * width + column.astype(np.int64)
    return _normalize(np.bincount(flat, sign, minlength=count * width).reshape(count, width).astype(np.float32))


class LineVectors(NamedTuple):
    """The properties that are compared between source and target lines, a row per line."""

    meaning: Array  # unit vectors of `WordVectors`
    names: Array  # unit vectors of the spelling of words
    numbers: Array  # unit vectors of the spelling of numbers, zero without any
    length: Array
    final_punctuation: Array

    @classmethod
    def of(cls, lines: Lines, words: WordVectors, side: int, fold: int) -> "LineVectors":
        """Compute the vectors of some lines of one side."""
        count, is_number = len(lines.length), lines.token_is_number
        return cls(
            words.embed(lines, side, fold),
            _hash_vectors(lines.token[~is_number], lines.token_line[~is_number], count, _NAME_WIDTH),
            _hash_vectors(lines.token[is_number], lines.token_line[is_number], count, _NUMBER_WIDTH),
            lines.length,
            lines.final_punctuation,
        )

    def select(self, rows: slice) -> "LineVectors":
        return LineVectors(*(values[rows] for values in self))


# --- evidence for each offset -----------------------------------------------------------------------------------

MAX_OFFSET = 5
SCALE = 32  # evidence is stored as int8 in 1/32 nat, so it is clipped at ±3.97 and no line outvotes all others
_WEAK, MIN_POWER = 1.0, 0.4  # nats between correct and wrong pairs; corpora of real text have 2 to 8
_NEIGHBOURS = np.array([offset for offset in range(-MAX_OFFSET, MAX_OFFSET + 1) if offset])


def _compare(source: LineVectors, target: LineVectors, ratio: float, spread: float) -> Array:
    """Return the inputs (n, 13) of the regression for n pairs."""
    meaning, names, numbers = (np.einsum("nd,nd->n", a, b) for a, b in zip(source[:3], target[:3], strict=True))
    known = source.meaning.any(axis=1) & target.meaning.any(axis=1)
    source_numbers, target_numbers = source.numbers.any(axis=1), target.numbers.any(axis=1)
    deviation = np.minimum(4.0, np.abs(log_ratio(source.length, target.length) - ratio) / spread)
    same_end = (source.final_punctuation == target.final_punctuation) & (source.final_punctuation > 0)
    brevity = 10 / (10 + np.minimum(source.length, target.length))  # short lines carry less evidence
    columns = [np.ones(len(meaning)), meaning, np.maximum(0.0, meaning) ** 2, known, brevity, brevity * meaning, names]
    columns += [numbers, source_numbers & target_numbers, source_numbers ^ target_numbers]
    columns += [deviation, deviation**2, same_end]
    return np.stack(columns, axis=1).astype(np.float64)


def _logistic_regression(positive: Array, negative: Array) -> Array:
    """Fit by Newton's method with a small ridge penalty; both classes have equal weight."""
    sizes = [len(positive), len(negative)]
    inputs = np.concatenate([positive, negative])
    labels = np.repeat([1.0, 0.0], sizes)
    weights = np.repeat([0.5 / sizes[0], 0.5 / sizes[1]], sizes) * len(inputs)
    parameters, ridge = np.zeros(inputs.shape[1]), np.eye(inputs.shape[1])
    for _ in range(12):
        predicted = 1 / (1 + np.exp(-np.clip(inputs @ parameters, -30, 30)))
        gradient = inputs.T @ (weights * (labels - predicted)) - ridge @ parameters
        hessian = (inputs * (weights * predicted * (1 - predicted))[:, None]).T @ inputs + ridge
        parameters += np.linalg.solve(hessian, gradient)
    return parameters


class PairScorer:
    """Log odds that a source line and a target line are translations, learned from the corpus itself."""

    def __init__(self, sample: list[SampleBlock], words: WordVectors, ratio: float, spread: float) -> None:
        self.words, self.ratio, self.spread = words, ratio, spread
        positive, negative = [], []
        rng = np.random.default_rng(0)
        rows = sum(len(block.source.length) for block in sample)
        for block in sample[:: max(1, rows // 20_000)]:
            source = LineVectors.of(block.source, words, 0, block.fold)
            targets = LineVectors.of(block.targets, words, 1, block.fold)
            positive.append(self._inputs(block, source, targets, block.offset))
            for offset in rng.choice(_NEIGHBOURS, 2).tolist():
                negative.append(self._inputs(block, source, targets, block.offset + offset))
        inputs = np.concatenate(positive), np.concatenate(negative)
        self.parameters = _logistic_regression(*inputs)
        # The mean difference in nats between correct and wrong pairs.
        self.power = float((inputs[0] @ self.parameters).mean() - (inputs[1] @ self.parameters).mean())

    @classmethod
    def learn(cls, sample: list[SampleBlock], ratio: float, spread: float) -> "PairScorer":
        """Learn from the pairs as they are; if that fails, the whole corpus may be shifted: try other offsets."""
        best = cls(*_align_blocks(sample), ratio, spread)
        if best.power >= _WEAK:
            return best
        few = sample[:: max(1, sum(len(block.source.length) for block in sample) // 20_000)]
        for offset in _NEIGHBOURS.tolist():
            shifted = [block._replace(offset=offset) for block in few]
            if cls(shifted, WordVectors(shifted), ratio, spread).power > max(_WEAK, best.power):
                everywhere = [block._replace(offset=offset) for block in sample]
                best = max(best, cls(*_align_blocks(everywhere), ratio, spread), key=lambda scorer: scorer.power)
        return best

    def _inputs(self, block: SampleBlock, source: LineVectors, targets: LineVectors, offset: int) -> Array:
        here, there = block.spans(offset)
        both = ~block.source.blank[here] & ~block.targets.blank[there]
        return _compare(source.select(here), targets.select(there), self.ratio, self.spread)[both]

    def evidence(self, window: Window, fold: int, offsets: Array) -> tuple[Array, Lines, Lines]:
        """Return the evidence of each row at each offset as int8, and the features of sources and targets.

        The last offset is `NO_MATCH`, whose evidence is always zero.
        """
        source, targets = window.measure()
        vectors = [LineVectors.of(lines, self.words, side, fold) for side, lines in enumerate((source, targets))]
        count = len(window.rows)
        evidence = np.zeros((count, len(offsets)), np.int8)
        for column, offset in enumerate(offsets[:-1].tolist()):
            here, there = overlap(count, len(window.targets_in_context), window.left + offset)
            both = ~source.blank[here] & ~targets.blank[there]
            inputs = _compare(vectors[0].select(here), vectors[1].select(there), self.ratio, self.spread)
            evidence[here, column] = np.rint(np.clip(inputs @ self.parameters * both * SCALE, -127, 127))
        return evidence, source, targets.select(slice(window.left, window.left + count))


def _align_blocks(sample: list[SampleBlock]) -> tuple[list[SampleBlock], WordVectors]:
    """Alternate between learning vectors and moving blocks to their best offset, for mostly shifted corpora."""
    words = WordVectors(sample)
    for _ in range(4):
        moved = [block._replace(offset=_best_offset(block, words)) for block in sample]
        if all(new.offset == old.offset for new, old in zip(moved, sample, strict=True)):
            break
        sample, words = moved, WordVectors(moved)
    return sample, words


def _best_offset(block: SampleBlock, words: WordVectors) -> int:
    """Return the offset of the highest mean similarity."""
    source = LineVectors.of(block.source, words, 0, block.fold)
    targets = LineVectors.of(block.targets, words, 1, block.fold)
    similarity: dict[int, float] = {}
    for offset in block.offsets.tolist():
        here, there = block.spans(offset)
        products = sum(np.einsum("nd,nd->n", a[here], b[there]) for a, b in zip(source[:3], targets[:3], strict=True))
        enough = here.stop - here.start >= len(block.source.length) // 2
        similarity[offset] = float(np.mean(products)) if enough else 0.0
    return max(similarity, key=lambda offset: similarity[offset])


# --- shifted ranges ---------------------------------------------------------------------------------------------

NO_MATCH = 1 << 20  # pseudo-offset: no close target line fits
_SWITCH_COST = 12.0  # nats: random evidence gains that much once in 160,000 tries
_MIN_GAIN, _MIN_EXPECTED_GAIN = 30.0, 10.0  # nats per range; less at the end of files of different length
_MIN_UNMATCHED = 20  # rows
SEARCH_ROWS, _SEARCH_MARGIN = 8, 60  # rows over which another offset must score higher to start a search; its margin


class Shift(NamedTuple):
    """Rows [start, stop) whose source lines fit the target lines `offset` further on, or no line."""

    start: int
    stop: int
    offset: int
    confident: bool  # the pairs at that offset score as high as usual in the corpus


def _suspicious_ranges(evidence: Array, home: int) -> list[tuple[int, int]]:
    """Return the ranges in which another offset scores higher for a few rows; only these are searched."""
    rows, marks = len(evidence), np.zeros(len(evidence) + 1, np.int64)
    for start in range(0, rows, 1 << 16):
        block = evidence[start : start + (1 << 16) + SEARCH_ROWS].astype(np.int32)
        cumulative = np.cumsum(np.concatenate([block[:1] * 0, block - block[:, [home]]]), axis=0)
        better = np.flatnonzero((cumulative[SEARCH_ROWS:] - cumulative[:-SEARCH_ROWS]).max(axis=1, initial=0) > 0)
        better += start
        marks += np.bincount(np.maximum(0, better - _SEARCH_MARGIN), minlength=rows + 1)
        marks -= np.bincount(np.minimum(rows, better + SEARCH_ROWS + _SEARCH_MARGIN), minlength=rows + 1)
    inside = np.concatenate([[False], np.cumsum(marks)[:rows] > 0, [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]


def _viterbi(evidence: Array, start_cost: Array, end_cost: Array) -> Array:
    """Return the best offset column of each row."""
    states = np.arange(evidence.shape[1])
    back_pointers = np.empty(evidence.shape, np.int8)
    score, nats = -start_cost, evidence / SCALE
    for row in range(len(evidence)):
        best = int(score.argmax())
        switched = score[best] - _SWITCH_COST
        back_pointers[row] = np.where(score >= switched, states, best)
        score = np.maximum(score, switched) + nats[row]
    path = np.empty(len(evidence), np.int64)
    state = int((score - end_cost).argmax())
    for row in range(len(evidence) - 1, -1, -1):
        path[row], state = state, back_pointers[row, state]
    return path


def find_shifts(evidence: Array, offsets: Array, difference: int) -> list[Shift]:
    """Return the ranges where another offset is clearly better.

    `difference` is the number of additional target lines: files of different length end at that offset.
    """
    home = int(np.flatnonzero(offsets == 0)[0])
    usual = float(evidence[:, home].mean()) / SCALE if len(evidence) else 0.0
    shifts: list[Shift] = []
    for low, high in _suspicious_ranges(evidence, home):
        switch = np.where(offsets == 0, 0.0, _SWITCH_COST)
        forbidden = np.where(offsets == 0, 0.0, np.inf)
        end_cost = np.where(offsets == difference, 0.0, switch) if high == len(evidence) else forbidden
        path = _viterbi(evidence[low:high], switch if low == 0 else forbidden, end_cost)
        edges = np.flatnonzero(np.diff(path, prepend=-1, append=-1))
        for start, stop in pairwise((edges + low).tolist()):
            column = int(path[start - low])
            expected = stop == len(evidence) and difference != 0 and offsets[column] == difference
            min_gain = _MIN_EXPECTED_GAIN if expected else _MIN_GAIN
            shift = _significant_shift(evidence[start:stop], start, column, offsets, usual, min_gain)
            if shift is None:
                continue
            last = shifts[-1] if shifts else None
            if last and last.offset == shift.offset and shift.start - last.stop <= _SEARCH_MARGIN:
                shift = Shift(last.start, shift.stop, shift.offset, last.confident and shift.confident)
                shifts.pop()  # only a few rows separate the two ranges
            shifts.append(shift)
    return shifts


def _significant_shift(
    evidence: Array, start: int, column: int, offsets: Array, usual: float, min_gain: float
) -> Shift | None:
    offset, stop = int(offsets[column]), start + len(evidence)
    there, here = (evidence[:, index].astype(np.float64).ravel() / SCALE for index in (column, offsets == 0))
    gain, mean = float((there - here).sum()), float(there.mean())
    if offset == NO_MATCH:
        significant = gain >= 2 * min_gain and len(evidence) >= _MIN_UNMATCHED
        return Shift(start, stop, offset, False) if significant else None
    if offset == 0 or gain < min_gain or mean <= 0.25:
        return None
    return Shift(start, stop, offset, mean > 0.5 * max(usual, 0.5))
