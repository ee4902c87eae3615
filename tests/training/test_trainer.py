"""The training loop: non-finite numbers never reach a checkpoint, budgets end it, and the best weights are kept."""

import math
from itertools import count, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bundles import make_bundle
from checks import same
from corpora import small
from runs import EventLog, complete, preprocessed, script_scores, spoil_weights, trainer
from softgaze.bundle import ATTENTION, FAITHFULNESS, Bundle
from softgaze.data.batching import Batch
from softgaze.data.corpus import Pair
from softgaze.errors import DivergedError
from softgaze.explain import SelectedMap
from softgaze.explain.map_selection import BY_OCCLUSION, MAX_SENTENCES
from softgaze.training import callbacks
from softgaze.training import trainer as trainer_module
from softgaze.training.callbacks import read_metrics
from softgaze.training.checkpoint import parameters_of
from softgaze.training.gradients import GradientAccumulator, LossSums
from softgaze.training.run_directory import RunDirectory
from softgaze.training.signals import StopRequest
from softgaze.training.trainer import select_attention_map


@pytest.fixture
def log():
    return EventLog()


@pytest.fixture(autouse=True)
def scores(monkeypatch):
    """Make each validation better than the last, unless a test scripts other scores."""
    script_scores(monkeypatch, *range(1, 100))


def poison(monkeypatch, *calls, always=False):
    """Make the losses and gradients of these calls NaN."""
    original, calls_so_far = GradientAccumulator.add, count(1)

    def add(self, *arguments):
        losses = original(self, *arguments)
        if next(calls_so_far) not in calls and not always:
            return losses
        for parameter in self.parameters:
            parameter.grad.mul_(math.nan)
        return LossSums(math.nan, 0.0)

    monkeypatch.setattr(GradientAccumulator, "add", add)


def weights(trainer):
    return torch.cat([parameter.detach().flatten().clone() for parameter in trainer.model.parameters()])


# --- one update -------------------------------------------------------------------------------------------------


def exact(path, **training):
    """Return a trainer in float64 without dropout."""
    training = {"precision": "float32", "fast": False, **training}
    run = trainer(path, small(model={"options": {"dropout": 0.0}}, training=training))
    run.model.double()
    return run


def test_accumulated_halves_equal_one_batch(tmp_path):
    whole, halves = exact(tmp_path / "whole"), exact(tmp_path / "halves")
    pairs = np.arange(9)
    one = whole.update([Batch(pairs, 0)])
    two = halves.update([Batch(pairs[:2], 0), Batch(pairs[2:], 0)])
    assert one.tokens == two.tokens
    assert one.loss == pytest.approx(two.loss, abs=1e-12)
    same(weights(halves), weights(whole), within=1e-9)


def test_accumulated_batches_make_one_update_of_all_their_tokens(tmp_path, log):
    run = trainer(tmp_path / "run", small(training={"accumulate": 3}), log)
    facts = complete(run)
    assert facts["step"] == 8
    batches = run.batches.batches_from(0)
    for update in log.updates:
        lengths = [preprocessed().train.lengths(next(batches).pairs)[:, 1] + 1 for _ in range(3)]
        assert update.tokens == sum(int(batch.sum()) for batch in lengths)
    assert facts["target_tokens"] == sum(update.tokens for update in log.updates)


def bad_loss(run, monkeypatch):
    poison(monkeypatch, always=True)


def bad_gradient(run, monkeypatch):
    next(run.model.parameters()).register_hook(lambda gradient: gradient * math.inf)


@pytest.mark.parametrize("spoil", [bad_loss, bad_gradient])
def test_a_non_finite_update_changes_nothing(tmp_path, monkeypatch, log, spoil):
    run = trainer(tmp_path / "run", callback=log)
    batch = next(run.batches.batches_from(0))
    run.update([batch])
    before, moments = weights(run), len(run.optimizer.state)
    spoil(run, monkeypatch)
    assert run.update([batch]) is None
    assert torch.equal(weights(run), before)
    assert all(state["step"] == 1 for state in run.optimizer.state.values())
    assert len(run.optimizer.state) == moments > 0
    assert run.progress.skipped == 1
    assert "step 2: skipped" in log.messages[-1]


# --- rollback -----------------------------------------------------------------------------------------------------


def test_non_finite_updates_are_skipped_and_counted(tmp_path, monkeypatch, log):
    poison(monkeypatch, 2, 5)
    run = trainer(tmp_path / "run", callback=log)
    complete(run)
    assert log.steps == [1, 3, 4, 6, 7, 8]
    assert run.progress.skipped == 2
    assert not run.progress.rolled_back


def test_several_in_a_row_roll_back_once_with_a_lower_learning_rate(tmp_path, monkeypatch, log):
    poison(monkeypatch, *range(6, 11))
    run = trainer(tmp_path / "run", small(budget={"steps": 12}), log)
    complete(run)
    assert any("rolled back to step 4 with 0.5 ×" in message for message in log.messages)
    assert log.steps == [*range(1, 6), *range(5, 13)]
    first, again = (update for update in log.updates if update.step == 5)
    assert again.learning_rate == pytest.approx(first.learning_rate / 2)
    assert run.progress.skipped == 5


def test_the_lower_learning_rate_survives_a_resume(tmp_path, monkeypatch, log):
    with monkeypatch.context() as patch:
        poison(patch, *range(2, 7))
        complete(trainer(tmp_path / "run", callback=log))
    complete(trainer(tmp_path / "run", small(budget={"steps": 12}), log))
    complete(trainer(tmp_path / "plain", small(budget={"steps": 12}), plain := EventLog()))
    assert log.updates[-1].step == plain.updates[-1].step == 12
    assert log.updates[-1].learning_rate == pytest.approx(plain.updates[-1].learning_rate / 2)


def test_a_second_divergence_fails_with_its_own_exit_code(tmp_path, monkeypatch):
    poison(monkeypatch, always=True)
    with pytest.raises(DivergedError) as caught:
        complete(trainer(tmp_path / "run"))
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("step", [4, 6, 9])  # when a checkpoint is due, between two, and at the end
def test_non_finite_weights_are_never_saved(tmp_path, monkeypatch, log, step):
    spoil_weights(monkeypatch, step)
    original, saved = trainer_module.save_checkpoint, []

    def save(directory, model, *rest):
        saved.append(all(bool(parameter.isfinite().all()) for parameter in model.parameters()))
        return original(directory, model, *rest)

    monkeypatch.setattr(trainer_module, "save_checkpoint", save)
    facts = complete(trainer(tmp_path / "run", small(budget={"steps": 9}), log))
    assert all(saved)
    assert any("rolled back" in message for message in log.messages)
    assert facts["step"] == log.steps[-1] == 9
    weights = Bundle.open(tmp_path / "run").model().parameters()
    assert all(bool(parameter.isfinite().all()) for parameter in weights)


def test_a_rollback_drops_the_metrics_it_repeats(tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "LOG_SECONDS", 1e-9)
    poison(monkeypatch, *range(7, 12))
    complete(trainer(tmp_path / "run"))
    steps = [line["step"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if line["kind"] == "update"]
    assert steps == [*range(1, 9)]


# --- the budget -------------------------------------------------------------------------------------------------


def patient(patience=2, **training):
    """Return settings of a run that only its patience ends."""
    budget = {"steps": None, "patience": patience}
    return small(budget=budget, validation={"every": 1}, training={"average": 0, **training})


@pytest.mark.parametrize(
    ("bleu", "end", "best"),
    [
        ([5, 4, 3], 3, 1),  # worse twice
        ([5, 5, 5], 3, 1),  # as good is not better
        ([1, 0, 2, 0, 0], 5, 3),  # a better one resets the count
        ([math.nan, 1, math.nan, math.nan], 4, 2),  # NaN is the worst
    ],
)
def test_patience_ends_a_run_without_a_budget(tmp_path, monkeypatch, bleu, end, best):
    script_scores(monkeypatch, *bleu)
    facts = complete(trainer(tmp_path / "run", patient(decay=0)))
    assert (facts["step"], facts["best_step"]) == (end, best)


def test_after_the_patience_the_learning_rate_falls_to_zero(tmp_path, monkeypatch, log):
    monkeypatch.setattr(trainer_module, "PATIENCE_DECAY", 2.0)
    script_scores(monkeypatch, 5, 1, 1, 9, 1)  # better during the decay, which goes on
    facts = complete(trainer(tmp_path / "run", patient(schedule="constant", warmup=0), log))
    assert (facts["step"], facts["best_step"]) == (9, 4)
    peak = log.updates[0].learning_rate
    rates = [update.learning_rate / peak for update in log.updates]
    assert rates == pytest.approx([1, 1, 1, *(1 - step / 6 for step in range(6))])


@pytest.mark.parametrize("step", [2, 3, 5, 8])
def test_a_decay_after_the_patience_survives_a_kill(tmp_path, monkeypatch, log, step):
    monkeypatch.setattr(trainer_module, "PATIENCE_DECAY", 2.0)
    script_scores(monkeypatch, 5, 1, 1, 9, 1)
    straight = trainer(tmp_path / "straight", patient())
    complete(straight)
    script_scores(monkeypatch, 5, 1, 1, 9, 1)
    killed = trainer(tmp_path / "killed", patient())
    killed.resume()
    for _ in zip(range(step), killed.updates(), strict=False):
        killed.validate_and_save()
    again = trainer(tmp_path / "killed", patient(), log)
    complete(again)
    assert log.steps == [*range(step + 1, 10)]
    assert torch.equal(weights(again), weights(straight))


def test_a_raised_patience_ends_the_decay(tmp_path, monkeypatch, log):
    script_scores(monkeypatch, 5, 1)
    complete(trainer(tmp_path / "run", patient(schedule="constant")))
    complete(trainer(tmp_path / "run", patient(4, schedule="constant"), log))
    assert log.steps == [5, 6, 7]
    assert log.updates[0].learning_rate == pytest.approx(log.updates[1].learning_rate)
    assert log.updates[-1].learning_rate <= log.updates[0].learning_rate


def test_with_minutes_the_learning_rate_falls_with_the_clock(tmp_path, monkeypatch, log):
    clock = count(0, 2.0)  # each reading is two seconds later
    monkeypatch.setattr(
        trainer_module, "time", SimpleNamespace(monotonic=lambda: next(clock), perf_counter=lambda: 0.0)
    )
    config = small(budget={"steps": None, "minutes": 1}, training={"average": 0, "warmup": 1})
    run = trainer(tmp_path / "run", config, log)
    run.resume()
    while run.progress.elapsed < 45:
        run.update([next(run.batches.batches_from(run.progress.step))])
    run.save()
    again = trainer(tmp_path / "run", config, log)
    complete(again)
    rates = [update.learning_rate for update in log.updates]
    peak = again.config.training.learning_rate
    assert all(after < before for before, after in pairwise(rates))
    assert rates[0] == pytest.approx(peak * (1 - run.progress.elapsed / 60) / 0.3, rel=0.2)
    assert 0 < rates[-1] < peak / 4


def test_an_epoch_is_every_pair_once(tmp_path):
    facts = complete(trainer(tmp_path / "run", small(budget={"steps": None, "epochs": 1})))
    shards = preprocessed().train
    lengths = shards.lengths(np.arange(len(shards)))
    assert facts["target_tokens"] == int(lengths[:, 1].sum()) + len(lengths)


def test_minutes_count_over_all_resumes(tmp_path, monkeypatch):
    clock = count(0, 6.0)  # each reading is six seconds later
    monkeypatch.setattr(
        trainer_module, "time", SimpleNamespace(monotonic=lambda: next(clock), perf_counter=lambda: 0.0)
    )
    config = small(budget={"steps": None, "minutes": 2}, training={"average": 0})
    run = trainer(tmp_path / "run", config)
    run.resume()
    run.train(stop := StopRequest())
    whole = run.progress.step
    assert 120 <= run.progress.elapsed < 120 + 4 * 6

    broken = trainer(tmp_path / "broken", config)
    broken.resume()
    stop.handle(15)
    assert not broken.train(stop)
    assert broken.progress.step == 1
    again = trainer(tmp_path / "broken", config)
    again.resume()
    assert again.progress.elapsed >= broken.progress.elapsed > 0
    again.train(StopRequest())
    assert 120 <= again.progress.elapsed < 120 + 4 * 6
    assert again.progress.step <= whole


def test_waiting_for_data_is_counted(tmp_path, monkeypatch):
    """The clock moves only while batches are collated."""
    now = [0.0]
    run = trainer(tmp_path / "run", small(budget={"steps": 3}))
    original = trainer_module.collate

    def slow(*arguments):
        now[0] += 2.0
        return original(*arguments)

    monkeypatch.setattr(trainer_module, "time", SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0]))
    monkeypatch.setattr(trainer_module, "collate", slow)
    run.clock = 0.0
    for _ in zip(range(3), run.updates(), strict=False):
        pass
    assert run.progress.data_wait == run.progress.elapsed > 0
    assert run.facts()["waiting_for_data"] == 1.0


def test_a_clock_that_runs_backwards_adds_nothing(tmp_path, monkeypatch):
    run = trainer(tmp_path / "run")
    monkeypatch.setattr(trainer_module, "time", SimpleNamespace(monotonic=lambda: run.clock - 100.0))
    run.count_time()
    assert run.progress.elapsed == 0.0


# --- the best weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("average", "is_published"), [(30, True), (15, False), (20, False)])
def test_the_average_is_published_only_if_better(tmp_path, monkeypatch, log, average, is_published):
    script_scores(monkeypatch, 10, 20, average)
    run = trainer(tmp_path / "run", callback=log)
    facts = complete(run)
    bundle = Bundle.open(tmp_path / "run")
    published = dict(bundle.model().named_parameters())
    snapshots = [load_file(path) for path in (tmp_path / "run" / "checkpoints").glob("snapshot-*")]
    assert len(snapshots) == 2
    assert bundle.facts.get("averaged") == (2 if is_published else None)
    assert facts["best"] == pytest.approx(average if is_published else 20, abs=0.01)
    assert ("not better" in log.messages[-1]) is not is_published
    for name, last in parameters_of(run.model).items():
        mean = (snapshots[0][name] + snapshots[1][name]) / 2
        same(published[name].detach(), mean if is_published else last, within=1e-6)


def test_averaging_restores_the_trained_weights(tmp_path, monkeypatch):
    script_scores(monkeypatch, 10, 20, 30)
    run = trainer(tmp_path / "run")
    run.resume()
    run.train(StopRequest())
    before = weights(run)
    run.finish()
    assert torch.equal(weights(run), before)


def test_only_the_snapshots_to_average_are_kept(tmp_path):
    complete(trainer(tmp_path / "run", small(validation={"every": 1}, training={"average": 3})))
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("snapshot-*"))
    assert names == [f"snapshot-{step:08d}.safetensors" for step in (6, 7, 8)]


def test_a_run_killed_at_its_end_validates_its_last_weights_once(tmp_path, monkeypatch):
    """Twice, the average would count them twice."""
    config = small(budget={"steps": 10}, training={"average": 3})
    complete(trainer(tmp_path / "straight", config))
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write_result", lambda self, facts: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            complete(trainer(tmp_path / "killed", config))
    run = trainer(tmp_path / "killed", config)
    complete(run)
    assert run.progress.snapshots == [f"snapshot-{step:08d}.safetensors" for step in (4, 8, 10)]
    for name in ("straight", "killed"):
        lines = read_metrics(tmp_path / name / "metrics.jsonl")
        assert [line["step"] for line in lines if line["kind"] == "validation"] == [4, 8, 10]


# --- the attention map --------------------------------------------------------------------------------------------


class HeldOut:
    """The part of `PreprocessedData` that the selection reads."""

    dev_text = [Pair("the small dog sees a cat.", "작은 개 고양이 봐요.")] * (MAX_SENTENCES + 9)


def test_a_finished_run_has_a_selected_map(tmp_path):
    complete(trainer(tmp_path / "run"))
    selected = SelectedMap.from_dict(Bundle.open(tmp_path / "run").facts[ATTENTION])
    measured = Bundle.open(tmp_path / "run").facts[FAITHFULNESS]
    assert {"selected map", "random", "occlusion", "gradient", "gradient-norm", "contribution"} == set(measured)
    assert measured["occlusion"]["words"] > 0
    assert selected.by == BY_OCCLUSION
    assert 0 <= selected.score <= 1
    assert 1 <= selected.sentences <= MAX_SENTENCES


def test_the_selection_is_reproducible_and_its_sample_bounded(tmp_path):
    """The bundle is measured in evaluation mode: dropout would make the selection random."""
    path = make_bundle(tmp_path / "model", options={"width": 16, "heads": 2, "dropout": 0.9})
    selections = []
    for seed in (1, 99):
        torch.manual_seed(seed)
        select_attention_map(path, HeldOut(), torch.device("cpu"))
        selections.append(Bundle.open(path).facts[ATTENTION])
    assert selections[0] == selections[1]
    assert selections[0]["sentences"] == MAX_SENTENCES
    assert Bundle.open(path).facts["steps"] == 12_345


def test_a_model_without_attention_has_no_selected_map(tmp_path):
    path = make_bundle(tmp_path / "rnn", arch="rnn", options={"width": 16})
    select_attention_map(path, HeldOut(), torch.device("cpu"))
    assert ATTENTION not in Bundle.open(path).facts
