"""The loop: numbers that are not finite never reach a checkpoint, budgets end it, and the best weights are kept."""

import math
from itertools import count
from types import SimpleNamespace

import numpy
import pytest
import torch
from safetensors.torch import load_file

from checks import same
from corpora import small
from runs import Notes, complete, prepared, script_scores, spoil_weights, trainer
from softgaze.bundle import Bundle
from softgaze.config import resolve
from softgaze.data.batches import Batch
from softgaze.errors import DivergedError
from softgaze.models import build
from softgaze.training import journal, loop
from softgaze.training.checkpoint import parameters_of
from softgaze.training.gradients import Gradients, Losses
from softgaze.training.journal import read_journal
from softgaze.training.loop import make_optimiser
from softgaze.training.run import RunDirectory
from softgaze.training.signals import Stop


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture(autouse=True)
def scores(monkeypatch):
    """Each validation is better than the last, unless a test says otherwise."""
    script_scores(monkeypatch, *range(1, 100))


def poison(monkeypatch, *calls, always=False):
    """The losses of these updates, counted as they are computed, are NaN."""
    plain, seen = Gradients.add, count(1)

    def add(self, *arguments):
        losses = plain(self, *arguments)
        if next(seen) not in calls and not always:
            return losses
        for parameter in self.parameters:
            parameter.grad.mul_(math.nan)
        return Losses(math.nan, 0.0)

    monkeypatch.setattr(Gradients, "add", add)


def weights(trainer):
    return torch.cat([value.detach().flatten().clone() for value in trainer.model.parameters()])


# --- one update -------------------------------------------------------------------------------------------------


def exact(path, **training):
    """A trainer in float64 without noise."""
    options = {"dropout": 0.0}
    made = trainer(
        path, small(model={"options": options}, training={"precision": "float32", "fast": False, **training})
    )
    made.model.double()
    return made


def test_half_batches_accumulated_equal_one_batch(tmp_path):
    whole, halves = exact(tmp_path / "whole"), exact(tmp_path / "halves")
    pairs = numpy.arange(9)
    one = whole.update([Batch(pairs, 0)])
    two = halves.update([Batch(pairs[:2], 0), Batch(pairs[2:], 0)])
    assert one.tokens == two.tokens
    assert one.loss == pytest.approx(two.loss, abs=1e-12)
    same(weights(halves), weights(whole), within=1e-9)


def test_accumulated_batches_make_one_update_of_all_their_tokens(tmp_path, notes):
    made = trainer(tmp_path / "run", small(training={"accumulate": 3}), notes)
    facts = complete(made)
    assert facts["step"] == 8
    batches = made.batches.starting(0)
    for update in notes.updates:
        group = [prepared().train.lengths(next(batches).pairs)[:, 1] + 1 for _ in range(3)]
        assert update.tokens == sum(int(lengths.sum()) for lengths in group)
    assert facts["target_tokens"] == sum(update.tokens for update in notes.updates)


def bad_loss(made, monkeypatch):
    poison(monkeypatch, always=True)


def bad_gradient(made, monkeypatch):
    next(made.model.parameters()).register_hook(lambda gradient: gradient * math.inf)


@pytest.mark.parametrize("spoil", [bad_loss, bad_gradient])
def test_an_update_that_is_not_finite_changes_nothing(tmp_path, monkeypatch, notes, spoil):
    made = trainer(tmp_path / "run", listener=notes)
    batch = next(made.batches.starting(0))
    made.update([batch])
    before, moments = weights(made), len(made.optimiser.state)
    spoil(made, monkeypatch)
    assert made.update([batch]) is None
    assert torch.equal(weights(made), before)
    assert all(state["step"] == 1 for state in made.optimiser.state.values())
    assert len(made.optimiser.state) == moments > 0
    assert made.progress.skipped == 1
    assert "step 2: a number was not finite" in notes.messages[-1]


def test_only_matrices_decay():
    model = build("transformer", source_vocabulary=20)
    decaying, others = make_optimiser(model, resolve(small(training={"weight_decay": 0.1}))).param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    assert {value.ndim for value in others["params"]} == {1}
    assert 1 not in {value.ndim for value in decaying["params"]}
    assert len(decaying["params"]) + len(others["params"]) == len(list(model.parameters()))


# --- going back -------------------------------------------------------------------------------------------------


def test_a_non_finite_loss_skips_the_update_and_is_counted(tmp_path, monkeypatch, notes):
    poison(monkeypatch, 2, 5)
    made = trainer(tmp_path / "run", listener=notes)
    complete(made)
    assert notes.steps == [1, 3, 4, 6, 7, 8]
    assert made.progress.skipped == 2
    assert not made.progress.went_back


def test_several_in_a_row_go_back_once_with_a_lower_rate(tmp_path, monkeypatch, notes):
    poison(monkeypatch, *range(6, 11))
    made = trainer(tmp_path / "run", small(budget={"steps": 12}), notes)
    complete(made)
    assert any("going back to step 4 with 0.5 ×" in message for message in notes.messages)
    assert notes.steps == [*range(1, 6), *range(5, 13)]
    first, again = (update for update in notes.updates if update.step == 5)
    assert again.learning_rate == pytest.approx(first.learning_rate / 2)
    assert made.progress.skipped == 5


def test_the_lower_rate_outlasts_a_resume(tmp_path, monkeypatch, notes):
    with monkeypatch.context() as patch:
        poison(patch, *range(2, 7))
        complete(trainer(tmp_path / "run", listener=notes))
    complete(trainer(tmp_path / "run", small(budget={"steps": 12}), notes))
    complete(trainer(tmp_path / "plain", small(budget={"steps": 12}), plain := Notes()))
    assert notes.updates[-1].step == plain.updates[-1].step == 12
    assert notes.updates[-1].learning_rate == pytest.approx(plain.updates[-1].learning_rate / 2)


def test_divergence_that_stays_stops_with_its_own_exit_code(tmp_path, monkeypatch):
    poison(monkeypatch, always=True)
    with pytest.raises(DivergedError) as caught:
        complete(trainer(tmp_path / "run"))
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("step", [4, 6, 9])  # when a checkpoint is due, between two, and at the very end
def test_non_finite_weights_are_never_saved(tmp_path, monkeypatch, notes, step):
    spoil_weights(monkeypatch, step)
    plain, saved = loop.save_checkpoint, []

    def save(directory, model, *rest):
        saved.append(all(bool(value.isfinite().all()) for value in model.parameters()))
        return plain(directory, model, *rest)

    monkeypatch.setattr(loop, "save_checkpoint", save)
    facts = complete(trainer(tmp_path / "run", small(budget={"steps": 9}), notes))
    assert all(saved)
    assert any("going back" in message for message in notes.messages)
    assert facts["step"] == notes.steps[-1] == 9
    assert all(bool(value.isfinite().all()) for value in Bundle.open(tmp_path / "run").model().parameters())


def test_the_journal_forgets_what_going_back_repeats(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "SECONDS", 1e-9)
    poison(monkeypatch, *range(7, 12))
    complete(trainer(tmp_path / "run"))
    steps = [line["step"] for line in read_journal(tmp_path / "run" / "metrics.jsonl") if line["kind"] == "update"]
    assert steps == [*range(1, 9)]


# --- the budget -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bleu", "end", "best"),
    [
        ([5, 4, 3], 3, 1),  # worse twice
        ([5, 5, 5], 3, 1),  # as good is not better
        ([1, 0, 2, 0, 0], 5, 3),  # a better one starts the count anew
        ([math.nan, 1, math.nan, math.nan], 4, 2),  # nothing is worse than a number that is none
    ],
)
def test_patience_ends_a_run_without_a_budget(tmp_path, monkeypatch, bleu, end, best):
    script_scores(monkeypatch, *bleu)
    facts = complete(
        trainer(
            tmp_path / "run",
            small(budget={"steps": None, "patience": 2}, validation={"every": 1}, training={"average": 0}),
        )
    )
    assert (facts["step"], facts["best_step"]) == (end, best)


def test_an_epoch_is_every_pair_once(tmp_path):
    facts = complete(trainer(tmp_path / "run", small(budget={"steps": None, "epochs": 1})))
    lengths = prepared().train.lengths(numpy.arange(len(prepared().train)))
    assert facts["target_tokens"] == int(lengths[:, 1].sum()) + len(lengths)


def test_minutes_count_over_all_resumes(tmp_path, monkeypatch):
    clock = count(0, 6.0)  # six seconds pass between two looks at it
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(clock), perf_counter=lambda: 0.0))
    config = small(budget={"steps": None, "minutes": 2}, training={"average": 0})
    made = trainer(tmp_path / "run", config)
    made.resume()
    made.train(stop := Stop())
    whole = made.progress.step
    assert 120 <= made.progress.elapsed < 120 + 4 * 6

    broken = trainer(tmp_path / "broken", config)
    broken.resume()
    stop.ask(15)
    assert not broken.train(stop)
    assert broken.progress.step == 1
    again = trainer(tmp_path / "broken", config)
    again.resume()
    assert again.progress.elapsed >= broken.progress.elapsed > 0
    again.train(Stop())
    assert 120 <= again.progress.elapsed < 120 + 4 * 6
    assert again.progress.step <= whole


def test_waiting_for_data_is_counted(tmp_path, monkeypatch):
    """A clock that moves while batches are made, and at no other time."""
    now = [0.0]
    made = trainer(tmp_path / "run", small(budget={"steps": 3}))
    plain = made.collate

    def slow(batch):
        now[0] += 2.0
        return plain(batch)

    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0]))
    monkeypatch.setattr(made, "collate", slow)
    made.clock = 0.0
    for _ in zip(range(3), made.updates(), strict=False):
        pass
    assert made.progress.waited == made.progress.elapsed > 0
    assert made.facts()["waiting_for_data"] == 1.0


def test_a_clock_that_runs_backwards_counts_nothing(tmp_path, monkeypatch):
    made = trainer(tmp_path / "run")
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: made.clock - 100.0))
    made.tick()
    assert made.progress.elapsed == 0.0


# --- keeping the best -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("average", "kept"), [(30, True), (15, False), (20, False)])
def test_the_average_is_kept_only_when_better(tmp_path, monkeypatch, notes, average, kept):
    script_scores(monkeypatch, 10, 20, average)
    made = trainer(tmp_path / "run", listener=notes)
    facts = complete(made)
    bundle = Bundle.open(tmp_path / "run")
    published = dict(bundle.model().named_parameters())
    snapshots = [load_file(path) for path in (tmp_path / "run" / "checkpoints").glob("snapshot-*")]
    assert len(snapshots) == 2
    assert bundle.facts.get("averaged") == (2 if kept else None)
    assert facts["best"] == pytest.approx(average if kept else 20, abs=0.01)
    assert ("not better" in notes.messages[-1]) is not kept
    for name, own in parameters_of(made.model).items():
        mean = (snapshots[0][name] + snapshots[1][name]) / 2
        same(published[name].detach(), mean if kept else own, within=1e-6)


def test_the_average_leaves_the_trained_weights_as_they_are(tmp_path, monkeypatch):
    script_scores(monkeypatch, 10, 20, 30)
    made = trainer(tmp_path / "run")
    made.resume()
    made.train(Stop())
    before = weights(made)
    made.finish()
    assert torch.equal(weights(made), before)


def test_only_as_many_snapshots_are_kept_as_are_averaged(tmp_path):
    complete(trainer(tmp_path / "run", small(validation={"every": 1}, training={"average": 3})))
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("snapshot-*"))
    assert names == [f"snapshot-{step:08d}.safetensors" for step in (6, 7, 8)]


def test_killed_at_the_very_end_is_not_killed(tmp_path, monkeypatch):
    """The last validation is not made twice, or the average would count its weights twice."""
    config = small(budget={"steps": 10}, training={"average": 3})
    complete(trainer(tmp_path / "straight", config))
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write_result", lambda self, facts: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            complete(trainer(tmp_path / "killed", config))
    made = trainer(tmp_path / "killed", config)
    complete(made)
    assert made.progress.snapshots == [f"snapshot-{step:08d}.safetensors" for step in (4, 8, 10)]
    for run in ("straight", "killed"):
        lines = read_journal(tmp_path / run / "metrics.jsonl")
        assert [line["step"] for line in lines if line["kind"] == "validation"] == [4, 8, 10]
