"""Training end to end on a few lines: it resumes, starts over, fine-tunes, and gives the same bits every time."""

import json

import pytest
import torch

from corpora import corpus, small
from maps import random_attention
from runs import Notes
from softgaze.bundle import Bundle
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, UsageError
from softgaze.gaze.film import NAME, Frame
from softgaze.training import Interrupted, train
from softgaze.training import loop as loop_module
from softgaze.training.journal import read_journal
from softgaze.training.launch import write_pictures
from softgaze.training.run import RunDirectory
from softgaze.training.signals import Stop


@pytest.fixture
def text(tmp_path):
    return corpus(tmp_path)


def weights(run):
    return (run / "model.safetensors").read_bytes()


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong"])
def test_the_same_text_settings_and_seed_give_the_same_bits(tmp_path, text, arch):
    for name in ("first", "second"):
        train(small(arch), text, None, tmp_path / name)
    assert weights(tmp_path / "first") == weights(tmp_path / "second")


def test_runs_that_share_prepared_text_are_as_those_that_do_not(tmp_path, text):
    train(small(), text, None, tmp_path / "alone")
    for name in ("one", "other"):
        train(small(), text, None, tmp_path / name, encoded=tmp_path / "shared")
        assert not (tmp_path / name / "encoded").exists()
        assert weights(tmp_path / name) == weights(tmp_path / "alone")
    with pytest.raises(UsageError, match="prepared with other settings"):
        train(small(data={"held_out": 3}), text, None, tmp_path / "third", encoded=tmp_path / "shared")


def test_another_seed_gives_other_weights(tmp_path, text):
    train(small(), text, None, tmp_path / "first")
    train(small(training={"seed": 2}), text, None, tmp_path / "second")
    assert weights(tmp_path / "first") != weights(tmp_path / "second")


def test_a_run_directory_is_a_bundle_with_its_story_beside_it(tmp_path, text):
    facts = train(small(), text, None, tmp_path / "run")
    bundle = Bundle.open(tmp_path / "run")
    assert (bundle.description.source_language, bundle.description.target_language) == ("en", "de")
    assert facts["step"] == 8
    assert bundle.facts["pairs"] + bundle.facts["dev_pairs"] == 60
    assert len(bundle.facts["data_sha256"]) == 2
    kinds = [line["kind"] for line in read_journal(tmp_path / "run" / "metrics.jsonl")]
    assert kinds.count("validation") == 2
    assert "<svg" in (tmp_path / "run" / "curve.svg").read_text()
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["packages"]["torch"] == torch.__version__


def stop_after(monkeypatch, steps):
    """Somebody presses Ctrl-C during update `steps`."""
    plain = loop_module.Trainer.update

    def update(self, group):
        if self.progress.step + 1 == steps:
            monkeypatch.setattr(Stop, "__bool__", lambda self: True)
            monkeypatch.setattr(Stop, "exit_code", 130)
        return plain(self, group)

    monkeypatch.setattr(loop_module.Trainer, "update", update)


@pytest.mark.parametrize("step", [1, 3, 4, 6])
def test_interrupted_and_resumed_is_not_interrupted(tmp_path, text, monkeypatch, step):
    train(small(), text, None, tmp_path / "straight")
    with monkeypatch.context() as patch:
        stop_after(patch, step)
        with pytest.raises(Interrupted, match=f"saved at step {step}"):
            train(small(), text, None, tmp_path / "broken")
    notes = Notes()
    train(small(), text, None, tmp_path / "broken", listener=notes)
    assert notes.steps[0] == step + 1
    assert weights(tmp_path / "straight") == weights(tmp_path / "broken")
    for run in ("straight", "broken"):
        steps = [line["step"] for line in read_journal(tmp_path / run / "metrics.jsonl")]
        assert steps == sorted(steps)


def test_a_finished_run_does_nothing_and_a_larger_budget_goes_on(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    notes = Notes()
    train(small(), text, None, tmp_path / "run", listener=notes)
    assert notes.steps == []
    assert "ended at step 8" in notes.messages[-1]
    assert train(small(budget={"steps": 10}), text, None, tmp_path / "run")["step"] == 10


def test_a_run_that_went_on_and_was_stopped_is_not_taken_for_the_shorter_one(tmp_path, text, monkeypatch):
    train(small(), text, None, tmp_path / "run")
    with monkeypatch.context() as patch:
        stop_after(patch, 9)
        with pytest.raises(Interrupted, match="saved at step 9"):
            train(small(budget={"steps": 12}), text, None, tmp_path / "run")
    assert train(small(), text, None, tmp_path / "run")["step"] == 9


def test_fresh_starts_over(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    notes = Notes()
    train(small(training={"seed": 3}), text, None, tmp_path / "run", fresh=True, listener=notes)
    assert notes.steps[0] == 1


def test_fresh_deletes_nothing_when_the_new_command_cannot_work(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    before = weights(tmp_path / "run")
    missing = Corpus.of([(tmp_path / "train.en", tmp_path / "missing.de")])
    with pytest.raises(DataError, match=r"missing\.de"):
        train(small(), missing, None, tmp_path / "run", fresh=True)
    with pytest.raises(UsageError, match="did you mean heads"):
        train(small(model={"options": {"haeds": 2}}), text, None, tmp_path / "run", fresh=True)
    assert weights(tmp_path / "run") == before


def test_a_run_that_cannot_be_set_up_leaves_nothing(tmp_path):
    (tmp_path / "a.en").write_bytes(b"a dog.\n" * 20 + b"\xff\n")
    (tmp_path / "a.de").write_text("ein hund.\n" * 21)
    with pytest.raises(DataError, match="UTF-8"):
        train(small(), Corpus.of([(tmp_path / "a.en", tmp_path / "a.de")]), None, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_fine_tuning_starts_from_the_given_model_and_keeps_its_vocabulary(tmp_path, text):
    train(small(), text, None, tmp_path / "first")
    other = corpus(tmp_path, name="domain", pairs=30)
    plain = small(training={"learning_rate": 1e-9})
    train(plain, other, None, tmp_path / "second", init=tmp_path / "first")
    first, second = Bundle.open(tmp_path / "first"), Bundle.open(tmp_path / "second")
    assert first.files["tokenizer.model"] == second.files["tokenizer.model"]
    for before, after in zip(first.model().parameters(), second.model().parameters(), strict=True):
        torch.testing.assert_close(before, after, atol=1e-5, rtol=0)
    with pytest.raises(UsageError, match="cannot become"):
        train(small("rnn-luong"), other, None, tmp_path / "third", init=tmp_path / "first")


def test_separate_vocabularies_train_too(tmp_path, text):
    train(small(data={"joint": False}), text, None, tmp_path / "run")
    tokenizers = Bundle.open(tmp_path / "run").tokenizers
    assert not tokenizers.joint


def test_a_film_is_a_page_in_the_end(tmp_path):
    write_pictures(RunDirectory(tmp_path))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / NAME).write_text("")
    write_pictures(RunDirectory(tmp_path))
    assert not (tmp_path / "film.html").exists()
    (tmp_path / NAME).write_text(Frame(0, 0.0, {}, "", random_attention()).to_line() + "\n", encoding="utf-8")
    write_pictures(RunDirectory(tmp_path))
    assert (tmp_path / "film.html").read_text(encoding="utf-8").startswith("<!doctype html>")
