"""`softgaze settings`: complete, and what training uses."""

import inspect
import json

import pytest

from commands import check_error, run
from softgaze.cli.settings import OPTION_HELP, all_settings, option_choices
from softgaze.config import parse_config, resolve, setting_names
from softgaze.models import MODELS, model_options

SIZES = ("tiny", "small", "base", "big")
every_arch = pytest.mark.parametrize("arch", MODELS)


@every_arch
def test_every_setting_and_option_is_listed_once_with_a_meaning(arch):
    rows = list(all_settings([arch]))
    options = {f"model.options.{name}" for name in model_options(MODELS[arch])}
    assert sorted(row.name for row in rows) == sorted({*setting_names(), *options} - {"model.options"})
    assert all(row.type and row.meaning.endswith(".") for row in rows)


def test_no_meaning_or_choice_is_left_of_an_option_that_is_gone():
    known = {name for model in MODELS.values() for name in model_options(model)}
    assert OPTION_HELP.keys() == known
    assert option_choices().keys() <= known


@pytest.mark.parametrize("size", SIZES)
@every_arch
def test_the_defaults_are_those_of_a_training_run(arch, size):
    defaults = {row.name: row.defaults[arch][size] for row in all_settings([arch])}
    run_settings = resolve(parse_config({"model": {"arch": arch, "size": size}}))
    for name, value in run_settings.training.model_dump().items():
        assert defaults[f"training.{name}"] == value
    for name, value in {**MODELS[arch].sizes[size], **run_settings.model.options}.items():
        assert defaults[f"model.options.{name}"] == value


@every_arch
def test_every_choice_is_accepted_by_the_type_of_the_option(arch):
    for name, parameter in model_options(MODELS[arch]).items():
        if name in option_choices():
            assert parameter.annotation is str
            assert parameter.default is inspect.Parameter.empty or parameter.default in option_choices()[name]


def test_json_and_text_list_the_same_settings(tmp_path):
    records = json.loads(run(tmp_path, "settings", "rnn-luong", "--json").stdout)
    text = run(tmp_path, "settings", "rnn-luong").stdout
    assert [record["name"] for record in records] == [entry.split()[0] for entry in text.split("\n\n")]
    assert {arch for record in records for arch in record["defaults"]} == {"rnn-luong"}


def test_without_an_arch_every_arch_is_listed(tmp_path):
    records = {record["name"]: record for record in json.loads(run(tmp_path, "settings", "--json").stdout)}
    assert list(records["training.learning_rate"]["defaults"]) == list(MODELS)
    assert list(records["model.options.input_feeding"]["defaults"]) == ["rnn-luong"]


def test_an_unknown_arch_is_an_error(tmp_path):
    check_error(run(tmp_path, "settings", "lstm"), 2, "lstm", "rnn-luong")


def test_none_as_a_value_is_a_default_and_an_unset_option_has_none(tmp_path):
    texts = {block.partition(" ")[0]: block for block in run(tmp_path, "settings", "captioner").stdout.split("\n\n")}
    assert "default: none" in texts["model.options.pooling"]
    assert "default:" not in texts["data.image_size"]
