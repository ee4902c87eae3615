"""The page about the Python API has every public name, and no parameter, field or member that does not exist."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import softgaze

PAGE = (Path(__file__).parents[2] / "docs/reference/python-api.md").read_text(encoding="utf-8")
FUNCTIONS = ["load", "train", "build_model", "attend", "MultiHeadAttention", "SearchOptions"]
CLASSES = ["Translator", "Translation", "Attention", "Alignment"]


def section(name):
    """Return the part of the page below a heading with this name."""
    [text] = [
        each for each in re.split(r"^##+ ", PAGE, flags=re.MULTILINE) if name in each.partition("\n")[0].split(", ")
    ]
    return text.partition("```")[0]


def first_cells(name):
    """Return the names in the first column of a table."""
    cells = re.findall(r"^\| (`.*?) \|", section(name), re.MULTILINE)
    return [found for cell in cells for found in re.findall(r"`(\w+)", cell)]


def test_every_public_name_is_on_the_page():
    assert not [name for name in softgaze.PUBLIC if name not in PAGE]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_listed(name):
    parameters = [*inspect.signature(getattr(softgaze, name)).parameters]
    assert sorted(first_cells(name)) == sorted(parameters)


def test_every_default_of_a_search_is_listed():
    for field in fields(softgaze.SearchOptions):
        default = '""' if field.default == "" else str(field.default)
        assert f"| `{field.name}` | {default} |" in PAGE


@pytest.mark.parametrize("name", CLASSES)
def test_every_listed_member_exists(name):
    kind = getattr(softgaze, name)
    members = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    assert len(first_cells(name)) >= 4
    assert {*first_cells(name)} <= members


@pytest.mark.parametrize(
    "function",
    [
        softgaze.load,
        softgaze.train,
        softgaze.build_model,
        softgaze.attend,
        softgaze.Translator.translate,
        softgaze.Translation.what_if,
    ],
    ids=lambda function: function.__qualname__,
)
def test_the_docstring_describes_every_parameter(function):
    """In the form of numpydoc."""
    section = inspect.getdoc(function).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    named = re.findall(r"^\**(\w[\w, ]*)$", section, re.MULTILINE)
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    assert [name for row in named for name in row.split(", ")] == parameters
