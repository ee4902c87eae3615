"""A run directory: one process at a time, never somebody else's, and never other settings than it began with."""

from pathlib import Path

import pytest
import yaml

from corpora import corpus, small
from softgaze.config import resolve
from softgaze.errors import UsageError
from softgaze.files import TEMPORARY
from softgaze.training import run as run_module
from softgaze.training import train
from softgaze.training.run import LOCK, SETTINGS, RunDirectory


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    return RunDirectory(tmp_path / "run")


def settings(**sections):
    return resolve(small(**sections))


def names(run):
    return {path.name for path in run.path.iterdir()}


# --- whose it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_directories_of_others_are_left_alone(tmp_path, fresh):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    text = corpus(tmp_path)
    with pytest.raises(UsageError, match="no run of softgaze"):
        train(small(), text, None, tmp_path / "mine", fresh=fresh)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(UsageError, match="is a file"):
        train(small(), text, None, tmp_path / "mine" / "thesis.txt", fresh=fresh)


def test_nothing_an_empty_place_and_a_run_are_welcome(tmp_path, run):
    RunDirectory(tmp_path / "new").check()
    run.check()
    with run.locked():
        run.check()
    run.prepare(settings(), fresh=False)
    run.check()


def test_two_trainings_in_one_directory_are_one_too_many(tmp_path, run):
    text = corpus(tmp_path)
    with run.locked():
        for fresh in (False, True):
            with pytest.raises(UsageError, match="another process is training here"):
                train(small(), text, None, run.path, fresh=fresh)
    with RunDirectory(run.path).locked():
        assert names(run) == {LOCK}


# --- which settings ---------------------------------------------------------------------------------------------


def test_changed_settings_are_refused_with_the_difference(run):
    run.prepare(settings(), fresh=False)
    before = (run.path / SETTINGS).read_bytes()
    with pytest.raises(UsageError, match=r"\(data\.max_length: 256 → 99; training\.seed: 1 → 2\)"):
        run.prepare(settings(training={"seed": 2}, data={"max_length": 99}), fresh=False)
    assert (run.path / SETTINGS).read_bytes() == before


def test_a_run_from_before_a_setting_was_known_had_its_default(run):
    run.prepare(settings(), fresh=False)
    stored = yaml.safe_load((run.path / SETTINGS).read_text())
    del stored["validation"]["film"], stored["training"]["guided_weight"]
    (run.path / SETTINGS).write_text(yaml.safe_dump(stored))
    run.prepare(settings(), fresh=False)
    (run.path / SETTINGS).write_text(yaml.safe_dump(stored))
    with pytest.raises(UsageError, match=r"\(validation\.film: False → True\)"):
        run.prepare(settings(validation={"film": True}), fresh=False)


def test_the_budget_may_change(run):
    run.prepare(settings(), fresh=False)
    run.prepare(settings(budget={"steps": 99, "patience": 3}), fresh=False)


def test_the_budget_may_not_change_when_the_rate_hangs_on_it(run):
    run.prepare(settings(training={"schedule": "cosine"}), fresh=False)
    with pytest.raises(UsageError, match=r"budget\.steps: 8 → 99"):
        run.prepare(settings(training={"schedule": "cosine"}, budget={"steps": 99}), fresh=False)


# --- starting over ----------------------------------------------------------------------------------------------


def fill(run):
    run.prepare(settings(), fresh=False)
    for path in (run.encoded, run.checkpoints / "step-00000004"):
        path.mkdir(parents=True)
    run.journal.write_text("{}\n")
    run.write_result({"step": 8})


def test_fresh_forgets_everything_but_the_lock(run):
    fill(run)
    with run.locked():
        run.prepare(settings(training={"seed": 2}), fresh=True)
    assert names(run) == {LOCK, SETTINGS, "environment.json", "checkpoints"}
    assert not [*run.checkpoints.iterdir()]
    assert run.result() is None
    run.prepare(settings(training={"seed": 2}), fresh=False)


def interrupted(after, plain):
    """`plain`, but the `after`th call is where the process dies."""
    left = iter([False] * (after - 1))

    def call(*arguments):
        if next(left, True):
            raise KeyboardInterrupt
        return plain(*arguments)

    return call


@pytest.mark.parametrize("after", range(1, 6))
def test_killed_while_starting_over_it_can_be_started_over(run, monkeypatch, after):
    fill(run)
    plain = Path.iterdir
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", lambda path: iter(sorted(plain(path), reverse=True)))  # the settings come first
        patch.setattr(run_module, "remove", interrupted(after, run_module.remove))
        with pytest.raises(KeyboardInterrupt):
            run.prepare(settings(), fresh=True)
    run.check()
    run.prepare(settings(training={"seed": 2}), fresh=True)


@pytest.mark.parametrize("after", [1, 2])
def test_killed_while_it_is_made_it_can_be_made(run, monkeypatch, after):
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_text", interrupted(after, run_module.write_text))
        with pytest.raises(KeyboardInterrupt):
            run.prepare(settings(), fresh=False)
    (run.path / f"{TEMPORARY}{SETTINGS}").write_text("model:")  # a kill, unlike an exception, cleans nothing up
    run.check()
    run.prepare(settings(), fresh=False)


# --- setting up, and the end ------------------------------------------------------------------------------------


def set_up_and_fail(run):
    with run.locked(), run.setting_up():
        run.prepare(settings(), fresh=False)
        raise ZeroDivisionError


def test_what_fails_while_a_new_run_is_set_up_leaves_nothing(run):
    with pytest.raises(ZeroDivisionError):
        set_up_and_fail(run)
    assert not run.path.exists()


def test_what_fails_while_an_old_run_is_set_up_leaves_it(run):
    fill(run)
    before = names(run)
    with pytest.raises(ZeroDivisionError):
        set_up_and_fail(run)
    assert names(run) == before | {LOCK}


def test_a_result_is_read_back_as_it_was_written(run):
    assert run.result() is None
    facts = {"step": 8, "best": -0.5, "languages": ["en", "한"]}
    run.write_result(facts)
    assert run.result() == facts
