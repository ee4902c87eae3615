"""The load by other processes during a measurement."""

import subprocess
import sys

from softgaze.evaluation import benchmark
from softgaze.evaluation.benchmark import LoadMeter

WORK = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_own_work_and_finished_children_are_not_counted(tmp_path, monkeypatch):
    (tmp_path / "stat").write_text("cpu 1 2 3 4 5 6 7 8 9 10\ncpu0")
    monkeypatch.setattr(benchmark, "Path", lambda _: tmp_path / "stat")
    before = benchmark.other_seconds()
    subprocess.run([sys.executable, "-c", WORK], check=True)
    exec(WORK)
    assert before is not None
    assert benchmark.other_seconds() <= before - 0.5


def test_a_busy_machine_is_reported_and_an_idle_one_is_not(monkeypatch):
    seconds = iter([100.0, 100.0, 100.0, 1e6])
    monkeypatch.setattr(benchmark, "other_seconds", lambda: next(seconds))
    assert LoadMeter().warning() == ""
    assert "cores" in LoadMeter().warning()


def test_a_system_that_does_not_report_its_load_is_not_busy(monkeypatch):
    monkeypatch.setattr(benchmark, "other_seconds", lambda: None)
    assert LoadMeter().warning() == ""
