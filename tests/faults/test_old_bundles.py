"""A bundle of each format that was ever released loads, and translates as it did; or is refused with its version.

Those of other engines are kept too: what they hold is written by somebody else, whose versions change as well.
"""

import json
import shutil
from pathlib import Path

import pytest

import softgaze
from softgaze.bundle import FORMAT, MANIFEST, Bundle
from softgaze.errors import DataError

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEPT = sorted(path for path in FIXTURES.glob("bundle-*") if path.is_dir())


def test_the_present_format_is_kept_too():
    assert FIXTURES / f"bundle-{FORMAT}" in KEPT


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_an_old_bundle_gives_its_old_translations(path):
    assert sum(each.stat().st_size for each in path.rglob("*")) < 200_000
    known = json.loads((FIXTURES / f"{path.name}.json").read_text(encoding="utf-8"))
    translator = softgaze.load(path, device="cpu")
    for source, target in known.items():
        assert translator.translate(source).text == target


@pytest.mark.parametrize("version", [FORMAT + 1, 99])
def test_a_bundle_of_the_future_is_refused_with_its_version(tmp_path, version):
    """Whatever else its manifest holds, which this version cannot know."""
    place = Path(shutil.copytree(FIXTURES / f"bundle-{FORMAT}", tmp_path / "future"))
    manifest = {**json.loads((place / MANIFEST).read_text()), "format": version, "new": {"thing": 1}}
    (place / MANIFEST).write_text(json.dumps(manifest) + "\n")
    with pytest.raises(DataError, match=f"format {version}; softgaze .* reads format {FORMAT}"):
        Bundle.open(place)
