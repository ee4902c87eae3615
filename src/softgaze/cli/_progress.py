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
RECENT_SECONDS = 10.0  # over which speed and losses are averaged


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


class UpdateMeter:
    """Speed and mean losses of the updates of the last few seconds: a single batch of long sentences tells little."""

    def __init__(self) -> None:
        self.recent: list[tuple[float, Update]] = []  # (time, update); the first only starts the clock

    def add(self, update: Update) -> None:
        now = time.monotonic()
        kept = [mark for mark in self.recent[:-1] if mark[0] > now - RECENT_SECONDS]
        self.recent = [*kept, *self.recent[-1:], (now, update)]  # the last mark stays: an update may take minutes

    def speed(self) -> float:
        """Return the target tokens per second, 0 if they are not known yet."""
        seconds = self.recent[-1][0] - self.recent[0][0]
        return sum(update.tokens for _, update in self.recent[1:]) / seconds if seconds else 0.0

    def losses(self) -> str:
        """Return the mean loss per token, and of guided alignment if there is one."""
        updates = [update for _, update in self.recent]
        aligned = [(update.alignment_loss, update.tokens) for update in updates if update.alignment_loss is not None]
        guided = f"  guided {weighted_mean(aligned):.3f}" if aligned else ""
        return f"loss {weighted_mean([(update.loss, update.tokens) for update in updates]):.3f}{guided}"

    def reset(self) -> None:
        """Forget the updates before a pause that was not training."""
        self.recent = []


def weighted_mean(values: list[tuple[float, int]]) -> float:
    """Return the mean of (value, weight) pairs."""
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)


# --- lines


def summary_lines(facts: dict[str, Any]) -> list[str]:
    width = max(len(name) for name in facts)
    return [
        f"{name.replace('_', ' '):<{width}}  {f'{value:,}' if isinstance(value, int) else value}"
        for name, value in facts.items()
    ]


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
        self.meter, self.last_shown = UpdateMeter(), -LOG_SECONDS

    def write(self, *lines: str) -> None:
        print(*lines, sep="\n", file=sys.stderr, flush=True)

    def on_start(self, facts: dict[str, Any]) -> None:
        self.write(*summary_lines(facts))

    def on_update(self, update: Update, share: float | None) -> None:
        self.meter.add(update)
        if update.elapsed - self.last_shown >= LOG_SECONDS:
            self.last_shown = update.elapsed
            done = f"  {share:.0%}" if share is not None else ""
            speed = self.meter.speed()
            tokens = f"  {speed:,.0f} tokens/s" if speed else ""
            step = f"step {update.step:,}  {update.elapsed / 60:.1f} min{done}"
            self.write(f"{step}  {self.meter.losses()}{tokens}  lr {update.learning_rate:.2e}")

    def on_validation(self, validation: Validation) -> None:
        self.meter.reset()
        self.write(*validation_lines(validation))

    def on_message(self, message: str) -> None:
        self.write(message)

    def on_end(self, facts: dict[str, Any]) -> None:
        self.write(final_line(facts))


class TerminalDisplay(Callback):
    """Shows a progress bar at the bottom of the terminal; validations scroll above it."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.meter = UpdateMeter()
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
        self.meter.add(update)
        losses, speed = self.meter.losses(), self.meter.speed()
        text = f"step {update.step:,}  {losses}  {speed:,.0f} tok/s  lr {update.learning_rate:.1e}"
        completed, total = (None, None) if share is None else (min(share, 1.0), 1.0)
        self.bar.update(self.task, description=text, completed=completed, total=total)

    def on_validation(self, validation: Validation) -> None:
        self.meter.reset()
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
