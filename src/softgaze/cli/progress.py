"""What training shows: a live line with the time left on a terminal, plain lines elsewhere."""

import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from softgaze.training.listeners import Listener, Listeners, Update, Validation

PLAIN_SECONDS = 30.0  # between two plain lines about updates


class Shown(Listeners):
    """Listeners that can be closed."""

    def close(self) -> None:
        """End what was opened."""
        for each in self.listeners:
            getattr(each, "close", lambda: None)()


def listener_for(out: Path, tensorboard: bool = False) -> Shown:
    """What fits where the output goes."""
    shown: list[Listener] = [Live() if sys.stderr.isatty() else Plain()]
    if tensorboard:
        from softgaze.training.tensorboard import Events

        shown.append(Events(out / "tensorboard"))
    return Shown(*shown)


class Speed:
    """Tokens a second, over the last few seconds."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, int]] = []

    def add(self, tokens: int) -> float:
        """Count `tokens` now; the mean speed of the last ten seconds."""
        now = time.monotonic()
        total = (self.marks[-1][1] if self.marks else 0) + tokens
        recent = [mark for mark in self.marks[:-1] if mark[0] > now - 10]
        self.marks = [*recent, *self.marks[-1:], (now, total)]  # the last one, too: an update may take minutes
        (start, before), (end, after) = self.marks[0], self.marks[-1]
        return (after - before) / (end - start) if end > start else 0.0

    def forget(self) -> None:
        """Start anew, after a pause that was not training."""
        self.marks = []


def summary_lines(facts: dict[str, Any]) -> list[str]:
    """The facts of a run, aligned."""
    width = max(len(name) for name in facts)
    return [
        f"{name.replace('_', ' '):<{width}}  {f'{value:,}' if isinstance(value, int) else value}"
        for name, value in facts.items()
    ]


def validation_lines(validation: Validation) -> list[str]:
    """Scores, and what the model now makes of some fixed sentences."""
    star = "  ★ best so far" if validation.better else ""
    lines = [
        f"step {validation.step:,}  {validation.elapsed / 60:.1f} min  dev loss {validation.loss:.3f}  "
        f"BLEU {validation.bleu:.1f}  chrF {validation.chrf:.1f}{star}"
    ]
    for source, reference, translation in validation.samples:
        lines += [f"    source     {source}", f"    reference  {reference}", f"    softgaze   {translation}", ""]
    return lines[:-1] if validation.samples else lines


class Plain(Listener):
    """Lines for a log file or a pipe."""

    def __init__(self) -> None:
        self.speed, self.last = Speed(), -PLAIN_SECONDS

    def write(self, *lines: str) -> None:
        """To standard error, whole at once."""
        print(*lines, sep="\n", file=sys.stderr, flush=True)

    def started(self, facts: dict[str, Any]) -> None:
        """The summary."""
        self.write(*summary_lines(facts))

    def updated(self, update: Update, share: float | None) -> None:
        """A line now and then."""
        speed = self.speed.add(update.tokens)
        if update.elapsed - self.last >= PLAIN_SECONDS:
            self.last = update.elapsed
            self.write(update_line(update, speed, share))

    def validated(self, validation: Validation) -> None:
        """All of it."""
        self.speed.forget()
        self.write(*validation_lines(validation))

    def said(self, message: str) -> None:
        """As it is."""
        self.write(message)

    def finished(self, facts: dict[str, Any]) -> None:
        """The last line."""
        self.write(final_line(facts))


def update_line(update: Update, speed: float, share: float | None) -> str:
    """One update in one line. The first one after a start or a pause has no speed yet."""
    done = f"  {share:.0%}" if share is not None else ""
    pace = f"  {speed:,.0f} tokens/s" if speed else ""
    return (
        f"step {update.step:,}  {update.elapsed / 60:.1f} min{done}  {losses(update)}{pace}"
        f"  rate {update.learning_rate:.2e}"
    )


def losses(update: Update) -> str:
    """Of the tokens, and of the links where one head learns from them."""
    guided = "" if update.guided is None else f"  guided {update.guided:.3f}"
    return f"loss {update.loss:.3f}{guided}"


def final_line(facts: dict[str, Any]) -> str:
    """How it ended."""
    # Kept so that higher is better, and a little below 0 where BLEU is 0.
    best = -facts["best"] if facts["metric"] == "loss" else max(facts["best"], 0.0)
    waited = f" ({facts['waiting_for_data']:.1%} waiting for data)" if "waiting_for_data" in facts else ""
    return f"done: {facts['step']:,} updates in {facts['minutes']:.1f} min{waited}, best {facts['metric']} {best:.2f}"


class Live(Listener):
    """A progress line that stays at the bottom, with validations scrolling above it."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.speed = Speed()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.task = self.bar.add_task("starting", total=None)

    def started(self, facts: dict[str, Any]) -> None:
        """The summary, then the bar."""
        for line in summary_lines(facts):
            self.console.print(Text(line))
        self.bar.start()

    def updated(self, update: Update, share: float | None) -> None:
        """Move the bar."""
        speed = self.speed.add(update.tokens)
        words = f"step {update.step:,}  {losses(update)}  {speed:,.0f} tok/s  rate {update.learning_rate:.1e}"
        if share is None:
            self.bar.update(self.task, description=words)
        else:
            self.bar.update(self.task, description=words, completed=min(share, 1.0), total=1.0)

    def validated(self, validation: Validation) -> None:
        """Above the bar."""
        self.speed.forget()
        first, *rest = validation_lines(validation)
        self.bar.console.print(Text(first, style="bold"))
        for line in rest:
            style = "bold" if line.startswith("    softgaze") else "dim"
            self.bar.console.print(Text(line, style), no_wrap=True, overflow="ellipsis")  # early ones run on and on

    def said(self, message: str) -> None:
        """Above the bar."""
        self.bar.console.print(Text(message, style="yellow"))

    def finished(self, facts: dict[str, Any]) -> None:
        """The last line."""
        self.close()
        self.console.print(Text(final_line(facts), style="bold green"))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self.bar.stop()
