"""Convert the weights of our trained Transformer to the names of a peer. Needs only torch.

The file was written by `torch.save` and maps our parameter names to tensors; embeddings and output are one matrix.
"""

import re
from typing import Any, NamedTuple

import torch

Weights = dict[str, Any]  # name -> tensor
LAYER = re.compile(r"(encoder|decoder)\.(\d+)\.(.+)\.(weight|bias)")
MAX_POSITIONS = 1024  # longer than any sentence of the benchmarks


class Names(NamedTuple):
    """The names of a peer: of the parts of a layer without `.weight` and `.bias`, of everything else in full."""

    stacks: dict[str, str]  # encoder, decoder -> prefix of the layer number
    layers: dict[str, dict[str, str]]  # encoder, decoder -> our part -> theirs
    others: dict[str, list[str]]  # our name -> all of theirs with that tensor


def read(path: str) -> Weights:
    weights: Weights = torch.load(path, weights_only=True)
    return weights


def renamed(weights: Weights, names: Names) -> Weights:
    """Return the weights under the names of the peer."""
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
    """Return the names of the last norm of each stack."""
    return {
        f"{ours}_norm.{kind}": [f"{theirs}.{kind}"]
        for ours, theirs in (("encoder", encoder), ("decoder", decoder))
        for kind in ("weight", "bias")
    }


def attention(ours: str, theirs: str, names: tuple[str, str, str, str]) -> dict[str, str]:
    """Return the names of the four projections of a block: query, key, value, output."""
    return {
        f"{ours}.{one}": f"{theirs}.{other}"
        for one, other in zip(("query", "key", "value", "output"), names, strict=True)
    }


def load(model: Any, weights: Weights, besides: str) -> None:
    """Load weights into a peer's model; only parameters that match `besides` may keep their initial values."""
    outcome = model.load_state_dict(weights, strict=False)
    drawn = [name for name in outcome.missing_keys if not re.search(besides, name)]
    if drawn or outcome.unexpected_keys:
        raise SystemExit(f"the weights do not fit: {drawn} are missing, {outcome.unexpected_keys} have no counterpart")


def sinusoids(width: int, first: int = 0) -> Any:
    """Return our table of positional encodings after `first` rows of zeros."""
    angles = torch.arange(MAX_POSITIONS)[:, None] * 10_000.0 ** (-torch.arange(0, width, 2) / width)
    waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    return torch.cat([torch.zeros(first, width), waves])
