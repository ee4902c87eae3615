"""Attribution: how much each source word, and each earlier output word, contributed to an output word.

- gradient: gradient × input. The sum over all inputs is the log-probability itself if the model is linear in them.
- gradient-norm: the norm of gradient × input over the width of a token. It has no sign, and widths do not cancel out.
- contribution: the L1 contribution of each source token to the output of the cross-attention (Ferrando et al. 2022).
- occlusion: the log-probability that is lost without a source word.

Every model can be attributed by gradients and occlusion, whether or not it has attention.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from softgaze.bundle import Tokenizers
from softgaze.errors import UsageError, pick
from softgaze.explain.attribution_map import GRADIENT_NORM, METHODS, OCCLUSION, Attribution, attribute_by_occlusion
from softgaze.explain.explanation import Translation, Translator, tokenized_pair
from softgaze.explain.interventions import apply_interventions
from softgaze.explain.recorder import collate_pairs, device_of
from softgaze.explain.recording import Matrix
from softgaze.explain.scoring import IdPair, TokenizedPair
from softgaze.explain.word_spans import TokenizedText, find_word
from softgaze.models.base import AttentionSite, Seq2Seq
from softgaze.special_tokens import EOS


class Contrast(NamedTuple):
    """Why the model preferred a word to another one in its position."""

    word: str
    instead_of: str
    log_odds: float  # log-probability of the word minus that of the other, in nats
    source: dict[str, float]  # contribution of each source word to the log-odds; equal words are summed
    prefix: dict[str, float]  # of each earlier output word

    def __str__(self) -> str:
        parts = sorted({**self.prefix, **self.source}.items(), key=lambda item: -abs(item[1]))
        listed = ", ".join(f"{word} {value:+.2f}" for word, value in parts[:5])
        return f"{self.word} instead of {self.instead_of}: log-odds {self.log_odds:+.2f}; {listed}"


def attribute(translator: Translator, translation: Translation, method: str = "gradient") -> Attribution:
    """Attribute each output word to the source words; needs the torch weights."""
    pick("method", method, METHODS)
    pair, tokenizers = tokenized_pair(translator, translation), translator.bundle.tokenizers
    source, target = pair.texts(tokenizers)
    if method == OCCLUSION:
        return attribute_by_occlusion(translator, translation)
    model = translator.model
    if method == "contribution":
        if not translator.has_attention:
            raise UsageError("the model has no cross-attention; attribute by gradient or occlusion")
        matrix = np.zeros((len(target.words), len(source.words)))
        for part, words in zip(pair.parts, word_positions(pair, source, target), strict=True):
            tokens = l1_contributions(model, tokenizers, part).mean(0)  # (T, S)
            matrix += group(tokens[:-1], words.target, words.source, matrix.shape)
        return Attribution(method, source.words, target.words, matrix)
    return attribute_by_gradient(model, tokenizers, pair, method)


def attribute_by_gradient(model: Seq2Seq, tokenizers: Tokenizers, pair: TokenizedPair, method: str) -> Attribution:
    """Return gradient × input of each output word's log-probability; punctuation attached to it does not count."""
    source, target = pair.texts(tokenizers)
    shape = len(target.words), len(source.words)
    matrix, prefix, share = np.zeros(shape), np.zeros((shape[0],) * 2), np.zeros((2, shape[0]))
    for part, words in zip(pair.parts, word_positions(pair, source, target), strict=True):
        rows = sorted({word for word in words.target if word >= 0})
        if not rows:
            continue
        counted = [[position for position, word in enumerate(words.target) if word == row] for row in rows]
        found = gradient_times_input(model, tokenizers, [part] * len(rows), counted, takes_norm=method == GRADIENT_NORM)
        start = len(tokenizers.target.start)
        matrix[rows] += sum_columns(found.source, words.source, shape[1])
        prefix[rows] += sum_columns(found.prefix[:, start:], words.target, shape[0])
        share[:, rows] += np.abs(found.source).sum(1), np.abs(found.prefix).sum(1)
    total = share.sum(0)
    return Attribution(method, source.words, target.words, matrix, prefix, share[0] / np.where(total > 0, total, 1.0))


def contrast(translator: Translator, translation: Translation, word: str | int, instead_of: str) -> Contrast:
    """Explain a word against another one in its position: gradient × input of the difference of log-probabilities."""
    pair, tokenizers = tokenized_pair(translator, translation), translator.bundle.tokenizers
    source, target = pair.texts(tokenizers)
    index = word if isinstance(word, int) else next(iter(find_word(word, target.words)), -1)
    if not 0 <= index < len(target.words):
        raise UsageError(f"the translation has no word {word!r}: {' '.join(target.words)}")
    [other] = tokenizers.target.encode([instead_of])
    if not other:
        raise UsageError("instead_of must be a word")
    positions = word_positions(pair, source, target)
    part, words = next(
        (part, words) for part, words in zip(pair.parts, positions, strict=True) if index in words.target
    )
    own = [position for position, number in enumerate(words.target) if number == index]
    begin = own[0]
    rival = part._replace(target=[*part.target[:begin], *other])
    found = gradient_times_input(
        translator.model, tokenizers, [part, rival], [own, [*range(begin, begin + len(other))]]
    )
    start = len(tokenizers.target.start)
    difference = found.source[:1] - found.source[1:]
    before = (found.prefix[:1] - found.prefix[1:])[:, start : start + begin]
    return Contrast(
        target.words[index],
        instead_of,
        float(found.log_probs[0] - found.log_probs[1]),
        named(source.words, sum_columns(difference, words.source, len(source.words))[0]),
        named(target.words[:index], sum_columns(before, words.target, len(target.words))[0][:index]),
    )


def named(words: Sequence[str], values: Matrix) -> dict[str, float]:
    """Return {word: value}; the values of equal words are summed."""
    sums: dict[str, float] = {}
    for word, value in zip(words, values.tolist(), strict=True):
        sums[word] = sums.get(word, 0.0) + value
    return sums


# --- words ------------------------------------------------------------------------------------------------------


class WordPositions(NamedTuple):
    """The word index of each token of a part; negative for BOS, EOS and attached punctuation."""

    source: list[int]
    target: list[int]


def word_positions(pair: TokenizedPair, source: TokenizedText, target: TokenizedText) -> Iterator[WordPositions]:
    """Yield the words of each part; those of the source start with its language tokens."""
    sources = source.split_parts(source.core_of, [len(part.source) for part in pair.parts])
    for own, other in zip(sources, target.split_parts(target.core_of), strict=True):
        yield WordPositions(own, other)


def sum_columns(values: Matrix, words: Sequence[int], count: int) -> Matrix:
    """Sum the columns (R, tokens) of each word -> (R, words); tokens after the last of `words` belong to none."""
    sums = np.zeros((len(values), count))
    for position, word in enumerate(words[: values.shape[1]]):
        if word >= 0:
            sums[:, word] += values[:, position]
    return sums


def group(tokens: Matrix, target: Sequence[int], source: Sequence[int], shape: tuple[int, int]) -> Matrix:
    """Return (T, S) of words from (tokens, tokens): the columns are summed, then the rows averaged."""
    sums = sum_columns(tokens, source, shape[1])  # (target tokens, S)
    counts = np.bincount([word for word in target if word >= 0], minlength=shape[0])
    return sum_columns(sums.T, target, shape[0]).T / np.maximum(counts, 1)[:, None]


# --- gradient × input -------------------------------------------------------------------------------------------


class GradientTimesInput(NamedTuple):
    """Contributions of each token to the log-probability of a row's counted tokens."""

    source: Matrix  # (R, S) of the source as the model reads it
    prefix: Matrix  # (R, Q) of the decoder's inputs: its start tokens, then the target
    log_probs: Matrix  # (R,)


class CapturedInput(nn.Module):
    """An embedding, or the encoder of features, whose last output is a leaf of the autograd graph."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module, self.num_embeddings = module, getattr(module, "num_embeddings", 0)
        self.captured: Tensor = torch.empty(0)

    def forward(self, *inputs: Any) -> Tensor:
        self.captured = self.module(*inputs).detach().requires_grad_()
        return self.captured


def with_captured_inputs(model: Seq2Seq) -> tuple[Seq2Seq, CapturedInput, CapturedInput]:
    """Return a model with the same parameters that captures its inputs; the model itself may serve other threads."""

    def replaced(module: Any, name: str, new: nn.Module) -> Any:
        clone = copy.copy(module)
        clone._modules = {**module._modules, name: new}
        return clone

    is_text = hasattr(model, "source_embedding")
    name = "source_embedding" if is_text else "feature_encoder"
    source = CapturedInput(getattr(model, name))
    clone, holder = replaced(model, name, source), cast(Any, model if is_text else model.decoder)
    target = CapturedInput(holder.target_embedding)
    if is_text:
        return replaced(clone, "target_embedding", target), source, target
    return replaced(clone, "decoder", replaced(holder, "target_embedding", target)), source, target


def gradient_times_input(
    model: Seq2Seq,
    tokenizers: Tokenizers,
    parts: Sequence[IdPair],
    counted: Sequence[Sequence[int]],
    *,
    takes_norm: bool = False,
) -> GradientTimesInput:
    """Return gradient × input of the summed log-probabilities of the `counted` target positions of each row.

    The products of a token are summed over its width, or `takes_norm`.
    The rows of a batch are independent, so one backward pass gives the gradients of all rows.
    """
    captured, source_input, target_input = with_captured_inputs(model)
    intervened = apply_interventions(captured, tokenizers.target, [part.interventions for part in parts])
    source, inputs = collate_pairs(parts, tokenizers, device_of(model))
    start = len(tokenizers.target.start)
    row = torch.tensor([index for index, own in enumerate(counted) for _ in own])
    position = torch.tensor([each for own in counted for each in own])
    predicted = torch.tensor(
        [[*part.target, EOS][each] for part, own in zip(parts, counted, strict=True) for each in own]
    )
    with torch.inference_mode(False), torch.enable_grad():
        features = intervened.decode(intervened.encode(source), inputs)[row, position + start - 1]
        logits = intervened.output(features).float().log_softmax(-1)
        log_probs = logits[torch.arange(len(row)), predicted.to(logits.device)]
        gradients = torch.autograd.grad(log_probs.sum(), [source_input.captured, target_input.captured])
    both = [
        (gradient * each.captured).detach()
        for gradient, each in zip(gradients, (source_input, target_input), strict=True)
    ]
    products = [(each.norm(dim=-1) if takes_norm else each.sum(-1)).double().cpu().numpy() for each in both]
    totals = np.bincount(row.numpy(), log_probs.detach().double().cpu().numpy(), minlength=len(parts))
    return GradientTimesInput(products[0], products[1], totals.astype(np.float64))


# --- L1 contribution --------------------------------------------------------------------------------------------


class _CrossAttention:
    """An attention hook that stores the weights and values of the cross-attention of one sentence."""

    def __init__(self) -> None:
        self.weights: dict[int, list[Tensor]] = {}
        self.values: dict[int, Tensor] = {}

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        if site.kind == "cross":
            self.weights.setdefault(site.layer, []).append(weights[0])
            self.values[site.layer] = values[0].expand(weights.shape[1], -1, -1)
        return weights


@torch.no_grad()
def l1_contributions(model: Seq2Seq, tokenizers: Tokenizers, part: IdPair) -> Matrix:
    """Return (L, T + 1, S): the contribution of each source token to each prediction; rows sum to 1."""
    recorded = _CrossAttention()
    intervened = apply_interventions(model, tokenizers.target, [part.interventions])
    source, inputs = collate_pairs([part], tokenizers, device_of(model))
    intervened(source, inputs, recorded)
    start, layers = len(tokenizers.target.start), []
    for layer in sorted(recorded.weights):
        weights = torch.cat(recorded.weights[layer], 1)[:, start - 1 :]  # (H, T + 1, S)
        layers.append(block_contributions(weights, recorded.values[layer], output_weight(model, layer)))
    return torch.stack(layers).double().cpu().numpy()


def output_weight(model: Any, layer: int) -> Tensor | None:
    """Return the output projection (D, D) of a Transformer's cross-attention; other models have none."""
    decoder = getattr(model.decoder, "decoder", model.decoder)
    cross = getattr(decoder[layer], "cross", None) if isinstance(decoder, nn.ModuleList) else None
    return getattr(getattr(cross, "output", None), "weight", None)


def block_contributions(weights: Tensor, values: Tensor, projection: Tensor | None = None) -> Tensor:
    """Return (Q, K) from weights (H, Q, K) and values (H, K, D/H): how much nearer each key brings the output, in L1.

    The output is the sum of the keys' vectors; a key that brings it no nearer contributes 0.
    """
    heads, _, width = values.shape
    if projection is None:
        vectors = torch.einsum("hqk,hkd->qkhd", weights, values).flatten(2)
    else:
        by_head = projection.view(-1, heads, width).float()
        vectors = torch.einsum("hqk,hkd,ohd->qko", weights.float(), values.float(), by_head)  # (Q, K, D)
    output = vectors.sum(1, keepdim=True)
    nearer = (output.abs().sum(-1) - (output - vectors).abs().sum(-1)).clamp(min=0)
    return nearer / nearer.sum(-1, keepdim=True).clamp(min=torch.finfo(nearer.dtype).tiny)
