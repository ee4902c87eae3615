"""The generated reference pages are complete."""

from dataclasses import fields

import pytest

from docs.reference import openapi_description, pages, plain, table
from softgaze import cli, errors
from softgaze.config import setting_names
from softgaze.models import MODELS, model_options
from softgaze.serve.settings import Settings


@pytest.fixture(scope="module")
def texts():
    return pages()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_option_is_listed(texts, name):
    section = texts["cli.md"].partition(f"\n## softgaze {name}\n")[2].partition("\n## ")[0]
    names = [option for parameter in cli.command(name).params for option in parameter.opts]
    missing = {option for option in names if option.startswith("--") and f"`{option}`" not in section}
    assert missing <= {"--help"}


def test_every_setting_and_option_is_listed(texts):
    options = {f"model.options.{name}" for model in MODELS.values() for name in model_options(model)}
    for name in {*setting_names(), *options} - {"model.options"}:
        assert f"| `{name}` |" in texts["settings.md"]


def test_every_route_is_listed(texts):
    routes = [
        f"{method.upper()} {path}" for path, methods in openapi_description()["paths"].items() for method in methods
    ]
    assert len(routes) > 10
    assert all(f"## {route}\n" in texts["http-api.md"] for route in routes)


def test_every_exit_code_is_listed(texts):
    for error in errors.SoftgazeError.__subclasses__():
        assert f"| `{error.exit_code}` | `{error.__name__}` |" in texts["exit-codes.md"]


def test_every_variable_of_the_server_is_listed(texts):
    for field in fields(Settings):
        assert ("option" in field.metadata) <= (f"`SOFTGAZE_{field.name.upper()}`" in texts["environment.md"])


def test_markdown_is_escaped():
    assert table(["a"], [["b|c"]]) == "| a |\n| --- |\n| b\\|c |"
    assert plain("a_b\n *c* `d_e`") == r"a\_b \*c\* `d_e`"
