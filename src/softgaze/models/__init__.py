"""Every model family of the package. `MODELS` is the whole registry."""

import inspect
from typing import Any

from softgaze.errors import UsageError, did_you_mean, pick
from softgaze.models.base import Memory, Place, Seq2Seq, Source, State, Step, Watch
from softgaze.models.captioner import Captioner
from softgaze.models.conv import Conv
from softgaze.models.rnn import RNN, BahdanauRNN, LuongRNN
from softgaze.models.transformer import Transformer
from softgaze.symbols import SPECIAL

__all__ = [
    "MODELS",
    "Memory",
    "Place",
    "Seq2Seq",
    "Source",
    "State",
    "Step",
    "Watch",
    "build",
    "check_options",
    "options",
]

MODELS: dict[str, type[Seq2Seq]] = {
    "rnn": RNN,
    "rnn-bahdanau": BahdanauRNN,
    "rnn-luong": LuongRNN,
    "conv": Conv,
    "transformer": Transformer,
    "captioner": Captioner,
}


def build(
    arch: str, size: str = "tiny", *, source_vocabulary: int, target_vocabulary: int | None = None, **chosen: Any
) -> Seq2Seq:
    """A fresh model: `arch` and `size` are names, `chosen` overrides any of the model's own options.

    One vocabulary for both sides unless `target_vocabulary` is given.
    """
    numbers = check_options(arch, size, chosen)
    target_vocabulary = source_vocabulary if target_vocabulary is None else target_vocabulary
    fewest = 1 if MODELS[arch].reads_vectors else len(SPECIAL) + 1
    needed = (("source", source_vocabulary, fewest), ("target", target_vocabulary, len(SPECIAL) + 1))
    for side, count, least in needed:
        if not isinstance(count, int) or count < least:
            raise UsageError(f"the {side} vocabulary needs more than its {len(SPECIAL)} special tokens, not {count!r}")
    return MODELS[arch](source_vocabulary, target_vocabulary, **{**numbers, **chosen})


def check_options(arch: str, size: str, chosen: dict[str, Any]) -> dict[str, int]:
    """Refuse names and values that cannot make a model; returns the numbers of the size."""
    model = pick("arch", arch, MODELS)
    numbers = pick(f"size of {arch}", size, model.sizes)
    known = options(model)
    for name, value in chosen.items():
        if name not in known:
            raise UsageError(f"{arch} has no option {name!r}; {did_you_mean(name, known)}")
        check_option(arch, known[name], value)
    return numbers


def options(model: type[Seq2Seq]) -> dict[str, inspect.Parameter]:
    """Every keyword a model takes, its own before those it hands on to its base."""
    found: dict[str, inspect.Parameter] = {}
    for owner in model.__mro__:
        if "__init__" not in vars(owner):
            continue
        parameters = inspect.signature(vars(owner)["__init__"]).parameters.values()
        found = {each.name: each for each in parameters if each.kind is each.KEYWORD_ONLY} | found
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return found


def check_option(arch: str, option: inspect.Parameter, value: Any) -> None:
    """A value must be of its option's type; counts and sizes start at 1."""
    kind = option.annotation
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        name = getattr(kind, "__name__", str(kind))
        raise UsageError(f"the option {option.name} of {arch} takes {name}, not {value!r}")
    if kind is float and not 0 <= value < 1:
        raise UsageError(f"the option {option.name} of {arch} is a share from 0 up to 1, not {value}")
    if kind is not float and isinstance(value, int) and not isinstance(value, bool) and value < 1:
        raise UsageError(f"the option {option.name} of {arch} starts at 1, not {value}")
