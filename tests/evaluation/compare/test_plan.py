import pytest

from evaluation.compare.comparisons import compared, planned
from softgaze.errors import DataError, UsageError
from softgaze.evaluation.compare.plan import (
    PLAN,
    Plan,
    absolute,
    check_place,
    clear,
    planning,
    shared_settings,
    stored_plan,
)
from softgaze.training.run import LOCK, RunDirectory


def test_a_plan_comes_back_from_its_file(tmp_path):
    plan = absolute(planned(tmp_path, "rnn-luong", "transformer"))
    plan.write()
    assert Plan.read(plan.out) == plan


def test_only_a_directory_of_its_own_is_taken(tmp_path):
    check_place(tmp_path / "new")
    plan = planned(tmp_path, "rnn")
    plan.write()
    check_place(plan.out)
    with pytest.raises(UsageError, match="no comparison of softgaze"):
        check_place(tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is a file"):
        check_place(file)
    with pytest.raises(DataError, match="cannot be read as the plan"):
        Plan.read(tmp_path)
    (tmp_path / PLAN).write_text("[]")
    with pytest.raises(DataError, match="cannot be read as the plan"):
        stored_plan(tmp_path)


def test_clearing_leaves_an_empty_directory(tmp_path):
    plan = planned(tmp_path, "rnn")
    plan.write()
    (plan.out / "models").mkdir()
    clear(plan.out)
    assert [*plan.out.iterdir()] == []
    clear(tmp_path / "never there")


def test_a_lock_is_no_part_of_a_comparison_and_stays(tmp_path):
    plan = planned(tmp_path, "rnn")
    with RunDirectory(plan.out).locked():
        check_place(plan.out)
        plan.write()
        clear(plan.out)
        assert [each.name for each in plan.out.iterdir()] == [LOCK]


def test_a_plan_that_is_refused_leaves_the_old_one_and_nothing_of_a_new_one(tmp_path):
    plan, other = absolute(planned(tmp_path, "rnn")), absolute(planned(tmp_path, "rnn-luong"))

    def refuse(refused):
        with pytest.raises(UsageError, match="refused"), planning(refused):
            raise UsageError("refused")

    refuse(plan)
    assert not plan.out.exists()
    with planning(plan):
        assert Plan.read(plan.out) == plan  # what a kill would leave is known as a comparison
    refuse(other)
    assert Plan.read(plan.out) == plan


def test_settings_a_model_cannot_go_on_with_are_refused_before_any_turn(tmp_path):
    compared(planned(tmp_path, "rnn"))
    planned(tmp_path, "conv", "rnn", steps=20).check_runs()
    with pytest.raises(UsageError, match=r"other settings \(training\.clip: 1\.0 → 2\.0\)"):
        planned(tmp_path, "conv", "rnn", training={"clip": 2.0}).check_runs()


def test_a_model_that_is_not_planned_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="unknown model of this comparison 'conv'; known: rnn:width=16"):
        planned(tmp_path, "rnn").config("conv")


def test_a_comparison_with_a_larger_budget_is_looked_at_as_often_as_before(tmp_path):
    plan = planned(tmp_path, "rnn")
    assert stored_plan(plan.out) is None
    plan.write()
    before = stored_plan(plan.out)
    assert shared_settings({"budget": {"steps": 4000}}, before)["validation"]["every"] == 4
    assert shared_settings({"budget": {"steps": 4000}, "validation": {"every": 7}}, before)["validation"]["every"] == 7


def test_one_budget_is_needed_and_ends_every_training():
    settings = shared_settings({"budget": {"steps": 200}})
    assert settings["validation"]["every"] == 20
    assert settings["budget"]["patience"] > 10**5
    assert shared_settings({"budget": {"minutes": 30}})["validation"]["every"] == 750
    assert shared_settings({"budget": {"minutes": 1}, "validation": {"every": 7}})["validation"]["every"] == 7
    with pytest.raises(UsageError, match="give --minutes or --steps"):
        shared_settings({})
    with pytest.raises(UsageError, match="two budgets"):
        shared_settings({"budget": {"minutes": 1, "steps": 1}})
    with pytest.raises(UsageError, match=r"unknown setting training\.sed"):
        shared_settings({"training": {"sed": 1}, "budget": {"steps": 1}})
