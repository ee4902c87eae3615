import json
import shutil
import sys

import pytest

from engines.exported import TOLD, exported, lively_bundle, trained_bundle
from softgaze.bundle import Bundle, write_manifest
from softgaze.engines import ENGINES
from softgaze.engines.export import check_exportable, check_output, check_target, export
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.translator import load


@pytest.fixture
def made(tmp_path):
    return exported(trained_bundle(), tmp_path / "made", "ctranslate2")


def test_an_export_is_a_bundle_with_everything_but_the_weights(made):
    before, after = Bundle.open(trained_bundle()), Bundle.open(made)
    assert (after.description, after.facts) == (before.description, before.facts)
    assert after.tokenizers.source.model == before.tokenizers.source.model
    assert after.detector is not None
    assert set(before.files) - set(after.files) == {"model.safetensors"}
    assert {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()} == {
        "manifest.json",
        *after.files,
    }
    assert after.engine["made_from"] == before.files["model.safetensors"]["sha256"]
    assert (after.engine["name"], after.engine["precision"]) == ("ctranslate2", "float32")
    assert after.engine["attention"]["rows"] == TOLD.view.rows
    assert not after.has_weights


def test_with_its_weights_beside_it_torch_shows_everything(tmp_path):
    made = exported(trained_bundle(), tmp_path / "made", "ctranslate2", with_weights=True)
    own, full = load(made, explain_with_torch=False).translate("the dog runs."), load(made).translate("the dog runs.")
    assert own.text == full.text
    assert (own.attention.recording.size("cross"), full.attention.recording.size("cross")) == ((1, 1), (2, 4))
    assert "CTranslate2's own map (layer 1, head 2" in own.attention.description
    assert "from the torch weights" in full.attention.description
    assert full.attention.view == TOLD.view
    assert full.what_if(mask="dog").changes
    assert full.attention.recording.map(full.attention.view) == pytest.approx(
        own.attention.recording.map(own.attention.view), abs=1e-4
    )


@pytest.mark.parametrize("name", ["model.bin", "config.json", "shared_vocabulary.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "altered"])
def test_a_damaged_engine_file_is_refused_by_name_before_it_is_loaded(made, name, damage, monkeypatch):
    file = made / "ctranslate2" / name
    content = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    else:
        content[len(content) // 2] ^= 4
        file.write_bytes(content[:-9] if damage == "cut" else content)
    monkeypatch.setattr("softgaze.engines.ctranslate2_engine.CTranslate2Engine.open", None)
    with pytest.raises(DataError, match=f"ctranslate2/{name}: "):
        load(made)


def test_a_file_that_ctranslate2_cannot_read_is_named(made):
    """One that is as its maker left it, by the manifest, but no model."""
    file = made / "ctranslate2" / "config.json"
    file.write_text("{")
    manifest = json.loads((made / "manifest.json").read_text())
    from softgaze.atomic_io import sha256_of

    manifest["files"]["ctranslate2/config.json"] = {"sha256": sha256_of(file), "bytes": 1}
    write_manifest(made, manifest)
    with pytest.raises(DataError, match="CTranslate2 cannot load it"):
        load(made)


def test_an_engine_that_is_not_there_is_one_line(made, monkeypatch):
    monkeypatch.setattr("softgaze.runtime.find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"ctranslate2 is not installed.*pip install 'ctranslate2'"):
        load(made)


def test_onnx_runtime_in_the_same_process_is_refused(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", object())
    with pytest.raises(ResourceError, match="cannot share a process"):
        load(made)


def test_an_engine_of_the_future_is_refused(made):
    manifest = json.loads((made / "manifest.json").read_text())
    manifest["engine"]["name"] = "abacus"
    write_manifest(made, manifest)
    with pytest.raises(DataError, match="engine 'abacus', which this version does not know"):
        load(made)
    del manifest["engine"]["name"]
    write_manifest(made, manifest)
    with pytest.raises(DataError, match="is not a softgaze manifest"):
        load(made)


def test_every_engine_says_how_it_is_installed():
    assert all(entry.packages and entry.install for entry in ENGINES.values())


def test_targets_and_precisions_are_checked_by_name():
    assert check_target("ctranslate2", None) == "float32"
    assert check_target("ctranslate2", "int8") == "int8"
    with pytest.raises(UsageError, match="did you mean ctranslate2"):
        check_target("ctranslat", None)
    with pytest.raises(UsageError, match="int4 is not supported by ctranslate2"):
        check_target("ctranslate2", "int4")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"arch": "rnn-luong", "options": {"width": 16}},
            "arch rnn-luong cannot .* to ctranslate2; it can be exported to onnx",
        ),
        ({"arch": "rnn", "options": {"width": 16}}, "arch rnn cannot .* to ctranslate2; it can be exported to onnx"),
        ({"arch": "conv", "options": {"width": 16}}, "arch conv cannot be exported to ctranslate2$"),
        (
            {"arch": "captioner", "options": {"width": 16, "encoder": "frames"}},
            "arch captioner cannot .* to ctranslate2; it can be exported to onnx",
        ),
        ({"options": {"window_size": 2}}, "does not support local self-attention"),
    ],
)
def test_what_ctranslate2_cannot_run_is_refused_by_name(tmp_path, changes, message):
    bundle = Bundle.open(lively_bundle(tmp_path / "trained", **changes))
    (tmp_path / "made").mkdir()
    with pytest.raises(UsageError, match=message):
        export(bundle, bundle.model(), tmp_path / "made", "ctranslate2", "float32", None)


def test_only_what_was_trained_is_exported(made):
    with pytest.raises(UsageError, match="was exported already, to ctranslate2"):
        check_exportable(Bundle.open(made))
    check_exportable(Bundle.open(trained_bundle()))


def test_a_place_is_taken_only_if_it_is_free_or_asked_for(made, tmp_path):
    source = trained_bundle()
    check_output(tmp_path / "new", source, force=False)
    (tmp_path / "empty").mkdir()
    check_output(tmp_path / "empty", source, force=False)
    check_output(made, source, force=True)
    with pytest.raises(UsageError, match="exists; add --force"):
        check_output(made, source, force=False)


def test_nothing_but_an_exported_model_is_ever_replaced(tmp_path):
    source = trained_bundle()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").touch()
    (tmp_path / "file").touch()
    shutil.copytree(source, tmp_path / "another")
    for path, message in (
        ("thesis", "nor an exported model"),
        ("another", "nor an exported model"),
        ("file", "is a file"),
        (source, "is the model itself"),
    ):
        with pytest.raises(UsageError, match=message):
            check_output(tmp_path / path, source, force=True)
