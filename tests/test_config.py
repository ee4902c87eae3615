"""One schema: nothing unknown passes, everything given arrives, what is left open is filled."""

import pytest

from softgaze.config import (
    DEFAULTS,
    Config,
    differences,
    merge_settings,
    parse_assignments,
    parse_config,
    read_config,
    resolve,
    setting_names,
)
from softgaze.errors import DataError, UsageError
from softgaze.models import MODELS


def test_assignments_become_typed_settings():
    texts = ["training.seed=7", "training.learning_rate=1e-3", "data.joint=false"]
    options = ["score=dot", "shortcut=false", "dropout=1e-1"]
    settings = parse_assignments([*texts, *(f"model.options.{option}" for option in options)])
    config = parse_config(settings)
    assert config.training.seed == 7
    assert config.training.learning_rate == 1e-3
    assert config.data.joint is False
    assert config.model.options == {"score": "dot", "shortcut": False, "dropout": 0.1}


@pytest.mark.parametrize("text", ["seed", "=3", ""])
def test_an_assignment_needs_a_name_and_a_value(text):
    with pytest.raises(UsageError, match="NAME=VALUE"):
        parse_assignments([text])


def test_unknown_settings_are_refused_with_the_nearest_name():
    with pytest.raises(
        UsageError, match=r"unknown setting training\.lerning_rate; did you mean training\.learning_rate"
    ):
        parse_config({"training": {"lerning_rate": 1}})


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"training": {"seed": -1}}, "training.seed"),
        ({"training": {"label_smoothing": 1.5}}, "training.label_smoothing"),
        ({"budget": {"minutes": "soon"}}, "budget.minutes"),
        ({"training": {"schedule": "linear"}}, "training.schedule"),
        ({"training": 3}, "training"),
    ],
)
def test_wrong_values_are_refused_in_one_line_that_names_them(settings, place):
    with pytest.raises(UsageError) as caught:
        parse_config(settings)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)


def test_later_layers_win_and_leave_the_rest():
    assert merge_settings({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"d": 4}) == {"a": {"b": 3, "c": 2}, "d": 4}


@pytest.mark.parametrize("arch", MODELS)
def test_every_arch_and_size_has_defaults(arch):
    for size in MODELS[arch].sizes:
        config = resolve(parse_config({"model": {"arch": arch, "size": size}}))
        assert config.training.learning_rate == DEFAULTS[arch.split("-")[0]][size].learning_rate
        assert config.training.warmup is not None
        assert "dropout" in config.model.options


def test_what_is_given_is_not_overridden():
    given = parse_config({"training": {"learning_rate": 0.5, "warmup": 0}, "model": {"options": {"dropout": 0.0}}})
    resolved = resolve(given)
    assert (resolved.training.learning_rate, resolved.training.warmup) == (0.5, 0)
    assert resolved.model.options["dropout"] == 0.0


@pytest.mark.parametrize(
    ("budget", "start"),
    [({}, "none"), ({"minutes": 5}, "statistics"), ({"epochs": 20}, "statistics"), ({"epochs": 21}, "none")],
)
def test_a_long_run_starts_from_random_weights(budget, start):
    assert resolve(parse_config({"budget": budget})).training.warm_start == start


@pytest.mark.parametrize("arch", MODELS)
def test_transformers_and_rnns_with_attention_start_from_statistics(arch):
    start = resolve(parse_config({"model": {"arch": arch}, "budget": {"minutes": 5}})).training.warm_start
    is_warm = MODELS[arch].has_cross_attention and arch not in ("conv", "captioner")
    assert start == ("statistics" if is_warm else "none")


def test_cosine_needs_an_end():
    with pytest.raises(UsageError, match="--steps"):
        resolve(parse_config({"training": {"schedule": "cosine"}}))


def test_r_drop_needs_dropout():
    settings = {"training": {"r_drop": 5.0}, "model": {"options": {"dropout": 0.0}}}
    with pytest.raises(UsageError, match=r"set model\.options\.dropout above 0"):
        resolve(parse_config(settings))
    assert resolve(parse_config({"training": {"r_drop": 5.0}})).model.options["dropout"] > 0


def test_files_that_are_no_settings_are_refused(tmp_path):
    path = tmp_path / "settings.yaml"
    for content in ("- a\n- b\n", "a: [1", "\x00"):
        path.write_text(content)
        with pytest.raises(DataError, match=r"settings\.yaml"):
            read_config(path)
    path.write_text("")
    assert read_config(path) == {}
    with pytest.raises(DataError, match="cannot be read"):
        read_config(tmp_path / "missing.yaml")


def test_differences_name_what_changed():
    before, after = Config().model_dump(), parse_config({"training": {"seed": 9}}).model_dump()
    assert differences(before, after) == ["training.seed: 1 → 9"]
    assert differences(before, before) == []


def test_every_setting_says_what_it_is():
    for name in setting_names():
        section, key = name.split(".")
        field = Config.model_fields[section].annotation.model_fields[key]
        assert field.description, name
