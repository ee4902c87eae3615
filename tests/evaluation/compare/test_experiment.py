"""Experiments: models are parsed, settings shared, and the directory belongs to one comparison."""

from dataclasses import replace

import pytest

from checks import TEXT
from evaluation.compare.comparisons import compared, planned
from softgaze.config import Config, resolve
from softgaze.data.corpus import Corpus, read_pairs
from softgaze.errors import DataError, UsageError
from softgaze.evaluation.compare import experiment
from softgaze.evaluation.compare.experiment import (
    ARCHS,
    BEYOND_RANGES,
    BUILT_IN_ARCHS,
    MAX_WORDS,
    PLAN,
    TEST_RANGES,
    Experiment,
    built_in_files,
    check_built_in,
    check_directory,
    clear_directory,
    parse_models,
    shared_settings,
    storing,
    trained_lengths,
    write_built_in,
)
from softgaze.evaluation.compare.jobs import preprocess_shared
from softgaze.training.run_directory import LOCK, RunDirectory

# --- models


def test_the_usual_models_are_all_families_with_their_own_defaults():
    assert set(ARCHS.split(",")) == set(TEXT)
    for model in parse_models(ARCHS, {}):
        expected = resolve(Config.model_validate({"model": {"arch": model.name}}))
        assert model.config({}) == expected


def test_the_built_in_text_also_has_the_positions_of_the_paper():
    last = parse_models(BUILT_IN_ARCHS, {})[-1]
    assert last.config({}).model.options["positions"] == "sinusoidal"


def test_options_follow_colons_and_are_typed():
    one, other = parse_models("rnn-luong:score=dot, transformer:heads=2:dropout=1e-1", {})
    assert one.config({}).model.options["score"] == "dot"
    assert other.config({}).model.options["heads"] == 2
    assert other.config({}).model.options["dropout"] == 0.1
    assert other.config({}).model.options["positions"] == "rotary"


def test_settings_of_a_model_override_shared_settings():
    shared = {"model": {"size": "small", "options": {"dropout": 0.3}}, "training": {"seed": 7}}
    one, other = parse_models("rnn,rnn:dropout=0.1", shared)
    assert one.config(shared).model.options["dropout"] == 0.3
    assert other.config(shared).model.options["dropout"] == 0.1
    assert {each.config(shared).model.size for each in (one, other)} == {"small"}
    assert {each.config(shared).training.seed for each in (one, other)} == {7}


def test_models_equal_by_shared_settings_are_rejected():
    with pytest.raises(UsageError, match="must differ"):
        parse_models("rnn,rnn:dropout=0.3", {"model": {"options": {"dropout": 0.3}}})


def test_directories_are_distinct_and_safe():
    names = [each.directory for each in parse_models("rnn,rnn:width=16,rnn:width=32:layers=1", {})]
    assert len(set(names)) == 3
    assert not any(set(name) & set('/\\:*?"<>|') for name in names)


@pytest.mark.parametrize(
    ("archs", "output"),
    [
        ("rnn,captioner", "--archs captioner: it reads images or features"),
        ("rnn-loung", "--archs rnn-loung: unknown arch 'rnn-loung'; did you mean rnn-luong"),
        ("rnn-luong:scor=dot", "rnn-luong has no option 'scor'; did you mean score"),
        ("rnn-luong:score=dto", "unknown score 'dto'; did you mean dot?"),
        ("rnn-luong:score", "options are NAME=VALUE after a colon"),
        ("rnn-luong:=dot", "options are NAME=VALUE after a colon"),
        ("rnn-luong:score=", "options are NAME=VALUE after a colon"),
        ("rnn,,conv", "one of 'rnn,,conv' is empty"),
        ("", "one of '' is empty"),
        ("conv, conv", "names conv twice"),
        ("rnn,transformer,transformer:positions=rotary", "transformer and transformer:positions=rotary are the same"),
        ("rnn:dropout=0.1,rnn:dropout=1e-1", "rnn:dropout=0.1 and rnn:dropout=1e-1 are the same model"),
        ("transformer:heads=3", "128 is not divisible by 3 heads"),
        ("transformer:dropout=much", "dropout of transformer must be float, got 'much'"),
        ("transformer:layers.x=1", "transformer has no option 'layers'"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_model(archs, output):
    with pytest.raises(UsageError) as error:
        parse_models(archs, {})
    assert output in str(error.value)
    assert "\n" not in str(error.value)


# --- experiment and directory


def test_a_plan_comes_back_from_its_file(tmp_path):
    plan = planned(tmp_path, "rnn-luong", "transformer").with_absolute_paths()
    plan.write()
    assert Experiment.read(plan.out) == plan


def test_only_an_empty_directory_or_a_comparison_is_accepted(tmp_path):
    check_directory(tmp_path / "new")
    plan = planned(tmp_path, "rnn")
    plan.write()
    check_directory(plan.out)
    with pytest.raises(UsageError, match="not a comparison of softgaze"):
        check_directory(tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is a file"):
        check_directory(file)
    with pytest.raises(DataError, match="cannot be read as a comparison"):
        Experiment.read(tmp_path)
    (tmp_path / PLAN).write_text("[]")
    with pytest.raises(DataError, match="cannot be read as a comparison"):
        Experiment.stored(tmp_path)


def test_clearing_leaves_an_empty_directory(tmp_path):
    plan = planned(tmp_path, "rnn")
    plan.write()
    (plan.out / "models").mkdir()
    clear_directory(plan.out)
    assert [*plan.out.iterdir()] == []
    clear_directory(tmp_path / "never there")


def test_a_lock_is_no_part_of_a_comparison_and_stays(tmp_path):
    plan = planned(tmp_path, "rnn")
    with RunDirectory(plan.out).locked():
        check_directory(plan.out)
        plan.write()
        clear_directory(plan.out)
        assert [each.name for each in plan.out.iterdir()] == [LOCK]


def test_a_failed_setup_keeps_the_old_plan_and_leaves_nothing_of_a_new_one(tmp_path):
    plan, other = planned(tmp_path, "rnn").with_absolute_paths(), planned(tmp_path, "rnn-luong").with_absolute_paths()

    def refuse(refused):
        with pytest.raises(UsageError, match="refused"), storing(refused):
            raise UsageError("refused")

    refuse(plan)
    assert not plan.out.exists()
    with storing(plan):
        assert Experiment.read(plan.out) == plan  # what a kill would leave is known as a comparison
    refuse(other)
    assert Experiment.read(plan.out) == plan


def test_settings_that_cannot_resume_are_rejected_before_any_job(tmp_path):
    compared(planned(tmp_path, "rnn"))
    planned(tmp_path, "conv", "rnn", steps=20).check_resumable()
    with pytest.raises(UsageError, match=r"other settings \(training\.clip: 1\.0 → 2\.0\)"):
        planned(tmp_path, "conv", "rnn", training={"clip": 2.0}).check_resumable()


def test_an_unknown_model_is_rejected_in_one_line(tmp_path):
    with pytest.raises(UsageError, match="unknown model of this comparison 'conv'; known: rnn:width=16"):
        planned(tmp_path, "rnn").config("conv")


def test_a_larger_budget_keeps_the_validation_interval(tmp_path):
    plan = planned(tmp_path, "rnn")
    assert Experiment.stored(plan.out) is None
    plan.write()
    before = Experiment.stored(plan.out)
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


# --- built-in text


def test_ranges_cover_all_lengths_without_a_gap():
    assert [length for lengths in TEST_RANGES for length in lengths] == [*range(1, MAX_WORDS + 1)]
    assert [length for lengths in BEYOND_RANGES for length in lengths] == [*range(MAX_WORDS + 1, 2 * MAX_WORDS + 1)]


def test_test_sets_have_the_same_number_of_sentences_per_range(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "TEST_SENTENCES", 3)
    monkeypatch.setattr(experiment, "BEYOND_SENTENCES", 2)
    write_built_in(tmp_path / "book", pairs=3000)
    files = built_in_files(tmp_path / "book")
    for name, ranges, each in (("test", TEST_RANGES, 3), ("beyond", BEYOND_RANGES, 2)):
        lengths = [len(pair.source.split()) for pair in read_pairs(*files[name])]
        assert [sum(length in one for length in lengths) for one in ranges] == [each] * len(ranges)
    train = {pair.source for pair in Corpus.of(files["train"])}
    assert not train & {pair.source for name in ("test", "beyond") for pair in read_pairs(*files[name])}
    assert max(len(source.split()) for source in train) <= MAX_WORDS
    everything = replace(planned(tmp_path, "rnn"), train=files["train"])
    edges = [{"low": one.start, "high": one.stop - 1} for one in (*TEST_RANGES, *BEYOND_RANGES)]
    counts = [each["pairs"] for each in trained_lengths(everything, edges)]
    assert sum(counts[: len(TEST_RANGES)]) == 3000
    assert counts[0] > 5 * counts[len(TEST_RANGES) - 1] > 0
    assert counts[len(TEST_RANGES) :] == [0] * len(BEYOND_RANGES)
    before = files["test"][0].stat().st_mtime_ns
    write_built_in(tmp_path / "book", pairs=3000)
    assert files["test"][0].stat().st_mtime_ns == before


def test_settings_that_leave_out_lengths_are_rejected(tmp_path):
    short, whole = (
        replace(planned(tmp_path, "rnn", data={"max_length": limit}), out=tmp_path / f"{limit}", built_in=True)
        for limit in (5, 256)
    )
    for plan in (short, whole):
        preprocess_shared(plan)
    check_built_in(whole)
    check_built_in(replace(short, built_in=False))  # of one's own text, the command tells how many were left out
    with pytest.raises(UsageError, match=r"data.max_length=5 leaves out \d+ pairs of --built-in"):
        check_built_in(short)
