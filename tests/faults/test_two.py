"""Two commands, one run directory: the second is refused and the first does not notice; a dead one's lock is none."""

import signal

from commands import slow_writes
from corpora import write_corpus
from faults.children import command, finished, saved_step, started, wait_for_step


def test_the_second_training_is_refused_and_the_first_goes_on(tmp_path):
    write_corpus(tmp_path)
    run = tmp_path / "run"
    arguments = command(tmp_path, run, steps=100_000)
    first = started(arguments)
    wait_for_step(first, run, 2)
    for more in ([], ["--fresh"]):
        second = finished([*arguments, *more])
        assert second.returncode == 2
        assert f"{run}: another process is training here" in second.stderr
        assert second.stderr.count("\n") == 1
    wait_for_step(first, run, saved_step(run) + 2)
    first.terminate()
    said = first.communicate(timeout=300)[1]
    assert first.returncode == 128 + signal.SIGTERM, said
    assert f"saved at step {saved_step(run):,}" in said


def test_a_dead_training_leaves_no_lock(tmp_path):
    write_corpus(tmp_path)
    arguments = command(tmp_path, tmp_path / "run", steps=20)
    first = started(arguments, **slow_writes(0.1))
    wait_for_step(first, tmp_path / "run", 2)
    first.kill()
    first.communicate(timeout=60)
    done = finished(arguments)
    assert done.returncode == 0, done.stderr
