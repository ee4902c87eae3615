"""`train()`: from a corpus to a run directory. Called again on the same directory, it resumes."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softgaze.atomic_io import write_text
from softgaze.bundle import ALIGNMENT_HEAD, IMPORTED, SEARCH, WEIGHTS, Bundle, Description, load_weights
from softgaze.config import Config, resolve
from softgaze.data.batching import hash_key
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.explain.render.charts import Axis, ChartPoint, Panel, Series, line_chart
from softgaze.explain.render.pages import run_history_page
from softgaze.models import MODELS, Seq2Seq, check_options, model_options
from softgaze.runtime import pick_device
from softgaze.training.alignment_data import AUTO, FILES, AlignmentFiles, Alignments, LearnedAlignments
from softgaze.training.attention_losses import check_attention_settings
from softgaze.training.budget_choices import Choice, choose_for_budget, with_choices
from softgaze.training.callbacks import Callback, read_metrics
from softgaze.training.distributed import Distributed, init_distributed
from softgaze.training.fine_tuning import choose_for_fine_tuning, open_start, weights_sha256, with_model_of
from softgaze.training.preprocess import AnyCorpus, PreprocessedData, preprocess
from softgaze.training.run_directory import RunDirectory
from softgaze.training.signals import catch_signals
from softgaze.training.trainer import FINE_TUNED_FROM, Trainer
from softgaze.training.warm_start import warm_start

INHERITED = (IMPORTED, SEARCH, ALIGNMENT_HEAD)  # facts that fine-tuning keeps
MAX_REPORTED = 10  # unreadable files reported one by one

# Panels of the learning curve: title, then name, kind of metrics line, key and colour of each series.
CURVES = {
    "loss per token": [("training loss", "update", "loss", 1), ("dev loss", "validation", "loss", 0)],
    "score on held-out text": [
        ("dev BLEU", "validation", "bleu", 2),
        ("dev chrF", "validation", "chrf", 3),
        ("dev CIDEr", "validation", "cider", 1),
    ],
}


class Interrupted(Exception):  # noqa: N818  not an error: everything is saved
    """A signal stopped the run; its state is saved."""

    def __init__(self, exit_code: int, step: int) -> None:
        super().__init__(f"stopped and saved at step {step:,}; run the same command to resume")
        self.exit_code, self.step = exit_code, step


def train(
    config: Config,
    corpus: AnyCorpus,
    dev: AnyCorpus | None,
    out: Path,
    *,
    device: str = "auto",
    init: Path | None = None,
    mix: Corpus | None = None,
    fresh: bool = False,
    guided: Sequence[Path] = (),
    encoded: Path | None = None,
    callback: Callback = Callback(),
) -> dict[str, Any]:
    """Train a model in the run directory `out` until the budget is used up; return the facts of the result.

    Parameters
    ----------
    config
        All settings of the run.
    corpus
        Training pairs, or captioned files.
    dev
        Validation pairs; None holds out a part of `corpus`.
    out
        Run directory; an existing run resumes.
    device
        As for `load`.
    init
        Model to fine-tune.
    mix
        General-domain text to sample alongside when fine-tuning.
    fresh
        Whether to delete an earlier run in `out`.
    guided
        A Pharaoh file of alignments per part of the corpus; without files, `training.guided` decides.
    encoded
        Directory for the encoded text that several runs may share.
    callback
        Receives updates and validations.

    Raises
    ------
    Interrupted
        After SIGINT, SIGTERM or SIGUSR1; everything is saved.
    """
    start = open_start(init, config, corpus, mix)
    config = with_model_of(start, config, corpus) if start else config
    check_options(config.model.arch, config.model.size, resolve(config, trained=bool(start)).model.options)
    check_corpus_type(config.model.arch, corpus)
    run = RunDirectory(out, encoded)
    with preserve_rng(), init_distributed(config.training.rank_timeout) as distributed:
        torch_device = distributed.device(pick_device(device))
        if not distributed.is_main:
            distributed.barrier()
            if not run.encoded.exists():
                raise ResourceError(
                    f"{run.encoded}: rank {distributed.rank} cannot see the files of rank 0; --out must be on storage "
                    "that all machines share"
                )
            data = PreprocessedData.open(run.encoded)
            config = resolve(run.fill_in(config), trained=bool(start))  # with the choices of rank 0
            return run_to_end(make_trainer(run, config, data, torch_device, Callback(), start, distributed))
        corpus.count()  # finds missing or unequal files before --fresh deletes anything
        for text in (dev, mix):
            if text is not None:
                text.count()
        run.check()
        config, choices = complete_settings(
            config, corpus, run, torch_device, start=start, mix=mix, guided=guided, fresh=fresh
        )
        alignments = alignment_files(config, corpus, guided, callback)
        with run.locked():
            with run.removed_on_error():
                run.prepare(config, fresh)
                for choice in choices:
                    callback.on_message(f"chosen for {'fine-tuning' if start else 'this budget'}: {choice}")
                data = preprocess(
                    run.encoded,
                    corpus,
                    dev,
                    config.data,
                    config.training.seed,
                    start.tokenizers if start else None,
                    alignments,
                    UnreadableReport(callback),
                    mix,
                    weights_sha256(start) if start else None,
                )
                distributed.barrier()
                trainer = make_trainer(run, config, data, torch_device, callback, start, distributed)
            return run_to_end(trainer)


def complete_settings(
    config: Config,
    corpus: AnyCorpus,
    run: RunDirectory,
    device: torch.device,
    *,
    start: Bundle | None = None,
    mix: Corpus | None = None,
    guided: Sequence[Path] = (),
    fresh: bool = False,
) -> tuple[Config, list[Choice]]:
    """Fill in every open setting: from the run if it resumes, else by choice, then with the defaults."""
    choices: list[Choice] = []
    if guided:
        config = config.model_copy(update={"training": config.training.model_copy(update={"guided": FILES})})
    if run.is_started and not fresh:
        config = run.fill_in(config)
    elif start is not None:
        choices = list(choose_for_fine_tuning(config, corpus, mix))
        config = with_choices(config, choices)
    elif device.type == "cpu":  # a GPU makes more updates in a minute than the choices expect
        config, choices = choose_for_budget(config, corpus)
    return resolve(config, trained=start is not None), choices


def preserve_rng() -> AbstractContextManager[None]:
    """Restore torch's random state after the block: training seeds it in every update."""
    return torch.random.fork_rng(devices=range(torch.cuda.device_count()))


def check_corpus_type(arch: str, corpus: AnyCorpus) -> None:
    """Raise a `UsageError` for text with a captioner, or images or features with a translator."""
    if MODELS[arch].reads_features and corpus.processor is None:
        raise UsageError(f"the arch {arch} reads images or features; give --images or --features, and --captions")
    if corpus.processor is not None and not MODELS[arch].reads_features:
        raise UsageError(f"the arch {arch} reads text; use --arch captioner for images and features")


def alignment_files(
    config: Config, corpus: AnyCorpus, guided: Sequence[Path], callback: Callback = Callback()
) -> Alignments | None:
    """Return the alignments, if any, after checking that the model can learn from them."""
    source = config.training.guided
    if source in (AUTO, FILES) and corpus.processor is not None:
        raise UsageError("--guided aligns words with words; images and features have no words")
    check_attention_settings(config, guided=source in (AUTO, FILES))
    if source == AUTO and isinstance(corpus, Corpus):
        return LearnedAlignments(corpus, callback.on_message)
    if source != FILES:
        return None
    if not guided:
        raise UsageError("training.guided=files needs the alignment files: --guided LINKS")
    alignments = AlignmentFiles(corpus, tuple(guided))
    alignments.check()
    return alignments


class UnreadableReport:
    """Reports the first unreadable source files one by one, since there may be thousands."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.count = callback, 0

    def __call__(self, error: DataError) -> None:
        self.count += 1
        if self.count <= MAX_REPORTED:
            self.callback.on_message(f"left out: {error}")
        if self.count == MAX_REPORTED + 1:
            self.callback.on_message("left out: further files that cannot be read")


def make_trainer(
    run: RunDirectory,
    config: Config,
    data: PreprocessedData,
    device: torch.device,
    callback: Callback,
    start: Bundle | None = None,
    distributed: Distributed | None = None,
) -> Trainer:
    """Return a trainer whose first weights come from the seed and the corpus, or are those of `start`."""
    source_language, target_language = data.facts["languages"]
    options = dict(config.model.options)
    if not config.data.joint and "tie" in model_options(MODELS[config.model.arch]):
        options.setdefault("tie", "output")
    description = Description(
        arch=config.model.arch,
        size=config.model.size,
        options=options,
        source_language=source_language,
        target_language=target_language,
        max_length=max(config.data.max_length, start.description.max_length if start else 0),
    )
    torch.manual_seed(hash_key(config.training.seed, 0) % 2**63)
    model = description.build(data.tokenizers)
    check_lengths(model, data)
    if start:
        load_weights(model, start.path / WEIGHTS)
    is_main = distributed is None or distributed.is_main
    is_new = start is None and not any(run.checkpoints.glob("step-*"))
    if is_new and is_main and config.training.warm_start == "statistics":
        warm_start(model, data.train, config.training.seed)
    inherited: dict[str, Any] = {}
    if start:
        inherited = {key: start.facts[key] for key in INHERITED if key in start.facts}
        inherited[FINE_TUNED_FROM] = {"name": start.path.resolve().name, "sha256": weights_sha256(start)}
    return Trainer(run, config, data, model, description, device, callback, distributed, inherited)


def check_lengths(model: Seq2Seq, data: PreprocessedData) -> None:
    """Raise a `UsageError` if a pair has more tokens than the model has learned positions."""
    if model.max_positions is None:
        return
    sides = slice(1 if model.reads_features else 0, 2)
    longest = max(int(shards.lengths(np.arange(len(shards)))[:, sides].max()) for shards in (data.train, data.dev))
    if longest >= model.max_positions:
        raise UsageError(
            f"a pair has {longest} subwords, but the model has learned positions for {model.max_positions - 1}; set "
            f"data.max_length={model.max_positions - 1}, or model.options.max_length={longest + 1} or more"
        )


def run_to_end(trainer: Trainer) -> dict[str, Any]:
    """Train from the last checkpoint to the end of the budget."""
    run, callback, is_main = trainer.run, trainer.callback, trainer.distributed.is_main
    with catch_signals() as stop:
        trainer.resume()
        result = run.result()
        if result and trainer.is_finished():
            callback.on_message(f"this run ended at step {result['step']:,}; raise its budget to continue, or --fresh")
            return result
        if is_main:
            run.remove_result()
        callback.on_start(summary(trainer))
        completed = trainer.train(stop)
    facts = trainer.finish() if completed else None
    if is_main:
        write_learning_curve(run.metrics, run.learning_curve)
        if run.attention_history.exists() and run.attention_history.stat().st_size:
            write_text(run.attention_history.with_suffix(".html"), run_history_page(run.path))
    if facts is None:
        raise Interrupted(stop.exit_code, trainer.progress.step)
    return facts


def summary(trainer: Trainer) -> dict[str, Any]:
    """Return the facts to show before the first update."""
    facts, config, threads = trainer.data.facts, trainer.config, torch.get_num_threads()
    computation = ["bfloat16" if trainer.gradients.bfloat16 else "float32"]
    if trainer.distributed.world_size > 1:
        computation.append(f"{trainer.distributed.world_size} ranks")
    if trainer.device.type == "cpu":
        computation.append(f"{threads} thread{'s' if threads > 1 else ''}")
    if trainer.gradients.pool is not None:
        computation.append("half batches in parallel")
    extra = {}
    if trainer.batches.mixed:
        mixed, per_epoch = trainer.batches.mixed, trainer.batches.mixed_per_epoch
        extra["mixed_in"] = f"{per_epoch:,} of {mixed:,} general-domain pairs in each epoch"
    guided = describe_guided(trainer)
    if guided is not None:
        extra["guided"] = guided
    return {
        "arch": f"{config.model.arch} {config.model.size}",
        "parameters": trainer.facts()["parameters"],
        "languages": " → ".join(facts["languages"]),
        "pairs": facts["pairs"],
        "left_out": facts["left_out"],
        "dev_pairs": facts["dev_pairs"],
        **extra,
        "sources": trainer.data.tokenizers.source.describe(),
        "vocabulary": describe_vocabulary(trainer),
        "device": str(trainer.device),
        "computation": ", ".join(computation),
        "validate_every": trainer.validate_every,
        "out": str(trainer.run.path),
    }


def describe_vocabulary(trainer: Trainer) -> Any:
    """Return the number of subwords of both sides, or describe the vocabulary of captions."""
    tokenizers, sizes = trainer.data.tokenizers, trainer.data.facts["vocabulary"]
    if not tokenizers.source.is_text:
        return tokenizers.target.describe()
    return sizes[1] if tokenizers.joint else sizes


def describe_guided(trainer: Trainer) -> str | None:
    """Describe the guided head and its alignments."""
    if trainer.guided is None:
        return None
    facts = trainer.guided_facts()
    return "layer {layer}, head {head}, weight {weight:g}, alignments of {pairs:,} pairs".format(**facts)


def write_learning_curve(metrics: Path, path: Path) -> None:
    """Draw loss, BLEU and chrF against minutes of training; without a validation there is no file."""
    lines = read_metrics(metrics)
    if not any(line["kind"] == "validation" for line in lines):
        return
    x_axis = Axis.from_zero_to(max(line["elapsed"] for line in lines) / 60)
    panels = []
    for title, curves in CURVES.items():
        series = []
        for name, kind, key, style in curves:
            points = [
                ChartPoint(line["elapsed"] / 60, line[key])
                for line in lines
                if line["kind"] == kind and line.get(key) is not None
            ]
            if points:
                series.append(Series(f"{name} {points[-1].y:.3g}", points, style))
        y_axis = Axis.linear([point.y for curve in series for point in curve.points])
        panels.append(Panel(title, series, x_axis, y_axis, "minutes of training", height=190))
    description = ", ".join(curve.name for panel in panels for curve in panel.series)
    write_text(path, line_chart(panels, title="learning curve of a training run", description=description) + "\n")
