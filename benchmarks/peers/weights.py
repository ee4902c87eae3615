"""A trained Transformer of ours in the names of a peer. Only torch: each environment has it.

The file is what `torch.save` made of our parameters by name, each once: embeddings and output are one matrix.
"""

import re
from typing import Any, NamedTuple

import torch

Weights = dict[str, Any]  # name -> tensor
LAYER = re.compile(r"(encoder|decoder)\.(\d+)\.(.+)\.(weight|bias)")
MAX_POSITIONS = 1024  # as long as no sentence of a benchmark


class Names(NamedTuple):
    """What a peer calls the parts of a layer, without `.weight` and `.bias`, and everything else in full."""

    stacks: dict[str, str]  # encoder, decoder -> what stands before the number of a layer
    layers: dict[str, dict[str, str]]  # encoder, decoder -> our part -> theirs
    others: dict[str, list[str]]  # our name -> all of theirs that hold it


def read(path: str) -> Weights:
    """From the file the parent process wrote."""
    weights: Weights = torch.load(path, weights_only=True)
    return weights


def renamed(weights: Weights, names: Names) -> Weights:
    """The same numbers, as the peer's own loading wants them."""
    found: Weights = {}
    for name, value in weights.items():
        match = LAYER.fullmatch(name)
        if match is None:
            found |= dict.fromkeys(names.others[name], value)
        else:
            stack, number, part, kind = match.groups()
            found[f"{names.stacks[stack]}.{number}.{names.layers[stack][part]}.{kind}"] = value
    return found


def norms(encoder: str, decoder: str) -> dict[str, list[str]]:
    """The last norm of each stack."""
    return {
        f"{ours}_norm.{kind}": [f"{theirs}.{kind}"]
        for ours, theirs in (("encoder", encoder), ("decoder", decoder))
        for kind in ("weight", "bias")
    }


def attention(ours: str, theirs: str, names: tuple[str, str, str, str]) -> dict[str, str]:
    """The four matrices of a block: query, key, value, output."""
    return {
        f"{ours}.{one}": f"{theirs}.{other}"
        for one, other in zip(("query", "key", "value", "output"), names, strict=True)
    }


def load(model: Any, weights: Weights, besides: str) -> None:
    """Fill a peer's model: nothing is left over, and nothing stays as it was drawn but what matches `besides`."""
    outcome = model.load_state_dict(weights, strict=False)
    drawn = [name for name in outcome.missing_keys if not re.search(besides, name)]
    if drawn or outcome.unexpected_keys:
        raise SystemExit(f"the weights do not fit: {drawn} are missing, {outcome.unexpected_keys} have no counterpart")


def sinusoids(width: int, first: int = 0) -> Any:
    """Our table of places; `first` rows before it are empty."""
    angles = torch.arange(MAX_POSITIONS)[:, None] * 10_000.0 ** (-torch.arange(0, width, 2) / width)
    waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    return torch.cat([torch.zeros(first, width), waves])
