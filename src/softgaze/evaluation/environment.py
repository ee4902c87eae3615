"""Hardware, software versions and commit of a measurement."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import softgaze
from softgaze.training.run_directory import environment

PACKAGE = Path(softgaze.__file__).parent


def describe_environment() -> dict[str, Any]:
    """Return hardware, versions, commit and date; the memory is None if the system does not report it."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = None
    return {
        "processor": cpu_name(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        **environment(),
        "commit": git_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def git_commit() -> str | None:
    """Return the commit of a source checkout; None for an installed package, even inside another repository."""
    root = PACKAGE.parents[1]
    if root / "src" / "softgaze" != PACKAGE or not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    try:
        changes = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + (" with changes" if changes else "")
    except OSError:  # git is not installed
        return None
