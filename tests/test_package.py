"""The wheel, built and installed in a clean virtual environment."""

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import softgaze
from bundles import lines
from commands import run as run_command
from engines.exported import exported, trained_bundle

ROOT = Path(__file__).parents[1]
EXTRAS = {"audio", "train", "plots", "onnx", "serve", "vision", "scale", "tensorboard", "docs", "dev", "all"}
BASE = {
    "regex",
    "numpy",
    "sentencepiece",
    "sacrebleu",
    "pydantic",
    "typer",
    "rich",
    "markdown-it-py",
    "pyyaml",
    "ctranslate2",
}


def execute(*command, **options):
    """Run a command without PYTHONPATH, which would import the work tree."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=clean, **options)


def run(*command, **options):
    """Run a command that must succeed and return its output."""
    ran = execute(*command, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """Return a virtual environment with only the wheel and its requirements.

    Nothing is downloaded: the requirements are links to those of this environment.
    """
    folder = tmp_path_factory.mktemp("clean") / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheel)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    for name in closure(BASE):
        for top in {file.parts[0] for file in distribution(name).files} - {"..", "__pycache__"}:
            (site / top).symlink_to(Path(distribution(name).locate_file(top)))
    return folder


def closure(names):
    """Return distributions and their requirements, without extras."""
    complete, waiting = set(), set(names)
    while waiting:
        name = waiting.pop()
        if name in complete:
            continue
        complete.add(name)
        required = [Requirement(line) for line in requires(name) or ()]
        waiting |= {canonicalize_name(one.name) for one in required if one.marker is None or one.marker.evaluate()}
    return complete


def test_the_installed_program_has_the_version_of_the_source(environment, tmp_path):
    programs = environment / "bin" / "softgaze", environment / "bin" / "python"
    assert run(programs[0], "--version", cwd=tmp_path) == f"softgaze {softgaze.__version__}"
    assert run(programs[1], "-m", "softgaze", "--version", cwd=tmp_path).endswith(softgaze.__version__)
    where = run(programs[1], "-c", "import softgaze; print(softgaze.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(environment)


def test_the_base_install_is_small_and_has_no_torch(environment, tmp_path):
    installed = [file.locate() for name in closure(BASE) for file in distribution(name).files]
    size = sum(file.stat().st_size for file in installed if file.exists())
    print(f"\nthe base install has {size / 1e6:,.0f} MB")
    assert size < 400e6
    missing = "import importlib.util as find; print([find.find_spec(name) for name in ('torch', 'safetensors')])"
    assert run(environment / "bin" / "python", "-c", missing, cwd=tmp_path) == "[None, None]"


# --- an exported model without torch


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    exported(trained_bundle(), folder / "model", "ctranslate2")
    (folder / "test.en").write_text("".join(f"{line}\n" for line in lines("en", 5)))
    return folder / "model"


COMMANDS = {
    "translate": ("translate", "model", "the dog runs.", "--num-hypotheses", "2", "--json"),
    "evaluate": ("evaluate", "model", "--test", "test.en", "test.en", "--json"),
    "align": ("align", "model", "test.en", "test.en", "--json"),
    "explain": ("explain", "model", "the dog runs."),
    "explain, as JSON": ("explain", "model", "the dog runs.", "--json"),
    "explain, a given text": ("explain", "model", "the dog runs.", "--target", "a dog runs.", "--json"),
    "explain, occlusion": ("explain", "model", "the dog runs.", "--measure", "occlusion"),
    "explain, a page": ("explain", "model", "the dog runs.", "-o", "map.html"),
    "explain, a picture": ("explain", "model", "the dog runs.", "-o", "map.svg"),
    "explain, a corpus": ("explain", "model", "--corpus", "test.en", "-o", "corpus.html"),
    "info": ("info", "model", "--json"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_exported_model_runs_without_torch(environment, model, command):
    """The output is the same as with torch, except for the speed."""
    output = run(environment / "bin" / "softgaze", *command, cwd=model.parent)
    here = run_command(model.parent, *command)
    assert here.returncode == 0, here.stderr
    if "evaluate" in command:
        output, expected = json.loads(output), json.loads(here.stdout)
        assert {**output, "speed": 0} == {**expected, "speed": 0}
    else:
        assert output.strip() == here.stdout.strip()


PRINT_TORCH_IMPORTED = """
import atexit, sys
atexit.register(lambda: print("torch" in sys.modules, file=sys.stderr))
from softgaze.cli import main
main()
"""


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_exported_model_does_not_import_torch(model, command):
    ran = subprocess.run(
        [sys.executable, "-c", PRINT_TORCH_IMPORTED, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=model.parent,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[-1] == "False"


@pytest.mark.parametrize("measure", ["norms", "rollout", "gradient", "gradient-norm", "contribution"])
def test_a_measure_that_an_export_lacks_is_one_line(model, measure):
    ran = run_command(model.parent, "explain", "model", "the dog runs.", "--measure", measure)
    assert (ran.returncode, ran.stdout) == (2, "")
    [line] = ran.stderr.splitlines()
    assert "--with-weights" in line


def test_a_command_without_torch_reports_one_line(environment, model, tmp_path):
    for command in (
        ("translate", trained_bundle(), "a dog", "--engine", "torch"),
        ("export", trained_bundle(), "--to", "ctranslate2"),
    ):
        where = ("-o", tmp_path / "made", "--allow-drift") if command[0] == "export" else ()
        ran = execute(environment / "bin" / "softgaze", *command, *where)
        assert (ran.returncode, ran.stdout) == (4, "")
        [line] = ran.stderr.splitlines()
        assert "torch is not installed" in line
        assert "pip install 'softgaze[train]'" in line
        assert not (tmp_path / "made").exists()


def test_the_wheel_contains_the_package_and_its_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")} <= set(names)
    information = f"softgaze-{softgaze.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"softgaze", information}
    assert {"softgaze/py.typed", f"{information}/licenses/LICENSE"} <= set(names)
    assert not [name for name in names if "test" in name or "__pycache__" in name]


def metadata(wheel):
    return message_from_bytes(zipfile.ZipFile(wheel).read(f"softgaze-{softgaze.__version__}.dist-info/METADATA"))


def requirements(wheel, extra=None):
    """Return the names of the requirements of the base install, or of an extra."""
    lines = metadata(wheel).get_all("Requires-Dist")
    chosen = [line for line in lines if (f"extra == '{extra}'" in line if extra else "extra ==" not in line)]
    return {line.split(";")[0].split(">")[0].split("[")[0].strip() for line in chosen}


def test_the_metadata_has_python_version_licence_and_extras(wheel):
    assert metadata(wheel)["Requires-Python"] == ">=3.11"
    assert metadata(wheel)["License-Expression"] == "Apache-2.0"
    assert set(metadata(wheel).get_all("Provides-Extra")) == EXTRAS
    assert requirements(wheel) == BASE
    of_extras = {extra: requirements(wheel, extra) for extra in EXTRAS}
    assert all(of_extras.values())
    assert of_extras["all"] == set().union(*(of_extras[extra] for extra in EXTRAS - {"all", "dev", "docs"}))
