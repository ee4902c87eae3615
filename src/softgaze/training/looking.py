"""At the end of a training: which of the model's attention maps shows best what it looks at. Measured, never fixed."""

from pathlib import Path

import torch

from softgaze.bundle import ATTENTION, Bundle, add_facts
from softgaze.gaze.choice import Looker, by_influence
from softgaze.training.prepare import Prepared


def choose_map(path: Path, prepared: Prepared, device: torch.device) -> None:
    """Measure the bundle at `path` on a few dozen held-out pairs and write down the map; nothing without attention."""
    bundle = Bundle.open(path)  # the best weights, which need not be the last ones
    choice = by_influence(Looker(bundle.model(str(device)), bundle.tokenizers), prepared.dev_text)
    if choice is not None:
        add_facts(path, {ATTENTION: choice.to_dict()})
