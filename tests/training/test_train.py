"""Training end to end on a few lines: it resumes, starts over, fine-tunes, and is reproducible bit by bit."""

import json
import os
import signal
import threading
import xml.etree.ElementTree as ElementTree

import pytest
import torch
import yaml

from corpora import SMALL, corpus, small
from runs import EventLog
from softgaze.bundle import Bundle
from softgaze.config import parse_config
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, UsageError
from softgaze.training.callbacks import read_metrics
from softgaze.training.train import Interrupted, train, write_learning_curve


@pytest.fixture
def text(tmp_path):
    return corpus(tmp_path)


def weights(run):
    return (run / "model.safetensors").read_bytes()


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong"])
def test_the_same_inputs_give_the_same_bits(tmp_path, text, arch):
    for name in ("first", "second"):
        train(small(arch), text, None, tmp_path / name)
    assert weights(tmp_path / "first") == weights(tmp_path / "second")


def test_runs_may_share_their_encoded_text(tmp_path, text):
    train(small(), text, None, tmp_path / "alone")
    for name in ("one", "other"):
        train(small(), text, None, tmp_path / name, encoded=tmp_path / "shared")
        assert not (tmp_path / name / "encoded").exists()
        assert weights(tmp_path / name) == weights(tmp_path / "alone")
    with pytest.raises(UsageError, match="encoded with other settings"):
        train(small(data={"held_out": 3}), text, None, tmp_path / "third", encoded=tmp_path / "shared")


def test_another_seed_gives_other_weights(tmp_path, text):
    train(small(), text, None, tmp_path / "first")
    train(small(training={"seed": 2}), text, None, tmp_path / "second")
    assert weights(tmp_path / "first") != weights(tmp_path / "second")


def test_a_run_directory_is_a_bundle_with_metrics(tmp_path, text):
    facts = train(small(), text, None, tmp_path / "run")
    bundle = Bundle.open(tmp_path / "run")
    assert (bundle.description.source_language, bundle.description.target_language) == ("en", "de")
    assert facts["step"] == 8
    assert bundle.facts["pairs"] + bundle.facts["dev_pairs"] == 60
    assert len(bundle.facts["data_sha256"]) == 2
    kinds = [line["kind"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert kinds.count("validation") == 2
    assert "<svg" in (tmp_path / "run" / "curve.svg").read_text()
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["packages"]["torch"] == torch.__version__


class StopAt(EventLog):
    """Sends this process a SIGTERM after an update."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_update(self, update, share):
        super().on_update(update, share)
        if update.step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("step", [1, 3, 4, 6])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, text, step):
    train(small(), text, None, tmp_path / "straight")
    with pytest.raises(Interrupted, match=f"saved at step {step}") as caught:
        train(small(), text, None, tmp_path / "broken", callback=StopAt(step))
    assert caught.value.exit_code == 128 + signal.SIGTERM
    log = EventLog()
    train(small(), text, None, tmp_path / "broken", callback=log)
    assert log.steps[0] == step + 1
    assert weights(tmp_path / "straight") == weights(tmp_path / "broken")
    for run in ("straight", "broken"):
        steps = [line["step"] for line in read_metrics(tmp_path / run / "metrics.jsonl")]
        assert steps == sorted(steps)


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt", "cosine"])
@pytest.mark.parametrize("warm_start", ["statistics", "none"])
def test_killed_equals_not_killed_with_every_schedule_and_start(tmp_path, text, schedule, warm_start):
    config = small(training={"schedule": schedule, "warm_start": warm_start})
    train(config, text, None, tmp_path / "straight")
    with pytest.raises(Interrupted):
        train(config, text, None, tmp_path / "killed", callback=StopAt(6))
    train(config, text, None, tmp_path / "killed")
    assert weights(tmp_path / "straight") == weights(tmp_path / "killed")


def test_a_raised_budget_ends_as_if_given_at_once_unless_the_decay_had_begun(tmp_path, text):
    short, long = (small(budget={"steps": steps}, model={"options": {"dropout": 0.1}}) for steps in (6, 12))
    train(long, text, None, tmp_path / "straight")
    with pytest.raises(Interrupted):
        train(short, text, None, tmp_path / "raised", callback=StopAt(4))
    log = EventLog()
    train(long, text, None, tmp_path / "raised", callback=log)
    assert weights(tmp_path / "straight") == weights(tmp_path / "raised")
    rates = [update.learning_rate for update in log.updates]
    assert rates[0] > 3 * rates[-1] > 0


def test_a_resumed_run_keeps_the_choices_for_its_first_budget(tmp_path, text):
    given = {"model": {"options": SMALL["transformer"]}, "validation": {"sentences": 4}}
    first, second = EventLog(), EventLog()
    train(parse_config({**given, "budget": {"steps": 4}}), text, None, tmp_path / "run", callback=first)
    stored = (tmp_path / "run" / "training.yaml").read_text()
    train(parse_config({**given, "budget": {"steps": 6}}), text, None, tmp_path / "run", callback=second)
    assert any("training.warmup=1" in message for message in first.messages)
    assert not any("chosen" in message for message in second.messages)
    assert (tmp_path / "run" / "training.yaml").read_text() == stored.replace("steps: 4", "steps: 6")
    assert second.steps == [5, 6]


def test_a_run_of_an_earlier_version_resumes_without_what_it_did_not_have(tmp_path, text):
    train(small(training={"warm_start": "none", "decay": 0, "schedule": "inverse-sqrt"}), text, None, tmp_path / "run")
    stored = yaml.safe_load((tmp_path / "run" / "training.yaml").read_text())
    del stored["training"]["warm_start"], stored["training"]["decay"]
    (tmp_path / "run" / "training.yaml").write_text(yaml.safe_dump(stored))
    assert train(small(budget={"steps": 10}), text, None, tmp_path / "run")["step"] == 10
    with pytest.raises(UsageError, match=r"training\.warm_start: none → statistics"):
        train(small(training={"warm_start": "statistics"}), text, None, tmp_path / "run")


def test_pairs_longer_than_the_learned_positions_are_an_error(tmp_path, text):
    config = small(model={"options": {"positions": "learned", "max_length": 4}})
    with pytest.raises(UsageError, match=r"data\.max_length=3"):
        train(config, text, None, tmp_path / "run")


def test_a_finished_run_does_nothing_until_its_budget_is_raised(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    log = EventLog()
    train(small(), text, None, tmp_path / "run", callback=log)
    assert log.steps == []
    assert "ended at step 8" in log.messages[-1]
    assert train(small(budget={"steps": 10}), text, None, tmp_path / "run")["step"] == 10


def test_a_continued_and_stopped_run_is_not_finished(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    with pytest.raises(Interrupted, match="saved at step 9"):
        train(small(budget={"steps": 12}), text, None, tmp_path / "run", callback=StopAt(9))
    assert train(small(), text, None, tmp_path / "run")["step"] == 9


def test_fresh_starts_over(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    log = EventLog()
    train(small(training={"seed": 3}), text, None, tmp_path / "run", fresh=True, callback=log)
    assert log.steps[0] == 1


def test_fresh_deletes_nothing_if_the_command_is_wrong(tmp_path, text):
    train(small(), text, None, tmp_path / "run")
    before = weights(tmp_path / "run")
    missing = Corpus.of([(tmp_path / "train.en", tmp_path / "missing.de")])
    with pytest.raises(DataError, match=r"missing\.de"):
        train(small(), missing, None, tmp_path / "run", fresh=True)
    with pytest.raises(UsageError, match="did you mean heads"):
        train(small(model={"options": {"haeds": 2}}), text, None, tmp_path / "run", fresh=True)
    assert weights(tmp_path / "run") == before


def test_a_run_that_fails_to_start_leaves_nothing(tmp_path):
    (tmp_path / "a.en").write_bytes(b"a dog.\n" * 20 + b"\xff\n")
    (tmp_path / "a.de").write_text("ein hund.\n" * 21)
    with pytest.raises(DataError, match="UTF-8"):
        train(small(), Corpus.of([(tmp_path / "a.en", tmp_path / "a.de")]), None, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_fine_tuning_keeps_weights_and_vocabulary_of_the_given_model(tmp_path, text):
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


def test_an_attention_history_becomes_a_page(tmp_path, text):
    train(small(validation={"attention_history": True}), text, None, tmp_path / "run")
    assert (tmp_path / "run" / "film.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_training_leaves_the_process_as_it_was(tmp_path, text):
    """Random state, thread counts and signal handlers."""

    def state():
        new_thread, counts = threading.Thread(target=lambda: counts.append(torch.get_num_threads())), []
        new_thread.start()
        new_thread.join()
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        return torch.get_rng_state().tolist(), torch.get_num_threads(), counts, handlers

    torch.manual_seed(5)
    before = state()
    train(small(training={"batch_tokens": 1024}), text, None, tmp_path / "run")
    assert state() == before


# --- the learning curve -------------------------------------------------------------------------------------------


def write_metrics(path, validations=3):
    lines = [{"kind": "update", "step": step, "elapsed": 10.0 * step, "loss": 5 / step} for step in range(1, 7)]
    for step in range(1, validations + 1):
        scores = {"loss": 1.0, "bleu": 9.0 * step, "chrf": 9.5}
        lines.append({"kind": "validation", "step": 2 * step, "elapsed": 20.0 * step, **scores})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("validations", [1, 2, 3])
def test_the_curve_has_every_series_with_its_last_value(tmp_path, validations):
    write_metrics(tmp_path / "metrics.jsonl", validations)
    write_learning_curve(tmp_path / "metrics.jsonl", tmp_path / "curve.svg")
    chart = ElementTree.parse(tmp_path / "curve.svg").getroot()
    words = [element.text for element in chart.iter() if element.text]
    bleu = f"dev BLEU {9 * validations}"
    for label in ("training loss 0.833", "dev loss 1", bleu, "dev chrF 9.5", "minutes of training"):
        assert label in words


def test_without_a_validation_there_is_no_curve(tmp_path):
    write_learning_curve(tmp_path / "missing.jsonl", tmp_path / "curve.svg")
    assert not (tmp_path / "curve.svg").exists()
