"""Cross-entropy with label smoothing (Szegedy 2016) over the tokens that are not padding, and R-Drop (Liang 2021)."""

from typing import Any, cast

import torch
from torch import Tensor

from softgaze.models.base import AttentionHook, Seq2Seq, Source
from softgaze.special_tokens import PAD
from softgaze.training.collate import PaddedBatch

MIN_BIAS = -100.0  # of rows that an imported model never generates: label smoothing adds all logits up
MAX_LOGITS = 2**23  # in memory at once (32 MB): fewer slow the matrix products down, more only cost memory


def summed_loss(
    model: Seq2Seq, batch: PaddedBatch, label_smoothing: float, hook: AttentionHook | None = None, r_drop: float = 0.0
) -> Tensor:
    """Return the loss summed over the tokens of a batch; the caller divides by the tokens of all batches.

    With `r_drop` the batch is computed twice, with different dropout. The result is the mean of both losses and
    r_drop / 4 of the divergence KL(p₁, p₂) + KL(p₂, p₁): half of the loss of Liang et al. (2021).
    """
    real = batch.labels != PAD
    labels = batch.labels[real]  # (N,): padding is never projected
    if r_drop:
        source = Source(*(torch.cat([part, part]) for part in batch.source))
        features = model.decode(model.encode(source), torch.cat([batch.decoder_input] * 2), hook)
        features = features.view(2, *real.shape, -1)[:, real]  # (2, N, D)
    else:
        features = model.decode(model.encode(batch.source), batch.decoder_input, hook)[real]
    weight, bias = model.output.weight, getattr(model.output, "bias", None)
    if bias is not None:  # x Wᵀ + b = [x 1] [W b]ᵀ
        features = torch.cat([features, features.new_ones(*features.shape[:-1], 1)], -1)
        weight = torch.cat([cast(Tensor, weight), bias.clamp(min=MIN_BIAS)[:, None]], 1)
    loss: Tensor = SlicedCrossEntropy.apply(features, weight, labels, label_smoothing, r_drop)  # type: ignore[no-untyped-call]
    return loss


class SlicedCrossEntropy(torch.autograd.Function):
    """Σ −log softmax(x Wᵀ)[label] with smoothing, without holding all logits (4,096 tokens × 11,000 take 180 MB).

    Each slice of tokens gives its loss and its gradients (p − q) W and (p − q)ᵀ x, where p is the softmax and q the
    smoothed target. The uniform part of q is the same for every logit, so it is added once from the sums of W and x.
    """

    @staticmethod
    def forward(
        context: Any, features: Tensor, weight: Tensor, labels: Tensor, smoothing: float, r_drop: float = 0.0
    ) -> Tensor:
        """features (N, D) or of two passes (2, N, D), weight (V, D), labels (N,) -> summed loss."""
        kind = features.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else features.dtype
        precise = torch.promote_types(dtype, torch.float32)
        passes = len(features) if features.ndim == 3 else 1
        inputs, matrix = features.to(dtype).view(passes, len(labels), features.shape[-1]), weight.to(dtype)
        with torch.autocast(kind, enabled=False):
            uniform = smoothing / len(weight)
            total = -uniform * (inputs.flatten(0, 1).sum(0).to(precise) @ matrix.sum(0).to(precise))
            needs_grad = any(context.needs_input_grad)
            grad_features, grad_weight = torch.empty_like(inputs), torch.zeros_like(weight)
            size = max(1, MAX_LOGITS // len(weight) // passes)
            buffer = inputs.new_empty(passes * min(size, len(labels)), len(weight))  # reused by every slice
            for start in range(0, len(labels), size):
                rows = slice(start, start + size)
                selected, label = inputs[:, rows].flatten(0, 1), labels[rows, None].repeat(passes, 1)
                logits = torch.mm(selected, matrix.T, out=buffer[: len(label)])
                if r_drop:
                    logits = logits.to(precise)
                probs = logits.softmax(-1)  # in bfloat16 computed in float32, and rounded like the errors below
                chosen = logits.gather(1, label).to(precise)
                total += (log_sum_exp(logits, probs, label) - (1 - smoothing) * chosen).sum()
                if r_drop:
                    divergence, gradient = symmetric_kl(logits, probs)
                    total += r_drop / 2 * divergence
                    probs = probs.add_(gradient, alpha=r_drop / 2)
                if needs_grad:
                    errors = probs.scatter_add_(1, label, probs.new_full(label.shape, smoothing - 1)).to(dtype)
                    grad_features[:, rows] = torch.mm(errors, matrix).view(passes, -1, inputs.shape[-1])
                    grad_weight += errors.T @ selected
            if needs_grad:
                grad_features -= uniform * matrix.sum(0)
                grad_weight -= uniform * inputs.flatten(0, 1).sum(0)
                grad_features = grad_features.div_(passes).to(features.dtype).view(features.shape)
                context.save_for_backward(grad_features, grad_weight.div_(passes))
        return total / passes

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        """Scale the gradients that `forward` computed."""
        grad_features, grad_weight = context.saved_tensors
        return grad_features * gradient, grad_weight * gradient, None, None, None


def symmetric_kl(logits: Tensor, probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ KL(p₁, p₂) + KL(p₂, p₁) of two passes one after the other, (2 N, V), and its gradient to the logits."""
    one, other = probs.chunk(2)
    difference = torch.sub(*logits.chunk(2))  # ln p₁ − ln p₂ up to a constant, which has no effect
    mean, other_mean = (p.mul(difference).sum(-1, keepdim=True) for p in (one, other))
    gradient = torch.cat([one * (difference - mean + 1) - other, other * (other_mean - difference + 1) - one])
    return (mean - other_mean).sum(), gradient


def log_sum_exp(logits: Tensor, probs: Tensor, label: Tensor) -> Tensor:
    """Return log Σ exp(logits), (N, 1), from the softmax at hand unless the probability of a label underflowed."""
    chosen = probs.gather(1, label).to(torch.promote_types(probs.dtype, torch.float32))
    if bool((chosen > torch.finfo(chosen.dtype).tiny).all()):
        return logits.gather(1, label).to(chosen.dtype) - chosen.log()
    return logits.to(chosen.dtype).logsumexp(1, keepdim=True)
