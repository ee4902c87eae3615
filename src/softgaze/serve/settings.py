"""What a server is told at its start: every limit is here, with a default that is safe to leave alone."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from softgaze.errors import UsageError

ENVIRONMENT = "SOFTGAZE_SETTINGS"  # how a process that serves hands its settings to its workers


@dataclass(frozen=True)
class Settings:
    """As flags and environment variables name them."""

    models: tuple[str, ...] = ()  # directories
    host: str = "127.0.0.1"
    port: int = 8000  # 0: a free one
    workers: int = 1  # processes, each with models of its own
    threads: int = 0  # batches at the same time in each process; 0: as many as cores for it
    device: str = "auto"
    api_keys: str | None = None  # a file, one key a line
    cors: tuple[str, ...] = ()  # origins whose pages may read answers; "*": all
    beam: int = 5  # where nobody asks for another

    max_body: int = 1 << 20  # bytes of a request
    max_characters: int = 10_000  # of a text
    max_texts: int = 128  # of a request
    max_beam: int = 10
    max_alternatives: int = 10
    read_seconds: float = 20.0  # for a request to arrive
    deadline: float = 30.0  # seconds for it to be answered

    window: float = 3.0  # milliseconds that the first text of a batch waits for others
    batch: int = 64  # texts translated together
    queue: int = 1024  # texts that may wait
    keep_files: float = 30.0  # minutes that a translated file can be fetched

    shared: str = ""  # a directory for what workers share; made at the start

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise UsageError(f"--{name.replace('_', '-')} is at least {least}, not {getattr(self, name)}")
        if self.beam > self.max_beam:
            raise UsageError(f"--beam {self.beam} is above --max-beam {self.max_beam}")

    def to_environment(self) -> None:
        """For the workers of this process."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """As `to_environment` wrote them."""
        stored: dict[str, Any] = json.loads(environment[ENVIRONMENT])
        return cls(**{each.name: as_kept(stored[each.name]) for each in fields(cls)})


LEAST: dict[str, float] = {
    "workers": 1,
    "threads": 0,
    "beam": 1,
    "max_body": 1024,
    "max_characters": 1,
    "max_texts": 1,
    "max_beam": 1,
    "max_alternatives": 0,
    "read_seconds": 0.1,
    "deadline": 0.1,
    "window": 0,
    "batch": 1,
    "queue": 1,
    "keep_files": 0.01,
}


def as_kept(value: Any) -> Any:
    """JSON knows no tuples."""
    return tuple(value) if isinstance(value, list) else value
