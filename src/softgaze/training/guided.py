"""Guided attention: one head of the cross-attention also learns where to look from links (Chen 2016; Garg 2019).

The extra loss is the cross-entropy between the links of each target piece and the weights with which the head looked
to predict it. It is taken through the watch, before dropout, and reaches nothing but what made those weights.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from softgaze.config import Config, ModelSettings, TrainingSettings
from softgaze.errors import UsageError
from softgaze.gaze.watching import Recorder
from softgaze.models import MODELS, build
from softgaze.models.base import Place, Seq2Seq
from softgaze.symbols import BEGIN, SPECIAL
from softgaze.training.links import LinkFiles
from softgaze.training.loss import Links

WEIGHT = 1.0  # of a loss a linked piece, beside the loss a token
TINY = 1e-9  # what a weight counts as at least: its logarithm must be finite


class Guidance(NamedTuple):
    """Which head learns from links, and how much that counts."""

    layer: int
    head: int
    weight: float

    @classmethod
    def of(cls, settings: TrainingSettings, model: Seq2Seq) -> "Guidance":
        """The last layer but one unless told otherwise: there a Transformer looks most where words mean each other."""
        layers, heads = looks_of(model)
        if not layers:
            raise UsageError("--guided teaches a model where to look, and this arch never looks at its source")
        layer = max(0, layers - 2) if settings.guided_layer is None else settings.guided_layer
        head = settings.guided_head or 0
        for name, number, count in (("layer", layer, layers), ("head", head, heads)):
            if number >= count:
                raise UsageError(f"training.guided_{name} is {number}, but this model's are counted 0 to {count - 1}")
        return cls(layer, head, settings.guided_weight or WEIGHT)


class Guide:
    """A watch that keeps the weights of one head, with their gradient, and changes nothing."""

    def __init__(self, head: int) -> None:
        self.head = head
        self.rows: list[Tensor] = []  # each (B, Q, S): all steps at once, or one after the other

    def __call__(self, place: Place, weights: Tensor, values: Tensor) -> Tensor:
        """Remember."""
        self.rows.append(weights[:, self.head])
        return weights

    def summed_loss(self, links: Links) -> Tensor:
        """−Σ share · log weight: a cross-entropy for each linked target piece, since its shares sum to 1."""
        weights = torch.cat(self.rows, 1)[links.places]  # (N,)
        precise = torch.promote_types(weights.dtype, torch.float32)
        return -(links.shares * weights.to(precise).clamp(min=TINY).log()).sum()


# --- before any text is read -----------------------------------------------------------------------------------------


def check_looking(config: Config, guided: LinkFiles | None) -> None:
    """What is asked of the attention must be possible."""
    settings, film = config.training, config.validation.film
    asked = [name for name in ("weight", "layer", "head") if getattr(settings, f"guided_{name}") is not None]
    if asked and guided is None:
        raise UsageError(f"training.guided_{asked[0]} is set, but there are no links to learn from; give --guided FILE")
    even = settings.doubly_stochastic is not None
    if guided is not None and even:
        raise UsageError("training.doubly_stochastic and --guided both say where to look; use one of them")
    if guided is None and not film and not even:
        return
    model = small_likeness(config.model)
    if even and not looks_of(model)[0]:
        raise UsageError(f"training.doubly_stochastic needs attention, and {config.model.arch} never looks")
    if guided is not None:
        Guidance.of(settings, model)
    elif film and not looks_of(model)[0]:
        raise UsageError(f"--film shows where a model looks, and {config.model.arch} never looks at its source")


def small_likeness(settings: ModelSettings) -> Seq2Seq:
    """A model as the settings describe it that knows next to no words."""
    sides = {"source_vocabulary": MODELS[settings.arch].few, "target_vocabulary": len(SPECIAL) + 1}
    return build(settings.arch, settings.size, **sides, **settings.options)


def looks_of(model: Seq2Seq) -> tuple[int, int]:
    """(layers, heads) of the cross-attention, found by trying; (0, 0) for a model without one."""
    recorder, source = Recorder(), model.example()
    with torch.no_grad():
        model(source, torch.tensor([[BEGIN]]), recorder)
    part = recorder.part(0, int(source.lengths[0]), 1)
    return part.cross.weights.shape[:2] if part.cross else (0, 0)
