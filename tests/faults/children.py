"""A small training as a process of its own, to be killed, starved and signalled."""

import os
import subprocess
import sys
import time
from pathlib import Path

from corpora import SMALL

SETTINGS = ["training.batch_tokens=64", "validation.every=10", "validation.save_every=1", "validation.sentences=4"]


def command(text: Path, out: Path, *more: str, steps: int = 60, arch: str = "transformer") -> list[str]:
    """`softgaze train` on the text of `write_corpus`, a checkpoint after each update."""
    options = [f"--set=model.options.{name}={value}" for name, value in SMALL[arch].items()]
    return [
        *(sys.executable, "-m", "softgaze", "train", "--arch", arch, "--out", str(out), "--steps", str(steps)),
        *("--train", str(text / "train.en"), str(text / "train.de"), "--device", "cpu"),
        *options,
        *(f"--set={each}" for each in SETTINGS),
        *more,
    ]


def environment(**more: str) -> dict[str, str]:
    """One thread, so that a training is the same bits every time."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def finished(arguments: list[str], **options) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(arguments, capture_output=True, text=True, env=environment(), timeout=300, **options)


def started(arguments: list[str], **more: str) -> subprocess.Popen[str]:
    """Run in the background."""
    return subprocess.Popen(arguments, env=environment(**more), stderr=subprocess.PIPE, text=True)


def saved_step(run: Path) -> int:
    """Of the newest checkpoint; -1 before the first."""
    return max((int(path.name[5:]) for path in (run / "checkpoints").glob("step-*")), default=-1)


def wait_for_step(process: subprocess.Popen[str], run: Path, step: int) -> None:
    """Until that checkpoint is there, or the process has ended."""
    while process.poll() is None and saved_step(run) < step:
        time.sleep(0.02)
