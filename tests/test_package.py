"""The wheel, built and installed as a user would have it: in a clean environment that holds nothing else of ours."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import softgaze

ROOT = Path(__file__).parents[1]
EXTRAS = {"train", "plots", "onnx", "serve", "vision", "scale", "tensorboard", "docs", "dev", "all"}
BASE = {"numpy", "sentencepiece", "sacrebleu", "pydantic", "typer", "rich", "pyyaml", "ctranslate2"}


def run(*command, **options):
    """Without this process's PYTHONPATH, which would let the work tree in."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=clean, **options)
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
    """A fresh virtual environment with the wheel alone. Nothing is downloaded.

    The base requirements are lent by this environment through a .pth line. Python reads no .pth files of a place added
    that way, so an editable install of softgaze beside them stays invisible.
    """
    folder = tmp_path_factory.mktemp("clean") / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheel)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_the_installed_program_tells_the_version_of_the_source(environment, tmp_path):
    assert run(environment / "bin" / "softgaze", "--version", cwd=tmp_path) == f"softgaze {softgaze.__version__}"
    assert run(environment / "bin" / "python", "-m", "softgaze", "--version", cwd=tmp_path).endswith(
        softgaze.__version__
    )


def test_what_was_run_is_what_was_installed(environment, tmp_path):
    where = run(environment / "bin" / "python", "-c", "import softgaze; print(softgaze.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(environment)


LOADED = """
import sys
from importlib.metadata import packages_distributions
import softgaze.cli
owners = packages_distributions()
names = {name.partition(".")[0] for name in sys.modules}
print(*{owner for name in names for owner in owners.get(name, ())})
"""


def closure(names):
    """Distributions and all they require, extras left out."""
    found, waiting = set(), set(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        needs = [Requirement(line) for line in requires(name) or ()]
        waiting |= {canonicalize_name(need.name) for need in needs if need.marker is None or need.marker.evaluate()}
    return found


def test_the_command_line_needs_nothing_but_the_base_requirements(environment, tmp_path):
    """The environment lends more than a base install has, so what is loaded must be counted."""
    loaded = {
        canonicalize_name(name) for name in run(environment / "bin" / "python", "-c", LOADED, cwd=tmp_path).split()
    }
    assert loaded - {"softgaze"} <= closure(BASE)


def test_the_wheel_holds_the_package_its_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    information = f"softgaze-{softgaze.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"softgaze", information}
    assert {"softgaze/py.typed", f"{information}/licenses/LICENSE"} <= set(names)
    assert not [name for name in names if "test" in name or "__pycache__" in name]


def test_every_module_of_the_source_is_in_the_wheel(wheel):
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert source <= set(zipfile.ZipFile(wheel).namelist())


def metadata(wheel):
    return message_from_bytes(zipfile.ZipFile(wheel).read(f"softgaze-{softgaze.__version__}.dist-info/METADATA"))


def requirements(wheel, extra=None):
    """Names of what the base install, or an extra, asks for."""
    lines = metadata(wheel).get_all("Requires-Dist")
    chosen = [line for line in lines if (f"extra == '{extra}'" in line if extra else "extra ==" not in line)]
    return {line.split(";")[0].split(">")[0].split("[")[0].strip() for line in chosen}


def test_the_metadata_says_what_a_user_must_know(wheel):
    assert metadata(wheel)["Requires-Python"] == ">=3.11"
    assert metadata(wheel)["License-Expression"] == "Apache-2.0"
    assert set(metadata(wheel).get_all("Provides-Extra")) == EXTRAS


def test_the_base_install_runs_exported_models_and_is_small(wheel):
    assert requirements(wheel) == BASE


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_every_extra_asks_for_something(wheel, extra):
    assert requirements(wheel, extra)


def test_all_is_everything_a_user_runs(wheel):
    for_users = EXTRAS - {"all", "dev", "docs", "scale"}
    assert requirements(wheel, "all") == set().union(*(requirements(wheel, extra) for extra in for_users))
