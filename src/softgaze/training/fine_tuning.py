"""Fine-tuning: the settings that come from the model training starts from, and those that suit fine-tuning.

A trained model needs small steps from its own weights: a low learning rate that falls to zero, and frequent validation,
since a small text is overfitted within few epochs. Every choice is printed, stored with the run and can be overridden.
"""

from collections.abc import Iterator
from pathlib import Path

from softgaze.bundle import WEIGHTS, Bundle
from softgaze.config import Config, ModelSettings, resolve
from softgaze.data.corpus import Corpus
from softgaze.errors import UsageError
from softgaze.training.budget_choices import Choice, batch_tokens, corpus_tokens, expected_updates
from softgaze.training.preprocess import AnyCorpus

RATE = 0.1  # of the learning rate of training
WARMUP, MAX_WARMUP_SHARE = 50, 0.1  # updates, and the largest share of a known budget
PATIENCE = 5  # validations
MIN_INTERVAL, MAX_INTERVAL = 50, 1000  # updates between validations
MIN_VALIDATIONS = 5  # in a known budget
MIX_RATIO = 1.0


def open_start(init: Path | None, config: Config, corpus: AnyCorpus, mix: Corpus | None) -> Bundle | None:
    """Return the model to fine-tune, if any, after checking that it can be fine-tuned with these options."""
    if init is None:
        if mix is not None:
            raise UsageError("--mix adds general-domain text to fine-tuning; give the model to fine-tune with --init")
    elif config.training.warm_start == "statistics":
        raise UsageError("--init and --warm-start statistics are two different starts; give one of them")
    if config.training.mix_ratio is not None and mix is None:
        raise UsageError("--mix-ratio needs general-domain text: --mix SRC TGT")
    if mix is not None and corpus.processor is not None:
        raise UsageError("--mix adds text; images and features cannot be mixed in")
    if init is None:
        return None
    start = Bundle.open(init)
    if not start.has_weights:
        raise UsageError(f"{init}: is an exported model without its weights; fine-tune the model it was exported from")
    start.check_size()
    return start


def with_model_of(start: Bundle, config: Config, corpus: AnyCorpus) -> Config:
    """Return the settings with the model of `start`; raise a `UsageError` if they name another arch or size.

    The languages are those of the model unless options or file names have others.
    """
    model, given, defaults = config.model, start.description, ModelSettings()
    for name in ("arch", "size"):
        wanted = getattr(model, name)
        if wanted not in (getattr(defaults, name), getattr(given, name)):
            raise UsageError(f"--init has a model of {name} {getattr(given, name)!r}; it cannot become {wanted!r}")
    merged = ModelSettings(arch=given.arch, size=given.size, options={**given.options, **model.options})
    source, target = corpus.languages()
    languages = {
        "source_language": config.data.source_language or source or given.source_language or None,
        "target_language": config.data.target_language or target or given.target_language or None,
    }
    length = min(config.data.max_length, longest_pair(start) or config.data.max_length)
    data = config.data.model_copy(update={**languages, "max_length": length})
    return config.model_copy(update={"model": merged, "data": data})


def longest_pair(start: Bundle) -> int | None:
    """Return how many subwords of a side fit into the model's positions, with EOS and language tokens."""
    positions = start.description.build_empty(start.tokenizers).max_positions
    if positions is None:
        return None
    languages = start.tokenizers.languages
    extra = max(len(languages.source_frame) - 2, len(languages.decoder_start) - 1) if languages else 0
    return max(2, positions - 1 - extra)


def weights_sha256(start: Bundle) -> str:
    return str(start.files[WEIGHTS]["sha256"])


def choose_for_fine_tuning(config: Config, corpus: AnyCorpus, mix: Corpus | None) -> Iterator[Choice]:
    """Yield a choice for each setting that is still open; the model is that of `with_model_of`."""
    training, budget = config.training, config.budget
    updates = expected_updates(config)
    if training.learning_rate is None:
        rate = resolve(config, trained=True).training.learning_rate
        assert rate is not None
        yield Choice("training.learning_rate", float(f"{RATE * rate:.2g}"), "a tenth of that of training")
    if training.warmup is None:
        warmup = min(WARMUP, max(1, int(MAX_WARMUP_SHARE * updates))) if updates else WARMUP
        yield Choice("training.warmup", warmup, "updates, only until the optimizer has its statistics")
    if training.schedule is None:
        yield Choice("training.schedule", "constant", "no restart of the schedule of training")
        if training.decay is None and (budget.minutes or budget.steps or budget.epochs):
            yield Choice("training.decay", 1.0, "the learning rate falls to zero over the whole budget")
    # The loss of a Firefox model is 1.1 per token; label smoothing of 0.1 makes it 3.6, dropout of 0.1 makes it 9.5.
    if "dropout" not in config.model.options:
        yield Choice("model.options.dropout", 0.0, "the model states none, and dropout would undo its training")
    if training.label_smoothing is None:
        yield Choice("training.label_smoothing", 0.0, "smoothing would undo the training of a confident model")
    if budget.patience is None:
        yield Choice("budget.patience", PATIENCE, "validations without improvement")
    if config.validation.every is None and corpus.processor is None:
        yield Choice("validation.every", validation_interval(config, corpus, updates), "updates, about an epoch")
    if mix is not None and training.mix_ratio is None:
        yield Choice("training.mix_ratio", MIX_RATIO, "as many general-domain as training pairs")


def validation_interval(config: Config, corpus: AnyCorpus, updates: int | None) -> int:
    """Return the updates of an epoch within bounds, and so few that a known budget has several validations."""
    epoch = round(corpus_tokens(corpus) / batch_tokens(config))
    every = min(MAX_INTERVAL, max(MIN_INTERVAL, epoch))
    return min(every, max(1, updates // MIN_VALIDATIONS)) if updates else every
