"""`metrics.jsonl`: one line for some updates and each validation, in step with the checkpoint a run resumes from."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from softgaze.files import explained, write_text
from softgaze.training.listeners import Listener, Update, Validation

SECONDS = 5.0  # between two lines about updates


class Journal(Listener):
    """Writes what happened; `rewind` forgets what a resumed run will do again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start(0.0)

    def start(self, elapsed: float) -> None:
        """Count anew from here."""
        self.since, self.tokens, self.loss = elapsed, 0, 0.0
        self.guided_tokens, self.guided = 0, 0.0  # of the updates that had links

    def rewind(self, step: int, elapsed: float) -> None:
        """Drop lines after `step`."""
        kept = [line for line in read_journal(self.path) if line["step"] <= step]
        write_text(self.path, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in kept))
        self.start(elapsed)

    def updated(self, update: Update, share: float | None) -> None:
        """A line every few seconds, with the mean loss and speed since the last."""
        self.tokens += update.tokens
        self.loss += update.loss * update.tokens
        if update.guided is not None:
            self.guided_tokens += update.tokens
            self.guided += update.guided * update.tokens
        if update.elapsed - self.since < SECONDS:
            return
        speed = self.tokens / (update.elapsed - self.since)
        line = asdict(update) | {"loss": self.loss / self.tokens, "tokens_per_second": round(speed, 1)}
        del line["guided"]
        if self.guided_tokens:
            line["guided"] = self.guided / self.guided_tokens
        self.write({"kind": "update", **line})
        self.start(update.elapsed)

    def validated(self, validation: Validation) -> None:
        """All of it. The clock of the updates starts anew: validation is not training speed."""
        self.write({"kind": "validation", **asdict(validation)})
        self.start(validation.elapsed)

    def write(self, line: dict[str, Any]) -> None:
        """Append."""
        with explained(self.path), open(self.path, "a", encoding="utf-8") as file:
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
