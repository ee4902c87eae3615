"""Which models are compared: `rnn-luong:score=dot,rnn-luong:score=general` names two, by arch and options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from softgaze.config import Config, merged, parse_assignments, resolve, validated
from softgaze.errors import UsageError

ARCHS = "rnn,rnn-bahdanau,rnn-luong,conv,transformer"
# Beyond the lengths of training, what a Transformer knows of positions decides; ours learn with rotary ones.
BUILT_IN_ARCHS = f"{ARCHS},transformer:positions=sinusoidal"


@dataclass(frozen=True)
class Variant:
    """One model of a comparison."""

    name: str  # as it was asked for
    settings: dict[str, Any]  # what sets it apart from the others

    @property
    def directory(self) -> str:
        """The name as any file system takes it."""
        return self.name.replace(":", "+").replace("/", "_")

    def config(self, shared: Mapping[str, Any]) -> Config:
        """All settings of its training, on top of what all models share."""
        return resolve(validated(merged(shared, self.settings)))


def parse_variants(text: str, shared: Mapping[str, Any]) -> list[Variant]:
    """Models by name, separated by commas, each with options after colons; every mistake is found before training."""
    names = ["".join(each.split()) for each in text.split(",")]
    if not all(names):
        raise UsageError(f"--archs takes names separated by commas, such as {ARCHS}; one of {text!r} is empty")
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated:
        raise UsageError(f"--archs names {repeated} twice; what is compared must differ")
    variants = [parse_variant(name, shared) for name in names]
    check_distinct(variants, shared)
    return variants


def check_distinct(variants: Sequence[Variant], shared: Mapping[str, Any]) -> None:
    """Refuse names that are spelled differently and mean the same: one would be trained for nothing."""
    for one, other in combinations(variants, 2):
        if one.config(shared) == other.config(shared):
            raise UsageError(
                f"--archs: {one.name} and {other.name} are the same model, with the same settings; what is compared "
                "must differ"
            )


def parse_variant(name: str, shared: Mapping[str, Any]) -> Variant:
    """One model, tried out without its weights, since only building shows whether all options fit together."""
    arch, *options = name.split(":")
    for option in options:
        if not all(option.partition("=")):
            raise UsageError(f"--archs {name}: options are NAME=VALUE after a colon, such as rnn-luong:score=dot")
    chosen = parse_assignments(f"model.options.{option}" for option in options)
    variant = Variant(name, merged({"model": {"arch": arch}}, chosen))
    try:
        check_buildable(variant.config(shared))
    except ValueError as error:
        raise UsageError(f"--archs {name}: {error}") from None
    return variant


def check_buildable(config: Config) -> None:
    """Options that cannot make a model of text are refused; nothing is allocated."""
    import torch

    from softgaze.models import MODELS, build

    model = config.model
    if model.arch in MODELS and MODELS[model.arch].reads_vectors:
        raise UsageError("it reads pictures or features, and `compare` trains on text; train it with `softgaze train`")
    with torch.device("meta"):
        build(model.arch, model.size, source_vocabulary=100, **model.options)
