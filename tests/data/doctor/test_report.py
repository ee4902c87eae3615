"""Reports: few examples, safe to print, and the worst finding decides the exit code."""

from pathlib import Path

import pytest

from data.doctor.toys import found, save
from softgaze.data.corpus import Pair
from softgaze.data.doctor import Example, Finding, Level, Report, examine
from softgaze.data.doctor.report import printable


def test_at_most_five_examples_and_no_control_characters(tmp_path: Path) -> None:
    report = examine(save(tmp_path, [Pair(f"[bold]abc {n}\x1b[31m.", f"klm {n}.") for n in range(40)]))
    finding = found(report, "control")
    assert finding.count == 40
    assert len(finding.examples) == 5
    assert "\\x1b" in finding.examples[0].text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb", "a\\tb"),
        ("a\u00a0b", "a b"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("\u202ex", "\\u202ex"),
        ("a" * 80, "a" * 69 + "…"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_place_is_said_in_words() -> None:
    assert Example("", 1200, None, "").place == "line 1,200"
    assert Example("t.en", 2, 3456, "").place == "t.en, line 2, byte 3,456"


@pytest.mark.parametrize(("levels", "code"), [([], 0), (["note", "warning"], 0), (["note", "fatal", "note"], 3)])
def test_only_what_would_stop_training_is_a_failure(levels: list[Level], code: int) -> None:
    findings = tuple(Finding("x", level, 1, "message") for level in levels)
    report = Report(("t.en", "t.xx"), 0, 0, None, None, findings)
    assert report.exit_code == code
    assert list(report.lines()) == ([f"{level}: message" for level in levels] or ["nothing to complain about"])
