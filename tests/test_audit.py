"""`make audit` looks for known holes where it can reach its database, and elsewhere says that it did not."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def audit(**changes):
    """The target itself, in this environment, which is set up already."""
    variables = {"BIN": Path(sys.executable).parent, **changes}
    words = [f"{name}={value}" for name, value in variables.items()]
    return subprocess.run(
        ["make", "--old-file", "setup-dev", "audit", *words], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def test_without_the_database_it_says_skipped():
    done = audit(HOLES="http://127.0.0.1:9/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "audit: skipped, http://127.0.0.1:9/ cannot be reached"


@pytest.mark.skipif(find_spec("pip_audit") is None, reason="needs pip-audit of the dev extra")
def test_it_reads_every_pin():
    """Without asking anybody: a dry run says how many packages it would look up."""
    words = [sys.executable, "-m", "pip_audit", "--requirement", "constraints.txt", "--no-deps", "--disable-pip"]
    done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    assert f"would have audited {len(pins)} packages" in done.stderr + done.stdout
