"""Settings of a training run: one validated schema for YAML files, `--set a.b=c`, flags and their help texts.

A setting of None gets the default of the arch and size (`DEFAULTS`). Unknown names are errors.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from softgaze.errors import DataError, UsageError, did_you_mean


class Section(BaseModel):
    """A group of settings: frozen, unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSettings(Section):
    """Architecture of the model."""

    arch: str = Field(
        "transformer", description="Model family: rnn, rnn-bahdanau, rnn-luong, conv, transformer, captioner."
    )
    size: str = Field("tiny", description="tiny, small, base or big.")
    options: dict[str, Any] = Field({}, description="Options of the arch, such as dropout or score.")


class DataSettings(Section):
    """Corpus and tokenizers."""

    source_language: str | None = Field(None, description="Source language code. Default: the file ending.")
    target_language: str | None = Field(None, description="Target language code. Default: the file ending.")
    vocabulary: int | None = Field(None, ge=1, description="Number of subwords. Default: chosen from the text.")
    min_count: int | None = Field(
        None,
        ge=0,
        description="Captions: the vocabulary is the words seen at least this often; 0: subwords. "
        "Default: chosen from the captions.",
    )
    joint: bool = Field(True, description="One vocabulary for both sides.")
    max_length: int = Field(256, ge=2, description="Leave out pairs with more subwords on either side.")
    segmentations: int = Field(
        1,
        ge=1,
        description="Ways to split each training pair into subwords, one per epoch in turn: the most probable one, and "
        "sampled ones (subword regularization).",
    )
    held_out: int = Field(1000, ge=1, description="Pairs held out for validation without --dev.")
    image_size: int | None = Field(
        None, ge=1, le=4096, description="Width and height of images in pixels. Default: chosen by the image encoder."
    )


class TrainingSettings(Section):
    """Optimization."""

    seed: int = Field(1, ge=0, description="Random seed.")
    batch_tokens: int | None = Field(None, ge=1, description="Batch size in padded tokens of the longer side.")
    accumulate: int = Field(1, ge=1, description="Batches per update (gradient accumulation).")
    learning_rate: float | None = Field(None, gt=0, description="Peak learning rate.")
    schedule: Literal["inverse-sqrt", "cosine", "constant"] | None = Field(
        None,
        description="Learning rate after warmup: constant, inverse-sqrt or cosine (needs --steps). "
        "Default: constant with a budget, inverse-sqrt without.",
    )
    decay: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Last share of the budget, in which the learning rate falls linearly to zero; without a budget it "
        "falls after the patience. Default: 0.3, with cosine 0.",
    )
    warmup: int | None = Field(None, ge=0, description="Updates of linear warmup.")
    weight_decay: float = Field(0.0, ge=0, description="Weight decay of AdamW.")
    beta2: float = Field(0.98, gt=0, lt=1, description="Beta 2 of AdamW.")
    clip: float = Field(1.0, gt=0, description="Maximum gradient norm.")
    label_smoothing: float | None = Field(
        None, ge=0, lt=1, description="Probability spread over all other tokens. Default: 0.1, for --init 0."
    )
    r_drop: float = Field(
        0.0,
        ge=0,
        description="Compute each batch twice with different dropout, and add the divergence of both predictions with "
        "this weight (R-Drop, Liang 2021). Needs dropout.",
    )
    warm_start: Literal["statistics", "none"] | None = Field(
        None,
        description="First weights: statistics of the corpus, or none (random). Default: statistics for "
        "transformer, rnn-luong and rnn-bahdanau with a budget of at most 20 epochs.",
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="float32, bfloat16 or auto: bfloat16 if the hardware supports it."
    )
    doubly_stochastic: float | None = Field(
        None, gt=0, description="Weight of the doubly stochastic attention loss (Xu 2015). Default: 0."
    )
    guided: Literal["auto", "files", "none"] | None = Field(
        None,
        description="Alignments that supervise one attention head (--guided): auto learns them from the text. "
        "Default: auto for Transformers on text.",
    )
    guided_weight: float | None = Field(
        None, gt=0, description="With --guided: weight of the alignment loss. Default: 1."
    )
    guided_layer: int | None = Field(
        None, ge=0, description="With --guided: decoder layer to guide, from 0. Default: the penultimate."
    )
    guided_head: int | None = Field(None, ge=0, description="With --guided: head to guide, from 0. Default: 0.")
    guided_rows: Literal["predicting", "reading"] | None = Field(
        None,
        description="With --guided: link a word in the step that predicts it, or in the step after reading it, which "
        "aligns better. Default: reading if a layer has several heads.",
    )
    mix_ratio: float | None = Field(
        None, gt=0, description="With --mix: general-domain pairs per pair of the training text. Default: 1."
    )
    fast: bool = Field(
        True, description="On a CPU with several threads, compute the two halves of a batch in parallel."
    )
    rank_timeout: float = Field(
        600.0, gt=0, description="Seconds to wait for another rank in distributed training before giving up."
    )
    average: int | None = Field(
        None,
        ge=0,
        description="Average the weights of this many last validations; used if better. 0: off. "
        "Default: 5, with a budget 0, because the decay averages already.",
    )


class BudgetSettings(Section):
    """When to stop: at the first limit that is reached."""

    minutes: float | None = Field(None, gt=0, description="Minutes of training, summed over all resumes.")
    steps: int | None = Field(None, ge=1, description="Updates.")
    epochs: int | None = Field(None, ge=1, description="Epochs.")
    patience: int | None = Field(
        None, ge=1, description="Validations without improvement before stopping. Default: 10, for --init 5."
    )


class ValidationSettings(Section):
    """How often and how to validate."""

    every: int | None = Field(None, ge=1, description="Updates between validations. Default: about one epoch.")
    save_every: int | None = Field(None, ge=1, description="Updates between checkpoints. Default: at validations.")
    sentences: int = Field(500, ge=1, description="Held-out sentences translated for BLEU and chrF.")
    metric: Literal["bleu", "chrf", "cider", "loss"] | None = Field(
        None, description="Metric that selects the best weights. Default: bleu, for images cider."
    )
    samples: int = Field(5, ge=0, description="Sample translations shown at each validation.")
    attention_history: bool = Field(
        False, description="Record the attention of one held-out sentence at each validation."
    )


class Config(Section):
    """All settings of a training run."""

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()
    budget: BudgetSettings = BudgetSettings()
    validation: ValidationSettings = ValidationSettings()


class Defaults(NamedTuple):
    """Settings that depend on arch and size."""

    learning_rate: float
    warmup: int
    batch_tokens: int
    options: dict[str, Any]


# Tuned on development data only (docs/log.md). Small models get small batches: on a CPU updates are the limit.
DEFAULTS: dict[str, dict[str, Defaults]] = {
    "transformer": {
        "tiny": Defaults(3e-3, 400, 1024, {"dropout": 0.1, "positions": "rotary"}),
        "small": Defaults(1.5e-3, 1000, 2048, {"dropout": 0.2, "positions": "rotary"}),
        "base": Defaults(7e-4, 4000, 4096, {"dropout": 0.1, "positions": "rotary"}),
        "big": Defaults(5e-4, 4000, 4096, {"dropout": 0.3, "positions": "rotary"}),
    },
    "rnn": {
        "tiny": Defaults(2e-3, 300, 1024, {"dropout": 0.2}),
        "small": Defaults(1e-3, 500, 2048, {"dropout": 0.3}),
        "base": Defaults(1e-3, 1000, 4096, {"dropout": 0.3}),
        "big": Defaults(5e-4, 2000, 4096, {"dropout": 0.3}),
    },
    "captioner": {
        "tiny": Defaults(2e-3, 150, 8192, {"dropout": 0.1}),
        "small": Defaults(1e-3, 500, 8192, {"dropout": 0.2}),
        "base": Defaults(5e-4, 1000, 16384, {"dropout": 0.3}),
        "big": Defaults(3e-4, 2000, 16384, {"dropout": 0.3}),
    },
    "photos": {  # a captioner on the features of a pretrained backbone: few regions, so few tokens make many images
        "tiny": Defaults(2e-3, 200, 2048, {"dropout": 0.2}),
        "small": Defaults(1e-3, 200, 2048, {"dropout": 0.3}),
        "base": Defaults(5e-4, 500, 4096, {"dropout": 0.3}),
        "big": Defaults(3e-4, 1000, 4096, {"dropout": 0.3}),
    },
    "conv": {
        "tiny": Defaults(2e-3, 400, 1024, {"dropout": 0.1}),
        "small": Defaults(1e-3, 1000, 2048, {"dropout": 0.2}),
        "base": Defaults(5e-4, 2000, 4096, {"dropout": 0.2}),
        "big": Defaults(3e-4, 4000, 4096, {"dropout": 0.2}),
    },
}

OWN_ENCODERS = ("cnn", "patches", "frames")  # trained with the captioner; another encoder is a pretrained backbone
WARM_START_ARCHS = ("transformer", "rnn-luong", "rnn-bahdanau")  # where the warm start was measured to help
GUIDED_ARCHS = ("transformer",)  # whose attention learns alignments by default (benchmarks/guided.md)
LONG_EPOCHS = 20  # after more epochs random weights are at least as good (docs/warm-start.md)
PATIENCE, LABEL_SMOOTHING, AVERAGE = 10, 0.1, 5
DECAY = 0.3  # of the budget: shorter ends noisier, longer lowers the mean learning rate (docs/warm-start.md)

# Options of one arch at every size. The model classes default to their papers, and older bundles keep their options.
ARCH_OPTIONS: dict[str, dict[str, Any]] = {"rnn-luong": {"shortcut": True}, "rnn-bahdanau": {"shortcut": True}}


def resolve(config: Config, *, trained: bool = False) -> Config:
    """Fill in the defaults of the arch and size; a `trained` model already has all its options."""
    encoder = config.model.options.get("encoder", OWN_ENCODERS[0]) if config.model.arch == "captioner" else None
    family_name = config.model.arch.split("-")[0] if encoder in (None, *OWN_ENCODERS) else "photos"
    family = DEFAULTS.get(family_name, DEFAULTS["transformer"])
    defaults = family.get(config.model.size, family["tiny"])
    given = config.training
    missing = [name for name in ("learning_rate", "warmup", "batch_tokens") if getattr(given, name) is None]
    training = given.model_copy(update={name: getattr(defaults, name) for name in missing})
    has_end = config.budget.minutes or config.budget.steps or config.budget.epochs
    schedule = training.schedule or ("constant" if has_end else "inverse-sqrt")
    decay = training.decay if training.decay is not None else 0.0 if schedule == "cosine" else DECAY
    is_short = has_end and (config.budget.epochs or 0) <= LONG_EPOCHS
    is_warm = not trained and config.model.arch in WARM_START_ARCHS and is_short
    warm_start = training.warm_start or ("statistics" if is_warm else "none")
    is_guided = not trained and config.model.arch in GUIDED_ARCHS and training.doubly_stochastic is None
    smoothing = LABEL_SMOOTHING if training.label_smoothing is None else training.label_smoothing
    ends_at_zero = has_end and (decay > 0 or schedule == "cosine")
    open_settings = {
        "schedule": schedule,
        "decay": decay,
        "warm_start": warm_start,
        "guided": training.guided or ("auto" if is_guided else "none"),
        "label_smoothing": smoothing,
        "average": (0 if ends_at_zero else AVERAGE) if training.average is None else training.average,
    }
    training = training.model_copy(update=open_settings)
    options = {} if trained else {**defaults.options, **ARCH_OPTIONS.get(config.model.arch, {})}
    model = config.model.model_copy(update={"options": {**options, **config.model.options}})
    if training.schedule == "cosine" and config.budget.steps is None:
        raise UsageError("the cosine schedule needs the number of updates: give --steps, or use inverse-sqrt")
    if training.r_drop and not trained and not model.options.get("dropout"):
        raise UsageError("training.r_drop compares passes with different dropout: set model.options.dropout above 0")
    budget = config.budget.model_copy(update={"patience": config.budget.patience or PATIENCE})
    describes_images = encoder not in (None, "frames")
    if config.validation.metric == "cider" and config.model.arch != "captioner":
        raise UsageError("validation.metric=cider is for captions; use bleu, chrf or loss")
    metric = config.validation.metric or ("cider" if describes_images else "bleu")
    validation = config.validation.model_copy(update={"metric": metric})
    return config.model_copy(update={"training": training, "model": model, "budget": budget, "validation": validation})


# --- reading settings ---------------------------------------------------------------------------------------------


# Settings of older files: section and earlier name -> present name.
RENAMED = {("data", "side"): "image_size", ("validation", "film"): "attention_history"}


def current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the earlier names of settings by the present ones."""
    renamed = dict(settings)
    for (section, before), now in RENAMED.items():
        values = renamed.get(section)
        if isinstance(values, Mapping) and before in values:
            renamed[section] = {now if name == before else name: value for name, value in values.items()}
    return renamed


def read_config(path: Path) -> dict[str, Any]:
    """Read a YAML file of settings as nested dictionaries, not yet validated."""
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read as settings: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from error
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise DataError(f"{path}: expected sections with settings, such as 'training: {{seed: 1}}'")
    return settings


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `["training.seed=2", …]` into nested dictionaries; values are YAML."""
    settings: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set expects NAME=VALUE, such as training.seed=2, got {text!r}")
        *sections, key = name.strip().split(".")
        target = settings
        for section in sections:
            target = target.setdefault(section, {})
        target[key] = value
        with suppress(ValueError, yaml.YAMLError):
            target[key] = yaml.safe_load(value)
            if isinstance(target[key], str) and "e" in value.lower():
                target[key] = float(value)  # such as 1e-3, which YAML 1.1 reads as a string
    return settings


def merge_settings(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested dictionaries; later ones take precedence."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = merge_settings(merged[key], value) if both else value
    return merged


def parse_config(settings: Mapping[str, Any]) -> Config:
    """Validate settings; raise a `UsageError` that names the first wrong setting and the nearest right name."""
    try:
        return Config.model_validate(current_names(settings))
    except ValidationError as validation_error:
        error = validation_error.errors()[0]
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        raise UsageError(f"unknown setting {name}; {did_you_mean(name, setting_names())}")
    raise UsageError(f"setting {name}: {error['msg'][0].lower()}{error['msg'][1:]}, got {error['input']!r}")


def setting_names() -> list[str]:
    return [
        f"{section}.{key}"
        for section, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for key in field.annotation.model_fields
    ]


def differences(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the settings that differ, one line each: `training.seed: 1 → 2`."""
    lines = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            lines += differences(old, new, f"{prefix}{key}.")
        elif old != new:
            lines.append(f"{prefix}{key}: {old} → {new}")
    return lines
