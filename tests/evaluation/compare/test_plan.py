import pytest

from evaluation.compare.comparisons import planned
from softgaze.errors import DataError, UsageError
from softgaze.evaluation.compare.plan import Plan, absolute, check_place, clear, shared_settings


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


def test_clearing_leaves_an_empty_directory(tmp_path):
    plan = planned(tmp_path, "rnn")
    plan.write()
    (plan.out / "models").mkdir()
    clear(plan.out)
    assert [*plan.out.iterdir()] == []
    clear(tmp_path / "never there")


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
