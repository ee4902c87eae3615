"""What a comparison is: the same text, tokenizer, budget and search for several models, in one directory.

plan.json       what was asked for; whoever takes a turn reads it
encoded/        the text, prepared once for all
models/NAME/    a run directory for each model, and what was measured of it
failed.json     whose turn ended in an error the last time, and which
report.*        what came out
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softgaze.config import Config, merged, validated
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, UsageError, pick
from softgaze.evaluation.compare.variants import Variant
from softgaze.files import TEMPORARY, remove, write_text
from softgaze.training.run import LOCK, SETTINGS, RunDirectory

PLAN, FAILED, REPORT = "plan.json", "failed.json", "report"
POINTS = 10  # of a learning curve, about
FEWEST_UPDATES, MOST_UPDATES = 50, 1000  # between two points when the clock is the budget
UPDATES_A_MINUTE = 250  # what a small model does on two cores, roughly
NEVER = 1_000_000  # validations without a better score: the budget alone ends a training

Files = tuple[tuple[Path, Path], ...]


@dataclass(frozen=True)
class Plan:
    """Everything that is asked for; the same for all models but for what their variants set."""

    out: Path
    variants: tuple[Variant, ...]
    settings: dict[str, Any]  # shared by all, as nested sections
    train: Files
    tables: tuple[Path, ...]  # more to train on, a file of pairs each
    dev: Files
    test: tuple[Path, Path]
    edges: tuple[int, ...] | None = None  # the longest lengths of each bucket; None: chosen from the test set
    beyond: tuple[Path, Path] | None = None  # sentences longer than any in training
    beyond_edges: tuple[int, ...] | None = None
    built_in: bool = False
    beam: int = 5
    device: str = "auto"

    def config(self, name: str) -> Config:
        """All settings of one model's training."""
        return self.variant(name).config(self.settings)

    def variant(self, name: str) -> Variant:
        """The one with this name."""
        return pick("model of this comparison", name, {each.name: each for each in self.variants})

    def run(self, name: str) -> RunDirectory:
        """Where one model is trained."""
        return RunDirectory(self.out / "models" / self.variant(name).directory)

    @property
    def encoded(self) -> Path:
        """Where the prepared text lies."""
        return self.out / "encoded"

    @property
    def seed(self) -> int:
        """Everything random follows from it, for all models; a built-in text too."""
        return validated(self.settings).training.seed

    def check_runs(self) -> None:
        """Refuse settings that a comparison or one of its models cannot go on with, before any model takes a turn."""
        before = stored_plan(self.out)
        if before is not None and before.seed != self.seed:
            raise UsageError(
                f"{self.out}: this comparison began with seed {before.seed}, from which its text may follow; "
                f"use --seed {before.seed}, another --out, or --fresh to start over"
            )
        for variant in self.variants:
            run = self.run(variant.name)
            if (run.path / SETTINGS).is_file():
                run.check_settings(self.config(variant.name).model_dump())

    def report(self, ending: str) -> Path:
        """A file of the report."""
        return self.out / f"{REPORT}.{ending}"

    @property
    def corpus(self) -> Corpus:
        """What is trained on."""
        return Corpus.of(self.train, self.tables)

    @property
    def held_out(self) -> Corpus | None:
        """What is validated on, if it was given."""
        return Corpus.of(self.dev) if self.dev else None

    # --- keeping

    def to_record(self) -> dict[str, Any]:
        """For JSON; the directory is where it is kept."""
        return {
            **{name: value for name, value in vars(self).items() if name not in ("out", "variants")},
            "variants": {variant.name: variant.settings for variant in self.variants},
        }

    def write(self) -> None:
        """Keep it for whoever takes a turn."""
        self.out.mkdir(parents=True, exist_ok=True)
        write_text(self.out / PLAN, json.dumps(self.to_record(), indent=2, ensure_ascii=False, default=str))

    @classmethod
    def read(cls, out: Path) -> "Plan":
        """The plan of a directory."""
        try:
            record = dict(json.loads((out / PLAN).read_text(encoding="utf-8")))
            variants = tuple(Variant(*each) for each in record.pop("variants").items())
            places = {name: paths(record.pop(name)) for name in ("train", "tables", "dev", "test", "beyond")}
            return cls(out, variants, **places, **record)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{out / PLAN}: cannot be read as the plan of a comparison: {error}") from error


def stored_plan(out: Path) -> Plan | None:
    """The plan of a comparison that goes on; None where a new one begins."""
    return Plan.read(out) if (out / PLAN).exists() else None


def paths(value: Any) -> Any:
    """Names of files, however deep in tuples, as paths."""
    if isinstance(value, list):
        return tuple(map(paths, value))
    return value if value is None else Path(value)


def check_place(out: Path) -> None:
    """Refuse a directory that is somebody else's, before anything is written there."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; --out names a directory")
    names = [each.name for each in out.iterdir()] if out.is_dir() else []
    others = [name for name in names if name != LOCK and not name.startswith(TEMPORARY)]
    if others and PLAN not in others:
        raise UsageError(f"{out}: is not empty and is no comparison of softgaze; choose another --out")


def clear(out: Path) -> None:
    """Remove a comparison; the plan goes last, so that what a crash leaves is still known as one."""
    for each in sorted(out.iterdir(), key=lambda path: path.name == PLAN) if out.is_dir() else ():
        if each.name != LOCK:  # held by this very process
            remove(each)


@contextmanager
def planning(plan: Plan) -> Iterator[None]:
    """The plan of a new comparison is there first, so that what a crash leaves is known as one; else it is kept last.

    What is refused on the way leaves an old comparison as it was, and nothing of a new one.
    """
    new = not (plan.out / PLAN).exists()
    try:
        if new:
            plan.write()
        yield
        plan.write()
    except BaseException:
        if new:
            remove(plan.out)
        raise


def shared_settings(given: dict[str, Any], before: Plan | None = None) -> dict[str, Any]:
    """Settings for all: the whole budget is used, and looked at about ten times, where nobody says otherwise.

    A comparison that goes on looks as often as it did `before`: its budget may grow, but no other setting may change.
    """
    asked = validated(given)
    budget = asked.budget
    if budget.steps is None and budget.minutes is None:
        raise UsageError("how long may each model train? give --minutes or --steps")
    if budget.steps is not None and budget.minutes is not None:
        raise UsageError("--minutes and --steps are two budgets; give one, so that all models have the same")
    updates = budget.steps / POINTS if budget.steps else paced(budget.minutes or 0)
    every = before.settings["validation"]["every"] if before else max(1, round(updates))
    defaults = {
        "budget": {"patience": NEVER},
        "validation": {"every": every, "sentences": 200, "samples": 0},
    }
    return merged(defaults, given)


def paced(minutes: float) -> float:
    """Updates between two looks when only the clock is known; the same for all models."""
    return min(MOST_UPDATES, max(FEWEST_UPDATES, minutes * UPDATES_A_MINUTE / POINTS))


def absolute(plan: Plan) -> Plan:
    """The same with files by their full names, since a turn may be taken elsewhere."""

    def full(value: Any) -> Any:
        return tuple(map(full, value)) if isinstance(value, tuple) else value and value.resolve()

    return replace(plan, **{name: full(getattr(plan, name)) for name in ("train", "tables", "dev", "test", "beyond")})
