"""Training end to end on a few lines: it resumes, refuses, recovers, and gives the same bits every time."""

import json
import math

import pytest
import torch

from corpora import corpus, small
from softgaze.bundle import Bundle
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, DivergedError, UsageError
from softgaze.training import Interrupted, train
from softgaze.training import loop as loop_module
from softgaze.training.journal import read_journal
from softgaze.training.listeners import Listener
from softgaze.training.signals import Stop


class Notes(Listener):
    """Keeps what it hears; may ask to stop at a step."""

    def __init__(self):
        self.steps, self.messages = [], []

    def updated(self, update, share):
        self.steps.append(update.step)

    def said(self, message):
        self.messages.append(message)


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


def test_changed_settings_or_text_are_refused_with_the_difference(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    with pytest.raises(UsageError, match=r"training\.seed: 1 → 2"):
        train(small(training={"seed": 2}), text, None, tmp_path / "run")
    (tmp_path / "train.en").write_text((tmp_path / "train.en").read_text().replace("dog", "cat"))
    with pytest.raises(DataError, match="--train files"):
        train(small(), text, None, tmp_path / "run")


def test_directories_of_others_are_left_alone(tmp_path, text):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for fresh in (False, True):
        with pytest.raises(UsageError, match="no run of softgaze"):
            train(small(), text, None, tmp_path / "mine", fresh=fresh)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(UsageError, match="is a file"):
        train(small(), text, None, tmp_path / "mine" / "thesis.txt")


def poison(monkeypatch, steps, always=False):
    """Losses of these updates are NaN; `always` also after having gone back."""
    plain = loop_module.summed_loss
    seen = []

    def loss(model, pairs, smoothing):
        found = plain(model, pairs, smoothing)
        seen.append(None)
        return found * math.nan if smoothing and (always or len(seen) in steps) else found

    monkeypatch.setattr(loop_module, "summed_loss", loss)


def test_a_non_finite_loss_skips_the_update_and_is_counted(tmp_path, text, monkeypatch):
    poison(monkeypatch, {2})
    notes = Notes()
    train(small(), text, None, tmp_path / "run", listener=notes)
    assert 2 not in notes.steps
    assert any("not finite" in message for message in notes.messages)


def test_several_in_a_row_go_back_once_with_a_lower_rate(tmp_path, text, monkeypatch):
    poison(monkeypatch, set(range(6, 11)))
    notes = Notes()
    train(small(budget={"steps": 12}), text, None, tmp_path / "run", listener=notes)
    assert any("going back to step 4 with 0.5 ×" in message for message in notes.messages)
    assert notes.steps[-1] == 12
    assert notes.steps.count(5) == 2


def test_divergence_that_stays_stops_with_its_own_exit_code(tmp_path, text, monkeypatch):
    poison(monkeypatch, set(), always=True)
    with pytest.raises(DivergedError) as caught:
        train(small(), text, None, tmp_path / "run")
    assert caught.value.exit_code == 5


def test_non_finite_weights_are_never_saved(tmp_path, text, monkeypatch):
    plain = loop_module.Trainer.update
    spoilt = []

    def update(self, group):
        result = plain(self, group)
        if self.progress.step == 6 and not spoilt:
            spoilt.append(next(self.model.parameters()).data.view(-1)[0].fill_(math.nan))
        return result

    monkeypatch.setattr(loop_module.Trainer, "update", update)
    notes = Notes()
    train(small(validation={"every": 3}), text, None, tmp_path / "run", listener=notes)
    assert any("not saved" in message for message in notes.messages)
    model = Bundle.open(tmp_path / "run").model()
    assert all(bool(value.isfinite().all()) for value in model.parameters())


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


def test_two_trainings_in_one_directory_are_one_too_many(tmp_path, text, monkeypatch):
    plain, refused = loop_module.Trainer.validate, []

    def validate(self):
        with pytest.raises(UsageError, match="another process is training here"):
            train(small(), text, None, tmp_path / "run")
        refused.append(True)
        plain(self)

    monkeypatch.setattr(loop_module.Trainer, "validate", validate)
    train(small(), text, None, tmp_path / "run")
    assert refused


def test_early_stopping_ends_a_run_without_a_budget(tmp_path, text):
    config = small(budget={"steps": None, "patience": 1}, training={"learning_rate": 1e-12})
    facts = train(config, text, None, tmp_path / "run")
    assert facts["step"] <= 3 * 4


def test_accumulated_batches_make_one_update_of_all_their_tokens(tmp_path, text):
    facts = train(small(training={"accumulate": 3}), text, None, tmp_path / "three")
    single = train(small(), text, None, tmp_path / "one")
    assert facts["step"] == single["step"] == 8
    assert facts["target_tokens"] > 2.5 * single["target_tokens"]


def test_separate_vocabularies_train_too(tmp_path, text):
    train(small(data={"joint": False}), text, None, tmp_path / "run")
    tokenizers = Bundle.open(tmp_path / "run").tokenizers
    assert not tokenizers.joint


def test_text_without_pairs_is_refused_in_one_line(tmp_path):
    (tmp_path / "a.en").write_text("\n\n\n")
    (tmp_path / "a.de").write_text("x\ny\nz\n")
    with pytest.raises(DataError) as caught:
        train(small(), Corpus.of([(tmp_path / "a.en", tmp_path / "a.de")]), None, tmp_path / "run")
    assert "\n" not in str(caught.value)
