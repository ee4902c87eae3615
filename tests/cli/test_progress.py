"""What training shows: plain lines in a log, a live line on a terminal, each sample on a line of its own."""

import io
import sys
from types import SimpleNamespace

import pytest
from rich.cells import cell_len
from rich.console import Console

from softgaze.cli import progress
from softgaze.cli.progress import PLAIN_SECONDS, Live, Plain, Shown, Speed, final_line, listener_for
from softgaze.training.listeners import Listener, Update, Validation

WIDTH = 100
LONG = "개가 [bold]고양이를[/] 봐요 " * 30
FACTS = {"arch": "transformer tiny", "parameters": 1234567, "dev_pairs": 12}
ENDED = {"step": 1500, "minutes": 2.5, "waiting_for_data": 0.0123, "metric": "bleu", "best": 31.25}


def update(step, elapsed=1.0):
    return Update(step, 0, 2.5, 100, 1e-3, elapsed)


def validation(*samples, better=True):
    return Validation(1200, 3, 90.0, 1.25, 30.0, 45.0, samples, better)


def run(listener):
    """A whole run, in short."""
    listener.started(FACTS)
    listener.updated(update(1), 0.0)
    listener.updated(update(750), 0.5)
    listener.validated(validation(("a dog.", "개예요.", LONG)))
    listener.said("step 751: a number was not finite; skipped")
    listener.finished(ENDED)


# --- plain ------------------------------------------------------------------------------------------------------


def test_a_speed_that_is_not_known_yet_is_not_said_to_be_none(capsys):
    plain = Plain()
    plain.updated(update(1), 0.0)
    plain.updated(update(2, PLAIN_SECONDS + 1), 0.5)
    first, second = capsys.readouterr().err.splitlines()
    assert "tokens/s" not in first
    assert "tokens/s  rate" in second


def test_plain_lines_are_plain(capsys):
    run(Plain())
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    lines = err.split("\n")
    for words in (
        "parameters  1,234,567",
        "dev pairs   12",
        "step 1,200  1.5 min  dev loss 1.250  BLEU 30.0  chrF 45.0  ★ best so far",
        "    source     a dog.",
        f"    softgaze   {LONG}",
        "step 751: a number was not finite; skipped",
        "done: 1,500 updates in 2.5 min (1.2% waiting for data), best bleu 31.25",
    ):
        assert words in lines


def test_updates_are_shown_now_and_then(capsys):
    plain = Plain()
    for step in range(1, 101):
        plain.updated(update(step, step * PLAIN_SECONDS / 10), None)
    shown = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
    assert shown == [str(step) for step in range(1, 101, 10)]


def test_the_loss_of_links_is_shown_where_there_are_links(capsys):
    Plain().updated(Update(1, 0, 2.5, 100, 1e-3, 1.0, guided=0.75), None)
    Plain().updated(update(1), None)
    guided, plain = capsys.readouterr().err.splitlines()
    assert "loss 2.500  guided 0.750  " in guided
    assert "guided" not in plain


def test_only_better_scores_have_a_star(capsys):
    Plain().validated(validation(better=False))
    assert "★" not in capsys.readouterr().err


def test_samples_are_set_apart(capsys):
    Plain().validated(validation(("a", "b", "c"), ("d", "e", "f")))
    lines = capsys.readouterr().err.splitlines()[1:]
    assert [line.split() for line in lines] == [
        *(["source", "a"], ["reference", "b"], ["softgaze", "c"], []),
        *(["source", "d"], ["reference", "e"], ["softgaze", "f"]),
    ]


@pytest.mark.parametrize(
    ("metric", "best", "words"),
    [("bleu", 31.25, "bleu 31.25"), ("loss", -2.5, "loss 2.50"), ("bleu", -0.0066, "bleu 0.00")],
)
def test_the_last_line_gives_the_score_as_people_know_it(metric, best, words):
    assert final_line(ENDED | {"metric": metric, "best": best}).endswith(f"best {words}")


# --- live -------------------------------------------------------------------------------------------------------


@pytest.fixture
def screen(monkeypatch):
    """A terminal that keeps what is shown."""
    console = Console(file=io.StringIO(), force_terminal=True, width=WIDTH, record=True, highlight=False)
    monkeypatch.setattr(progress, "Console", lambda **options: console)
    return console


def test_live_says_what_plain_says(screen):
    run(Live())
    text = screen.export_text()
    for words in ("1,234,567", "dev loss 1.250", "★", "a dog.", "skipped", "done: 1,500 updates"):
        assert words in text


@pytest.mark.parametrize(("share", "shown"), [(None, "step 1,234  loss 2.500"), (0.5, " 50%"), (1.7, "100%")])
def test_the_bar_moves(screen, share, shown):
    live = Live()
    live.started(FACTS)
    live.updated(update(1234), share)
    live.bar.refresh()
    live.close()
    assert shown in screen.export_text()


def test_long_samples_stay_on_one_line(screen):
    Live().validated(validation((LONG, LONG, LONG)))
    first, *lines = screen.export_text().rstrip("\n").split("\n")
    assert first.startswith("step 1,200")
    assert [line.split()[0] for line in lines] == ["source", "reference", "softgaze"]
    assert all(cell_len(line) <= WIDTH and line.endswith("…") for line in lines)
    assert all("[bold]" in line for line in lines)  # text is never taken for markup


def test_the_terminal_is_left_as_it_was(screen):
    live = Live()
    live.started(FACTS)
    live.close()
    live.close()
    assert screen.file.getvalue().endswith("\x1b[?25h")  # the cursor is back


# --- which ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("terminal", "kind"), [(True, Live), (False, Plain)])
def test_what_fits_where_the_output_goes(tmp_path, monkeypatch, terminal, kind):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    shown = listener_for(tmp_path)
    assert [type(each) for each in shown.listeners] == [kind]
    shown.close()


def test_those_that_can_be_closed_are():
    closed = []

    class Closing(Listener):
        def close(self):
            closed.append(self)

    both = Closing(), Closing()
    Shown(both[0], Listener(), both[1]).close()
    assert closed == [*both]


# --- speed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [0.01, 1.0, 9.0, 15.0, 600.0])
def test_speed_is_tokens_a_second_however_long_an_update_takes(monkeypatch, pause):
    speed = Speed()
    for number in range(50):
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda now=number * pause: now))
        shown = speed.add(300)
    assert shown == pytest.approx(300 / pause)


def test_a_pause_that_is_forgotten_does_not_count(monkeypatch):
    speed = Speed()
    for now in (0.0, 1.0, 6.0, 7.0):
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda now=now: now))
        if now == 6.0:
            speed.forget()
        shown = speed.add(300)
    assert shown == pytest.approx(300)
