"""Shared options: pairs of files, choices, search options, names of systems."""

from pathlib import Path
from typing import Annotated, get_args

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from softgaze import cli, translator
from softgaze.alignment import statistical
from softgaze.cli import _options as opt
from softgaze.cli._options import PairCommand, file_pairs, search_options, system_names
from softgaze.config import DEFAULTS
from softgaze.documents.formats import FORMATS
from softgaze.engines.export import TARGETS
from softgaze.errors import UsageError
from softgaze.evaluation.complexity import study
from softgaze.explain.alignment import METHODS
from softgaze.explain.attribution_map import METHODS as ATTRIBUTIONS
from softgaze.explain.recording import KINDS, MEASURES, ROWS
from softgaze.models import MODELS
from softgaze.search.options import SearchOptions

# --- pairs of files

names = st.text("abc./_-", min_size=1, max_size=4).filter(lambda name: not name.startswith("-"))
parts = st.one_of(
    st.tuples(st.sampled_from(["--train", "--dev"]), names, names),
    st.tuples(st.sampled_from(["--out", "-o"]), names),
    st.just(("--fresh",)),
)


def parse(arguments):
    """Return what a command with pair options receives."""
    app, received = typer.Typer(), []

    @app.command(cls=PairCommand)
    def command(
        out: Annotated[str, typer.Option("--out", "-o")] = "",
        train: Annotated[list[str] | None, typer.Option("--train")] = None,
        dev: Annotated[list[str] | None, typer.Option("--dev")] = None,
        fresh: Annotated[bool, typer.Option("--fresh")] = False,
    ) -> None:
        received.append((file_pairs("--train", train), file_pairs("--dev", dev), out, fresh))

    CliRunner().invoke(app, arguments, catch_exceptions=False, standalone_mode=False)
    return received[0]


@given(st.lists(parts, max_size=5))
def test_any_order_of_pairs_and_other_options_is_parsed(given):
    train, dev = ([part[1:] for part in given if part[0] == option] for option in ("--train", "--dev"))
    out = [part[1] for part in given if part[0] in ("--out", "-o")]
    expected = (train, dev, out[-1] if out else "", ("--fresh",) in given)
    assert parse([word for part in given for word in part]) == expected


@pytest.mark.parametrize("rest", [[], ["--out", "x"], ["-o", "x"], ["--fresh"]])
def test_a_single_file_is_an_error(rest):
    with pytest.raises(UsageError, match=r"--train takes two files.*a\.en"):
        parse(["--train", "a.en", *rest])


# --- choices

CHOICES = {
    "arch": (opt.ArchName, MODELS),
    "size": (opt.SizeName, DEFAULTS["transformer"]),
    "kind": (opt.AttentionKind, KINDS),
    "rows": (opt.RowMeaning, ROWS),
    "measure": (opt.MapMeasure, {**MEASURES, **ATTRIBUTIONS}),
    "method": (opt.Symmetrization, METHODS),
    "engine": (opt.ExportEngine, TARGETS),
    "format": (opt.DocumentFormat, FORMATS),
    "precision": (opt.WeightPrecision, {name for target in TARGETS.values() for name in target.precisions}),
}


@pytest.mark.parametrize(("choices", "table"), CHOICES.values(), ids=CHOICES)
def test_the_choices_are_those_that_are_implemented(choices, table):
    assert set(get_args(choices)) == set(table)


# --- search


def test_flags_that_are_not_given_have_the_defaults_of_the_search():
    assert search_options(temperature=None, batch_tokens=None) == SearchOptions()
    assert search_options(num_hypotheses=9).beam_size == 9
    assert search_options(beam_size=2, prefix="a") == SearchOptions(beam_size=2, prefix="a")


@pytest.mark.parametrize("flags", [{"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.5}, {"seed": 7}])
def test_any_sampling_flag_samples(flags):
    options = search_options(num_hypotheses=8, **flags)
    assert options.is_sampling
    assert options.temperature == flags.get("temperature", 1.0)
    with pytest.raises(UsageError, match="--beam-size"):
        search_options(beam_size=2, **flags)


# --- names


def test_every_system_has_its_own_name():
    paths = [Path("runs/a/best"), Path("runs/b/best"), Path("runs/new"), Path("runs/new"), Path(".")]
    result = system_names(paths)
    assert result[:2] == ["runs/a/best", "runs/b/best"]
    assert result[-1] == Path.cwd().name
    assert len(set(result)) == len(result)


# --- defaults that the help describes


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [
        ("align", "threshold", f"{statistical.THRESHOLD:g}"),
        ("translate", "window", str(translator.WINDOW)),
        ("translate", "beam_size", str(opt.DEFAULT_BEAM_SIZE)),
        ("why", "lengths", ",".join(map(str, study.LENGTHS))),
        ("why", "widths", ",".join(map(str, study.WIDTHS))),
    ],
)
def test_a_described_default_is_that_of_the_program(command, name, value):
    [parameter] = [each for each in cli.command(command).params if each.name == name]
    assert parameter.show_default.split(";")[0].removeprefix("that of the model, or ") == value
