"""The HMM of word alignment (Vogel 1996): a target part is translated from a source part near the previous one.

Both directions are trained to agree (Liang 2006): the expected links are a power of the product of their posteriors.
"""

from dataclasses import dataclass, field

import numpy as np

from softgaze.alignment.cooccurrence import Floats, Ids, Values, sum_by_id

MAX_JUMP = 15  # longer jumps count as this
JUMPS = 2 * MAX_JUMP + 1
UNALIGNED = 0.2  # prior probability that a part has no link


@dataclass
class JumpCounts:
    """Expected jumps by distance, and how many positions at that distance there were to jump to.

    Their ratio is the weight of a position, which is the same in short and in long sentences. Sentences of six words
    have few long jumps because they have few distant positions.
    """

    made: Floats = field(default_factory=lambda: np.zeros(JUMPS))
    possible: Floats = field(default_factory=lambda: np.zeros(JUMPS))

    def add(self, index: Ids, jumps: Values) -> None:
        """Add expected jumps (previous position, position)."""
        self.made += sum_by_id(index.ravel(), jumps.ravel(), JUMPS)
        leaving = np.broadcast_to(jumps.sum(1, keepdims=True), jumps.shape)
        self.possible += sum_by_id(index.ravel(), leaving.ravel(), JUMPS)

    def weights(self) -> Floats:
        """Return the weight of a position by its distance, none of them 0."""
        weights: Floats = (self.made + 1e-3) / (self.possible + 1.0)
        weights /= weights.sum()
        return weights


def jump_index(size: int) -> Ids:
    """Return (previous, position) -> index of the jump; the first row is the start, the last column the end."""
    previous, positions = np.arange(-1, size), np.arange(size + 1)
    index: Ids = np.clip(positions[None, :] - previous[:, None], -MAX_JUMP, MAX_JUMP) + MAX_JUMP
    return index


def ibm1_posteriors(lifts: Values) -> Values:
    """Return link posteriors (B, T, S) if all positions are equally likely."""
    scores = lifts * np.float32((1 - UNALIGNED) / lifts.shape[2])
    posteriors: Values = scores / (scores.sum(2, keepdims=True) + np.float32(UNALIGNED))
    return posteriors


def hmm_posteriors(lifts: Values, jumps: Floats, counts: JumpCounts | None = None) -> Values:
    """Return link posteriors (B, T, S) by forward–backward; add the expected jumps to `counts`.

    The path starts before the first position and ends behind the last. An unaligned part keeps the position, so a state
    is a position with or without a link.
    """
    batch, length, size = lifts.shape
    index = jump_index(size)
    weights = jumps[index]
    inner = weights[1:, :-1]
    transition = (inner / inner.sum(1, keepdims=True)).astype(np.float32)  # (S, S)
    first, last = (edge / edge.sum() for edge in (weights[0, :-1], weights[1:, -1]))
    linked, kept = np.float32(1 - UNALIGNED), np.float32(UNALIGNED)
    forward = np.empty((length, 2, batch, size), np.float32)  # with a link, without
    state = np.broadcast_to(first.astype(np.float32), (batch, size))
    for step in range(length):
        moved = state @ transition if step else state
        np.multiply(moved * linked, lifts[:, step], out=forward[step, 0])
        np.multiply(state, kept, out=forward[step, 1])
        forward[step] /= forward[step].sum((0, 2))[:, None]
        state = forward[step].sum(0)
    posteriors = np.empty_like(lifts)
    backward = np.broadcast_to(last.astype(np.float32), (batch, size))
    for step in range(length - 1, -1, -1):
        joint = forward[step] * backward
        posteriors[:, step] = joint[0] / joint.sum((0, 2))[:, None]
        if step:
            before = forward[step - 1].sum(0)
            emitted = lifts[:, step] * backward * linked  # (B, S)
            earlier = emitted @ transition.T + kept * backward
            if counts is not None:
                normalised = before / (before * earlier).sum(1, keepdims=True)
                counts.add(index[1:, :-1], transition * (normalised.T @ emitted))
            backward = earlier / earlier.max(1, keepdims=True)
    return posteriors
