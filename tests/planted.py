"""A model with known reasons: a table gives the effect of each source word on each output word."""

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from softgaze.attention import attend, padding_mask
from softgaze.explain.scoring import TokenizedPair
from softgaze.models.base import Advance, AttentionHook, Memory, Seq2Seq, Source, hook_for, select_rows

STRENGTH = 0.5


class PlantedState(NamedTuple):
    source: Tensor  # (B, S)
    mask: Tensor
    position: Tensor  # (B,)

    def reorder(self, index: Tensor) -> Self:
        chosen: Self = select_rows(self, index)
        return chosen


class Planted(Seq2Seq):
    """Generates `target`; the logit of step t grows with table[t, s] for each source token s.

    Of two layers with two heads only `faithful` (layer, head) and `twin` attend as in the table, one step late with
    `late`; the others attend to the opposite.
    """

    def __init__(self, pair: TokenizedPair, vocabulary: int, faithful=(1, 0), late=False, seed=0, twin=None) -> None:
        super().__init__()
        [ids] = pair.parts
        self.vocabulary, self.faithful, self.late, self.output = vocabulary, (faithful, twin), late, nn.Identity()
        self.target = [*ids.target, 0]
        dice = np.random.default_rng(seed)
        table = np.zeros((len(self.target) + 1, vocabulary))  # by source token, at any position
        table[:] = dice.uniform(0.1, 1, table.shape)
        self.table = torch.tensor(table, dtype=torch.float32)
        self.eval()

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        return 2, 2

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        return Memory(source.values[..., None].float(), padding_mask(source.lengths, source.values.shape[1]))

    def start(self, memory: Memory) -> PlantedState:
        ids = memory.values[..., 0].long()
        return PlantedState(ids, memory.mask, torch.zeros(len(ids), dtype=torch.long))

    def advance(
        self, tokens: Tensor, state: Any, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        steps = (int(state.position[0]) + torch.arange(tokens.shape[1])).clamp(max=len(self.target) - 1)
        effect = self.strength(state, steps)  # (B, T, S)
        for layer in range(2):
            weights = torch.stack([self.weights(state, steps, (layer, head)) for head in range(2)], 1)  # (B, H, T, S)
            ones = torch.ones(*weights.shape[:2], weights.shape[-1], 1)
            weights_hook = hook_for(hook, "cross", layer, int(state.position[0]))
            attend(weights.log(), ones, ones, state.mask, score=lambda query, keys: query, hook=weights_hook)
        features = torch.zeros(*effect.shape[:2], self.vocabulary)
        features.scatter_(
            2, torch.tensor(self.target)[steps].expand(len(tokens), -1)[..., None], effect.sum(-1)[..., None]
        )
        return Advance(features, state._replace(position=state.position + tokens.shape[1]), None)

    def strength(self, state: PlantedState, steps: Tensor) -> Tensor:
        """(B, T, S), 0 on padding."""
        return STRENGTH * self.table[steps][:, state.source].transpose(0, 1) * state.mask[:, 0]

    def weights(self, state: PlantedState, steps: Tensor, head: tuple[int, int]) -> Tensor:
        """The unnormalised weights of one head."""
        table = self.table[(steps - int(self.late)).clamp(min=0)][:, state.source].transpose(0, 1)  # (B, T, S)
        return table if head in self.faithful else (1.2 - table) ** 4
