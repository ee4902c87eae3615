"""`metrics.jsonl`: one line for some updates and each validation, in step with the checkpoint a run resumes from."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from softgaze.files import write_text
from softgaze.training.listeners import Listener, Update, Validation

SECONDS = 5.0  # between two lines about updates


class Journal(Listener):
    """Writes what happened; `rewind` forgets what a resumed run will do again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tokens, self.since, self.loss = 0, 0.0, 0.0

    def rewind(self, step: int, elapsed: float) -> None:
        """Drop lines after `step`."""
        kept = [line for line in read_journal(self.path) if line["step"] <= step]
        write_text(self.path, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in kept))
        self.tokens, self.since, self.loss = 0, elapsed, 0.0

    def updated(self, update: Update, share: float | None) -> None:
        """A line every few seconds, with the mean loss and speed since the last."""
        self.tokens += update.tokens
        self.loss += update.loss * update.tokens
        if update.elapsed - self.since < SECONDS:
            return
        speed = self.tokens / (update.elapsed - self.since)
        line = asdict(update) | {"loss": self.loss / self.tokens, "tokens_per_second": round(speed, 1)}
        self.write({"kind": "update", **line})
        self.tokens, self.since, self.loss = 0, update.elapsed, 0.0

    def validated(self, validation: Validation) -> None:
        """All of it. The clock of the updates starts anew: validation is not training speed."""
        self.write({"kind": "validation", **asdict(validation)})
        self.tokens, self.since, self.loss = 0, validation.elapsed, 0.0

    def write(self, line: dict[str, Any]) -> None:
        """Append."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Every whole line; one cut by a crash is passed over."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_bytes().split(b"\n"):  # a crash may cut inside a character
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines
