"""Token embeddings of both sides and the output layer, tied or separate."""

from typing import NamedTuple

from torch import nn

from softgaze.errors import pick


class Embeddings(NamedTuple):
    """Three layers that may share one matrix."""

    source: nn.Embedding
    target: nn.Embedding
    output: nn.Linear


class Tie(NamedTuple):
    """Which of the three matrices are shared."""

    source_target: bool
    target_output: bool


TIES: dict[str, Tie] = {
    "all": Tie(source_target=True, target_output=True),  # one joint vocabulary (Vaswani 2017, §3.4)
    "source-target": Tie(source_target=True, target_output=False),
    "output": Tie(source_target=False, target_output=True),  # (Press & Wolf 2017)
    "none": Tie(source_target=False, target_output=False),
}


def embeddings(
    source_vocabulary: int, target_vocabulary: int, width: int, tie: str, output_bias: bool = False
) -> Embeddings:
    """Draw embeddings with deviation 1/√D, so that √D times them has unit variance and tied logits start small."""
    tied = pick("tie", tie, TIES)
    if tied.source_target and source_vocabulary != target_vocabulary:
        raise ValueError(
            f"tie {tie!r} needs one joint vocabulary, got {source_vocabulary} source and {target_vocabulary} target "
            "tokens; use tie 'output' or 'none'"
        )
    target = embedding(target_vocabulary, width)
    source = target if tied.source_target else embedding(source_vocabulary, width)
    output = nn.Linear(width, target_vocabulary, bias=output_bias)
    nn.init.normal_(output.weight, std=width**-0.5)
    if output_bias:
        nn.init.zeros_(output.bias)
    if tied.target_output:
        output.weight = target.weight
    return Embeddings(source, target, output)


def embedding(vocabulary: int, width: int) -> nn.Embedding:
    table = nn.Embedding(vocabulary, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table
