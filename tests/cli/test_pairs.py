"""Pair options take two files each and repeat, wherever they stand on the line."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from softgaze.cli.pairs import PairCommand, in_pairs, spread
from softgaze.errors import UsageError

names = st.text("abc./_-", min_size=1, max_size=4).filter(lambda name: not name.startswith("-"))
parts = st.one_of(
    st.tuples(st.sampled_from(["--train", "--dev"]), names, names),
    st.tuples(st.sampled_from(["--out", "-o"]), names),
    st.just(("--fresh",)),
)


def parse(arguments):
    """What a command with such options is given."""
    app, heard = typer.Typer(), []

    @app.command(cls=PairCommand)
    def command(
        out: Annotated[str, typer.Option("--out", "-o")] = "",
        train: Annotated[list[str] | None, typer.Option("--train")] = None,
        dev: Annotated[list[str] | None, typer.Option("--dev")] = None,
        fresh: Annotated[bool, typer.Option("--fresh")] = False,
    ) -> None:
        heard.append((in_pairs("--train", train), in_pairs("--dev", dev), out, fresh))

    CliRunner().invoke(app, arguments, catch_exceptions=False, standalone_mode=False)
    return heard[0]


@given(st.lists(parts, max_size=5))
def test_any_line_of_pairs_and_other_options_is_understood(given):
    train, dev = ([part[1:] for part in given if part[0] == option] for option in ("--train", "--dev"))
    out = [part[1] for part in given if part[0] in ("--out", "-o")]
    expected = (train, dev, out[-1] if out else "", ("--fresh",) in given)
    assert parse([word for part in given for word in part]) == expected


def test_pair_options_repeat():
    given = ["--train", "a", "b", "--out", "x", "--train", "c", "d", "--dev", "e", "f"]
    assert spread(given) == [
        *("--train", "a", "--train", "b", "--out", "x", "--train", "c", "--train", "d", "--dev", "e", "--dev", "f")
    ]


@pytest.mark.parametrize("rest", [[], ["--out", "x"], ["-o", "x"], ["--fresh"]])
def test_a_file_alone_is_named(rest):
    with pytest.raises(UsageError, match=r"--train takes two files, a source and a target, not a\.en alone"):
        parse(["--train", "a.en", *rest])


def test_files_two_by_two():
    files = [Path(name) for name in "abcd"]
    assert in_pairs("--train", files) == [(files[0], files[1]), (files[2], files[3])]
    assert in_pairs("--train", None) == in_pairs("--train", []) == []
