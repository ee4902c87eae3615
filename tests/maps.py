"""Random attention maps with words, subwords and two parts."""

import numpy as np

from softgaze.explain import Attention, Recording, View
from softgaze.explain.recording import AttentionStack, PartAttention
from softgaze.explain.word_spans import TokenizedText

# (source tokens, target tokens) of each part.
SOURCE = "the dog sleeps 학교에"
TARGET = "개가 자요 school"
TOKENS = (
    (["▁the", "▁do", "g"], ["▁개", "가", "▁자", "요"]),
    (["▁sleeps", "▁", "<0xED>", "<0x95>", "<0x99>", "교에"], ["▁school"]),
)


def random_stack(dice, queries, keys, layers=3, heads=2, causal=False):
    """(L, H, Q, K) of rows that sum to 1."""
    weights = dice.dirichlet(np.ones(keys), (layers, heads, queries))
    if causal:
        weights = np.tril(weights) + 1e-9 * np.eye(queries, keys)
        weights /= weights.sum(-1, keepdims=True)
    norms = dice.uniform(0.5, 2, (layers, heads, keys))
    return AttentionStack(weights.astype(np.float32), norms.astype(np.float32))


def random_recording(tokens=TOKENS, source=SOURCE, target=TARGET, seed=0):
    dice = np.random.default_rng(seed)
    parts = []
    for source_tokens, target_tokens in tokens:
        rows, columns = len(target_tokens) + 1, len(source_tokens) + 1
        cross, encoder = random_stack(dice, rows, columns), random_stack(dice, columns, columns)
        parts.append(PartAttention(cross, encoder, random_stack(dice, rows, rows, causal=True)))
    texts = (TokenizedText.of(text, [part[side] for part in tokens]) for side, text in enumerate((source, target)))
    return Recording(*texts, tuple(parts))


def random_attention(seed=0, **view):
    return Attention(random_recording(seed=seed), View(**view))
