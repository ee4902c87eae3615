"""Fine-tuning: sensible settings that can be overridden, general-domain text, and a start that is never made worse."""

import json

import pytest
import torch

from corpora import corpus, small, write_corpus
from runs import EventLog, script_scores
from softgaze.bundle import Bundle
from softgaze.config import parse_config
from softgaze.data.corpus import Corpus
from softgaze.errors import DataError, UsageError
from softgaze.training.callbacks import Callback, read_metrics
from softgaze.training.dry_run import estimate
from softgaze.training.train import train

CHOICES = {
    "training.learning_rate": 0.001,
    "training.warmup": 3,
    "training.schedule": "inverse-sqrt",
    "training.label_smoothing": 0.05,
    "budget.patience": 2,
    "validation.every": 5,
    "training.mix_ratio": 0.5,
}


class Kill(Callback):
    """Ends the process, as far as a test can, before the update of one step is reported."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_update(self, update, share):
        if update.step == self.step:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A model to fine-tune, next to text of its languages."""
    directory = tmp_path_factory.mktemp("start")
    train(small(), corpus(directory), None, directory / "model", device="cpu")
    write_corpus(directory, 40, "own")
    write_corpus(directory, 90, "general")
    return directory


def fine_tune(start, out, callback=None, *, name="general", **sections):
    settings = {"validation": {"sentences": 4, "samples": 0}, "budget": {"steps": 24}, **sections}
    texts = {name: Corpus.of([(start / f"{name}.en", start / f"{name}.de")]) for name in ("own", name)}
    arguments = {"device": "cpu", "init": start / "model", "mix": texts[name], "callback": callback or Callback()}
    return train(parse_config(settings), texts["own"], None, out, **arguments)


def weights(path):
    return (path / "model.safetensors").read_bytes()


def test_choices_are_printed_and_the_learning_rate_falls_to_zero(start, tmp_path):
    log = EventLog()
    fine_tune(start, tmp_path / "run", log)
    chosen = [line.split(": ")[1].split("=") for line in log.messages if line.startswith("chosen for fine-tuning")]
    assert {name for name, _ in chosen} == {*CHOICES, "training.decay"}
    peak = float(dict(chosen)["training.learning_rate"])
    assert peak == pytest.approx(small().training.learning_rate or 3e-4)
    rates = [update.learning_rate for update in log.updates]
    assert max(rates) < peak
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] == pytest.approx(peak / 24)


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_can_be_overridden(start, tmp_path, name):
    log, (section, *keys) = EventLog(), name.split(".")
    value = {keys[0]: {keys[1]: CHOICES[name]} if len(keys) > 1 else CHOICES[name]}
    budget = {"budget": {"steps": 2, **(value if section == "budget" else {})}}
    fine_tune(start, tmp_path / "run", log, **{**({section: value} if section != "budget" else {}), **budget})
    assert not any(f"{name}=" in line for line in log.messages)
    stored = parse_config(__import__("yaml").safe_load((tmp_path / "run/training.yaml").read_text())).model_dump()
    for key in (section, *keys):
        stored = stored[key]
    assert stored == CHOICES[name]


def test_killed_is_not_killed(start, tmp_path):
    fine_tune(start, tmp_path / "straight")
    for step in (1, 6, 11, 23):
        with pytest.raises(KeyboardInterrupt):
            fine_tune(start, tmp_path / "killed", Kill(step))
    fine_tune(start, tmp_path / "killed")
    assert weights(tmp_path / "straight") == weights(tmp_path / "killed")
    curves = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("straight", "killed")]
    scores = [
        [(line["step"], line["bleu"], line["loss"]) for line in curve if line["kind"] == "validation"]
        for curve in curves
    ]
    assert scores[0] == scores[1]
    assert [step for step, *_ in scores[0]] == [0, 4, 8, 12, 16, 20, 24]


def test_weights_that_score_lower_never_replace_the_start(start, tmp_path, monkeypatch):
    script_scores(monkeypatch, 50.0, 40.0)
    facts = fine_tune(start, tmp_path / "run", budget={"steps": 8, "patience": 3})
    assert facts["best_step"] == 0
    one, other = (dict(Bundle.open(path).model().named_parameters()) for path in (start / "model", tmp_path / "run"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_general_text_changes_the_run_but_not_the_dev_text(start, tmp_path):
    facts = fine_tune(start, tmp_path / "mixed", training={"mix_ratio": 0.5})
    alone = fine_tune(start, tmp_path / "other", training={"mix_ratio": 2.0})
    assert (facts["mixed_per_epoch"], alone["mixed_per_epoch"]) == (18, 72)  # 36 pairs, 4 are held out
    assert weights(tmp_path / "mixed") != weights(tmp_path / "other")
    held_out = [json.loads((tmp_path / run / "encoded/dev.json").read_text()) for run in ("mixed", "other")]
    assert held_out[0] == held_out[1]
    assert {source for source, _ in held_out[0]} <= {*(start / "own.en").read_text().splitlines()}


def test_another_text_or_model_does_not_resume(start, tmp_path):
    fine_tune(start, tmp_path / "run")
    with pytest.raises(DataError, match="--mix files"):
        fine_tune(start, tmp_path / "run", name="train")
    train(small(training={"seed": 2}), corpus(tmp_path), None, tmp_path / "model", device="cpu")
    for name in ("own", "general"):
        write_corpus(tmp_path, 40 if name == "own" else 90, name)
    with pytest.raises(DataError, match="--init files"):
        fine_tune(tmp_path, tmp_path.parent / tmp_path.name / "run")


def test_languages_and_lengths_are_those_of_the_model(start, tmp_path):
    for side, ending in (("en", "src"), ("de", "tgt")):
        (tmp_path / f"own.{ending}").write_text((start / f"own.{side}").read_text())
    text = Corpus.of([(tmp_path / "own.src", tmp_path / "own.tgt")])
    config = parse_config({"budget": {"steps": 2}, "data": {"max_length": 50}})
    train(config, text, None, tmp_path / "run", device="cpu", init=start / "model")
    before, after = (Bundle.open(path).description for path in (start / "model", tmp_path / "run"))
    assert (after.source_language, after.target_language, after.max_length) == ("en", "de", before.max_length)


def test_a_dry_run_estimates_the_model_to_fine_tune(start):
    text = Corpus.of([(start / "own.en", start / "own.de")])
    report = estimate(parse_config({"budget": {"steps": 9}}), text, None, "cpu", (), start / "model", text)
    assert f"{Bundle.open(start / 'model').facts['parameters']:,} parameters" in report


def test_a_model_of_another_size_is_one_line(start, tmp_path):
    with pytest.raises(UsageError, match="cannot become 'base'"):
        fine_tune(start, tmp_path / "run", model={"size": "base"})
