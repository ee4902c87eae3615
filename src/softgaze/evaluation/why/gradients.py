"""How strongly each output word depends on each source word, by the gradient: what vanishes where a path is long.

What is derived is the log-odds of an output word, not its log-probability: where a model is sure, the latter is flat
whatever it depends on. Each gradient is multiplied by the length of the source word's vector, so that models whose
vectors are longer do not seem to depend less. The unit: nats, were the word changed by its own length.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy
import torch
from torch import Tensor, nn

from softgaze.bundle import Tokenizers
from softgaze.gaze.honesty import UNKNOWN
from softgaze.gaze.passages import Passage, batches
from softgaze.gaze.recording import Matrix
from softgaze.gaze.watching import as_tensors, device_of
from softgaze.gaze.words import Side
from softgaze.models.base import Seq2Seq


def gradients(model: Seq2Seq, tokenizers: Tokenizers, passages: Sequence[Passage]) -> list[Matrix]:
    """For each passage of one part (target words, source words); not a number where a word has no piece of its own."""
    found: list[Matrix] = [numpy.zeros((0, 0))] * len(passages)
    for numbers in batches([passage.parts[0] for passage in passages]):
        batch = [passages[number] for number in numbers]
        for number, matrix in zip(numbers, batch_gradients(model, tokenizers, batch), strict=True):
            found[number] = matrix
    return found


def batch_gradients(model: Seq2Seq, tokenizers: Tokenizers, batch: Sequence[Passage]) -> Iterator[Matrix]:
    """One pass forward, and one back for each output word."""
    device = device_of(model)
    source, target = as_tensors([passage.parts[0] for passage in batch], tokenizers.source, device)
    sides = [passage.sides(tokenizers) for passage in batch]
    read = membership([each for each, _ in sides], source.values.shape[1]).to(device)  # (B, words, S)
    said = membership([each for _, each in sides], target.shape[1] - 1).to(device)  # (B, words, T)
    # Without cuDNN, whose recurrence goes back in training only.
    with torch.backends.cudnn.flags(enabled=False), source_vectors(model) as vectors:
        odds = log_odds(model(source, target[:, :-1]).float(), target[:, 1:])  # (B, T)
        words = (said * odds[:, None]).sum(-1)
        rows = [pulled(each.sum(), vectors[0], read) for each in words.unbind(1)]
    strengths = torch.stack(rows, 1).cpu().double().numpy()  # (B, target words, source words)
    for strength, (read_side, said_side) in zip(strengths, sides, strict=True):
        matrix = strength[: len(said_side.words), : len(read_side.words)]
        said_there, read_there = (
            numpy.array([bool(label.places) for label in side.cores()]) for side in (said_side, read_side)
        )
        yield numpy.where(said_there[:, None] & read_there, matrix, UNKNOWN)


def pulled(value: Tensor, vectors: Tensor, read: Tensor) -> Tensor:
    """How much a value moves with each source word: (B, words)."""
    [slope] = torch.autograd.grad(value, vectors, retain_graph=True)
    steep, long = ((read @ each.float().square().sum(-1, keepdim=True)).squeeze(-1).sqrt() for each in (slope, vectors))
    return (steep * long).detach()


def log_odds(logits: Tensor, wanted: Tensor) -> Tensor:
    """log p − log(1 − p) of the wanted tokens (B, T), from logits (B, T, V)."""
    own = logits.gather(-1, wanted[..., None])
    others = logits.scatter(-1, wanted[..., None], -torch.inf).logsumexp(-1)
    return own.squeeze(-1) - others


def membership(sides: Sequence[Side], pieces: int) -> Tensor:
    """(B, words, pieces): 1 where a piece belongs to a word, without the punctuation attached to it."""
    words = max(len(side.words) for side in sides)
    belongs = torch.zeros(len(sides), words, pieces)
    for row, side in enumerate(sides):
        for number, label in enumerate(side.cores()):
            belongs[row, number, list(label.places)] = 1.0
    return belongs


@contextmanager
def source_vectors(model: Seq2Seq) -> Iterator[list[Tensor]]:
    """The embedded source of the pass that is made inside; gradients end there."""
    seen: list[Tensor] = []

    def keep(module: nn.Module, given: object, made: Tensor) -> Tensor:
        if seen:  # one table may embed the target, too, and later
            return made
        seen.append(made.detach().requires_grad_())
        return seen[0]

    hook = model.get_submodule("source_embedding").register_forward_hook(keep)
    try:
        with torch.enable_grad():
            yield seen
    finally:
        hook.remove()
