"""A run directory: a bundle at its top, and beside it the settings, the encoded text, checkpoints and the journal."""

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
from softgaze.config import Config, differences, merged
from softgaze.errors import UsageError
from softgaze.files import TEMPORARY, explained, remove, write_text
from softgaze.gaze.film import NAME as FILM

SETTINGS, RESULT, LOCK = "training.yaml", "result.json", ".lock"


class RunDirectory:
    """Where everything of a run lies."""

    def __init__(self, path: Path, encoded: Path | None = None) -> None:
        self.path = path
        self.encoded, self.checkpoints = encoded or path / "encoded", path / "checkpoints"
        self.journal, self.curve, self.film = path / "metrics.jsonl", path / "curve.svg", path / FILM

    def check(self) -> None:
        """Refuse a place that is somebody else's, before anything is written there."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path}: is a file; --out names a directory")
        names = [each.name for each in self.path.iterdir()] if self.path.is_dir() else []
        others = [name for name in names if name != LOCK and not name.startswith(TEMPORARY)]
        if others and SETTINGS not in others:
            raise UsageError(f"{self.path}: is not empty and is no run of softgaze; choose another --out")

    def prepare(self, config: Config, fresh: bool) -> None:
        """Make it, or see that it can go on with these settings."""
        settings = config.model_dump()
        if fresh:
            for each in sorted(self.path.iterdir(), key=lambda path: path.name == SETTINGS):  # a run to the last
                if each.name != LOCK:  # held by this very process
                    remove(each)
        if (self.path / SETTINGS).is_file():
            self.check_settings(settings)
        write_text(self.path / SETTINGS, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
        write_text(self.path / "environment.json", json.dumps(environment(), indent=2))
        with explained(self.checkpoints):
            self.checkpoints.mkdir(exist_ok=True)

    @contextmanager
    def setting_up(self) -> Iterator[None]:
        """What fails while a new run is set up leaves nothing behind, so that the corrected command starts clean."""
        new = not (self.path / SETTINGS).exists()
        try:
            yield
        except BaseException:
            if new:
                remove(self.path)
            raise

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Settings may not change under a run; only its budget may, and not when the rate's course hangs on it."""
        stored = yaml.safe_load((self.path / SETTINGS).read_text(encoding="utf-8"))
        before = merged(Config().model_dump(), stored)  # settings that came after the run had their defaults
        changed = differences(before, settings)
        follows_budget = settings["training"]["schedule"] == "cosine"
        serious = [line for line in changed if follows_budget or not line.startswith("budget.")]
        if serious:
            raise UsageError(
                f"{self.path}: this run began with other settings ({'; '.join(serious)}); "
                "use the same ones, another --out, or --fresh to start over"
            )

    def result(self) -> dict[str, Any] | None:
        """How the run ended, if it did."""
        path = self.path / RESULT
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def write_result(self, facts: dict[str, Any]) -> None:
        """Mark the run as ended."""
        write_text(self.path / RESULT, json.dumps(facts, indent=2, ensure_ascii=False))

    def forget_result(self) -> None:
        """A run that goes on has not ended: stopped on the way, it would be taken for the shorter one."""
        remove(self.path / RESULT)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process trains in a directory; the system drops the lock of one that dies."""
        try:
            import fcntl
        except ImportError:  # Windows: no advisory locks of this kind
            yield
            return
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            file = open(self.path / LOCK, "w")  # noqa: SIM115  held until the end
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"{self.path}: another process is training here; wait for it or choose another --out"
                ) from None
            yield


def environment() -> dict[str, Any]:
    """What the run was made with."""
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
