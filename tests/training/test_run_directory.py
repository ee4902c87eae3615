"""A run directory: one process at a time, no other files, and always the settings it started with."""

from pathlib import Path

import pytest
import yaml

from corpora import corpus, small
from softgaze.atomic_io import TEMPORARY
from softgaze.config import parse_config, resolve
from softgaze.errors import UsageError
from softgaze.training import run_directory
from softgaze.training.run_directory import LOCK, SETTINGS, RunDirectory
from softgaze.training.train import train


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    return RunDirectory(tmp_path / "run")


def settings(**sections):
    return resolve(small(**sections))


def names(run):
    return {path.name for path in run.path.iterdir()}


# --- other directories and processes ------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_other_directories_are_not_touched(tmp_path, fresh):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    text = corpus(tmp_path)
    with pytest.raises(UsageError, match="not a softgaze run"):
        train(small(), text, None, tmp_path / "mine", fresh=fresh)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(UsageError, match="is a file"):
        train(small(), text, None, tmp_path / "mine" / "thesis.txt", fresh=fresh)


def test_a_missing_an_empty_and_a_run_directory_are_accepted(tmp_path, run):
    RunDirectory(tmp_path / "new").check()
    run.check()
    with run.locked():
        run.check()
    run.prepare(settings(), fresh=False)
    run.check()


def test_a_second_process_in_one_directory_is_an_error(tmp_path, run):
    text = corpus(tmp_path)
    with run.locked():
        for fresh in (False, True):
            with pytest.raises(UsageError, match="another process is training here"):
                train(small(), text, None, run.path, fresh=fresh)
    with RunDirectory(run.path).locked():
        assert names(run) == {LOCK}


# --- settings -----------------------------------------------------------------------------------------------------


def test_changed_settings_are_an_error_that_lists_them(run):
    run.prepare(settings(), fresh=False)
    before = (run.path / SETTINGS).read_bytes()
    with pytest.raises(UsageError, match=r"\(data\.max_length: 256 → 99; training\.seed: 1 → 2\)"):
        run.prepare(settings(training={"seed": 2}, data={"max_length": 99}), fresh=False)
    assert (run.path / SETTINGS).read_bytes() == before


def test_settings_with_earlier_names_are_read(run):
    run.prepare(settings(validation={"attention_history": True}, data={"image_size": 64}), fresh=False)
    text = (run.path / SETTINGS).read_text().replace("attention_history:", "film:").replace("image_size:", "side:")
    (run.path / SETTINGS).write_text(text)
    run.prepare(settings(validation={"attention_history": True}, data={"image_size": 64}), fresh=False)
    assert "film" not in (run.path / SETTINGS).read_text()


def test_a_setting_newer_than_the_run_had_its_default(run):
    run.prepare(settings(), fresh=False)
    stored = yaml.safe_load((run.path / SETTINGS).read_text())
    del stored["validation"]["attention_history"], stored["training"]["guided_weight"]
    (run.path / SETTINGS).write_text(yaml.safe_dump(stored))
    run.prepare(settings(), fresh=False)
    (run.path / SETTINGS).write_text(yaml.safe_dump(stored))
    with pytest.raises(UsageError, match=r"\(validation\.attention_history: False → True\)"):
        run.prepare(settings(validation={"attention_history": True}), fresh=False)


def test_the_budget_may_change(run):
    run.prepare(settings(), fresh=False)
    run.prepare(settings(budget={"steps": 99, "patience": 3}), fresh=False)


def test_the_budget_may_not_change_if_the_schedule_depends_on_it(run):
    run.prepare(settings(training={"schedule": "cosine"}), fresh=False)
    with pytest.raises(UsageError, match=r"budget\.steps: 8 → 99"):
        run.prepare(settings(training={"schedule": "cosine"}, budget={"steps": 99}), fresh=False)


# --- starting over ----------------------------------------------------------------------------------------------


def fill(run):
    run.prepare(settings(), fresh=False)
    for path in (run.encoded, run.checkpoints / "step-00000004"):
        path.mkdir(parents=True)
    run.metrics.write_text("{}\n")
    run.write_result({"step": 8})


def test_fresh_removes_everything_but_the_lock(run):
    fill(run)
    with run.locked():
        run.prepare(settings(training={"seed": 2}), fresh=True)
    assert names(run) == {LOCK, SETTINGS, "environment.json", "checkpoints"}
    assert not [*run.checkpoints.iterdir()]
    assert run.result() is None
    run.prepare(settings(training={"seed": 2}), fresh=False)


def interrupted(after, original):
    """Return `original`, but raise KeyboardInterrupt at call number `after`."""
    calls = iter(range(1, after))

    def call(*arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return original(*arguments)

    return call


@pytest.mark.parametrize("after", range(1, 6))
def test_a_kill_during_fresh_leaves_a_run_that_can_start_over(run, monkeypatch, after):
    fill(run)
    original = Path.iterdir
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", lambda path: iter(sorted(original(path), reverse=True)))  # settings first
        patch.setattr(run_directory, "remove", interrupted(after, run_directory.remove))
        with pytest.raises(KeyboardInterrupt):
            run.prepare(settings(), fresh=True)
    run.check()
    run.prepare(settings(training={"seed": 2}), fresh=True)


@pytest.mark.parametrize("after", [1, 2])
def test_a_kill_during_creation_leaves_a_directory_that_can_be_used(run, monkeypatch, after):
    with monkeypatch.context() as patch:
        patch.setattr(run_directory, "write_text", interrupted(after, run_directory.write_text))
        with pytest.raises(KeyboardInterrupt):
            run.prepare(settings(), fresh=False)
    (run.path / f"{TEMPORARY}{SETTINGS}").write_text("model:")  # a kill, unlike an exception, leaves temporary files
    run.check()
    run.prepare(settings(), fresh=False)


# --- failure and result -------------------------------------------------------------------------------------------


def start_and_fail(run):
    with run.locked(), run.removed_on_error():
        run.prepare(settings(), fresh=False)
        raise ZeroDivisionError


def test_a_new_run_that_fails_to_start_is_removed(run):
    with pytest.raises(ZeroDivisionError):
        start_and_fail(run)
    assert not run.path.exists()


def test_an_old_run_that_fails_to_start_is_kept(run):
    fill(run)
    before = names(run)
    with pytest.raises(ZeroDivisionError):
        start_and_fail(run)
    assert names(run) == before | {LOCK}


def test_a_result_is_read_as_it_was_written(run):
    assert run.result() is None
    facts = {"step": 8, "best": -0.5, "languages": ["en", "한"]}
    run.write_result(facts)
    assert run.result() == facts


def test_a_resumed_run_keeps_the_size_that_was_chosen_unless_another_is_given(tmp_path):
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.prepare(resolve(parse_config({"model": {"size": "small"}})), fresh=False)
    assert run.fill_in(parse_config({})).model.size == "small"
    assert run.fill_in(parse_config({"model": {"size": "base"}})).model.size == "base"


@pytest.mark.parametrize(("arch", "epochs"), [("captioner", 25), ("transformer", None)])
def test_only_a_resumed_captioner_keeps_the_chosen_epochs(tmp_path, arch, epochs):
    run, model = RunDirectory(tmp_path / "run"), {"arch": arch}
    with run.locked():
        run.prepare(resolve(parse_config({"model": model, "budget": {"epochs": 25}})), fresh=False)
    assert run.fill_in(parse_config({"model": model})).budget.epochs == epochs
    assert run.fill_in(parse_config({"model": model, "budget": {"epochs": 40}})).budget.epochs == 40
