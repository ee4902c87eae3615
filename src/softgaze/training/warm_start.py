"""Start a model from statistics of its corpus instead of noise; docs/warm-start.md explains why this works.

Tokens that share sentence pairs start with similar embeddings, so a word starts next to its translation. Attention
starts by copying the embeddings it attends to, and the output starts at the unigram distribution of the target. The
result is a function of the encoded pairs, the model and the seed.
"""

import math
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from softgaze.attention import MultiHeadAttention
from softgaze.data.batching import hash_key
from softgaze.data.shards import Array, Shards
from softgaze.errors import UsageError
from softgaze.models.base import Seq2Seq
from softgaze.models.conv import Conv
from softgaze.models.rnn import RecurrentSeq2Seq
from softgaze.models.transformer import FeedForward, Transformer, TransformerDecoderLayer, TransformerEncoderLayer
from softgaze.special_tokens import EOS

MAX_PAIRS = 200_000  # evenly spaced: more change little
MAX_CONTEXTS = 2_000  # the commonest tokens: co-occurrence with them describes all tokens
MAX_CODES = 2**22  # co-occurrences counted at once
ITERATIONS = 3  # of the subspace iteration
SIGNAL = 0.9  # share of the statistics in an embedding; the rest is noise, which keeps similar tokens apart
UNIGRAM_SCALE = 0.1  # of log-probabilities in the unigram dimension, the last one of the embedding
RNN_UNIGRAM_SCALE = 0.4  # the readout is within ±1, so that more would need larger embeddings
BRANCH_SCALE = 0.1  # of residual branches, which are still untrained


@torch.no_grad()
def warm_start(model: Seq2Seq, shards: Shards, seed: int) -> None:
    """Set embeddings, output layer, attention and residual branches from the statistics of the training pairs."""
    generator = torch.Generator().manual_seed(hash_key(seed, 2) % 2**63)
    if isinstance(model, Transformer):
        unigram_scale = start_transformer(model)
    elif isinstance(model, RecurrentSeq2Seq):
        unigram_scale = start_rnn(model)
    elif isinstance(model, Conv):
        unigram_scale = start_conv(model)
    else:
        raise UsageError("only translators have a warm start from statistics; use --warm-start none")
    start_embeddings(model, shards, generator, unigram_scale)


# --- embeddings ---------------------------------------------------------------------------------------------------


def start_embeddings(
    model: Transformer | RecurrentSeq2Seq | Conv, shards: Shards, generator: torch.Generator, unigram_scale: float
) -> None:
    """Set every row to the vector of its token; unless the scale is 0, the last dimension is its log-probability."""
    source, target = model.source_embedding, model.target_embedding
    is_joint = source.weight is target.weight
    offset = 0 if is_joint else source.num_embeddings
    size, width = offset + target.num_embeddings, target.embedding_dim
    occurrences = Occurrences.of(shards, size, offset)
    rows = add_noise(token_vectors(occurrences, size, width - bool(unigram_scale), generator), generator)
    if unigram_scale:
        log_probs = [log_unigram(counts) for counts in occurrences.counts(offset, size)]
        column = log_probs[1] if is_joint else torch.cat(log_probs)
        rows = torch.cat([rows, unigram_scale * column[:, None]], 1)
    if not is_joint:
        source.weight.copy_(rows[:offset])
    target.weight.copy_(rows[offset:])
    cast(nn.Linear, model.output).weight.copy_(rows[offset:])


class Occurrences(NamedTuple):
    """Which tokens occur in which pairs, each once, ordered by pair; and every token of both sides."""

    pair: Array
    token: Array
    num_pairs: int
    source_tokens: Array
    target_tokens: Array

    @classmethod
    def of(cls, shards: Shards, size: int, offset: int) -> "Occurrences":
        """Read the pairs; target tokens are numbered from `offset` on."""
        pairs = np.arange(0, len(shards), -(-len(shards) // MAX_PAIRS))
        source, target = shards.gather(pairs)
        tokens = np.concatenate([source.tokens, target.tokens + offset])
        codes = np.unique(np.concatenate([source.row, target.row]) * size + tokens)
        return cls(codes // size, codes % size, len(pairs), source.tokens, target.tokens)

    def counts(self, offset: int, size: int) -> tuple[Array, Array]:
        """Return how often each source and target token occurs; every sentence ends with EOS."""
        sides = (self.source_tokens, offset or size), (self.target_tokens, size - offset)
        source, target = (np.bincount(tokens, minlength=count) for tokens, count in sides)
        source[EOS], target[EOS] = self.num_pairs, self.num_pairs
        return source, target


def log_unigram(counts: Array) -> Tensor:
    """Return the log-probability of each token minus its mean over all tokens; half a count for unseen tokens."""
    logs = np.log(counts + 0.5)
    return torch.from_numpy(logs - logs.mean()).float()


def token_vectors(occurrences: Occurrences, size: int, width: int, generator: torch.Generator) -> Tensor:
    """Return unit vectors (size, width) whose cosines show how often tokens share pairs; zero for unseen tokens.

    Latent semantic analysis (Deerwester 1990) of positive pointwise mutual information within sentence pairs.
    """
    table = mutual_information(occurrences, size)
    vectors = leading_directions(table, min(width, *table.shape), generator)
    rotation = torch.linalg.qr(torch.randn(width, vectors.shape[1], generator=generator)).Q.T
    vectors = vectors @ rotation
    seen = torch.zeros(size, 1).index_fill_(0, torch.from_numpy(occurrences.token), 1.0)
    vectors = (vectors - (vectors * seen).sum(0) / seen.sum()) * seen
    return nn.functional.normalize(vectors)


def mutual_information(occurrences: Occurrences, size: int) -> Tensor:
    """Return max(0, log(n c_ij / (c_i c_j))) for every token i and every common token j, where c counts pairs."""
    pair, token, num_pairs = occurrences[:3]
    counts = np.bincount(token, minlength=size)
    contexts = np.argsort(-counts, kind="stable")[: min(MAX_CONTEXTS, np.count_nonzero(counts))]
    joint = count_together(pair, token, contexts, size)
    ones = torch.from_numpy(counts).float().clamp_min(1)
    expected = ones[:, None] * ones[torch.from_numpy(contexts)] / num_pairs
    return joint.div_(expected).clamp_min_(1).log_()


def count_together(pair: Array, token: Array, contexts: Array, size: int) -> Tensor:
    """Return in how many pairs each token (size, C) occurs together with each of C `contexts`."""
    column = np.full(size, -1)
    column[contexts] = np.arange(len(contexts))
    is_context = column[token] >= 0
    columns = column[token[is_context]]  # ordered by pair
    ends = np.bincount(pair[is_context], minlength=int(pair[-1]) + 1).cumsum()
    starts = np.concatenate([[0], ends[:-1]])
    repeats = (ends - starts)[pair]  # contexts of the pair of each occurrence
    total = torch.zeros(size * len(contexts))
    step = max(1, MAX_CODES // int(repeats.max()))
    for first in range(0, len(token), step):
        part = slice(first, first + step)
        times = repeats[part]
        index = np.arange(times.sum()) + (starts[pair[part]] - times.cumsum() + times).repeat(times)
        codes = torch.from_numpy(token[part].repeat(times) * len(contexts) + columns[index])
        total.index_add_(0, codes, torch.ones(len(codes)))
    return total.view(size, len(contexts))


def leading_directions(table: Tensor, rank: int, generator: torch.Generator) -> Tensor:
    """Return the `rank` leading left singular vectors, each times the root of its singular value (Halko 2011)."""
    basis = torch.linalg.qr(table @ torch.randn(table.shape[1], rank, generator=generator)).Q
    for _ in range(ITERATIONS):
        basis = torch.linalg.qr(table @ torch.linalg.qr(table.T @ basis).Q).Q
    left, singular, _ = torch.linalg.svd(basis.T @ table, full_matrices=False)
    vectors: Tensor = (basis @ left) * singular.sqrt()
    return vectors


def add_noise(vectors: Tensor, generator: torch.Generator) -> Tensor:
    """Mix unit vectors with random ones and normalise; unseen tokens are random."""
    noise = nn.functional.normalize(torch.randn(vectors.shape, generator=generator))
    return nn.functional.normalize(SIGNAL * vectors + math.sqrt(1 - SIGNAL**2) * noise)


# --- the rest of the model: each function returns the scale of the unigram dimension, 0 if there is none ----------


def start_transformer(model: Transformer) -> float:
    """Let the decoder copy what it attends to and subtract what it wrote."""
    for encoder_layer in cast(list[TransformerEncoderLayer], model.encoder):
        encoder_layer.attention.output.weight.mul_(BRANCH_SCALE)
        cast(FeedForward, encoder_layer.feed_forward).outer.weight.mul_(BRANCH_SCALE)
    layers = cast(list[TransformerDecoderLayer], model.decoder)
    for layer in layers:
        copy_values(layer.cross, 1.0)
        if isinstance(layer.attention, MultiHeadAttention):
            copy_values(layer.attention, -0.5)
        cast(FeedForward, layer.feed_forward).outer.weight.mul_(BRANCH_SCALE)
    # A post-norm stack ends with the norm of its last layer.
    is_post_norm = isinstance(model.decoder_norm, nn.Identity)
    last = layers[-1].around_feed_forward.norm if is_post_norm else model.decoder_norm
    if not isinstance(last, nn.LayerNorm):  # RMSNorm has no bias
        return 0.0
    last.weight[-1], last.bias[-1] = 0.0, 1 / UNIGRAM_SCALE
    return UNIGRAM_SCALE


def copy_values(attention: MultiHeadAttention, scale: float) -> None:
    """Let attention return `scale` times the mean of the vectors it attends to."""
    if attention.key_heads == attention.heads:  # grouped-query attention has too few values to copy
        nn.init.eye_(attention.value.weight)
        nn.init.eye_(attention.output.weight).mul_(scale)


def start_rnn(model: RecurrentSeq2Seq) -> float:
    """Let the readout copy the context of attention, the last of its inputs, at half of unit variance."""
    if model.has_cross_attention:
        model.readout.weight.mul_(BRANCH_SCALE)
        model.readout.weight[:, -model.width :] = torch.eye(model.width) * math.sqrt(model.width) / 2
    model.readout.weight[-1], model.readout.bias[-1] = 0.0, 3.0  # tanh(3) = 0.995
    return RNN_UNIGRAM_SCALE


def start_conv(model: Conv) -> float:
    """Make the bias of the readout the unigram dimension.

    Nothing is copied: attention starts at the translation of the word just written, which must not be written again.
    """
    model.readout.weight[-1] = 0.0
    model.readout.bias[-1] = 1 / UNIGRAM_SCALE
    return UNIGRAM_SCALE
