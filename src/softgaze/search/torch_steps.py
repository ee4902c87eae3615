"""A torch model at work on one batch, as a search wants it. On any device; what leaves it is as small as the beam."""

from typing import Any

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq, Source, Watch
from softgaze.search.steps import BLOCK, NEVER, UNLIKELY, Array


class TorchSteps:
    """The state of every row, reordered only where rows really move.

    All in inference mode: what autograd asks of each small operation is a tenth of the time of a sentence alone.
    """

    @torch.inference_mode()
    def __init__(self, model: Seq2Seq, source: Source, watch: Watch | None = None) -> None:
        check_ready(model)
        self.model, self.watch, self.device = model, watch, source.values.device
        self.sources, self.lengths = source.values.cpu().numpy(), source.lengths.cpu().numpy()
        self.state: Any = model.start(model.encode(source, watch))
        self.rows = len(self.lengths)

    @torch.inference_mode()
    def read(self, rows: Array, tokens: Array) -> "TensorChances":
        """Go on with some of the rows there are and read one more token in each, both (N, W)."""
        stay = rows.size == self.rows and bool((rows.ravel() == range(self.rows)).all())
        if not stay:
            self.state = self.state.reorder(torch.from_numpy(rows).to(self.device))
            self.rows = rows.size
        token = torch.from_numpy(tokens.ravel()).to(self.device)
        logits, self.state, _ = self.model.step(token, self.state, self.watch, need_weights=False)
        return TensorChances(logits)


def check_ready(model: Seq2Seq) -> None:
    """A model in training mode drops out at random: every search would find something else."""
    if model.training:
        raise ValueError("the model is in training mode, where dropout is random; call model.eval() before a search")


class TensorChances:
    """Chances on a device. Each pass over all of them costs as much as a layer of a small model, so there are few."""

    def __init__(self, logits: Tensor) -> None:
        self.values = logits.float().log_softmax(-1).clamp_(min=UNLIKELY)  # (R, V)
        self.vocabulary = self.values.shape[1]

    @torch.inference_mode()
    def forbid(self, tokens: Array) -> None:
        """These may follow in no row."""
        self.values[:, self.tensor(tokens)] = NEVER

    @torch.inference_mode()
    def forbid_in(self, rows: Array, tokens: Array) -> None:
        """Token i may not follow in row i of the two lists."""
        self.values[self.tensor(rows), self.tensor(tokens)] = NEVER

    @torch.inference_mode()
    def force(self, rows: Array, tokens: Array) -> None:
        """Nothing but token i may follow in row i of the two lists."""
        where = self.tensor(rows), self.tensor(tokens)
        kept = self.values[where]
        self.values[where[0]] = NEVER
        self.values[where] = kept

    @torch.inference_mode()
    def others(self, token: int) -> Array:
        """(R,) how many tokens but this one may follow."""
        possible = self.values > NEVER
        return array_of(possible.sum(1) - possible[:, token].long())

    @torch.inference_mode()
    def best(self, totals: Array, count: int) -> tuple[Array, Array]:
        """The `count` best continuations of each sentence: their totals and places, (N, C)."""
        before = self.tensor(totals)  # (N, W)
        if self.vocabulary < count * BLOCK:
            scores = (self.values.view(*before.shape, -1) + before[..., None]).flatten(1)  # (N, W · V)
            places = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
        else:
            scores, places = self.promising(before, count)
        found = scores.topk(min(count, scores.shape[1]))
        return array_of(found.values), array_of(places.gather(1, found.indices))

    def promising(self, before: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Scores and places of tokens among which are the `count` best: to sort all would cost more than to read them.

        The best lie in the blocks whose own best are best, of which no more than `count` are needed; and in the rest
        of the vocabulary that fills no block.
        """
        width, device = before.shape[1], before.device
        whole = self.vocabulary - self.vocabulary % BLOCK
        blocks = self.values[:, :whole].view(*before.shape, -1, BLOCK)  # (N, W, b, BLOCK)
        heads = (blocks.amax(-1) + before[..., None]).flatten(1).topk(count).indices  # (N, C) of W · b
        row, block = heads // blocks.shape[2], heads % blocks.shape[2]
        sentence = torch.arange(len(before), device=device)[:, None]
        near = blocks[sentence, row, block] + before.gather(1, row)[..., None]  # (N, C, BLOCK)
        near_places = (row * self.vocabulary + block * BLOCK)[..., None] + torch.arange(BLOCK, device=device)

        rest = self.values[:, whole:].view(*before.shape, -1) + before[..., None]  # (N, W, V − whole)
        starts = torch.arange(width, device=device)[:, None] * self.vocabulary
        rest_places = (starts + torch.arange(whole, self.vocabulary, device=device)).expand_as(rest)
        return (
            torch.cat([near.flatten(1), rest.flatten(1)], 1),
            torch.cat([near_places.flatten(1), rest_places.flatten(1)], 1),
        )

    def array(self) -> Array:
        """All of them."""
        return array_of(self.values)

    def tensor(self, numbers: Array) -> Tensor:
        """Where the chances are."""
        return torch.from_numpy(numbers).to(self.values.device)


def array_of(numbers: Tensor) -> Array:
    """In plain memory; on a CPU nothing is copied."""
    array: Array = numbers.cpu().numpy()
    return array
