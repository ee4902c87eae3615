"""What can go wrong for a user, in one line each: what, where, why, how to fix it.

Every class carries the exit code of the command line. Mistakes in a call are `ValueError`s as everywhere in Python.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")


class SoftgazeError(Exception):
    """An error whose message is written for the user; the command line prints it without a traceback."""

    exit_code = 1


class UsageError(SoftgazeError, ValueError):
    """A flag, setting or combination that cannot work."""

    exit_code = 2


class DataError(SoftgazeError, ValueError):
    """A file that cannot be read as what it should be; the message names file, line and byte where it can."""

    exit_code = 3


class ResourceError(SoftgazeError, RuntimeError):
    """The machine lacks something: memory, disk space, an optional package."""

    exit_code = 4


class DivergedError(SoftgazeError, ArithmeticError):
    """Numbers went astray: in training beyond cure, or between a model and its export."""

    exit_code = 5


def absent(what: object) -> DataError:
    """The error about a file or folder that is not there."""
    return DataError(f"{what} does not exist; check the spelling and the current folder")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The tail of an error about an unknown name: the nearest known names, or all of them."""
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"


def pick(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """`table[name]`, or a `UsageError` that says what `kind` of thing was asked for and which names are near."""
    if not isinstance(name, str) or name not in table:
        raise UsageError(f"unknown {kind} {name!r}; {did_you_mean(str(name), table)}")
    return table[name]
