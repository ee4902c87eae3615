"""Every message of the troubleshooting page is one that the package can print."""

import ast
import re
from pathlib import Path

import pytest

import softgaze
from docs.reference import messages, template, troubleshooting

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def strings():
    """Return all strings of the package."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(softgaze.__file__).parent.rglob("*.py")]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {template(node) for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)}


def matches(message, text):
    """Whether a message is the whole text, where … may stand for anything."""
    return re.fullmatch(re.escape(message).replace("…", ".+"), text) is not None


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_in_the_package(strings, message):
    assert any(matches(message, text) for text in strings)


def test_a_changed_message_is_detected():
    assert matches("…: no such model", "…: no such model")
    assert not matches("…: no such model", "…: no such model directory")


def test_every_anchor_is_unique():
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert len({heading.lower() for heading in headings}) == len(headings) >= 15


def test_every_error_of_the_package_is_in_the_reference():
    """`reference/error-messages.md` lists them; those of the troubleshooting page are linked."""
    listed = {text for _, text, _ in messages()}
    assert len(listed) > 200
    assert len(listed & troubleshooting().keys()) >= 15
