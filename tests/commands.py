"""Commands of softgaze run inside the tests' own process: quick, and with the errors a user would see."""

from contextlib import chdir
from typing import NamedTuple

from typer.testing import CliRunner

from softgaze.cli import app, explained


class Ran(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


def run(place, *arguments, stdin=""):
    """`softgaze` with these arguments, in this directory."""
    with chdir(place):
        done = CliRunner().invoke(app, [*map(str, arguments)], input=stdin)
    if done.exception is None:
        return Ran(0, done.stdout, done.stderr)
    if isinstance(done.exception, SystemExit):  # the command chose its code, and has said why
        return Ran(done.exit_code, done.stdout, done.stderr)
    message, code = explained(done.exception)
    return Ran(code, done.stdout, message)
