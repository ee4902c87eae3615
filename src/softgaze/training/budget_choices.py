"""Settings that suit a budget: a run of 2 minutes needs other ones than a run of an hour.

The choices depend on the budget and the corpus, never on a measured speed, so that the same command makes the same
choices everywhere. They are stored with the run; a resumed run keeps them.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from softgaze.config import DEFAULTS, LONG_EPOCHS, Config, merge_settings, parse_config, resolve
from softgaze.data.processors import BackboneProcessor
from softgaze.training.preprocess import AnyCorpus

UPDATES_PER_MINUTE = {"tiny": 330, "small": 25, "base": 4, "big": 1}  # of the default batch on two cores, roughly
FIXED_COST = {"tiny": 0.6}  # share of an update of the default batch that larger batches do not repeat
BYTES_PER_TOKEN = 5  # of UTF-8, roughly
MOST_READ, SAMPLE = 200_000, 1000  # pairs to read, and evenly spaced ones whose length stands for all
MIN_WARMUP = 100
FEW_EPOCHS = 5  # in which a model does not overfit
LONG_DROPOUT = 0.3  # of Transformers, above LONG_EPOCHS
LAYERS = ("encoder_layers", "decoder_layers")
FEW_MINUTES, FEW_LAYERS = 3, 2  # so little time is better spent on more updates of fewer layers
MANY_MINUTES, MANY_TOKENS = 5, 2048  # for which a tiny Transformer gets larger batches
VALIDATIONS, MIN_INTERVAL = 8, 1000  # validations per run, and updates between two: estimated cost: 50 updates
# Captioners of photos, on the features of a pretrained backbone (benchmarks/photos.md).
PHOTO_UPDATES_PER_MINUTE = {"tiny": 900, "small": 350, "base": 60, "big": 10}  # on two cores, roughly
PHOTO_VALIDATIONS, MIN_PHOTO_INTERVAL = 16, 50  # a captioner of few photos overfits between two rare validations
PHOTO_VIEWS = 125  # of each photo, in 25 epochs of five captions: more overfit, and the decay would come too late


class Choice(NamedTuple):
    """A setting that the command left open."""

    setting: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}={self.value}: {self.reason}"


def choose_for_budget(config: Config, corpus: AnyCorpus) -> tuple[Config, list[Choice]]:
    """Return the settings with choices for a budget of steps, or of minutes on two cores; others are unchanged."""
    if corpus.processor is not None:
        return choose_for_photos(config, corpus)
    if expected_updates(config) is None:
        return config, []
    sizes = [*choose_layers(config), *choose_batch(config)]
    config = with_choices(config, sizes)
    updates = expected_updates(config)
    assert updates is not None
    choices = list(choose(config, updates, updates * batch_tokens(config) / corpus_tokens(corpus)))
    return with_choices(config, choices), [*sizes, *choices]


def choose_for_photos(config: Config, corpus: AnyCorpus) -> tuple[Config, list[Choice]]:
    """Return the settings of a captioner with choices for its budget; images without a backbone keep their defaults."""
    if not isinstance(corpus.processor, BackboneProcessor) or not (config.budget.minutes or config.budget.steps):
        return config, []
    sizes = list(choose_photo_size(config))
    config = with_choices(config, sizes)
    updates = expected_updates(config)
    if updates is None:  # an unknown size
        return config, sizes
    regions, _ = corpus.processor.feature_shape
    per_epoch = max(1, round(corpus.count() * regions / batch_tokens(config)))
    views = corpus.count() / corpus.num_sources()  # of a photo in an epoch
    choices = list(choose_photo_settings(config, updates, per_epoch, max(1, round(PHOTO_VIEWS / views))))
    return with_choices(config, choices), [*sizes, *choices]


def choose_photo_size(config: Config) -> Iterator[Choice]:
    """Yield a size for a number of minutes, unless a size is given."""
    minutes = config.budget.minutes
    if minutes and "size" not in config.model.model_fields_set:
        size = "tiny" if minutes < FEW_MINUTES else "small"
        yield Choice("model.size", size, f"{minutes:g} minutes of photos")


def choose_photo_settings(config: Config, updates: int, per_epoch: int, most: int) -> Iterator[Choice]:
    """Yield a choice for each open setting of a captioner; an epoch has `per_epoch` updates, `most` do not overfit."""
    epochs = config.budget.epochs
    if epochs is None and config.budget.steps is None:
        epochs = most
        yield Choice("budget.epochs", epochs, f"more than {epochs * per_epoch:,} updates would overfit these captions")
    updates = min(updates, epochs * per_epoch) if epochs else updates
    yield from choose_warmup(config, updates)
    if config.validation.every is None:
        overfits = epochs is not None and updates >= epochs * per_epoch
        why = "find the best before overfitting" if overfits else "too few to overfit, most of the time for training"
        every = max(MIN_PHOTO_INTERVAL, updates // (PHOTO_VALIDATIONS if overfits else VALIDATIONS))
        yield Choice("validation.every", every, f"about {updates:,} updates: {why}")


def with_choices(config: Config, choices: Iterable[Choice]) -> Config:
    """Return the settings with choices."""
    settings = config.model_dump()
    for choice in choices:
        *sections, key = choice.setting.split(".")
        nested: dict[str, Any] = {key: choice.value}
        for section in reversed(sections):
            nested = {section: nested}
        settings = merge_settings(settings, nested)
    return parse_config(settings)


def choose_layers(config: Config) -> Iterator[Choice]:
    """Yield fewer layers for a tiny Transformer with few minutes."""
    minutes = config.budget.minutes
    if is_tiny(config) and not set(LAYERS) & set(config.model.options) and minutes and minutes <= FEW_MINUTES:
        for name in LAYERS:
            yield Choice(f"model.options.{name}", FEW_LAYERS, f"{minutes:g} minutes: more updates of a smaller model")


def choose_batch(config: Config) -> Iterator[Choice]:
    """Yield a larger batch for a tiny Transformer with many minutes; a limit of updates needs no faster tokens."""
    minutes, training = config.budget.minutes, config.training
    is_set = config.budget.steps or training.batch_tokens or training.accumulate > 1
    if is_tiny(config) and minutes and minutes >= MANY_MINUTES and not is_set:
        yield Choice("training.batch_tokens", MANY_TOKENS, f"{minutes:g} minutes: more tokens a second, enough updates")


def is_tiny(config: Config) -> bool:
    """Whether the model is a tiny Transformer, for which choices were measured."""
    return (config.model.arch, config.model.size) == ("transformer", "tiny")


def choose(config: Config, updates: int, epochs: float) -> Iterator[Choice]:
    """Yield a choice for each setting that is still open."""
    expected = f"about {updates:,} updates"
    yield from choose_warmup(config, updates)
    keeps_dropout = "dropout" in config.model.options or config.training.r_drop > 0
    if config.model.arch == "transformer" and not keeps_dropout and epochs < FEW_EPOCHS:
        yield Choice("model.options.dropout", 0.0, f"{epochs:.1f} epochs are too few to overfit")
    if config.model.arch == "transformer" and not keeps_dropout and epochs > LONG_EPOCHS:
        default = resolve(config).model.options["dropout"]
        if default < LONG_DROPOUT:
            yield Choice("model.options.dropout", LONG_DROPOUT, f"{epochs:.0f} epochs overfit with less")
    if config.training.warm_start is None and epochs > LONG_EPOCHS and resolve(config).training.warm_start != "none":
        yield Choice(
            "training.warm_start", "none", f"{epochs:.0f} epochs: random weights end at least as well in a long run"
        )
    if config.validation.every is None:
        every = max(MIN_INTERVAL, updates // VALIDATIONS)
        yield Choice("validation.every", every, f"{expected}: most of the time for training")


def choose_warmup(config: Config, updates: int) -> Iterator[Choice]:
    """Yield a shorter warmup for few updates."""
    default = resolve(config).training.warmup
    assert default is not None
    warmup = min(default, max(MIN_WARMUP, updates // 10), max(1, updates // 5))
    if config.training.warmup is None and warmup != default:
        yield Choice("training.warmup", warmup, f"about {updates:,} updates leave no time for a long warmup")


def expected_updates(config: Config) -> int | None:
    """Return how many updates fit into the budget, None if it has no limit of steps or minutes."""
    minutes, steps = config.budget.minutes, config.budget.steps
    limits = [steps] if steps else []
    if minutes and config.model.arch == "captioner":
        speeds = [PHOTO_UPDATES_PER_MINUTE[config.model.size]] if config.model.size in PHOTO_UPDATES_PER_MINUTE else []
        limits += [max(1, round(minutes * speed)) for speed in speeds]
    elif minutes and config.model.size in UPDATES_PER_MINUTE:
        limits.append(max(1, round(minutes * updates_per_minute(config))))
    return min(limits, default=None)


def updates_per_minute(config: Config) -> float:
    """Return how many updates two cores make in a minute, roughly."""
    size = config.model.size
    has_few_layers = config.model.options.get("encoder_layers") == FEW_LAYERS and size == "tiny"
    fixed = FIXED_COST.get(size, 0.0)
    relative_cost = fixed + (1 - fixed) * batch_tokens(config) / DEFAULTS["transformer"][size].batch_tokens
    return UPDATES_PER_MINUTE[size] * (1.8 if has_few_layers else 1) / relative_cost


def batch_tokens(config: Config) -> int:
    """Return the tokens of an update."""
    training = resolve(config).training
    assert training.batch_tokens is not None
    return training.batch_tokens * training.accumulate


def corpus_tokens(corpus: AnyCorpus) -> float:
    """Return about how many tokens the longer sides of all pairs have."""
    count = corpus.count()
    most = min(count, MOST_READ)
    sample = islice(corpus, 0, most, max(1, most // SAMPLE))  # evenly: a corpus may be sorted by length
    longest = [max(len(side.encode()) for side in pair) for pair in sample]
    return max(1.0, count * sum(longest) / max(1, len(longest)) / BYTES_PER_TOKEN)
