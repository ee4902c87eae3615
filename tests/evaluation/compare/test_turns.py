import json
import os
import signal
import subprocess
import sys

import pytest

from softgaze.evaluation.compare.turns import Pace
from softgaze.training.listeners import Update, Validation


def update(step, elapsed, tokens=100):
    return Update(step, 0, 1.0, tokens, 1e-3, elapsed)


def test_pace_leaves_out_validations_and_counts_all_processes(tmp_path):
    path = tmp_path / "pace.json"
    first = Pace(path)
    for step, elapsed in enumerate([1.0, 2.0, 3.0], start=1):
        first.updated(update(step, elapsed), None)
    first.validated(Validation(3, 0, 50.0, 1.0, 0.0, 0.0, (), True))
    first.updated(update(4, 51.0), None)
    first.updated(update(5, 52.0), None)
    first.keep(1000)
    assert first.facts() == {"tokens_per_second": 100.0, "memory": 1000}
    second = Pace(path)
    second.updated(update(6, 60.0), None)
    second.updated(update(7, 60.5), None)
    second.keep(500)
    assert second.facts() == {"tokens_per_second": round(400 / 3.5, 1), "memory": 1000}
    assert json.loads(path.read_text())["tokens"] == 400


def test_too_few_updates_have_no_speed(tmp_path):
    pace = Pace(tmp_path / "pace.json")
    pace.updated(update(1, 1.0), None)
    pace.keep(None)
    assert pace.facts() == {"tokens_per_second": None, "memory": None}


@pytest.mark.skipif(os.name != "posix", reason="signals as on Unix")
def test_a_process_stops_when_the_one_that_started_it_is_gone():
    code = (
        "import time; from softgaze.evaluation.compare.turns import stop_with_parent; stop_with_parent(); "
        "print('there', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"there\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=60) == -signal.SIGTERM
    process.stdout.close()
