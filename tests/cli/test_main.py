import inspect
import os
import re
import subprocess
import sys
import threading
import time
from typing import Literal, get_args, get_origin

import pytest
import typer

from bundles import tiny_bundle
from softgaze import __version__, cli
from softgaze.errors import DataError, DivergedError, ResourceError, UsageError

# On a model this small a second thread only waits; and what is flushed must be flushed by us.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "softgaze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, **options)


def call(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    """Run in this process: (exit code, stdout, stderr)."""
    monkeypatch.setattr(sys, "argv", ["softgaze", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return (left.value.code or 0, *capsys.readouterr())


def one_error_line(text: str) -> str:
    assert text.count("\n") == 1
    assert text.startswith("softgaze: error: ")
    return text


# --- help


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_names_the_commands_in_their_order(monkeypatch, capsys, arguments):
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, err) == (0, "")
    assert re.findall(r"^│ ([a-z]+)  ", out, re.MULTILINE) == list(cli.COMMANDS)


def test_help_never_cuts_a_summary(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call(monkeypatch, capsys, "--help")
    for name in cli.COMMANDS:
        summary = inspect.getdoc(cli.command(name).callback).partition("\n")[0]
        assert len(summary) <= 45
        assert re.search(rf"^│ {name} +{re.escape(summary)} +│$", out, re.MULTILINE)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_a_command_fits_80_columns_and_has_an_example(monkeypatch, capsys, name):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call(monkeypatch, capsys, name, "--help")
    lines = [line.rstrip() for line in out.splitlines()]
    assert code == 0
    assert f" Usage: softgaze {name} [OPTIONS]" in out
    assert any(line.startswith(f" softgaze {name}") for line in lines)
    assert all(len(line) <= 80 for line in lines)
    assert not re.search(r"<(bool|path|str|list)", out)  # Python's types
    assert not re.search(r"[^,/]…", out)  # nothing is cut, and N,N,… and s3://… are meant
    for option in [each for each in cli.command(name).params if hasattr(each, "type_descriptor")]:
        is_choice = option.param_type_name == "option" and get_origin(option.type_descriptor.annotation) is Literal
        for choice in get_args(option.type_descriptor.annotation) if is_choice else ():
            assert re.search(rf"(?<![\w-]){re.escape(str(choice))}(?![\w-])", out), choice  # never broken inside
    documentation = inspect.getdoc(cli.command(name).callback)
    for line in documentation.splitlines()[1:]:
        assert not line.strip() or f" {line.strip()}" in lines  # neither wrapped nor taken for markup


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_long_help_has_groups_of_options(name):
    parameters = cli.command(name).params
    options = [each for each in parameters if each.param_type_name == "option"]
    assert sum(each.rich_help_panel is None for each in options) <= 10


def test_version(monkeypatch, capsys):
    assert call(monkeypatch, capsys, "--version") == (0, f"softgaze {__version__}\n", "")


def test_help_imports_nothing_heavy():
    program = (
        "import sys; sys.argv = ['softgaze', '--help']; from softgaze.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'pydantic', 'yaml'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


# --- mistakes


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["trainslate"], "unknown command 'trainslate'; did you mean translate"),
        (["xyzzy"], "unknown command 'xyzzy'; known: "),
        (["translate", "m", "--bem", "3"], "unknown option --bem; did you mean --beam-size"),
        (["--versoin"], "unknown option --versoin; did you mean --version"),
        (["translate"], "missing argument 'MODEL' (see softgaze translate --help)"),
        (["translate", "m", "x", "--beam-size", "many"], "--beam-size"),
        (["translate", "m", "x", "--beam-size", "0"], "--beam-size"),
        (["translate", "m", "x", "--beam-size"], "--beam-size"),
        (["translate", "m", "x", "y"], "y"),
        (["evaluate", "m", "--test", "a"], "--test"),
        (["evaluate", "m"], "--test"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(monkeypatch, capsys, arguments, expected):
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert expected in one_error_line(err)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("bad\nflag"), 2),
        (DataError("x"), 3),
        (ResourceError("x"), 4),
        (DivergedError("x"), 5),
        (OSError(28, "No space left on device"), 4),
        (MemoryError(), 4),
        (KeyError("surprise"), 1),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
    ],
)
def test_every_error_has_its_exit_code_and_at_most_one_line(monkeypatch, capsys, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("softgaze.bundle.Bundle.open", fail)
    found, out, err = call(monkeypatch, capsys, "info", "x")
    assert (found, out) == (code, "")
    if code != 130:
        one_error_line(err)
    assert ("run again with --debug" in err) == isinstance(error, (OSError, MemoryError, KeyError))


@pytest.mark.parametrize("arguments", [["--debug", "info", "x"], ["info", "x", "--debug"], ["info", "--debug", "x"]])
def test_debug_shows_the_traceback_wherever_it_stands(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", ["softgaze", *arguments])
    with pytest.raises(DataError, match="no such model directory"):
        cli.main()


def test_debug_after_two_dashes_is_text():
    assert cli.split_debug(["translate", "m", "--debug", "--", "--debug"]) == (
        ["translate", "m", "--", "--debug"],
        True,
    )
    assert cli.split_debug(["translate", "m", "--", "--debug"]) == (["translate", "m", "--", "--debug"], False)


def test_debug_of_a_real_process_prints_the_traceback(tmp_path):
    result = run("info", str(tmp_path), "--debug")
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "DataError" in result.stderr


def test_a_missing_torch_is_one_line(tmp_path):
    """As in the base install: torch cannot be found."""
    program = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch': raise ModuleNotFoundError(name, name=name)\n"
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'torch' else real(name, *rest)\n"
        "sys.meta_path.insert(0, Without())\n"
        f"sys.argv = ['softgaze', 'translate', {str(tiny_bundle())!r}, 'the dog', '--engine', 'torch']\n"
        "from softgaze.cli import main\n"
        "main()\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (4, "")
    assert "pip install 'softgaze[train]'" in one_error_line(result.stderr)


# --- pipes and signals


def test_a_reader_that_leaves_is_no_error(tmp_path):
    (tmp_path / "in").write_text("the dog\n" * 3000)
    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), "--beam-size", "1", "--window", "10"]
    with (tmp_path / "in").open() as source:
        process = subprocess.Popen(command, stdin=source, env=ALONE, **PIPES)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) in (0, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_leaves_with_130_and_no_traceback():
    import signal

    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), "--window", "1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=ALONE, **PIPES)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"the dog\n")
    process.stdin.flush()
    watchdog = threading.Timer(90, process.kill)  # a program that keeps its answer fails here, and does not hang
    watchdog.start()
    assert process.stdout.readline()  # it is up, and waits for more
    watchdog.cancel()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(rb"(\d+ lines, [^\n]*\n)*", err)  # nothing but the progress that a slow machine reports


# --- phrasebook: the command, not the sentences


def test_the_phrasebook_is_written_and_written_again(monkeypatch, capsys, tmp_path):
    first, again = (call(monkeypatch, capsys, "phrasebook", "-o", str(tmp_path / "p"), "--pairs", "60") for _ in "12")
    assert first == again
    assert first[0] == 0
    assert "train.en" in first[1]


@pytest.mark.parametrize("names", [["notes.txt"], ["train.en", "train.ko"]])
def test_the_phrasebook_never_replaces_the_work_of_others(monkeypatch, capsys, tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("mine")
    code, _, err = call(monkeypatch, capsys, "phrasebook", "-o", str(tmp_path), "--pairs", "60")
    assert code == 2
    assert "--force" in one_error_line(err)
    assert all((tmp_path / name).read_text() == "mine" for name in names)
    assert call(monkeypatch, capsys, "phrasebook", "-o", str(tmp_path), "--pairs", "60", "--force")[0] == 0
