"""Log odds that a source line belongs with a target line some lines on, learned from the corpus itself.

Knows lines and offsets; nothing about ranges: each line is scored on its own.
"""

import numpy as np

from softgaze.data.doctor.characters import Array
from softgaze.data.doctor.likeness import Clues, Lexicon, Piece, clues_of, overlap
from softgaze.data.doctor.lines import Lines, Window, measure
from softgaze.data.doctor.survey import log_ratio

REACH = 5  # offsets from -5 to +5 are compared
SCALE = 32  # evidence is kept as whole 1/32 of a nat, from -3.97 to 3.97: one byte, and no line shouts down the others
_WEAK, UNRELATED = 1.0, 0.4  # nats by which a right pair beats a wrong one: real corpora have 2 to 8

_NEIGHBOURS = np.array([offset for offset in range(-REACH, REACH + 1) if offset])


def _compare(source: Clues, target: Clues, ratio: float, spread: float) -> Array:
    """Turn the clues of n source and n target lines into (n, 13) numbers for the regression."""
    meaning, anchors, numbers = (np.einsum("nd,nd->n", a, b) for a, b in zip(source[:3], target[:3], strict=True))
    known = source.meaning.any(axis=1) & target.meaning.any(axis=1)
    counted = [clues.numbers.any(axis=1) for clues in (source, target)]
    off = np.minimum(4.0, np.abs(log_ratio(source.length, target.length) - ratio) / spread)
    ends_alike = (source.ending == target.ending) & (source.ending > 0)
    brief = 10 / (10 + np.minimum(source.length, target.length))  # a short line says less, whatever it says
    columns = [np.ones(len(meaning)), meaning, np.maximum(0.0, meaning) ** 2, known, brief, brief * meaning, anchors]
    columns += [numbers, counted[0] & counted[1], counted[0] ^ counted[1], off, off**2, ends_alike]
    return np.stack(columns, axis=1).astype(np.float64)


def _regress(right: Array, wrong: Array) -> Array:
    """Fit a logistic regression by Newton's method, with a little ridge; both classes weigh the same."""
    inputs = np.concatenate([right, wrong])
    answers = np.repeat([1.0, 0.0], [len(right), len(wrong)])
    weight = np.repeat([0.5 / len(right), 0.5 / len(wrong)], [len(right), len(wrong)]) * len(inputs)
    parameters, ridge = np.zeros(inputs.shape[1]), np.eye(inputs.shape[1])
    for _ in range(12):
        guess = 1 / (1 + np.exp(-np.clip(inputs @ parameters, -30, 30)))
        slope = inputs.T @ (weight * (answers - guess)) - ridge @ parameters
        curve = (inputs * (weight * guess * (1 - guess))[:, None]).T @ inputs + ridge
        parameters += np.linalg.solve(curve, slope)
    return parameters


class Scorer:
    """Log odds that a source line and a target line belong together, learned from the corpus itself."""

    def __init__(self, sample: list[Piece], lexicon: Lexicon, ratio: float, spread: float) -> None:
        self.lexicon, self.ratio, self.spread = lexicon, ratio, spread
        right, wrong = [], []
        chance = np.random.default_rng(0)
        rows = sum(len(piece.source.length) for piece in sample)
        for piece in sample[:: max(1, rows // 20_000)]:
            source, reached = (clues_of(lines, lexicon, side, piece.fold) for side, lines in enumerate(piece[1:3]))
            right.append(self._features(piece, source, reached, piece.offset))
            for offset in chance.choice(_NEIGHBOURS, 2).tolist():
                wrong.append(self._features(piece, source, reached, piece.offset + offset))
        features = np.concatenate(right), np.concatenate(wrong)
        self.parameters = _regress(*features)
        # How many nats better a right pair looks than a wrong one.
        self.power = float((features[0] @ self.parameters).mean() - (features[1] @ self.parameters).mean())

    def _features(self, piece: Piece, source: Clues, reached: Clues, offset: int) -> Array:
        here, there = piece.spans(offset)
        both = ~piece.source.blank[here] & ~piece.reached.blank[there]
        return _compare(source.cut(here), reached.cut(there), self.ratio, self.spread)[both]

    def evidence(self, source: Clues, target: Clues) -> Array:
        """Score n source lines against n target lines, in nats."""
        return np.asarray(_compare(source, target, self.ratio, self.spread) @ self.parameters)


def _best_offset(piece: Piece, lexicon: Lexicon) -> int:
    """Where the targets of a piece stand, by likeness alone."""
    source, reached = (clues_of(lines, lexicon, side, piece.fold) for side, lines in enumerate(piece[1:3]))
    likeness: dict[int, float] = {}
    for offset in piece.offsets.tolist():
        here, there = piece.spans(offset)
        alike = sum(np.einsum("nd,nd->n", a[here], b[there]) for a, b in zip(source[:3], reached[:3], strict=True))
        likeness[offset] = float(np.mean(alike)) if here.stop - here.start >= len(piece.source.length) // 2 else 0.0
    return max(likeness, key=lambda offset: likeness[offset])


def _settle(sample: list[Piece]) -> tuple[list[Piece], Lexicon]:
    """Learn a lexicon, move each piece to where it fits best by it, and again: for corpora that are mostly shifted."""
    lexicon = Lexicon(sample)
    for _ in range(4):
        moved = [piece._replace(offset=_best_offset(piece, lexicon)) for piece in sample]
        if all(new.offset == old.offset for new, old in zip(moved, sample, strict=True)):
            break
        sample, lexicon = moved, Lexicon(moved)
    return sample, lexicon


def learn_scorer(sample: list[Piece], ratio: float, spread: float) -> Scorer:
    """Learn from pairs as they stand; if nothing goes together there, the corpus may be shifted as a whole: look on."""
    best = Scorer(*_settle(sample), ratio, spread)
    if best.power >= _WEAK:
        return best
    few = sample[:: max(1, sum(len(piece.source.length) for piece in sample) // 20_000)]
    for offset in _NEIGHBOURS.tolist():
        tried = [piece._replace(offset=offset) for piece in few]
        if Scorer(tried, Lexicon(tried), ratio, spread).power > max(_WEAK, best.power):
            everywhere = [piece._replace(offset=offset) for piece in sample]
            best = max(best, Scorer(*_settle(everywhere), ratio, spread), key=lambda scorer: scorer.power)
    return best


def gather(scorer: Scorer, window: Window, fold: int, offsets: Array) -> tuple[Array, Lines, Lines]:
    """Score each row of a window at each offset, as bytes; both sides measured come along."""
    source, reached = measure(window.sources), measure([target or "" for target in window.reached])
    clues = [clues_of(lines, scorer.lexicon, side, fold) for side, lines in enumerate((source, reached))]
    count = len(window.rows)
    evidence = np.zeros((count, len(offsets)), np.int8)
    for column, offset in enumerate(offsets[:-1].tolist()):
        here, there = overlap(count, len(window.reached), window.left + offset)
        seen = ~source.blank[here] & ~reached.blank[there]
        nats = scorer.evidence(clues[0].cut(here), clues[1].cut(there)) * seen
        evidence[here, column] = np.rint(np.clip(nats * SCALE, -127, 127))
    return evidence, source, reached.cut(slice(window.left, window.left + count))
