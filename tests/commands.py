"""Run softgaze commands in the process of the tests: fast, and with the errors a user would see."""

import os
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from softgaze.cli import app, describe_error


class Result(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def run(directory, *arguments, stdin=""):
    """Run `softgaze` with these arguments in `directory`."""
    with chdir(directory):
        result = CliRunner().invoke(app, [*map(str, arguments)], input=stdin, standalone_mode=False)
    if result.exception is None:
        return Result(result.return_value or 0, result.stdout, result.stderr)
    message, code = describe_error(result.exception)
    return Result(code, result.stdout, message)


def check_error(result, code, *facts):
    """Assert the exit code, and one line on stderr that contains every fact."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "\n" not in result.stderr.strip()
    for fact in facts:
        assert fact in result.stderr


def slow_writes(seconds):
    """Return environment variables that make fsync and rename slow in a child process, for kills between them."""
    path = [str(Path(__file__).with_name("slow_writes")), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path), "SLOW_WRITES": str(seconds)}
