"""A clock that goes where it likes: it decides when to stop, never what is learnt, and time never runs backwards."""

import random
from types import SimpleNamespace

import pytest

from corpora import small
from faults.amounts import times
from runs import EventLog, complete, trainer
from softgaze.training import trainer as loop


def wandering(seed):
    """Jumps of hours, more often back than on."""
    dice, now = random.Random(seed), [1e6]

    def read():
        now[0] += dice.uniform(-7200, 3600)
        return now[0]

    return SimpleNamespace(monotonic=read, perf_counter=read, time=read)


@pytest.mark.parametrize("seed", range(times(3, 20)))
def test_weights_do_not_depend_on_the_clock(tmp_path, monkeypatch, seed):
    complete(trainer(tmp_path / "straight"))
    notes = EventLog()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", wandering(seed))
        complete(trainer(tmp_path / "run", callback=notes))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "run")]
    assert weights[0] == weights[1]
    elapsed = [update.elapsed for update in notes.updates]
    assert elapsed == sorted(elapsed)


def test_minutes_are_spent_by_a_clock_that_goes_back_and_on(tmp_path, monkeypatch):
    """Of an hour back and a quarter of an hour on, in turns, only the quarters count."""
    moves = iter([-3600.0, 900.0] * 100)
    now = [1e6]

    def read():
        now[0] += next(moves)
        return now[0]

    made = trainer(tmp_path / "run", small(budget={"minutes": 60}))
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=read))
    made.clock = now[0]
    for _ in range(8):
        assert not made.is_finished()
        made.count_time()
    assert made.progress.elapsed == 3600
    assert made.is_finished()
