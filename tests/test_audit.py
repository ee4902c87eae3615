"""Exact pins of everything, and `make audit`: known holes where its database can be reached, elsewhere "skipped"."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(find_spec("pip_audit") is None, reason="needs pip-audit of the dev extra")
def test_without_the_database_it_says_skipped():
    """The target itself, in this environment, which is set up already; nobody is behind that proxy."""
    words = ["make", "--no-print-directory", "--old-file", "setup-dev", "audit", f"BIN={Path(sys.executable).parent}"]
    nobody = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(words, cwd=ROOT, env=os.environ | nobody, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("audit: skipped, the database did not answer: ")


@pytest.mark.skipif(find_spec("pip_audit") is None, reason="needs pip-audit of the dev extra")
def test_it_reads_every_pin():
    """Without asking anybody: a dry run says how many packages it would look up."""
    words = [sys.executable, "-m", "pip_audit", "--requirement", "constraints.txt", "--no-deps", "--disable-pip"]
    done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    assert f"would have audited {len(pins)} packages" in done.stderr + done.stdout


def test_everything_that_is_asked_for_is_pinned_exactly():
    """By pyproject.toml, extras and tools included; and a pin is never below the floor, which is a security floor."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    pins = dict(re.fullmatch(r"([\w.-]+)==(\S+)", line).groups() for line in lines)
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    extras = project["project"]["optional-dependencies"].values()
    for text in [*project["project"]["dependencies"], *(each for extra in extras for each in extra)]:
        wanted = Requirement(text)
        if wanted.name != "softgaze":
            assert wanted.specifier.contains(pinned[canonicalize_name(wanted.name)]), text
