"""Translated files, until they are fetched or too old: kept by a random id, never by a name that somebody sent."""

import re
import secrets
import time
from pathlib import Path

ID = re.compile(r"[A-Za-z0-9_-]{32}\.txt")
MOST = 256  # files at the same time; the oldest goes first


class Store:
    """A directory of files with an end."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self.directory, self.seconds = directory, seconds

    def keep(self, content: bytes) -> str:
        """The name under which it can be fetched."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sweep(MOST - 1)
        name = f"{secrets.token_urlsafe(24)}.txt"
        (self.directory / name).write_bytes(content)
        return name

    def find(self, name: str) -> bytes | None:
        """What was kept under a name; None where there is nothing, or nothing any more."""
        path = self.directory / name
        if not ID.fullmatch(name) or not path.is_file() or self.is_old(path):
            return None
        return path.read_bytes()

    def sweep(self, most: int = MOST) -> None:
        """Remove what is too old or too much."""
        every = sorted(self.directory.glob("*.txt"), key=lambda path: path.stat().st_mtime, reverse=True)
        for place, path in enumerate(every):
            if place >= most or self.is_old(path):
                path.unlink(missing_ok=True)

    def is_old(self, path: Path) -> bool:
        """Whether its time is over."""
        return time.time() - path.stat().st_mtime > self.seconds
