"""The display of a training run: a progress bar on a terminal, plain lines in a log."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from softgaze.cli._output import warn
from softgaze.training.callbacks import Callback, CallbackList, TensorBoardCallback, Update, Validation

LOG_SECONDS = 30.0  # between two log lines about updates
SPEED_SECONDS = 10.0  # over which the speed is averaged


@contextmanager
def training_display(out: Path, tensorboard: bool = False) -> Iterator[Callback]:
    """Yield the callbacks that show a run; an interrupted run exits with the code of its signal."""
    from softgaze.training.train import Interrupted

    display = TerminalDisplay() if sys.stderr.isatty() else LogDisplay()
    callbacks = CallbackList(display, *([TensorBoardCallback(out / "tensorboard")] if tensorboard else []))
    try:
        yield callbacks
    except Interrupted as interrupted:
        warn(f"softgaze: {interrupted}")
        raise typer.Exit(interrupted.exit_code) from None
    finally:
        callbacks.close()


class SpeedMeter:
    """Tokens per second over the last few seconds."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, int]] = []  # (time, tokens in total)

    def add(self, tokens: int) -> float:
        """Count `tokens` now and return the speed; 0 if it is not known yet."""
        now = time.monotonic()
        total = (self.marks[-1][1] if self.marks else 0) + tokens
        recent = [mark for mark in self.marks[:-1] if mark[0] > now - SPEED_SECONDS]
        self.marks = [*recent, *self.marks[-1:], (now, total)]  # the last mark stays: an update may take minutes
        (start, before), (end, after) = self.marks[0], self.marks[-1]
        return (after - before) / (end - start) if end > start else 0.0

    def reset(self) -> None:
        """Reset the measured speed after a pause that was not training."""
        self.marks = []


# --- lines


def summary_lines(facts: dict[str, Any]) -> list[str]:
    width = max(len(name) for name in facts)
    return [
        f"{name.replace('_', ' '):<{width}}  {f'{value:,}' if isinstance(value, int) else value}"
        for name, value in facts.items()
    ]


def loss_text(update: Update) -> str:
    """Return the token loss, and the guided-alignment loss if there is one."""
    guided = "" if update.alignment_loss is None else f"  guided {update.alignment_loss:.3f}"
    return f"loss {update.loss:.3f}{guided}"


def validation_lines(validation: Validation) -> list[str]:
    """Return the scores, and the translations of some fixed sentences."""
    star = "  ★ best so far" if validation.is_best else ""
    cider = "" if validation.cider is None else f"  CIDEr {validation.cider:.1f}"
    lines = [
        f"step {validation.step:,}  {validation.elapsed / 60:.1f} min  dev loss {validation.loss:.3f}  "
        f"BLEU {validation.bleu:.1f}  chrF {validation.chrf:.1f}{cider}{star}"
    ]
    for source, reference, translation in validation.samples:
        lines += [f"    source     {source}", f"    reference  {reference}", f"    softgaze   {translation}", ""]
    return lines[:-1] if validation.samples else lines


def final_line(facts: dict[str, Any]) -> str:
    # The stored score is sign-flipped if lower is better, and slightly negative where BLEU is 0.
    best = -facts["best"] if facts["metric"] == "loss" else max(facts["best"], 0.0)
    waited = f" ({facts['waiting_for_data']:.1%} waiting for data)" if "waiting_for_data" in facts else ""
    return f"done: {facts['step']:,} updates in {facts['minutes']:.1f} min{waited}, best {facts['metric']} {best:.2f}"


# --- displays


class LogDisplay(Callback):
    """Prints lines to stderr, for a log file or a pipe."""

    def __init__(self) -> None:
        self.speed, self.last_shown = SpeedMeter(), -LOG_SECONDS

    def write(self, *lines: str) -> None:
        print(*lines, sep="\n", file=sys.stderr, flush=True)

    def on_start(self, facts: dict[str, Any]) -> None:
        self.write(*summary_lines(facts))

    def on_update(self, update: Update, share: float | None) -> None:
        speed = self.speed.add(update.tokens)
        if update.elapsed - self.last_shown >= LOG_SECONDS:
            self.last_shown = update.elapsed
            done = f"  {share:.0%}" if share is not None else ""
            tokens = f"  {speed:,.0f} tokens/s" if speed else ""
            step = f"step {update.step:,}  {update.elapsed / 60:.1f} min{done}"
            self.write(f"{step}  {loss_text(update)}{tokens}  lr {update.learning_rate:.2e}")

    def on_validation(self, validation: Validation) -> None:
        self.speed.reset()
        self.write(*validation_lines(validation))

    def on_message(self, message: str) -> None:
        self.write(message)

    def on_end(self, facts: dict[str, Any]) -> None:
        self.write(final_line(facts))


class TerminalDisplay(Callback):
    """Shows a progress bar at the bottom of the terminal; validations scroll above it."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.speed = SpeedMeter()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.task = self.bar.add_task("starting", total=None)

    def on_start(self, facts: dict[str, Any]) -> None:
        for line in summary_lines(facts):
            self.console.print(Text(line))
        self.bar.start()

    def on_update(self, update: Update, share: float | None) -> None:
        speed = self.speed.add(update.tokens)
        text = f"step {update.step:,}  {loss_text(update)}  {speed:,.0f} tok/s  lr {update.learning_rate:.1e}"
        completed, total = (None, None) if share is None else (min(share, 1.0), 1.0)
        self.bar.update(self.task, description=text, completed=completed, total=total)

    def on_validation(self, validation: Validation) -> None:
        self.speed.reset()
        scores, *samples = validation_lines(validation)
        self.console.print(Text(scores, style="bold"))
        for line in samples:
            style = "bold" if line.startswith("    softgaze") else "dim"
            # Early translations may be thousands of characters long.
            self.console.print(Text(line, style), no_wrap=True, overflow="ellipsis")

    def on_message(self, message: str) -> None:
        self.console.print(Text(message, style="yellow"))

    def on_end(self, facts: dict[str, Any]) -> None:
        self.close()
        self.console.print(Text(final_line(facts), style="bold green"))

    def close(self) -> None:
        self.bar.stop()
