"""Settings of a server. The command line makes its options from them, so this module imports nothing heavy."""

import json
import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from softgaze.errors import UsageError

ENVIRONMENT = "SOFTGAZE_SETTINGS"  # carries the settings from the parent process to its workers


GLOSSARIES = "Glossaries"  # panels of the command's help
LIMITS = "Limits (maximum values)"


def setting(default: Any, text: str, *, minimum: float | None = None, **option: Any) -> Any:
    """Return a field with the help text, smallest value and other properties of its command-line option."""
    return field(default=default, metadata={"minimum": minimum, "option": {"help": text, "metavar": "N", **option}})


def limit(default: float, minimum: float, text: str, unit: str = "N") -> Any:
    return setting(default, text, minimum=minimum, metavar=unit, rich_help_panel=LIMITS)


@dataclass(frozen=True)
class Settings:
    """Settings of a server: each is an option of `softgaze serve`; the defaults are safe for a public server."""

    models: tuple[str, ...] = ()  # directories, the arguments of the command
    host: str = setting("127.0.0.1", "Address to listen on; 0.0.0.0: all interfaces.", metavar="HOST")
    port: int = setting(8000, "Port to listen on; 0: any free port.", metavar="PORT", min=0, max=65535)
    workers: int = setting(1, "Processes; each loads all models.", minimum=1)
    threads: int = setting(0, "Concurrent batches per process; 0: set by the engine.", minimum=0)
    device: str = setting("auto", "auto, cpu, cuda, cuda:N or mps.", metavar="DEVICE")
    engine: Literal["auto", "torch", "ctranslate2", "onnx"] = setting(
        "auto",
        "What runs the models; auto: the fastest with the same output.",
        metavar="auto | torch | ctranslate2 | onnx",
    )
    api_keys: str | None = setting(None, "Require an API key listed in FILE (one per line).", metavar="FILE")
    glossary: str | None = setting(
        None, "Terms of every translation: source TAB target per line.", metavar="FILE", rich_help_panel=GLOSSARIES
    )
    glossary_dir: str | None = setting(
        None,
        "Keep the glossaries of clients in DIR; by default they are deleted when the server stops.",
        metavar="DIR",
        rich_help_panel=GLOSSARIES,
    )
    cors: tuple[str, ...] = setting(
        (), "Origin whose pages may call the API, such as https://a.org; *: all. Repeatable.", metavar="ORIGIN"
    )
    beam_size: int | None = setting(None, "Default beam size.", minimum=1, show_default="that of the model, or 5")

    max_body: int = limit(1 << 20, 1024, "Request body, in bytes.", "BYTES")
    max_file: int = limit(16 << 20, 1024, "Uploaded document, in bytes.", "BYTES")
    max_characters: int = limit(10_000, 1, "Length of a text, in characters.")
    max_texts: int = limit(128, 1, "Texts per request.")
    max_beam_size: int = limit(10, 1, "Beam size of a request.")
    max_hypotheses: int = limit(11, 1, "Translations per text.")
    read_seconds: float = limit(20.0, 0.1, "Time to receive a request, in seconds.", "SECONDS")
    deadline: float = limit(30.0, 0.1, "Waiting time of a text, in seconds; then 429.", "SECONDS")
    queue: int = limit(1024, 1, "Number of waiting texts; above it 429.")
    keep_files: float = limit(30.0, 0.01, "Lifetime of a translated file, in minutes.", "MINUTES")
    batch: int = limit(64, 1, "Texts translated together.")
    window: float = limit(3.0, 0, "Time a text waits for others to join its batch, in milliseconds.", "MS")

    shared_dir: str = ""  # directory shared by the workers; created at startup

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, minimum = getattr(self, setting.name), setting.metadata.get("minimum")
            if None not in (value, minimum) and value < minimum:
                raise UsageError(f"--{setting.name.replace('_', '-')} must be at least {minimum}, got {value}")
        if self.beam_size is not None and self.beam_size > self.max_beam_size:
            raise UsageError(f"--beam-size {self.beam_size} exceeds --max-beam-size {self.max_beam_size}")

    def to_environment(self) -> None:
        """Store the settings in the environment of this process and its workers."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> "Settings":
        stored: dict[str, Any] = json.loads(os.environ[ENVIRONMENT])
        stored |= {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
        return cls(**stored)
