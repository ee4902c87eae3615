"""Every model family of the package. `MODELS` is the registry."""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar

from softgaze.errors import UsageError, did_you_mean, pick
from softgaze.models.base import AttentionHook, AttentionSite, Memory, Seq2Seq, Source, State, Step
from softgaze.special_tokens import SPECIAL_TOKENS

__all__ = [
    "MODELS",
    "AttentionHook",
    "AttentionSite",
    "Memory",
    "Seq2Seq",
    "Source",
    "State",
    "Step",
    "build_model",
    "check_options",
    "model_options",
]


class ModelClasses(Mapping[str, type[Seq2Seq]]):
    """The class of each arch, imported on first use."""

    modules: ClassVar = {
        "rnn": ("rnn", "RNN"),
        "rnn-bahdanau": ("rnn", "BahdanauRNN"),
        "rnn-luong": ("rnn", "LuongRNN"),
        "conv": ("conv", "Conv"),
        "transformer": ("transformer", "Transformer"),
        "captioner": ("captioner", "Captioner"),
    }

    def __getitem__(self, arch: str) -> type[Seq2Seq]:
        module, name = self.modules[arch]
        model: type[Seq2Seq] = getattr(import_module(f"{__name__}.{module}"), name)
        return model

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


MODELS = ModelClasses()
RENAMED_OPTIONS = {"reach": "window_size"}  # in older files -> today's


def build_model(
    arch: str, size: str = "tiny", *, source_vocabulary: int, target_vocabulary: int | None = None, **options: Any
) -> Seq2Seq:
    """Build a new model.

    Parameters
    ----------
    arch
        A key of `MODELS`.
    size
        `tiny`, `small`, `base` or `big`.
    source_vocabulary
        Number of tokens; of both sides unless `target_vocabulary` is given.
    target_vocabulary
        Number of target tokens.
    **options
        Model options that override those of the size.
    """
    size_options = check_options(arch, size, options)
    target_vocabulary = source_vocabulary if target_vocabulary is None else target_vocabulary
    smallest = len(SPECIAL_TOKENS) + 1
    minima = (
        ("source", source_vocabulary, 1 if MODELS[arch].reads_features else smallest),
        ("target", target_vocabulary, smallest),
    )
    for side, count, minimum in minima:
        if not isinstance(count, int) or count < minimum:
            raise UsageError(
                f"the {side} vocabulary needs more than the {len(SPECIAL_TOKENS)} special tokens, got {count!r}"
            )
    return MODELS[arch](source_vocabulary, target_vocabulary, **{**size_options, **options})


def check_options(arch: str, size: str, options: dict[str, Any]) -> dict[str, int]:
    """Return the options of a size; raise on names and values that cannot make a model."""
    model = pick("arch", arch, MODELS)
    size_options = pick(f"size of {arch}", size, model.sizes)
    known = model_options(model)
    for name, value in options.items():
        if name not in known:
            raise UsageError(f"{arch} has no option {name!r}; {did_you_mean(name, known)}")
        check_option(arch, known[name], value)
    return size_options


def model_options(model: type[Seq2Seq]) -> dict[str, inspect.Parameter]:
    """Return every keyword a model takes: its own, and those it passes on to its base classes."""
    options: dict[str, inspect.Parameter] = {}
    for cls in model.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
        options = {
            parameter.name: parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
        } | options
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return options


def check_option(arch: str, option: inspect.Parameter, value: Any) -> None:
    """Raise unless `value` has the type of the option; counts and sizes start at 1."""
    kind = option.annotation
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        expected = getattr(kind, "__name__", str(kind))
        raise UsageError(f"option {option.name} of {arch} must be {expected}, got {value!r}")
    if kind is float and not 0 <= value < 1:
        raise UsageError(f"option {option.name} of {arch} must be at least 0 and below 1, got {value}")
    if kind is not float and isinstance(value, int) and not isinstance(value, bool) and value < 1:
        raise UsageError(f"option {option.name} of {arch} must be at least 1, got {value}")
