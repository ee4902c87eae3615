"""`softgaze check`: exit codes, output for people and programs, and `--fix`."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from softgaze.cli.check import check
from softgaze.data.corpus import read_pairs, write_lines
from softgaze.errors import DataError, UsageError

app = typer.Typer()
app.command()(check)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "t.en", tmp_path / "t.de"
    write_lines(source, ["a dog runs", "a cat sleeps", "", "a [bold]dog[/bold] runs", "a [bold]dog[/bold] runs"])
    write_lines(target, ["ein Hund rennt", "eine Katze schläft", "leer", "ein Hund rennt", "ein Hund rennt"])
    return source, target


def test_warnings_leave_with_zero(files: tuple[Path, Path]) -> None:
    result = run(*files)
    assert result.exit_code == 0
    assert "5 pairs, 4 of them readable" in result.stdout
    assert "warning: 1 pair: text on one side only" in result.stdout
    assert "line 5: a [bold]dog[/bold] runs | ein Hund rennt" in result.stdout


def test_what_would_stop_training_leaves_with_three(files: tuple[Path, Path]) -> None:
    before = files[1].read_bytes()
    files[1].write_bytes(before + b"caf\xe9\n")
    result = run(*files)
    assert result.exit_code == 3
    assert f"fatal: {files[0]} has 5 lines, {files[1]} 6" in result.stdout
    assert f"line 6, byte {len(before) + 3}: not UTF-8" in result.stdout
    assert run(files[0], files[1].with_name("gone.de")).exit_code == 3


def test_json_is_one_object(files: tuple[Path, Path]) -> None:
    record = json.loads(run(*files, "--json").stdout)
    assert (record["pairs"], record["usable"], record["exit_code"]) == (5, 4, 0)
    assert {finding["code"] for finding in record["findings"]} >= {"one_sided", "duplicate"}
    assert record["source"]["words"]["median"] == 3
    assert record["target"]["language"] == "de"


def test_fix_writes_what_can_be_kept(files: tuple[Path, Path], tmp_path: Path) -> None:
    result = run(*files, "--fix", tmp_path / "clean")
    assert result.exit_code == 0
    assert "wrote 3 pairs" in result.stdout
    assert "1 one-sided" in result.stdout
    assert len(list(read_pairs(tmp_path / "clean.en", tmp_path / "clean.de"))) == 3
    assert json.loads(run(*files, "--json", "--fix", tmp_path / "clean").stdout)["fixed"]["kept"] == 3


def test_fix_makes_a_broken_corpus_trainable(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[0].write_bytes(b"\xef\xbb\xbf" + files[0].read_bytes())
    assert run(*files).exit_code == 3
    assert run(*files, "--fix", tmp_path / "clean").exit_code == 0
    assert run(tmp_path / "clean.en", tmp_path / "clean.de").exit_code == 0


def test_fix_that_cannot_be_is_an_error(files: tuple[Path, Path], tmp_path: Path) -> None:
    write_lines(files[1], ["ein Hund rennt"])
    assert isinstance(run(*files, "--fix", tmp_path / "clean").exception, DataError)
    assert not (tmp_path / "clean.en").exists()


def test_fix_never_writes_over_what_is_checked(files: tuple[Path, Path]) -> None:
    before = files[0].read_bytes()
    result = run(*files, "--fix", files[0].with_suffix(""))
    assert isinstance(result.exception, UsageError)
    assert files[0].read_bytes() == before


def test_tables(tmp_path: Path) -> None:
    write_lines(tmp_path / "t.tsv", ["a dog\tein Hund"])
    write_lines(tmp_path / "t.jsonl", ['{"source": "a cat", "target": "eine Katze"}'])
    result = run("--pairs", tmp_path / "t.tsv", "--pairs", tmp_path / "t.jsonl", "--fix", tmp_path / "out")
    assert result.exit_code == 0
    assert list(read_pairs(tmp_path / "out.source", tmp_path / "out.target"))[1] == ("a cat", "eine Katze")


def test_half_a_corpus_is_a_usage_error(files: tuple[Path, Path]) -> None:
    assert isinstance(run(files[0]).exception, UsageError)
    assert isinstance(run().exception, UsageError)


def test_on_a_terminal_it_is_a_table(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    result = run(*files)
    assert result.exit_code == 0
    assert "median" in result.stdout
    assert "a [bold]dog[/bold] runs" in result.stdout  # not taken for markup
    assert "█" in result.stdout
