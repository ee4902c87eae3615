import json
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bundles import make_bundle, tiny_bundle
from commands import run
from softgaze.bundle import WEIGHTS, Bundle
from softgaze.cli import app
from softgaze.cli.info import fact_rows
from softgaze.errors import DataError


def info(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["info", *arguments])
    if result.exception:
        raise result.exception
    return result.stdout


def test_everything_is_shown():
    written, bundle = info(str(tiny_bundle())), Bundle.open(tiny_bundle())
    assert "en → ko" in written
    assert "transformer, tiny" in written
    assert "12,345" in written
    for name, entry in bundle.files.items():
        assert name in written
        assert f"{entry['bytes']:,}" in written
        assert entry["sha256"][:12] in written


def test_json_holds_the_same():
    record, bundle = json.loads(info(str(tiny_bundle()), "--json")), Bundle.open(tiny_bundle())
    assert record["facts"] == bundle.facts
    assert record["files"] == bundle.files
    assert (record["arch"], record["source_language"], record["max_length"]) == ("transformer", "en", 12)
    assert record["vocabulary"]["source"] == len(bundle.tokenizers.source)


def test_parameters_are_those_of_the_model():
    counted = sum(each.numel() for each in Bundle.open(tiny_bundle()).model().parameters())
    assert json.loads(info(str(tiny_bundle()), "--json"))["parameters"] == counted
    assert f"{counted:,}" in info(str(tiny_bundle()))


def test_it_works_without_torch():
    program = (
        f"import sys; sys.argv = ['softgaze', 'info', {str(tiny_bundle())!r}]; from softgaze.cli import main\n"
        "try: main()\n"
        "except SystemExit as left: sys.exit(left.code or 'torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_damaged_file_is_named(tmp_path):
    shutil.copytree(tiny_bundle(), tmp_path / "m")
    with (tmp_path / "m" / WEIGHTS).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x55")
    with pytest.raises(DataError, match=WEIGHTS):
        info(str(tmp_path / "m"))


def test_any_facts_can_be_shown():
    numbers = {"a_b": 1234567, "small": 0.00012345, "large": 1234.5}
    facts = {
        **numbers,
        "none": None,
        "inner": {"deep": {"x": [1.5, {"k": False}]}},
        "empty": {},
        "zero": 0,
        "no": False,
    }
    assert list(fact_rows(facts)) == [
        ("  a b", "1,234,567"),
        ("  small", "0.0001234"),
        ("  large", "1,234.50"),
        ("  inner", ""),
        ("    deep", ""),
        ("      x", "1.5, k no"),
        ("  zero", "0"),
        ("  no", "no"),
    ]
    assert list(fact_rows({})) == []


def test_the_engine_that_will_run_is_named_with_the_reason(tmp_path):
    path = make_bundle(tmp_path / "model")
    before = json.loads(run(tmp_path, "info", "model", "--json").stdout)["runs_on"]
    assert before["engine"] == "ctranslate2"
    assert "converts" in before["reason"]
    assert run(tmp_path, "translate", "model", "the dog runs.").returncode == 0
    assert str(path / ".engines") in run(tmp_path, "info", path).stdout
    assert (
        "arch conv" in run(tmp_path, "info", make_bundle(tmp_path / "conv", arch="conv", options={"width": 16})).stdout
    )
