"""What a training run tells, and whoever listens: the terminal, a log, TensorBoard. Listeners never change a run."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Update:
    """One update of the weights."""

    step: int
    epoch: int
    loss: float  # a token
    tokens: int
    learning_rate: float
    elapsed: float  # seconds of training so far
    guided: float | None = None  # loss of the links, a linked piece; None where there were none


@dataclass(frozen=True)
class Validation:
    """One look at held-out text."""

    step: int
    epoch: int
    elapsed: float
    loss: float  # a token, without label smoothing
    bleu: float
    chrf: float
    samples: tuple[tuple[str, str, str], ...]  # source, reference, translation
    better: bool


class Listener:
    """Hears everything, does nothing."""

    def started(self, facts: dict[str, Any]) -> None:
        """The run's size and settings, before the first update."""

    def updated(self, update: Update, share: float | None) -> None:
        """After each update; `share` of the budget is spent, None when nobody knows."""

    def validated(self, validation: Validation) -> None:
        """After each validation."""

    def said(self, message: str) -> None:
        """Something worth a line: a resume, a skipped update, a damaged checkpoint."""

    def finished(self, facts: dict[str, Any]) -> None:
        """The end, however it came."""


class Listeners(Listener):
    """Several at once."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = listeners

    def started(self, facts: dict[str, Any]) -> None:
        """Pass on."""
        for each in self.listeners:
            each.started(facts)

    def updated(self, update: Update, share: float | None) -> None:
        """Pass on."""
        for each in self.listeners:
            each.updated(update, share)

    def validated(self, validation: Validation) -> None:
        """Pass on."""
        for each in self.listeners:
            each.validated(validation)

    def said(self, message: str) -> None:
        """Pass on."""
        for each in self.listeners:
            each.said(message)

    def finished(self, facts: dict[str, Any]) -> None:
        """Pass on."""
        for each in self.listeners:
            each.finished(facts)
