"""Plain PyTorch: `nn.Transformer` in a careful hand-written training loop."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.batching import BOS, EOS, PAD, batches, padded
from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of, read_ids

facts: dict[str, Any] = {"version": torch.__version__.split("+")[0]}


class Translator(nn.Module):
    """Tied embeddings with sinusoids around `nn.Transformer`."""

    positions: Tensor

    def __init__(self, job: Job) -> None:
        super().__init__()
        numbers = job.model
        self.width = numbers["width"]
        self.embedding = nn.Embedding(job.vocabulary, self.width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=self.width**-0.5)
        self.transformer = nn.Transformer(
            self.width,
            numbers["heads"],
            numbers["encoder_layers"],
            numbers["decoder_layers"],
            numbers["feed_forward_width"],
            job.dropout,
            batch_first=True,
            norm_first=True,
        )
        for module in self.transformer.modules():  # no other contender drops attention weights
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
        self.dropout = nn.Dropout(job.dropout)
        self.register_buffer("positions", sinusoids(1024, self.width), persistent=False)

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, N) -> (B, N, D)."""
        placed = self.embedding(tokens) * math.sqrt(self.width) + self.positions[: tokens.shape[1]]
        return self.dropout(placed)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Features (B, T, D)."""
        hidden = source == PAD
        return self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )


def sinusoids(length: int, width: int) -> Tensor:
    """(N, D)."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def run(job: Job, meter: Meter) -> None:
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    model = Translator(job).train()
    facts["parameters"] = parameters_of(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), fused=True)
    for batch in batches(read_ids(job, "train"), job.batch_tokens, job.seed):
        meter.batch(sum(len(target) + 1 for _, target in batch))
        source = torch.tensor(padded([[*source, EOS] for source, _ in batch]))
        target = torch.tensor(padded([[BOS, *target] for _, target in batch]))
        wanted = torch.tensor(padded([[*target, EOS] for _, target in batch]))
        optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=job.precision == "bfloat16"):
            real = wanted != PAD
            logits = F.linear(model(source, target)[real], model.embedding.weight)
            loss = F.cross_entropy(logits.float(), wanted[real], label_smoothing=job.label_smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()


if __name__ == "__main__":
    measure(run, lambda: facts)
