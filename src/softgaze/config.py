"""One validated schema: the settings file, `--set a.b=c`, the flags, their help texts and their defaults.

A setting left at None is chosen for the arch and size (`DEFAULTS`). Unknown keys are refused with the nearest name.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from softgaze.errors import DataError, UsageError, did_you_mean


class Section(BaseModel):
    """Settings that belong together; frozen, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSettings(Section):
    """Which model."""

    arch: str = Field(
        "transformer", description="Model family: rnn, rnn-bahdanau, rnn-luong, conv, transformer, captioner."
    )
    size: str = Field("tiny", description="tiny, small, base or big.")
    options: dict[str, Any] = Field({}, description="Options of the arch itself, such as dropout or score.")


class DataSettings(Section):
    """Which text, and how it is cut."""

    source_language: str | None = Field(None, description="Code of the source language; else from the file ending.")
    target_language: str | None = Field(None, description="Code of the target language; else from the file ending.")
    vocabulary: int | None = Field(None, ge=1, description="Number of subwords; else chosen from the text.")
    joint: bool = Field(True, description="One vocabulary for both sides.")
    max_length: int = Field(256, ge=2, description="Pairs with more subwords on either side are left out.")
    held_out: int = Field(1000, ge=1, description="Pairs held out for validation when no --dev is given.")
    side: int | None = Field(
        None, ge=1, le=4096, description="Pixels of the square a picture is seen as; else what its encoder takes."
    )


class TrainingSettings(Section):
    """How to learn."""

    seed: int = Field(1, ge=0, description="Everything random follows from this number.")
    batch_tokens: int | None = Field(None, ge=1, description="Padded tokens of the longer side in one batch.")
    accumulate: int = Field(1, ge=1, description="Batches whose gradients make one update.")
    learning_rate: float | None = Field(None, gt=0, description="Peak learning rate.")
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = Field(
        "inverse-sqrt",
        description="Course of the rate after warm-up: inverse-sqrt, cosine (needs --steps) or constant.",
    )
    warmup: int | None = Field(None, ge=0, description="Updates until the peak rate.")
    weight_decay: float = Field(0.0, ge=0, description="AdamW's decay.")
    beta2: float = Field(0.98, gt=0, lt=1, description="AdamW's second decay rate.")
    clip: float = Field(1.0, gt=0, description="Largest gradient norm.")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="Probability spread over all other tokens.")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="auto takes bfloat16 where the processor computes in it."
    )
    doubly_stochastic: float | None = Field(
        None, gt=0, description="How much it counts that each part of a source is looked at as much as others; else 0."
    )
    guided_weight: float | None = Field(
        None, gt=0, description="With --guided: how much the loss of the links counts; else 1."
    )
    guided_layer: int | None = Field(
        None, ge=0, description="With --guided: the layer that learns from links, from 0; else the last but one."
    )
    guided_head: int | None = Field(None, ge=0, description="With --guided: its head that learns, from 0; else 0.")
    fast: bool = Field(True, description="Measures that speed up a CPU; false computes everything the plain way.")
    rank_timeout: float = Field(
        600.0, gt=0, description="Many ranks: seconds without a word from another before giving up."
    )
    average: int = Field(5, ge=0, description="Average the weights of this many last validations, kept when better.")


class BudgetSettings(Section):
    """When to stop, whichever comes first; at least one of minutes, steps, epochs or patience ends a run."""

    minutes: float | None = Field(None, gt=0, description="Minutes of training, counted over all resumes.")
    steps: int | None = Field(None, ge=1, description="Updates.")
    epochs: int | None = Field(None, ge=1, description="Passes over the data.")
    patience: int = Field(10, ge=1, description="Validations without a better score before stopping.")


class ValidationSettings(Section):
    """How often to look, and at what."""

    every: int | None = Field(None, ge=1, description="Updates between validations; else about one an epoch.")
    save_every: int | None = Field(None, ge=1, description="Updates between checkpoints; else with each validation.")
    sentences: int = Field(500, ge=1, description="Held-out sentences translated for BLEU and chrF.")
    metric: Literal["bleu", "chrf", "loss"] = Field("bleu", description="What decides which weights are best.")
    samples: int = Field(5, ge=0, description="Fixed sentences whose translation is shown each time.")
    film: bool = Field(False, description="Keep the attention of one held-out sentence each time, as film.jsonl.")


class Config(Section):
    """Everything a training run depends on, but for the text itself."""

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()
    budget: BudgetSettings = BudgetSettings()
    validation: ValidationSettings = ValidationSettings()


class Choice(NamedTuple):
    """What beginners never set, for one arch and size."""

    learning_rate: float
    warmup: int
    batch_tokens: int
    options: dict[str, Any]


# Tuned on development data only (docs/log.md). Small models want small batches: on a CPU updates are what is scarce.
DEFAULTS: dict[str, dict[str, Choice]] = {
    "transformer": {
        "tiny": Choice(3e-3, 400, 1024, {"dropout": 0.1, "positions": "rotary"}),
        "small": Choice(1.5e-3, 1000, 2048, {"dropout": 0.2, "positions": "rotary"}),
        "base": Choice(7e-4, 4000, 4096, {"dropout": 0.1, "positions": "rotary"}),
        "big": Choice(5e-4, 4000, 4096, {"dropout": 0.3, "positions": "rotary"}),
    },
    "rnn": {
        "tiny": Choice(2e-3, 300, 1024, {"dropout": 0.2}),
        "small": Choice(1e-3, 500, 2048, {"dropout": 0.3}),
        "base": Choice(1e-3, 1000, 4096, {"dropout": 0.3}),
        "big": Choice(5e-4, 2000, 4096, {"dropout": 0.3}),
    },
    "captioner": {
        "tiny": Choice(2e-3, 150, 8192, {"dropout": 0.1}),
        "small": Choice(1e-3, 500, 8192, {"dropout": 0.2}),
        "base": Choice(5e-4, 1000, 16384, {"dropout": 0.3}),
        "big": Choice(3e-4, 2000, 16384, {"dropout": 0.3}),
    },
    "conv": {
        "tiny": Choice(2e-3, 400, 1024, {"dropout": 0.1}),
        "small": Choice(1e-3, 1000, 2048, {"dropout": 0.2}),
        "base": Choice(5e-4, 2000, 4096, {"dropout": 0.2}),
        "big": Choice(3e-4, 4000, 4096, {"dropout": 0.2}),
    },
}


# For one arch of a family, whatever its size. A class by itself is as in its paper, and older bundles stay as they are.
OPTIONS: dict[str, dict[str, Any]] = {"rnn-luong": {"shortcut": True}, "rnn-bahdanau": {"shortcut": True}}


def resolve(config: Config, *, trained: bool = False) -> Config:
    """Fill what was left open with the defaults of the arch and size; the options of a trained model are complete."""
    family = DEFAULTS.get(config.model.arch.split("-")[0], DEFAULTS["transformer"])
    chosen = family.get(config.model.size, family["tiny"])
    given = config.training
    open_ones = [name for name in ("learning_rate", "warmup", "batch_tokens") if getattr(given, name) is None]
    training = given.model_copy(update={name: getattr(chosen, name) for name in open_ones})
    options = {} if trained else {**chosen.options, **OPTIONS.get(config.model.arch, {})}
    model = config.model.model_copy(update={"options": {**options, **config.model.options}})
    if training.schedule == "cosine" and config.budget.steps is None:
        raise UsageError("the cosine schedule must know where it ends: give --steps, or use inverse-sqrt")
    return config.model_copy(update={"training": training, "model": model})


# --- from the outside -------------------------------------------------------------------------------------------


def read_config(path: Path) -> dict[str, Any]:
    """A YAML file of settings, as nested dictionaries still to be validated."""
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read as settings: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise DataError(f"{path}: settings are sections with keys, such as 'training: {{seed: 1}}'")
    return loaded


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """`["training.seed=2", …]` as nested dictionaries; values are YAML, so 1e-3, true and names need no quotes."""
    settings: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set takes NAME=VALUE, such as training.seed=2, not {text!r}")
        *sections, key = name.strip().split(".")
        place = settings
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = parse_value(value)
    return settings


def parse_value(text: str) -> Any:
    """A YAML scalar; 1e-3 too, which YAML 1.1 takes for a word."""
    try:
        return float(text) if "e" in text.lower() else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return text


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries laid over each other, later ones on top."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
            result[key] = merged(result[key], value) if both else value
    return result


def validated(settings: Mapping[str, Any]) -> Config:
    """Settings checked against the schema; the first mistake is named with its place and the nearest right name."""
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """One line about the first thing that is wrong."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    name = ".".join(place)
    if first["type"] == "extra_forbidden":
        return f"unknown setting {name}; {did_you_mean(name, setting_names())}"
    return f"setting {name}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}"


def setting_names() -> list[str]:
    """Every setting by its full name."""
    return [
        f"{section}.{key}"
        for section, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for key in field.annotation.model_fields
    ]


def differences(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What changed between two settings, one line each: `training.seed: 1 → 2`."""
    lines = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            lines += differences(old, new, f"{prefix}{key}.")
        elif old != new:
            lines.append(f"{prefix}{key}: {old} → {new}")
    return lines
