"""TensorBoard events, with the extra installed."""

from pathlib import Path

from softgaze.errors import ResourceError
from softgaze.training.listeners import Listener, Update, Validation


class Events(Listener):
    """Writes what happens where TensorBoard reads it."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ResourceError("TensorBoard is not installed: pip install 'softgaze[tensorboard]'") from None
        self.writer = SummaryWriter(directory)

    def updated(self, update: Update, share: float | None) -> None:
        """Loss and rate."""
        self.add("train/loss", update.loss, update.step)
        self.add("train/learning_rate", update.learning_rate, update.step)

    def validated(self, validation: Validation) -> None:
        """Scores."""
        for name in ("loss", "bleu", "chrf"):
            self.add(f"dev/{name}", getattr(validation, name), validation.step)

    def add(self, name: str, value: float, step: int) -> None:
        """One point."""
        self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush."""
        self.writer.close()
