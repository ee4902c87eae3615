"""The HMM of word alignment (Vogel 1996): a target part is translated from a source part near the previous one.

Both directions are trained to agree (Liang 2006): the expected links are the product of their posteriors.
"""

import numpy as np

from softgaze.alignment.cooccurrence import Floats, Values, sum_by_id

MAX_JUMP = 8  # longer jumps count as this
JUMPS = 2 * MAX_JUMP + 1
UNALIGNED = 0.2  # prior probability that a part has no link


def jump_index(size: int) -> np.ndarray:
    """Return (previous position, position) -> index of the jump between them."""
    positions = np.arange(size)
    index: np.ndarray = np.clip(positions[None, :] - positions[:, None], -MAX_JUMP, MAX_JUMP) + MAX_JUMP
    return index


def ibm1_posteriors(lifts: Values) -> Values:
    """Return link posteriors (B, T, S) if all positions are equally likely."""
    scores = lifts * np.float32((1 - UNALIGNED) / lifts.shape[2])
    posteriors: Values = scores / (scores.sum(2, keepdims=True) + np.float32(UNALIGNED))
    return posteriors


def hmm_posteriors(lifts: Values, jumps: Floats, jump_counts: Floats | None = None) -> Values:
    """Return link posteriors (B, T, S) by forward–backward; add the expected jumps to `jump_counts`.

    An unaligned part keeps the position, so a state is a position with or without a link.
    """
    batch, length, size = lifts.shape
    index = jump_index(size)
    transition = jumps[index]
    transition = (transition / transition.sum(1, keepdims=True)).astype(np.float32)  # (S, S)
    linked, kept = np.float32(1 - UNALIGNED), np.float32(UNALIGNED)
    forward = np.empty((length, 2, batch, size), np.float32)  # with a link, without
    state = np.full((batch, size), 1 / size, np.float32)
    for step in range(length):
        moved = state @ transition if step else state
        np.multiply(moved * linked, lifts[:, step], out=forward[step, 0])
        np.multiply(state, kept, out=forward[step, 1])
        forward[step] /= forward[step].sum((0, 2))[:, None]
        state = forward[step].sum(0)
    posteriors = np.empty_like(lifts)
    backward = np.ones((batch, size), np.float32)
    for step in range(length - 1, -1, -1):
        weights = forward[step] * backward
        posteriors[:, step] = weights[0] / weights.sum((0, 2))[:, None]
        if step:
            before = forward[step - 1].sum(0)
            emitted = lifts[:, step] * backward * linked  # (B, S)
            earlier = emitted @ transition.T + kept * backward
            if jump_counts is not None:
                normalised = before / (before * earlier).sum(1, keepdims=True)
                jump_counts += sum_by_id(index.ravel(), (transition * (normalised.T @ emitted)).ravel(), JUMPS)
            backward = earlier / earlier.max(1, keepdims=True)
    return posteriors


def smoothed_jumps(counts: Floats) -> Floats:
    """Return the probabilities of jumps, none of them 0."""
    smoothed: Floats = counts / max(counts.sum(), 1e-9) + 1e-3
    return smoothed
