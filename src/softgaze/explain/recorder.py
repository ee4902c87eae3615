"""Record the attention and log-probabilities of a torch model by teacher forcing over given targets."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softgaze.bundle import Tokenizers
from softgaze.explain.interventions import apply_interventions
from softgaze.explain.recording import AttentionStack, Matrix, PartAttention
from softgaze.explain.scoring import IdPair, Scorer, batches
from softgaze.models.base import AttentionSite, Seq2Seq, Source
from softgaze.special_tokens import PAD


class AttentionRecorder:
    """An attention hook that stores the weights and value norms of a batch and changes nothing."""

    def __init__(self) -> None:
        self.weights: dict[tuple[str, int], list[Tensor]] = {}
        self.norms: dict[tuple[str, int], Tensor] = {}

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        """Append the rows of one attention; a decoder that steps passes the same values each time."""
        key = site.kind, site.layer
        self.weights.setdefault(key, []).append(weights.detach().float().cpu())
        self.norms[key] = values.detach().float().norm(dim=-1).expand(weights.shape[0], weights.shape[1], -1).cpu()
        return weights

    def stack(self, kind: str, row: int, queries: int, keys: int, start: int = 1) -> AttentionStack | None:
        """Return all layers of a kind for one batch row, without padding; None if the model has no such kind.

        The `start` tokens of a decoder are one row, the last of them, and one key.
        """
        sites = sorted(key for key in self.weights if key[0] == kind)
        if not sites:
            return None
        rows = [torch.cat([steps[row] for steps in self.weights[key]], 1)[:, :queries, :keys] for key in sites]
        weights, norms = torch.stack(rows), torch.stack([self.norms[key][row, :, :keys] for key in sites])
        if kind != "encoder":
            weights = weights[:, :, start - 1 :]  # (L, H, Q, K)
        if kind == "decoder" and start > 1:
            weights = torch.cat([weights[..., :start].sum(-1, keepdim=True), weights[..., start:]], -1)
            norms = torch.cat([norms[..., :start].mean(-1, keepdim=True), norms[..., start:]], -1)
        return AttentionStack(weights.numpy(), norms.numpy())

    def part(self, row: int, source: int, target: int, start: int = 1) -> PartAttention:
        """Return the attention of one batch row with so many source and target tokens, `start` before the target."""
        return PartAttention(
            self.stack("cross", row, target, source, start),
            self.stack("encoder", row, source, source),
            self.stack("decoder", row, target, target, start),
        )


class TorchScorer(Scorer):
    """Scores and records with a torch model, all layers and heads."""

    note = ""

    def __init__(self, model: Seq2Seq, tokenizers: Tokenizers) -> None:
        self.model, self.tokenizers = model, tokenizers

    @property
    def start(self) -> int:
        """Number of tokens that the decoder starts from."""
        return len(self.tokenizers.target.start)

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        return self.model.cross_attention_shape

    @torch.no_grad()
    def record(self, pairs: Sequence[IdPair]) -> list[PartAttention]:
        recorded: list[PartAttention] = [PartAttention()] * len(pairs)
        for indices in batches(pairs):
            recorder = AttentionRecorder()
            model, source, target = self._prepare([pairs[index] for index in indices])
            model(source, target, recorder)
            for row, index in enumerate(indices):
                length = self.start + len(pairs[index].target)
                recorded[index] = recorder.part(row, int(source.lengths[row]), length, self.start)
        return recorded

    @torch.no_grad()
    def log_probs(self, pairs: Sequence[IdPair]) -> list[Matrix]:
        scored: list[Matrix] = [np.zeros(0)] * len(pairs)
        for indices in batches(pairs):
            model, source, target = self._prepare([pairs[index] for index in indices])
            steps = max(target.shape[1] - 1, 1)  # nothing is predicted after the last token; models need at least BOS
            logits = model(source, target[:, :steps]).float()  # (B, T, V)
            log_probs = logits.gather(-1, target[:, 1:, None]).squeeze(-1) - logits.logsumexp(-1)
            log_probs = log_probs[:, self.start - 1 :]  # those of language tokens are given
            for index, row in zip(indices, log_probs.cpu().double().numpy(), strict=True):
                scored[index] = row[: len(pairs[index].target)]
        return scored

    def _prepare(self, batch: Sequence[IdPair]) -> tuple[Seq2Seq, Source, Tensor]:
        """Return the model with the interventions of a batch, and the padded batch."""
        model = apply_interventions(self.model, self.tokenizers.target, [pair.interventions for pair in batch])
        return model, *collate_pairs(batch, self.tokenizers, device_of(self.model))


def collate_pairs(pairs: Sequence[IdPair], tokenizers: Tokenizers, device: torch.device) -> tuple[Source, Tensor]:
    """Return the padded sources, and the decoder inputs (B, T) with BOS or language tokens."""
    targets = [torch.tensor([*tokenizers.target.start, *pair.target]) for pair in pairs]
    padded = pad_sequence(targets, batch_first=True, padding_value=PAD)
    return Source.of([tokenizers.source.add_eos(pair.source) for pair in pairs], device), padded.to(device)


def device_of(model: Seq2Seq) -> torch.device:
    """Return the device of the parameters; the CPU for a model without parameters."""
    return next((value.device for value in model.parameters()), torch.device("cpu"))
