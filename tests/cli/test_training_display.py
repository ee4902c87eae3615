"""The display of a training run: lines in a log, a progress bar on a terminal."""

import io
import sys
from types import SimpleNamespace

import pytest
import typer
from rich.cells import cell_len
from rich.console import Console

from softgaze.cli import _progress
from softgaze.cli._progress import LOG_SECONDS, LogDisplay, TerminalDisplay, UpdateMeter, final_line, training_display
from softgaze.training.callbacks import Update, Validation
from softgaze.training.train import Interrupted

WIDTH = 100
LONG = "개가 [bold]고양이를[/] 봐요 " * 30
FACTS = {"arch": "transformer tiny", "parameters": 1234567, "dev_pairs": 12}
RESULT = {"step": 1500, "minutes": 2.5, "waiting_for_data": 0.0123, "metric": "bleu", "best": 31.25}
MESSAGE = "step 751: gradient not finite; skipped"
SHOWN = ("1,234,567", "dev loss 1.250", "BLEU 30.0", "chrF 45.0", "★", "a dog.", MESSAGE, "1,500 updates", "31.25")


def update(step, elapsed=1.0, **options):
    return Update(step, 0, 2.5, 100, 1e-3, elapsed, **options)


def validation(*samples, is_best=True):
    return Validation(1200, 3, 90.0, 1.25, 30.0, 45.0, samples, is_best)


def show_run(display):
    display.on_start(FACTS)
    display.on_update(update(1), 0.0)
    display.on_update(update(750), 0.5)
    display.on_validation(validation(("a dog.", "개예요.", LONG)))
    display.on_message(MESSAGE)
    display.on_end(RESULT)


# --- log


def test_a_log_has_all_facts_on_stderr_without_control_characters(capsys):
    show_run(LogDisplay())
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert all(fact in err for fact in (*SHOWN, LONG))


def test_a_speed_that_is_not_known_yet_is_not_shown(capsys):
    display = LogDisplay()
    display.on_update(update(1), 0.0)
    display.on_update(update(2, LOG_SECONDS + 1), 0.5)
    first, second = capsys.readouterr().err.splitlines()
    assert "tokens/s" not in first
    assert "tokens/s" in second


def test_a_log_has_a_line_every_30_seconds_of_training(capsys):
    display = LogDisplay()
    for step in range(1, 101):
        display.on_update(update(step, step * LOG_SECONDS / 10), None)
    steps = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
    assert steps == [str(step) for step in range(1, 101, 10)]


def test_the_alignment_loss_is_shown_if_there_is_one(capsys):
    LogDisplay().on_update(update(1, alignment_loss=0.75), None)
    LogDisplay().on_update(update(1), None)
    guided, plain = capsys.readouterr().err.splitlines()
    assert "guided 0.750" in guided
    assert "guided" not in plain


@pytest.mark.parametrize(
    ("metric", "best", "shown"),
    [("bleu", 31.25, "bleu 31.25"), ("loss", -2.5, "loss 2.50"), ("bleu", -0.0066, "bleu 0.00")],
)
def test_the_result_is_not_sign_flipped(metric, best, shown):
    assert final_line(RESULT | {"metric": metric, "best": best}).endswith(shown)


# --- terminal


@pytest.fixture
def screen(monkeypatch):
    """A terminal that records the output."""
    console = Console(file=io.StringIO(), force_terminal=True, width=WIDTH, record=True, highlight=False)
    monkeypatch.setattr(_progress, "Console", lambda **options: console)
    return console


def test_a_terminal_shows_the_same_facts(screen):
    show_run(TerminalDisplay())
    text = screen.export_text()
    assert all(fact in text for fact in SHOWN)


@pytest.mark.parametrize(("fraction", "shown"), [(None, "step 1,234  loss 2.500"), (0.5, " 50%"), (1.7, "100%")])
def test_the_bar_shows_the_fraction_of_the_budget(screen, fraction, shown):
    display = TerminalDisplay()
    display.on_start(FACTS)
    display.on_update(update(1234), fraction)
    display.bar.refresh()
    display.close()
    assert shown in screen.export_text()


def test_long_samples_are_cut_to_one_line_and_never_parsed_as_markup(screen):
    TerminalDisplay().on_validation(validation((LONG, LONG, LONG)))
    _, *lines = screen.export_text().rstrip("\n").split("\n")
    assert len(lines) == 3
    assert all(cell_len(line) <= WIDTH and line.endswith("…") and "[bold]" in line for line in lines)


def test_closing_restores_the_cursor(screen):
    display = TerminalDisplay()
    display.on_start(FACTS)
    display.close()
    display.close()
    assert screen.file.getvalue().endswith("\x1b[?25h")


# --- choice of the display


@pytest.mark.parametrize(("is_terminal", "display"), [(True, TerminalDisplay), (False, LogDisplay)])
def test_the_display_fits_stderr_and_is_closed(tmp_path, monkeypatch, is_terminal, display):
    closed = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(display, "close", lambda self: closed.append(type(self)))
    with training_display(tmp_path) as callbacks:
        assert [type(callback) for callback in callbacks.callbacks] == [display]
        assert not closed
    assert closed == [display]


def test_an_interrupted_run_exits_with_the_code_of_its_signal(tmp_path, capsys):
    with pytest.raises(typer.Exit) as exited, training_display(tmp_path):
        raise Interrupted(143, 7)
    assert exited.value.exit_code == 143
    assert "7" in capsys.readouterr().err


# --- speed and losses


def set_clock(monkeypatch, now):
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: now))


@pytest.mark.parametrize("seconds", [0.01, 1.0, 9.0, 15.0, 600.0])
def test_the_speed_is_right_for_updates_of_any_duration(monkeypatch, seconds):
    meter = UpdateMeter()
    for step in range(50):
        set_clock(monkeypatch, step * seconds)
        meter.add(update(step))
    assert meter.speed() == pytest.approx(100 / seconds)


def test_a_pause_does_not_count(monkeypatch):
    meter = UpdateMeter()
    for now in (0.0, 1.0, 6.0, 7.0):
        set_clock(monkeypatch, now)
        if now == 6.0:
            meter.reset()
        meter.add(update(now))
    assert meter.speed() == pytest.approx(100)


def unusual_batch(display):
    for step, loss in enumerate((1.0, 1.0, 1.0, 5.0)):
        display.on_update(Update(step, 0, loss, 100, 1e-3, step * LOG_SECONDS, alignment_loss=loss / 2), 0.5)


def test_a_single_unusual_batch_does_not_stand_for_the_loss_in_a_log(capsys):
    unusual_batch(LogDisplay())
    assert "loss 2.000  guided 1.000" in capsys.readouterr().err.splitlines()[-1]


def test_a_single_unusual_batch_does_not_stand_for_the_loss_on_a_terminal(screen):
    display = TerminalDisplay()
    display.on_start(FACTS)
    unusual_batch(display)
    display.bar.refresh()
    display.close()
    assert "loss 2.000  guided 1.000" in screen.export_text()


def test_old_updates_do_not_count(monkeypatch):
    meter = UpdateMeter()
    for now, loss in ((0.0, 9.0), (1.0, 9.0), (60.0, 3.0), (61.0, 1.0)):
        set_clock(monkeypatch, now)
        meter.add(Update(1, 0, loss, 100, 1e-3, now))
    assert meter.losses() == "loss 2.000"
