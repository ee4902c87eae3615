"""Every requirement is pinned, and `make audit` checks the pins, or skips if its database cannot be reached."""

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
def test_the_audit_is_skipped_without_the_database():
    """Run the make target in this environment; nothing listens at the address of the proxy."""
    command = ["make", "--no-print-directory", "--old-file", "setup-dev", "audit", f"BIN={Path(sys.executable).parent}"]
    unreachable = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(command, cwd=ROOT, env=os.environ | unreachable, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("audit: skipped, the database cannot be reached: ")


@pytest.mark.skipif(find_spec("pip_audit") is None, reason="needs pip-audit of the dev extra")
def test_the_audit_reads_every_pin():
    """A dry run, which needs no network, prints the number of packages."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", "constraints.txt", "--no-deps", "--disable-pip"]
    done = subprocess.run([*command, "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    assert f"would have audited {len(pins)} packages" in done.stderr + done.stdout


def test_every_requirement_is_pinned():
    """Extras and tools included; no pin is below the minimum in pyproject.toml, which excludes known holes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    pins = dict(re.fullmatch(r"([\w.-]+)==(\S+)", line).groups() for line in lines)
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    extras = project["project"]["optional-dependencies"].values()
    for text in [*project["project"]["dependencies"], *(text for extra in extras for text in extra)]:
        requirement = Requirement(text)
        if requirement.name != "softgaze":
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), text
