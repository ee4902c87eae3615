"""The definition of a comparison: models, text, budget and search, stored in one directory.

plan.json       the experiment; every job reads it
encoded/        the text, preprocessed once for all models
models/NAME/    run directory and measurements of each model
failed.json     jobs that failed in the last run
report.*        the results
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from softgaze.atomic_io import TEMPORARY, new_directory, remove, write_text
from softgaze.config import Config, merge_settings, parse_assignments, parse_config, resolve
from softgaze.data.corpora import phrasebook
from softgaze.data.corpus import Corpus, write_lines
from softgaze.errors import DataError, UsageError, pick
from softgaze.evaluation.by_length import source_lengths
from softgaze.training.preprocess import FACTS
from softgaze.training.run_directory import LOCK, SETTINGS, RunDirectory

PLAN, FAILED, REPORT = "plan.json", "failed.json", "report"
PATHS = ("train", "tables", "dev", "test", "beyond")  # fields that hold files
ARCHS = "rnn,rnn-bahdanau,rnn-luong,conv,transformer"
# Positions decide how a Transformer extrapolates to new lengths; the default ones are rotary.
BUILT_IN_ARCHS = f"{ARCHS},transformer:positions=sinusoidal"

VALIDATIONS = 10  # points of a learning curve, about
MIN_INTERVAL, MAX_INTERVAL = 50, 1000  # updates between validations, with a budget of minutes
UPDATES_PER_MINUTE = 250  # of a small model on two cores, roughly
NO_PATIENCE_LIMIT = 1_000_000  # only the budget ends a training

PAIRS = phrasebook.PAIRS
MAX_WORDS = phrasebook.MAX_WORDS
TEST_RANGES = tuple(range(start, start + 8) for start in range(1, MAX_WORDS, 8))
BEYOND_RANGES = tuple(range(start, start + 10) for start in range(MAX_WORDS + 1, 2 * MAX_WORDS, 10))
TEST_SENTENCES, BEYOND_SENTENCES = 100, 50  # per range of lengths

Files = tuple[tuple[Path, Path], ...]


# --- models -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelSpec:
    name: str  # as given, e.g. rnn-luong:score=dot
    settings: dict[str, Any]  # that differ from the shared ones

    @property
    def directory(self) -> str:
        """The name, safe for any file system."""
        return self.name.replace(":", "+").replace("/", "_")

    def config(self, shared: Mapping[str, Any]) -> Config:
        return resolve(parse_config(merge_settings(shared, self.settings)))


def parse_models(text: str, shared: Mapping[str, Any]) -> list[ModelSpec]:
    """Parse `rnn-luong:score=dot,transformer`: architectures with options; reject every mistake before training."""
    names = ["".join(name.split()) for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--archs takes names separated by commas, such as {ARCHS}; one of {text!r} is empty")
    repeated = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if repeated:
        raise UsageError(f"--archs names {repeated} twice; models must differ")
    models = [_parse_model(name, shared) for name in names]
    for one, other in combinations(models, 2):
        if one.config(shared) == other.config(shared):
            raise UsageError(f"--archs: {one.name} and {other.name} are the same model; models must differ")
    return models


def _parse_model(name: str, shared: Mapping[str, Any]) -> ModelSpec:
    """Parse one model and build it on the meta device, which checks that its options fit together."""
    import torch

    from softgaze.models import MODELS, build_model

    arch, *options = name.split(":")
    for option in options:
        if not all(option.partition("=")):
            raise UsageError(f"--archs {name}: options are NAME=VALUE after a colon, such as rnn-luong:score=dot")
    assignments = parse_assignments(f"model.options.{option}" for option in options)
    spec = ModelSpec(name, merge_settings({"model": {"arch": arch}}, assignments))
    try:
        model = spec.config(shared).model
        if model.arch in MODELS and MODELS[model.arch].reads_features:
            raise UsageError("it reads images or features, but `compare` trains on text; use `softgaze train`")
        with torch.device("meta"):
            build_model(model.arch, model.size, source_vocabulary=100, **model.options)
    except ValueError as error:
        raise UsageError(f"--archs {name}: {error}") from None
    return spec


# --- the experiment ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """A comparison of models that differ only in their ModelSpec."""

    out: Path
    models: tuple[ModelSpec, ...]
    settings: dict[str, Any]  # shared by all models, as nested sections
    train: Files
    tables: tuple[Path, ...]  # training files with both sides of a pair
    dev: Files
    test: tuple[Path, Path]
    edges: tuple[int, ...] | None = None  # longest length of each bucket; None: chosen from the test set
    beyond: tuple[Path, Path] | None = None  # sentences longer than the training data
    beyond_edges: tuple[int, ...] | None = None
    built_in: bool = False
    beam_size: int = 5
    device: str = "auto"

    def model(self, name: str) -> ModelSpec:
        return pick("model of this comparison", name, {model.name: model for model in self.models})

    def config(self, name: str) -> Config:
        return self.model(name).config(self.settings)

    def run(self, name: str) -> RunDirectory:
        return RunDirectory(self.out / "models" / self.model(name).directory)

    def report(self, ending: str) -> Path:
        return self.out / f"{REPORT}.{ending}"

    @property
    def encoded(self) -> Path:
        return self.out / "encoded"

    @property
    def seed(self) -> int:
        return parse_config(self.settings).training.seed

    @property
    def corpus(self) -> Corpus:
        return Corpus.of(self.train, self.tables)

    @property
    def held_out(self) -> Corpus | None:
        return Corpus.of(self.dev) if self.dev else None

    @property
    def test_sets(self) -> dict[str, tuple[Path, Path]]:
        """Files that every model translates."""
        return {"test": self.test, **({"beyond": self.beyond} if self.beyond else {})}

    def check_resumable(self) -> None:
        """Reject settings with which a stored comparison cannot resume."""
        stored = Experiment.stored(self.out)
        if stored is not None and stored.seed != self.seed:
            raise UsageError(
                f"{self.out}: this comparison was started with seed {stored.seed}; use --seed {stored.seed}, another "
                "--out, or --fresh to start over"
            )
        for model in self.models:
            run = self.run(model.name)
            if (run.path / SETTINGS).is_file():
                run.check_settings(self.config(model.name).model_dump())

    def with_absolute_paths(self) -> "Experiment":
        """Resolve all files, since jobs may run in another directory."""

        def resolve_paths(value: Any) -> Any:
            return tuple(map(resolve_paths, value)) if isinstance(value, tuple) else value and value.resolve()

        return replace(self, **{name: resolve_paths(getattr(self, name)) for name in PATHS})

    def write(self) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        record = {name: value for name, value in vars(self).items() if name not in ("out", "models")}
        record["variants"] = {model.name: model.settings for model in self.models}
        write_text(self.out / PLAN, json.dumps(record, indent=2, ensure_ascii=False, default=str))

    @classmethod
    def read(cls, out: Path) -> "Experiment":
        def as_paths(value: Any) -> Any:
            return tuple(map(as_paths, value)) if isinstance(value, list) else value and Path(value)

        try:
            record = dict(json.loads((out / PLAN).read_text(encoding="utf-8")))
            models = tuple(ModelSpec(*item) for item in record.pop("variants").items())
            files = {name: as_paths(record.pop(name)) for name in PATHS}
            return cls(out, models, **files, **record)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{out / PLAN}: cannot be read as a comparison: {error}") from error

    @classmethod
    def stored(cls, out: Path) -> "Experiment | None":
        """Load the experiment of a directory, or return None if there is none."""
        return cls.read(out) if (out / PLAN).exists() else None


def shared_settings(given: dict[str, Any], stored: Experiment | None = None) -> dict[str, Any]:
    """Return the settings of all models: train for the whole budget, with about ten validations by default.

    A comparison that resumes keeps its validation interval: its budget may grow, but no other setting may change.
    """
    budget = parse_config(given).budget
    if budget.steps is None and budget.minutes is None:
        raise UsageError("no budget: give --minutes or --steps")
    if budget.steps is not None and budget.minutes is not None:
        raise UsageError("--minutes and --steps are two budgets; give one")
    if budget.steps:
        interval = budget.steps / VALIDATIONS
    else:
        per_validation = (budget.minutes or 0) * UPDATES_PER_MINUTE / VALIDATIONS
        interval = min(MAX_INTERVAL, max(MIN_INTERVAL, per_validation))
    every = stored.settings["validation"]["every"] if stored else max(1, round(interval))
    defaults = {
        "training": {"guided": "none"},  # not every arch can learn alignments, and all models share one encoded text
        "budget": {"patience": NO_PATIENCE_LIMIT},
        "validation": {"every": every, "sentences": 200, "samples": 0},
    }
    return merge_settings(defaults, given)


# --- its directory ----------------------------------------------------------------------------------------------


def check_directory(out: Path) -> None:
    """Reject a file, and a directory with other content."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; --out names a directory")
    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    others = [name for name in names if name != LOCK and not name.startswith(TEMPORARY)]
    if others and PLAN not in others:
        raise UsageError(f"{out}: is not empty and not a comparison of softgaze; choose another --out")


def clear_directory(out: Path) -> None:
    """Delete a comparison; plan.json goes last, so that an interrupted deletion can be repeated."""
    for path in sorted(out.iterdir(), key=lambda path: path.name == PLAN) if out.is_dir() else ():
        if path.name != LOCK:  # held by this process
            remove(path)


@contextmanager
def storing(experiment: Experiment) -> Iterator[None]:
    """Store a new experiment before its setup, and an existing one after it.

    If the setup fails, an existing comparison stays as it was, and nothing of a new one is left.
    """
    is_new = not (experiment.out / PLAN).exists()
    try:
        if is_new:
            experiment.write()
        yield
        experiment.write()
    except BaseException:
        if is_new:
            remove(experiment.out)
        raise


# --- the built-in text ------------------------------------------------------------------------------------------


def write_built_in(directory: Path, pairs: int = PAIRS) -> None:
    """Write the phrasebook with test sets by length, unless the directory exists.

    The test sets have the same number of sentences of every range of lengths, inside and beyond those of the training
    data, all with word combinations that were held out of training.
    """
    if directory.exists():
        return
    with new_directory(directory) as path:
        phrasebook.write(path, pairs, phrasebook.LENGTH_SEED)
        for name, ranges, count in (
            ("by_length", TEST_RANGES, TEST_SENTENCES),
            ("beyond", BEYOND_RANGES, BEYOND_SENTENCES),
        ):
            sentences = phrasebook.load(name, pairs, phrasebook.LENGTH_SEED)
            chosen = [
                pair
                for lengths in ranges
                for pair in [pair for pair in sentences if len(pair.source.split()) in lengths][:count]
            ]
            write_lines(path / f"{name}.en", [pair.source for pair in chosen])
            write_lines(path / f"{name}.ko", [pair.target for pair in chosen])


def built_in_files(directory: Path) -> dict[str, Any]:
    train, dev, test, beyond = (
        (directory / f"{name}.en", directory / f"{name}.ko") for name in ("train", "dev", "by_length", "beyond")
    )
    return {
        "train": (train,),
        "dev": (dev,),
        "test": test,
        "edges": tuple(lengths.stop - 1 for lengths in TEST_RANGES),
        "beyond": beyond,
        "beyond_edges": tuple(lengths.stop - 1 for lengths in BEYOND_RANGES),
        "built_in": True,
    }


def check_built_in(experiment: Experiment) -> None:
    """Reject settings that drop training pairs: the report would show untrained lengths as trained."""
    facts = json.loads((experiment.encoded / FACTS).read_text(encoding="utf-8"))
    if experiment.built_in and facts["left_out"]:
        limit = experiment.config(experiment.models[0].name).data.max_length
        raise UsageError(
            f"data.max_length={limit} leaves out {facts['left_out']:,} pairs of --built-in, whose tests treat all "
            f"lengths up to {MAX_WORDS} words as trained; use a larger one"
        )


def trained_lengths(experiment: Experiment, buckets: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
    """Count the training pairs in the range of each bucket, shortest first."""
    edges = [bucket["high"] for bucket in buckets]
    lengths = source_lengths([pair.source for pair in experiment.corpus])
    counts = Counter(bisect_left(edges, length) for length in lengths)
    return [
        {"low": bucket["low"], "high": bucket["high"], "pairs": counts[index]} for index, bucket in enumerate(buckets)
    ]
