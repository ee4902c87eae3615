"""Attention made by hand: random maps of any shape, with words, subwords and more than one part."""

import numpy

from softgaze.gaze import Attention, Recording, View
from softgaze.gaze.recording import Part, Stack
from softgaze.gaze.words import Side

# Two sentences read and written in two parts: (pieces of the source, pieces of the output) of each.
SOURCE = "the dog sleeps 학교에"
TARGET = "개가 자요 school"
PIECES = (
    (["▁the", "▁do", "g"], ["▁개", "가", "▁자", "요"]),
    (["▁sleeps", "▁", "<0xED>", "<0x95>", "<0x99>", "교에"], ["▁school"]),
)


def random_stack(dice, queries, keys, layers=3, heads=2, causal=False):
    """(L, H, Q, K) of rows that sum to 1."""
    weights = dice.dirichlet(numpy.ones(keys), (layers, heads, queries))
    if causal:
        weights = numpy.tril(weights) + 1e-9 * numpy.eye(queries, keys)
        weights /= weights.sum(-1, keepdims=True)
    norms = dice.uniform(0.5, 2, (layers, heads, keys))
    return Stack(weights.astype(numpy.float32), norms.astype(numpy.float32))


def random_recording(pieces=PIECES, source=SOURCE, target=TARGET, seed=0):
    dice = numpy.random.default_rng(seed)
    parts = []
    for read, written in pieces:
        rows, columns = len(written) + 1, len(read) + 1
        cross, encoder = random_stack(dice, rows, columns), random_stack(dice, columns, columns)
        parts.append(Part(cross, encoder, random_stack(dice, rows, rows, causal=True)))
    sides = Side.of(source, [read for read, _ in pieces]), Side.of(target, [written for _, written in pieces])
    return Recording(*sides, tuple(parts))


def random_attention(seed=0, **view):
    return Attention(random_recording(seed=seed), View(**view))
