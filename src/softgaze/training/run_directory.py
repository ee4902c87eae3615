"""A run directory: a bundle, the settings, the encoded text, checkpoints and metrics of one training run."""

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from softgaze import __version__
from softgaze.atomic_io import TEMPORARY, remove, write_errors, write_text
from softgaze.bundle import HELD_OUT
from softgaze.config import Config, Section, current_names, differences, merge_settings
from softgaze.errors import UsageError
from softgaze.explain.serialization import HISTORY_FILE

# Settings of runs that are older than these settings.
EARLIER = {"training": {"schedule": "inverse-sqrt", "decay": 0.0, "warm_start": "none", "guided": "none"}}
# Settings that a run chooses for its first budget, and keeps.
CHOSEN = {
    "training": (
        *("batch_tokens", "learning_rate", "schedule", "decay", "warmup", "warm_start", "label_smoothing", "mix_ratio"),
        "guided",
    ),
    "budget": ("patience",),
    "validation": ("every",),
}
SETTINGS, RESULT, LOCK = "training.yaml", "result.json", ".lock"


class RunDirectory:
    """Paths and state of a run."""

    def __init__(self, path: Path, encoded: Path | None = None) -> None:
        self.path = path
        self.encoded, self.checkpoints = encoded or path / HELD_OUT.parent, path / "checkpoints"
        self.metrics, self.learning_curve = path / "metrics.jsonl", path / "curve.svg"
        self.attention_history = path / HISTORY_FILE

    def check(self) -> None:
        """Raise a `UsageError` if the path holds anything but a run."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path}: is a file; --out names a directory")
        names = [entry.name for entry in self.path.iterdir()] if self.path.is_dir() else []
        names = [name for name in names if name != LOCK and not name.startswith(TEMPORARY)]
        if names and SETTINGS not in names:
            raise UsageError(f"{self.path}: is not empty and is not a softgaze run; choose another directory")

    def prepare(self, config: Config, fresh: bool) -> None:
        """Create the run, or check that it can resume with these settings."""
        settings = config.model_dump()
        if fresh:
            entries = sorted(self.path.iterdir(), key=lambda path: path.name == SETTINGS)  # the settings last
            for entry in entries:
                if entry.name != LOCK:
                    remove(entry)
        if self.is_started:
            self.check_settings(settings)
        write_text(self.path / SETTINGS, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
        write_text(self.path / "environment.json", json.dumps(environment(), indent=2))
        with write_errors(self.checkpoints):
            self.checkpoints.mkdir(exist_ok=True)

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Remove a new run if the block fails, so that the corrected command starts clean."""
        is_new = not self.is_started
        try:
            yield
        except BaseException:
            if is_new:
                remove(self.path)
            raise

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Raise a `UsageError` if settings changed; the budget may, unless the schedule depends on it."""
        before = self.stored_settings()
        ignored = () if settings["training"]["schedule"] == "cosine" else ("budget.",)
        changed = [line for line in differences(before, settings) if not line.startswith(ignored)]
        if changed:
            raise UsageError(
                f"{self.path}: this run started with other settings ({'; '.join(changed)}); "
                "use the same ones, another --out, or --fresh to start over"
            )

    def stored_settings(self) -> dict[str, Any]:
        """Return the settings the run started with; those newer than the run had their defaults, or `EARLIER`."""
        stored = current_names(yaml.safe_load((self.path / SETTINGS).read_text(encoding="utf-8")))
        return merge_settings(Config().model_dump(), EARLIER, stored)

    @property
    def is_started(self) -> bool:
        """Whether the run has settings to resume with."""
        return (self.path / SETTINGS).is_file()

    def fill_in(self, config: Config) -> Config:
        """Return the settings with those that the run chose for itself when it started."""
        stored = self.stored_settings()
        options = {**stored["model"]["options"], **config.model.options}
        size = config.model.size if "size" in config.model.model_fields_set else stored["model"]["size"]
        sections: dict[str, Section] = {"model": config.model.model_copy(update={"size": size, "options": options})}
        for name, keys in CHOSEN.items():
            section: Section = getattr(config, name)
            chosen = {key: stored[name][key] for key in keys if getattr(section, key) is None}
            sections[name] = section.model_copy(update=chosen)
        if config.model.arch == "captioner" and config.budget.epochs is None:  # a choice for photos
            sections["budget"] = sections["budget"].model_copy(update={"epochs": stored["budget"]["epochs"]})
        return config.model_copy(update=sections)

    def result(self) -> dict[str, Any] | None:
        """Return the facts of a finished run."""
        path = self.path / RESULT
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def write_result(self, facts: dict[str, Any]) -> None:
        """Mark the run as finished."""
        write_text(self.path / RESULT, json.dumps(facts, indent=2, ensure_ascii=False))

    def remove_result(self) -> None:
        """Mark the run as unfinished: a resumed run that stops early must not pass for the shorter one."""
        remove(self.path / RESULT)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against other processes; the system releases the lock of a process that dies."""
        from filelock import FileLock, Timeout  # of the extra `train`; evaluation reads `environment` without it

        with write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / LOCK)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                raise UsageError(
                    f"{self.path}: another process is training here; wait for it or choose another --out"
                ) from None
        try:
            yield
        finally:
            lock.release()


def environment() -> dict[str, Any]:
    packages = {}
    for name in ("torch", "numpy", "sentencepiece", "safetensors", "sacrebleu"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "softgaze": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": packages,
    }
