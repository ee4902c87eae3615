"""TensorBoard events, with the extra installed."""

from functools import partial
from pathlib import Path
from typing import Any

from softgaze.errors import ResourceError
from softgaze.training.listeners import Listener, Update, Validation


class Events(Listener):
    """Writes what happens where TensorBoard reads it. Nothing is there before the first event: a new run is empty."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ResourceError("TensorBoard is not installed: pip install 'softgaze[tensorboard]'") from None
        self.open = partial(SummaryWriter, directory)
        self.writer: Any = None

    def updated(self, update: Update, share: float | None) -> None:
        """Losses and rate."""
        self.add("train/loss", update.loss, update.step)
        if update.guided is not None:
            self.add("train/guided", update.guided, update.step)
        self.add("train/learning_rate", update.learning_rate, update.step)

    def validated(self, validation: Validation) -> None:
        """Scores."""
        for name in ("loss", "bleu", "chrf"):
            self.add(f"dev/{name}", getattr(validation, name), validation.step)

    def add(self, name: str, value: float, step: int) -> None:
        """One point; the first hides those an interrupted run had from there on."""
        if self.writer is None:
            self.writer = self.open(purge_step=step)
        self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush."""
        if self.writer is not None:
            self.writer.close()
