"""A bundle of each format that was ever released loads, and translates as it did; or is refused with its version.

Those of other engines are kept too: what they hold is written by somebody else, whose versions change as well.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faults.children import environment
from softgaze.bundle import FORMAT, MANIFEST, Bundle
from softgaze.errors import DataError

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEPT = sorted(path for path in FIXTURES.glob("bundle-*") if path.is_dir())


def test_the_present_format_is_kept_too():
    assert FIXTURES / f"bundle-{FORMAT}" in KEPT


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_an_old_bundle_gives_its_old_translations(path):
    """In a process of its own: CTranslate2 and ONNX Runtime do not share one."""
    assert sum(each.stat().st_size for each in path.rglob("*")) < 200_000
    known = json.loads((FIXTURES / f"{path.name}.json").read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "softgaze", "translate", str(path), "\n".join(known), "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment())
    assert done.stdout.splitlines() == [*known.values()], done.stderr


@pytest.mark.parametrize("version", [FORMAT + 1, 99])
def test_a_bundle_of_the_future_is_refused_with_its_version(tmp_path, version):
    """Whatever else its manifest holds, which this version cannot know."""
    place = Path(shutil.copytree(FIXTURES / f"bundle-{FORMAT}", tmp_path / "future"))
    manifest = {**json.loads((place / MANIFEST).read_text()), "format": version, "new": {"thing": 1}}
    (place / MANIFEST).write_text(json.dumps(manifest) + "\n")
    with pytest.raises(DataError, match=f"format {version}; softgaze .* reads format {FORMAT}"):
        Bundle.open(place)
