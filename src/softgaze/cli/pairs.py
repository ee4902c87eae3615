"""Options that take two files and may be repeated: `--train a.en a.de --train b.en b.de`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from softgaze.errors import UsageError

TWO_FILES = ("--train", "--dev")


class PairCommand(TyperCommand):
    """A command whose pair options are spread before they are parsed, since Typer has no repeatable pairs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--train A B` becomes `--train A --train B`."""
        rest: list[str] = super().parse_args(ctx, spread(args))
        return rest


def spread(arguments: Sequence[str]) -> list[str]:
    """Name a pair option again before its second file."""
    result: list[str] = []
    for place, argument in enumerate(arguments):
        option = arguments[place - 2] if place >= 2 else ""
        if option in TWO_FILES and not argument.startswith("-"):
            result.append(option)
        result.append(argument)
    return result


def in_pairs(option: str, files: Sequence[Path] | None) -> list[tuple[Path, Path]]:
    """Files two by two."""
    names = list(files or [])
    if len(names) % 2:
        raise UsageError(f"{option} takes two files, a source and a target, not {names[-1]} alone")
    return list(zip(names[::2], names[1::2], strict=True))
