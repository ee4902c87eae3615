import json
import shutil

import pytest

from bundles import lines
from commands import run
from engines.exported import exported, trained_bundle
from softgaze.bundle import Bundle


@pytest.fixture
def place(tmp_path):
    shutil.copytree(trained_bundle(), tmp_path / "model")
    (tmp_path / "dev.en").write_text("".join(f"{line}\n" for line in lines("en", 30)))
    return tmp_path


DEV = ("--dev", "dev.en", "dev.en")


def export(place, *options):
    return run(place, "export", "model", "--to", "ctranslate2", "-o", "made", *options)


def test_a_model_is_exported_proven_and_translates(place):
    ran = export(place, *DEV)
    assert ran.returncode == 0, ran.stderr
    assert "wrote made: ctranslate2, float32" in ran.stdout
    assert "0 of 30 greedy outputs are others" in ran.stdout
    proof = Bundle.open(place / "made").engine["proof"]
    assert (proof["same"], proof["sentences"]) == (30, 30)
    one, other = (run(place, "translate", name, "--input", "dev.en").stdout for name in ("model", "made"))
    assert one == other
    assert len(one.splitlines()) == 30
    assert sorted(path.name for path in place.iterdir()) == ["dev.en", "made", "model"]


def test_rounded_weights_are_proven_by_quality(place):
    ran = export(place, *DEV, "--quantize", "int8", "--allow-drift")
    assert "proof: BLEU" in ran.stdout
    assert Bundle.open(place / "made").engine["proof"]["quality"]["sentences"] == 30


def test_pairs_held_out_in_training_serve_too(place):
    (place / "model" / "encoded").mkdir()
    pairs = [(line, line) for line in lines("en", 9)]
    (place / "model" / "encoded" / "dev.json").write_text(json.dumps(pairs))
    assert "of 9 greedy" in export(place).stdout


def test_without_pairs_there_is_no_proof_and_no_export_unless_allowed(place):
    ran = export(place)
    assert (ran.returncode, (place / "made").exists()) == (2, False)
    assert "give some with --dev SRC TGT, or --allow-drift" in ran.stderr
    ran = export(place, "--allow-drift")
    assert ran.returncode == 0
    assert "not proven" in ran.stdout
    assert Bundle.open(place / "made").engine["proof"] is None


def test_an_export_that_drifts_leaves_nothing_behind(place, monkeypatch):
    """A fault in the exporter: one matrix a little off."""
    from softgaze.engines import to_ctranslate2

    honest = to_ctranslate2.array
    monkeypatch.setattr(to_ctranslate2, "array", lambda values: honest(values) * 1.01)
    ran = export(place, *DEV)
    assert ran.returncode == 5
    assert "the exported model is not the same: log-probabilities differ by up to" in ran.stderr
    assert sorted(path.name for path in place.iterdir()) == ["dev.en", "model"]
    assert export(place, *DEV, "--allow-drift").returncode == 0


def test_what_is_there_is_replaced_only_by_force_and_only_when_all_went_well(place, monkeypatch):
    assert export(place, *DEV).returncode == 0
    before = (place / "made" / "manifest.json").read_text()
    assert export(place, *DEV).returncode == 2
    from softgaze.engines import to_ctranslate2

    with monkeypatch.context() as patch:
        patch.setattr(to_ctranslate2, "array", lambda values: values.detach().numpy() * 0)
        assert export(place, *DEV, "--force").returncode == 5
    assert (place / "made" / "manifest.json").read_text() == before
    assert export(place, *DEV, "--force", "--with-weights").returncode == 0
    assert Bundle.open(place / "made").has_weights
    assert sorted(path.name for path in place.iterdir()) == ["dev.en", "made", "model"]


def test_what_cannot_be_exported_is_one_line(place):
    exported(place / "model", place / "again", "ctranslate2")
    ran = run(place, "export", "again", "--to", "ctranslate2", "-o", "made")
    assert (ran.returncode, "was exported already" in ran.stderr) == (2, True)
    ran = run(place, "export", "nothing", "--to", "ctranslate2", "-o", "made")
    assert (ran.returncode, "no such model directory" in ran.stderr) == (3, True)
    ran = run(place, "export", "model", "--to", "onyx", "-o", "made")
    assert (ran.returncode, "unknown engine 'onyx'" in ran.stderr) == (2, True)
    ran = run(place, "export", "model", "--to", "ctranslate2", "--out", "dev.en")
    assert (ran.returncode, "dev.en: is a file; --out names a directory" in ran.stderr) == (2, True)


def test_what_an_engine_cannot_run_is_refused_before_anything_takes_time(place, monkeypatch):
    monkeypatch.setattr("softgaze.cli.export.map_to_tell", lambda *_: pytest.fail("a map was looked for"))
    ran = run(place, "export", "model", "--to", "onnx", "-o", "made", *DEV)
    assert (ran.returncode, "it can be exported to ctranslate2" in ran.stderr) == (2, True)
    assert not (place / "made").exists()


def test_info_tells_what_an_export_is(place):
    exported(place / "model", place / "made", "ctranslate2")
    told = run(place, "info", "made").stdout
    assert "Exported" in told
    assert "ctranslate2/model.bin" in told
    assert json.loads(run(place, "info", "made", "--json").stdout)["engine"]["precision"] == "float32"
