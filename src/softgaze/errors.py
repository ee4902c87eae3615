"""Errors shown to users in one line: what is wrong, where, what was expected, how to fix it.

Every class has the exit code of the command line. Programming errors are plain `ValueError`s.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import NoReturn, TypeVar

Entry = TypeVar("Entry")


class SoftgazeError(Exception):
    """An error whose message is written for the user; the command line prints it without a traceback."""

    exit_code = 1


class UsageError(SoftgazeError, ValueError):
    """An invalid option, setting or combination."""

    exit_code = 2


class DataError(SoftgazeError, ValueError):
    """An invalid file; the message names file, line and byte where possible."""

    exit_code = 3


OnError = Callable[[DataError], None]  # receives the errors of parts of the data that are skipped


def raise_error(error: DataError) -> NoReturn:
    """Raise the error: the `OnError` that skips nothing."""
    raise error


class ResourceError(SoftgazeError, RuntimeError):
    """Missing memory, disk space or an optional package."""

    exit_code = 4


class DivergedError(SoftgazeError, ArithmeticError):
    """Training diverged, or an export does not match its model."""

    exit_code = 5


def absent(what: object) -> DataError:
    """Return the error about a missing file or directory."""
    return DataError(f"{what} does not exist; check the spelling and the current folder")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: the nearest known names, or all of them."""
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"


def pick(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """Return `table[name]`, or raise a `UsageError` that names the `kind` and the nearest known names."""
    if not isinstance(name, str) or name not in table:
        raise UsageError(f"unknown {kind} {name!r}; {did_you_mean(str(name), table)}")
    return table[name]
