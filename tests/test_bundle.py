import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save

from bundles import SMALL, describe, lines, make_bundle, tiny_bundle, tokenizer
from softgaze.atomic_io import sha256_of
from softgaze.bundle import (
    CONFIG,
    DETECTOR,
    JOINT,
    MANIFEST,
    SOURCE,
    TARGET,
    WEIGHTS,
    Bundle,
    Tokenizers,
    add_facts,
    save_bundle,
    write_manifest,
)
from softgaze.data.tokenizer import train_tokenizer
from softgaze.errors import DataError, SoftgazeError

FILES = (CONFIG, WEIGHTS, JOINT, DETECTOR)


@pytest.fixture
def bundle(tmp_path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(tiny_bundle(), tmp_path / "bundle"))


def sign(path: Path, name: str) -> None:
    """Make the manifest agree with a changed file, as a forger would."""
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["files"][name] = {"sha256": sha256_of(path / name), "bytes": (path / name).stat().st_size}
    write_manifest(path, manifest)


def change_manifest(path: Path, **changes: object) -> None:
    manifest = json.loads((path / MANIFEST).read_text())
    write_manifest(path, {**manifest, **changes})


# --- saving and opening


def test_what_is_saved_is_what_is_opened(tmp_path):
    both = Tokenizers(tokenizer(), tokenizer())
    model = describe().build(both)
    save_bundle(tmp_path / "a" / "b", model, describe(), both, None, {"steps": 3, "name": "한국어"})
    opened = Bundle.open(tmp_path / "a" / "b")
    assert opened.description == describe()
    assert opened.facts == {"steps": 3, "name": "한국어"}
    assert opened.detector is None
    assert opened.tokenizers.joint
    assert opened.tokenizers.source.model == tokenizer().model
    for name, value in opened.model().named_parameters():
        assert torch.equal(value, model.get_parameter(name))


def test_two_vocabularies_stay_two(tmp_path):
    two = Tokenizers(train_tokenizer(lines("en")), train_tokenizer(lines("ko")))
    description = describe(arch="rnn-luong", options={"width": 16, "tie": "output"})
    save_bundle(tmp_path, description.build(two), description, two, None, {})
    assert sorted(Bundle.open(tmp_path).files) == sorted([CONFIG, WEIGHTS, SOURCE, TARGET])
    opened = Bundle.open(tmp_path).tokenizers
    assert not opened.joint
    assert (opened.source.model, opened.target.model) == (two.source.model, two.target.model)


def test_a_bundle_has_a_detector_and_a_model_in_evaluation_mode():
    opened = Bundle.open(tiny_bundle())
    assert next(iter(opened.detector.detect("작은 고양이"))) == "ko"
    assert not opened.model().training


def test_saving_again_replaces_the_bundle(tmp_path):
    make_bundle(tmp_path)
    make_bundle(tmp_path, max_length=77)
    assert Bundle.open(tmp_path).description.max_length == 77
    assert not list(tmp_path.glob(".*"))


def test_a_fact_can_be_added_and_nothing_else_changes(tmp_path):
    path = make_bundle(tmp_path / "model")
    before = Bundle.open(path)
    add_facts(path, {"attention": {"layer": 1}})
    after = Bundle.open(path)
    assert after.facts == before.facts | {"attention": {"layer": 1}}
    assert (after.files, after.description) == (before.files, before.description)


def test_nothing_but_the_named_files_is_written():
    assert {path.name for path in tiny_bundle().iterdir()} - {".engines"} == {*FILES, MANIFEST}


# --- rejected bundles: tests/faults flips, cuts and forges every file


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(bundle, name):
    (bundle / name).unlink()
    with pytest.raises(DataError, match=f"{name}: is listed in {MANIFEST} but is missing"):
        Bundle.open(bundle)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_is_refused_with_both_versions(bundle, version):
    change_manifest(bundle, format=version)
    with pytest.raises(DataError, match=f"format {version}; softgaze .* reads format 1"):
        Bundle.open(bundle)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": 1}', '{"format": 1, "files": {}}', "\udcff"])
def test_a_manifest_that_is_none_is_refused(bundle, text):
    (bundle / MANIFEST).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataError, match="is not a softgaze manifest"):
        Bundle.open(bundle)


def test_a_path_without_bundle_is_rejected(tmp_path):
    (tmp_path / "file").touch()
    for name in ("nothing", "file"):
        with pytest.raises(DataError, match="no such model directory"):
            Bundle.open(tmp_path / name)
    with pytest.raises(DataError, match=f"contains no {MANIFEST}"):
        Bundle.open(tmp_path)


@pytest.mark.parametrize("text", ["", "arch: [", "- a", "arch: rnn", "just text"])
def test_a_config_that_describes_no_model_is_refused(bundle, text):
    (bundle / CONFIG).write_text(text)
    sign(bundle, CONFIG)
    with pytest.raises(DataError, match=f"{CONFIG}: does not describe a model"):
        Bundle.open(bundle)


def test_yaml_cannot_run_anything(bundle, tmp_path):
    (bundle / CONFIG).write_text(f"!!python/object/apply:os.mkdir ['{tmp_path / 'trap'}']")
    sign(bundle, CONFIG)
    with pytest.raises(DataError, match=CONFIG):
        Bundle.open(bundle)
    assert not (tmp_path / "trap").exists()


# --- weights


@pytest.mark.parametrize("options", [{"encoder_layers": 2}, {"width": 32}, {"feed_forward": "swiglu"}])
def test_the_weights_of_another_model_are_refused(bundle, tmp_path, options):
    other = make_bundle(tmp_path / "other", options={**SMALL, **options})
    shutil.copy(other / WEIGHTS, bundle / WEIGHTS)
    sign(bundle, WEIGHTS)
    with pytest.raises(DataError, match=f"{WEIGHTS}: "):
        Bundle.open(bundle).model()


def test_a_missing_parameter_is_refused(bundle):
    tensors = load_file(bundle / WEIGHTS)
    tensors.pop(next(iter(tensors)))
    (bundle / WEIGHTS).write_bytes(save(tensors))
    sign(bundle, WEIGHTS)
    with pytest.raises(DataError, match="the weights of another model"):
        Bundle.open(bundle).model()


def test_a_checkpoint_of_torch_is_no_weights_file(bundle):
    torch.save({"weight": torch.ones(2)}, bundle / WEIGHTS)
    sign(bundle, WEIGHTS)
    with pytest.raises(DataError, match="cannot be read as safetensors"):
        Bundle.open(bundle).model()


def test_an_unknown_arch_is_refused_with_the_nearest(tmp_path, bundle):
    (bundle / CONFIG).write_text((bundle / CONFIG).read_text().replace("transformer", "transfomer"))
    sign(bundle, CONFIG)
    with pytest.raises(SoftgazeError, match="transformer"):
        Bundle.open(bundle).model()
