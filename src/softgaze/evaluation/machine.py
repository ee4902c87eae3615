"""Where and with what something was measured: a figure means little without it."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import softgaze
from softgaze.training.run import environment

PACKAGE = Path(softgaze.__file__).parent


def surroundings() -> dict[str, Any]:
    """Machine, versions and date."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": memory(),
        **environment(),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def processor() -> str:
    """Its name, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def memory() -> int | None:
    """All there is, in bytes, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def commit() -> str | None:
    """Of the code itself, if it runs from a clone; an installed package has its version alone."""
    root = PACKAGE.parents[1]
    if root / "src" / "softgaze" != PACKAGE or not (root / ".git").exists():
        return None

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
    except OSError:  # no git here
        return None
