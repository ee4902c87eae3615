"""Record attention by running the model once more, in parallel, over its own output. Never changes a translation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from softgaze.bundle import Tokenizers
from softgaze.gaze.attention import END_MARK, Attention
from softgaze.models.base import Place, Seq2Seq, Source
from softgaze.symbols import BEGIN, END


class Recorder:
    """A watch that keeps what it sees and changes nothing."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], list[Tensor]] = {}

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Remember the rows of each attention in order."""
        self.seen.setdefault((place.kind, place.layer), []).append(weights[0].detach().float().cpu())
        return weights

    def maps(self, kind: str) -> dict[int, Tensor]:
        """Weights (H, T, S) of each layer."""
        return {layer: torch.cat(rows, 1) for (seen, layer), rows in self.seen.items() if seen == kind}


@torch.no_grad()
def record(model: Seq2Seq, tokenizers: Tokenizers, source: Sequence[int], target: Sequence[int]) -> Attention | None:
    """The sharpest layer's cross-attention, mean of its heads; None for a model that never looks back.

    `source` and `target` are ids without special tokens. The row of a word is where the model looked to predict it.
    """
    device = next(model.parameters()).device
    recorder = Recorder()
    model(Source.of([[*source, END]], device), torch.tensor([[BEGIN, *target]], device=device), recorder)
    source_pieces = (*tokenizers.source.pieces(source), END_MARK)
    target_pieces = (*tokenizers.target.pieces(target), END_MARK)
    maps = [
        Attention(source_pieces, target_pieces, weights.mean(0).double().numpy(), describe(layer, len(weights)))
        for layer, weights in recorder.maps("cross").items()
    ]
    return min(maps, key=Attention.entropy, default=None)


def describe(layer: int, heads: int) -> str:
    """What a figure says of itself."""
    which = f"mean of {heads} heads" if heads > 1 else "one head"
    return f"cross-attention, layer {layer + 1} (the sharpest), {which}; a row is where the model looked to predict it"
