import json
import shutil

import pytest

from bundles import lines
from commands import check_error, run
from engines.exported import exported, trained_bundle
from softgaze.bundle import Bundle
from softgaze.engines import export_ctranslate2
from softgaze.engines.export import quantizations


@pytest.fixture
def directory(tmp_path):
    shutil.copytree(trained_bundle(), tmp_path / "model")
    (tmp_path / "dev.en").write_text("".join(f"{line}\n" for line in lines("en", 30)))
    return tmp_path


DEV = ("--dev", "dev.en", "dev.en")


def export(directory, *options):
    return run(directory, "export", "model", "--to", "ctranslate2", "-o", "made", *options)


def test_an_export_is_verified_and_translates_equally(directory):
    result = export(directory, *DEV)
    assert result.returncode == 0, result.stderr
    assert "wrote made: ctranslate2, float32" in result.stdout
    assert "0 of 30 greedy outputs differ" in result.stdout
    proof = Bundle.open(directory / "made").engine["proof"]
    assert (proof["same"], proof["sentences"]) == (30, 30)
    one, other = (run(directory, "translate", name, "--input", "dev.en").stdout for name in ("model", "made"))
    assert one == other
    assert len(one.splitlines()) == 30
    assert sorted(path.name for path in directory.iterdir()) == ["dev.en", "made", "model"]


def test_quantized_weights_are_verified_by_quality(directory):
    result = export(directory, *DEV, "--quantize", "int8", "--allow-drift")
    assert "verified: BLEU" in result.stdout
    assert Bundle.open(directory / "made").engine["proof"]["quality"]["sentences"] == 30


def test_validation_pairs_of_the_model_are_used(directory):
    (directory / "model" / "encoded").mkdir()
    pairs = [(line, line) for line in lines("en", 9)]
    (directory / "model" / "encoded" / "dev.json").write_text(json.dumps(pairs))
    assert "of 9 greedy" in export(directory).stdout


def test_without_pairs_nothing_is_exported_unless_allowed(directory):
    result = export(directory)
    assert (result.returncode, (directory / "made").exists()) == (2, False)
    assert "--dev SRC TGT, or --allow-drift" in result.stderr
    result = export(directory, "--allow-drift")
    assert result.returncode == 0
    assert "not verified" in result.stdout
    assert Bundle.open(directory / "made").engine["proof"] is None


def test_an_export_that_drifts_leaves_nothing_behind(directory, monkeypatch):
    """A fault in the exporter: one matrix a little off."""
    original = export_ctranslate2.to_array
    monkeypatch.setattr(export_ctranslate2, "to_array", lambda tensor: original(tensor) * 1.01)
    result = export(directory, *DEV)
    assert result.returncode == 5
    assert "the exported model differs: log-probabilities differ by up to" in result.stderr
    assert sorted(path.name for path in directory.iterdir()) == ["dev.en", "model"]
    assert export(directory, *DEV, "--allow-drift").returncode == 0


def test_an_existing_export_is_replaced_only_by_force_and_on_success(directory, monkeypatch):
    assert export(directory, *DEV).returncode == 0
    before = (directory / "made" / "manifest.json").read_text()
    assert export(directory, *DEV).returncode == 2

    with monkeypatch.context() as patch:
        patch.setattr(export_ctranslate2, "to_array", lambda tensor: tensor.detach().numpy() * 0)
        assert export(directory, *DEV, "--force").returncode == 5
    assert (directory / "made" / "manifest.json").read_text() == before
    assert export(directory, *DEV, "--force", "--with-weights").returncode == 0
    assert Bundle.open(directory / "made").has_weights
    assert sorted(path.name for path in directory.iterdir()) == ["dev.en", "made", "model"]


def test_mistakes_are_reported(directory):
    exported(directory / "model", directory / "again", "ctranslate2")
    check_error(run(directory, "export", "again", "--to", "ctranslate2", "-o", "made"), 2, "was exported already")
    check_error(run(directory, "export", "nothing", "--to", "ctranslate2", "-o", "made"), 3, "no such model directory")
    check_error(run(directory, "export", "model", "--to", "onyx", "-o", "made"), 2, "'onyx' is not one of")
    check_error(
        run(directory, "export", "model", "--to", "ctranslate2", "--out", "dev.en"),
        2,
        "dev.en: is a file; --out names a directory",
    )


def test_an_unsupported_engine_is_rejected_early(directory, monkeypatch):
    monkeypatch.setattr("softgaze.cli.export.exported_map", lambda *_: pytest.fail("a map was looked for"))
    check_error(
        run(directory, "export", "model", "--to", "onnx", "-o", "made", *DEV), 2, "it can be exported to ctranslate2"
    )
    assert not (directory / "made").exists()


def test_info_describes_an_export(directory):
    exported(directory / "model", directory / "made", "ctranslate2")
    output = run(directory, "info", "made").stdout
    assert "Exported" in output
    assert "ctranslate2/model.bin" in output
    assert json.loads(run(directory, "info", "made", "--json").stdout)["engine"]["precision"] == "float32"


def test_finer_quantizations_are_tried_before_an_export_fails(directory, monkeypatch):
    """Which one passes depends on the model: here the quality that is allowed does."""
    monkeypatch.setattr(
        "softgaze.evaluation.export_parity.BleuChange.is_acceptable", property(lambda change: next(verdicts))
    )
    attempts = quantizations("ctranslate2", "int8")
    verdicts = iter([False, True])
    result = export(directory, *DEV, "--quantize", "int8")
    assert result.returncode == 0, result.stderr
    assert Bundle.open(directory / "made").engine["quantization"] == attempts[1]
    assert attempts[0] in result.stderr
    assert "MB" in result.stderr
    shutil.rmtree(directory / "made")
    verdicts = iter([False] * (len(attempts) + 1))
    result = export(directory, *DEV, "--quantize", "int8")
    assert (result.returncode, (directory / "made").exists()) == (5, False)
