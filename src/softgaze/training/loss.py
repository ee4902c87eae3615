"""Cross-entropy with label smoothing (Szegedy 2016) over the tokens that are not padding."""

from typing import Any, cast

import torch
from torch import Tensor

from softgaze.models.base import AttentionHook, Seq2Seq
from softgaze.special_tokens import PAD
from softgaze.training.collate import PaddedBatch

MIN_BIAS = -100.0  # of rows that an imported model never generates: label smoothing adds all logits up
MAX_LOGITS = 2**23  # in memory at once (32 MB): fewer slow the matrix products down, more only cost memory


def summed_loss(
    model: Seq2Seq, batch: PaddedBatch, label_smoothing: float, hook: AttentionHook | None = None
) -> Tensor:
    """Return the loss summed over the tokens of a batch; the caller divides by the tokens of all batches."""
    features = model.decode(model.encode(batch.source), batch.decoder_input, hook)
    real = batch.labels != PAD
    features, labels = features[real], batch.labels[real]  # (N, D), (N,): padding is never projected
    weight, bias = model.output.weight, getattr(model.output, "bias", None)
    if bias is not None:  # x Wᵀ + b = [x 1] [W b]ᵀ
        features = torch.cat([features, features.new_ones(len(features), 1)], 1)
        weight = torch.cat([cast(Tensor, weight), bias.clamp(min=MIN_BIAS)[:, None]], 1)
    loss: Tensor = SlicedCrossEntropy.apply(features, weight, labels, label_smoothing)  # type: ignore[no-untyped-call]
    return loss


class SlicedCrossEntropy(torch.autograd.Function):
    """Σ −log softmax(x Wᵀ)[label] with smoothing, without holding all logits (4,096 tokens × 11,000 take 180 MB).

    Each slice of tokens gives its loss and its gradients (p − q) W and (p − q)ᵀ x, where p is the softmax and q the
    smoothed target. The uniform part of q is the same for every logit, so it is added once from the sums of W and x.
    """

    @staticmethod
    def forward(context: Any, features: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        """features (N, D), weight (V, D), labels (N,) -> summed loss."""
        kind = features.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else features.dtype
        precise = torch.promote_types(dtype, torch.float32)
        inputs, matrix = features.to(dtype), weight.to(dtype)
        with torch.autocast(kind, enabled=False):
            uniform = smoothing / len(weight)
            total = -uniform * (inputs.sum(0).to(precise) @ matrix.sum(0).to(precise))
            needs_grad = any(context.needs_input_grad)
            grad_features, grad_weight = torch.empty_like(inputs), torch.zeros_like(weight)
            size = max(1, MAX_LOGITS // len(weight))
            buffer = inputs.new_empty(min(size, len(inputs)), len(weight))  # reused by every slice
            for start in range(0, len(inputs), size):
                rows = slice(start, start + size)
                label = labels[rows, None]
                logits = torch.mm(inputs[rows], matrix.T, out=buffer[: len(label)]).to(precise)
                probs = logits.softmax(-1)
                total += (log_sum_exp(logits, probs, label) - (1 - smoothing) * logits.gather(1, label)).sum()
                if needs_grad:
                    errors = probs.scatter_add_(1, label, probs.new_full(label.shape, smoothing - 1)).to(dtype)
                    torch.mm(errors, matrix, out=grad_features[rows])
                    grad_weight += errors.T @ inputs[rows]
            if needs_grad:
                grad_features -= uniform * matrix.sum(0)
                grad_weight -= uniform * inputs.sum(0)
                context.save_for_backward(grad_features.to(features.dtype), grad_weight)
        return total

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Scale the gradients that `forward` computed."""
        grad_features, grad_weight = context.saved_tensors
        return grad_features * gradient, grad_weight * gradient, None, None


def log_sum_exp(logits: Tensor, probs: Tensor, label: Tensor) -> Tensor:
    """Return log Σ exp(logits), (N, 1), from the softmax at hand unless the probability of a label underflowed."""
    chosen = probs.gather(1, label)
    if bool((chosen > torch.finfo(chosen.dtype).tiny).all()):
        return logits.gather(1, label) - chosen.log()
    return logits.logsumexp(1, keepdim=True)
