"""A model whose reasons are known: what a source word does to an output word is written in a table."""

from typing import Any, NamedTuple, Self

import numpy
import torch
from torch import Tensor, nn

from softgaze.attention import attend, padding_mask
from softgaze.gaze.passages import Passage
from softgaze.models.base import Advance, Memory, Seq2Seq, Source, Watch, choose, look_at

STRENGTH = 0.5


class Where(NamedTuple):
    """Where the planted model stands."""

    source: Tensor  # (B, S)
    mask: Tensor
    place: Tensor  # (B,)

    def reorder(self, index: Tensor) -> Self:
        chosen: Self = choose(self, index)
        return chosen


class Planted(Seq2Seq):
    """Writes `target`; its step t gains logit in proportion to table[t, s] for each source token s that is there.

    Two layers of two heads look; only `honest` (layer, head) looks where the table says, one step `late` if asked to.
    The others look where it says the opposite.
    """

    def __init__(self, passage: Passage, vocabulary: int, honest=(1, 0), late=False, seed=0) -> None:
        super().__init__()
        [spoken] = passage.parts
        self.vocabulary, self.honest, self.late, self.output = vocabulary, honest, late, nn.Identity()
        self.target = [*spoken.target, 0]
        dice = numpy.random.default_rng(seed)
        table = numpy.zeros((len(self.target) + 1, vocabulary))  # by what each source token is, wherever it stands
        table[:] = dice.uniform(0.1, 1, table.shape)
        self.table = torch.tensor(table, dtype=torch.float32)
        self.eval()

    def encode(self, source: Source, watch: Watch | None = None) -> Memory:
        return Memory(source.values[..., None].float(), padding_mask(source.lengths, source.values.shape[1]))

    def start(self, memory: Memory) -> Where:
        ids = memory.values[..., 0].long()
        return Where(ids, memory.mask, torch.zeros(len(ids), dtype=torch.long))

    def advance(self, tokens: Tensor, state: Any, watch: Watch | None = None, *, need_weights: bool = False) -> Advance:
        steps = (int(state.place[0]) + torch.arange(tokens.shape[1])).clamp(max=len(self.target) - 1)
        matters = self.strength(state, steps)  # (B, T, S)
        for layer in range(2):
            shown = torch.stack([self.shown(state, steps, (layer, head)) for head in range(2)], 1)  # (B, H, T, S)
            ones = torch.ones(*shown.shape[:2], shown.shape[-1], 1)
            look = look_at(watch, "cross", layer, int(state.place[0]))
            attend(shown.log(), ones, ones, state.mask, score=lambda query, keys: query, look=look)
        features = torch.zeros(*matters.shape[:2], self.vocabulary)
        features.scatter_(
            2, torch.tensor(self.target)[steps].expand(len(tokens), -1)[..., None], matters.sum(-1)[..., None]
        )
        return Advance(features, state._replace(place=state.place + tokens.shape[1]), None)

    def strength(self, state: Where, steps: Tensor) -> Tensor:
        """(B, T, S), 0 on padding."""
        return STRENGTH * self.table[steps][:, state.source].transpose(0, 1) * state.mask[:, 0]

    def shown(self, state: Where, steps: Tensor, place: tuple[int, int]) -> Tensor:
        """What one head says it looks at, unnormalised."""
        said = self.table[(steps - int(self.late)).clamp(min=0)][:, state.source].transpose(0, 1)  # (B, T, S)
        return said if place == self.honest else (1.2 - said) ** 4
