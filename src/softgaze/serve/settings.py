"""Settings of a server. The command line reads its defaults from here, so this module imports nothing heavy."""

import json
import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from softgaze.errors import UsageError

ENVIRONMENT = "SOFTGAZE_SETTINGS"  # carries the settings from the parent process to its workers


def at_least(minimum: float, default: Any) -> Any:
    return field(default=default, metadata={"minimum": minimum})


@dataclass(frozen=True)
class Settings:
    """Settings named as the flags of `softgaze serve`; the defaults are safe for a public server."""

    models: tuple[str, ...] = ()  # directories
    host: str = "127.0.0.1"
    port: int = 8000  # 0: a free port
    workers: int = at_least(1, 1)  # processes, each with its own copy of the models
    threads: int = at_least(0, 0)  # concurrent batches per process; 0: chosen by engine
    device: str = "auto"
    api_keys: str | None = None  # file with one key per line
    cors: tuple[str, ...] = ()  # allowed origins; "*": all
    beam_size: int = at_least(1, 5)  # default of requests

    max_body: int = at_least(1024, 1 << 20)  # bytes per request
    max_characters: int = at_least(1, 10_000)  # per text
    max_texts: int = at_least(1, 128)  # per request
    max_beam_size: int = at_least(1, 10)
    max_hypotheses: int = at_least(1, 11)
    read_seconds: float = at_least(0.1, 20.0)  # to receive a request
    deadline: float = at_least(0.1, 30.0)  # seconds from request to the start of its batch

    window: float = at_least(0, 3.0)  # milliseconds that the first text of a batch waits for others
    batch: int = at_least(1, 64)  # texts per batch
    queue: int = at_least(1, 1024)  # texts
    keep_files: float = at_least(0.01, 30.0)  # minutes until a translated file is deleted

    shared_dir: str = ""  # directory shared by the workers; created at startup

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, minimum = getattr(self, setting.name), setting.metadata.get("minimum")
            if minimum is not None and value < minimum:
                raise UsageError(f"--{setting.name.replace('_', '-')} must be at least {minimum}, got {value}")
        if self.beam_size > self.max_beam_size:
            raise UsageError(f"--beam-size {self.beam_size} exceeds --max-beam-size {self.max_beam_size}")

    def to_environment(self) -> None:
        """Store the settings in the environment of this process and its workers."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> "Settings":
        """Load the settings that `to_environment` stored."""
        stored: dict[str, Any] = json.loads(os.environ[ENVIRONMENT])
        stored |= {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
        return cls(**stored)
