"""Callbacks report on a training run: the terminal, `metrics.jsonl`, TensorBoard. They never change the run."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from softgaze.atomic_io import write_errors, write_text
from softgaze.errors import ResourceError

LOG_SECONDS = 5.0  # between two "update" lines of metrics.jsonl


@dataclass(frozen=True)
class Update:
    """One optimizer step."""

    step: int
    epoch: int
    loss: float  # per target token
    tokens: int  # target tokens
    learning_rate: float
    elapsed: float  # seconds of training so far
    alignment_loss: float | None = None  # guided alignment, per aligned token; None if no token was aligned


@dataclass(frozen=True)
class Validation:
    """Scores on the held-out pairs."""

    step: int
    epoch: int
    elapsed: float
    loss: float  # per target token, without label smoothing
    bleu: float
    chrf: float
    samples: tuple[tuple[str, str, str], ...]  # source, reference, translation
    is_best: bool
    cider: float | None = None  # CIDEr-D of captions


class Callback:
    """Base class: ignores every event."""

    def on_start(self, facts: dict[str, Any]) -> None:
        """Receive size and settings of the run before the first update."""

    def on_update(self, update: Update, share: float | None) -> None:
        """Receive one update; `share` of the budget is used, None if the budget has no limit."""

    def on_validation(self, validation: Validation) -> None:
        """Receive the scores of one validation."""

    def on_message(self, message: str) -> None:
        """Receive a line for the user: a resume, a skipped update, a damaged checkpoint."""

    def on_end(self, facts: dict[str, Any]) -> None:
        """Receive the result of the run."""

    def close(self) -> None:
        """Release open files and the terminal."""


class CallbackList(Callback):
    """Pass every event to several callbacks, in order."""

    def __init__(self, *callbacks: Callback) -> None:
        self.callbacks = callbacks

    def on_start(self, facts: dict[str, Any]) -> None:
        for callback in self.callbacks:
            callback.on_start(facts)

    def on_update(self, update: Update, share: float | None) -> None:
        for callback in self.callbacks:
            callback.on_update(update, share)

    def on_validation(self, validation: Validation) -> None:
        for callback in self.callbacks:
            callback.on_validation(validation)

    def on_message(self, message: str) -> None:
        for callback in self.callbacks:
            callback.on_message(message)

    def on_end(self, facts: dict[str, Any]) -> None:
        for callback in self.callbacks:
            callback.on_end(facts)

    def close(self) -> None:
        for callback in self.callbacks:
            callback.close()


class MetricsLog(Callback):
    """Append every validation, and every few seconds the mean of the updates, to `metrics.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reset(0.0)

    def _reset(self, elapsed: float) -> None:
        self.since, self.tokens, self.loss = elapsed, 0, 0.0
        self.aligned_tokens, self.alignment_loss = 0, 0.0  # of the updates with an alignment loss

    def truncate(self, step: int, elapsed: float) -> None:
        """Drop the lines after `step`: the run resumes from a checkpoint of that step and writes them again."""
        lines = [line for line in read_metrics(self.path) if line["step"] <= step]
        write_text(self.path, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
        self._reset(elapsed)

    def on_update(self, update: Update, share: float | None) -> None:
        self.tokens += update.tokens
        self.loss += update.loss * update.tokens
        if update.alignment_loss is not None:
            self.aligned_tokens += update.tokens
            self.alignment_loss += update.alignment_loss * update.tokens
        seconds = update.elapsed - self.since
        if seconds < LOG_SECONDS:
            return
        line = asdict(update) | {"loss": self.loss / self.tokens, "tokens_per_second": round(self.tokens / seconds, 1)}
        del line["alignment_loss"]
        if self.aligned_tokens:
            line["alignment_loss"] = self.alignment_loss / self.aligned_tokens
        self._write({"kind": "update", **line})
        self._reset(update.elapsed)

    def on_validation(self, validation: Validation) -> None:
        self._write({"kind": "validation", **asdict(validation)})
        self._reset(validation.elapsed)  # the time of a validation does not count as training speed

    def _write(self, line: dict[str, Any]) -> None:
        with write_errors(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return every complete line of a `metrics.jsonl`; a line that a crash cut off is skipped."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_bytes().split(b"\n"):  # a crash may cut inside a character
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


class TensorBoardCallback(Callback):
    """Write TensorBoard events (extra `tensorboard`)."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ResourceError("TensorBoard is not installed: pip install 'softgaze[tensorboard]'") from None
        self.directory, self.writer_class = directory, SummaryWriter
        self.writer: Any = None  # opened by the first event, since a new run directory must be empty

    def on_update(self, update: Update, share: float | None) -> None:
        self._add("train/loss", update.loss, update.step)
        if update.alignment_loss is not None:
            self._add("train/alignment_loss", update.alignment_loss, update.step)
        self._add("train/learning_rate", update.learning_rate, update.step)

    def on_validation(self, validation: Validation) -> None:
        for name in ("loss", "bleu", "chrf"):
            self._add(f"dev/{name}", getattr(validation, name), validation.step)

    def _add(self, name: str, value: float, step: int) -> None:
        if self.writer is None:  # purge_step hides the later events of an interrupted run
            self.writer = self.writer_class(self.directory, purge_step=step)
        self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
