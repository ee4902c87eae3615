"""Does attention show what mattered? Rank correlation (Spearman) of a map with the influence of leaving words out.

Near 1, what was looked at most also mattered most; near 0, the map tells nothing about the prediction. Numbers only.
"""

import numpy

from softgaze.gaze.attention import Attention
from softgaze.gaze.recording import Flags, Matrix

UNKNOWN = numpy.nan  # where a word could not matter


def honesty(attention: Attention, influence: Matrix) -> float:
    """The mean over output words; not a number where there is nothing to rank, as in a sentence of one word."""
    return mean_known(row_honesty(attention.word_weights(), influence))


def row_honesty(weights: Matrix, influence: Matrix) -> Matrix:
    """For each output word, the rank correlation of its weights with its influences, both (…, T, S) -> (…, T)."""
    if weights.shape[-2:] != influence.shape[-2:]:
        raise ValueError(f"weights of {weights.shape} and influences of {influence.shape} are of different sentences")
    known = ~numpy.isnan(influence)
    first, second = (centred(ranks(values, known), known) for values in (weights, influence))
    spread = numpy.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    together = (first * second).sum(-1)
    return numpy.where(spread > 0, together / numpy.where(spread > 0, spread, 1.0), numpy.nan)


def ranks(values: Matrix, known: Flags) -> Matrix:
    """The rank of each value within its row, from 0; equals share a mean rank, what is not known is not there."""
    other, own = values[..., None, :], values[..., :, None]
    there = known[..., None, :]
    below: Matrix = ((other < own) & there).sum(-1) + (((other == own) & there).sum(-1) - 1) / 2
    return below


def centred(values: Matrix, known: Flags) -> Matrix:
    """Less their mean over what is known; 0 elsewhere."""
    count = numpy.maximum(known.sum(-1, keepdims=True), 1)
    kept = numpy.where(known, values, 0.0)
    moved: Matrix = numpy.where(known, kept - kept.sum(-1, keepdims=True) / count, 0.0)
    return moved


def mean_known(values: Matrix) -> float:
    """The mean of the numbers among them."""
    known = values[~numpy.isnan(values)]
    return float(known.mean()) if len(known) else numpy.nan
