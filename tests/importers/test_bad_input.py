"""Damaged and hostile files: one line that names the file, nothing executed, nothing written."""

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from importers import foreign
from softgaze.errors import SoftgazeError
from softgaze.importers import import_model


@pytest.fixture
def directory(tmp_path):
    foreign.marian(tmp_path / "original")
    return tmp_path / "original"


def configure(**changes):
    def change(directory):
        path = directory / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def truncate(name, share=0.5):
    return lambda directory: (directory / name).write_bytes(
        (directory / name).read_bytes()[: int(share * (directory / name).stat().st_size)]
    )


def remove(*names):
    return lambda directory: [(directory / name).unlink() for name in names]


def write(name, content):
    return lambda directory: (directory / name).write_bytes(content)


def change_tensor(change):
    def apply(directory):
        tensors = load_file(directory / "model.safetensors")
        change(tensors)
        save_file(tensors, directory / "model.safetensors")

    return apply


class Hostile:
    """Unpickling it would create a file."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def hostile_pickle(directory):
    (directory / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Hostile()}, directory / "pytorch_model.bin")


def hostile_raw_pickle(directory):
    (directory / "model.safetensors").unlink()
    (directory / "pytorch_model.bin").write_bytes(pickle.dumps(Hostile()))


def hostile_index(directory):
    (directory / "model.safetensors").rename(directory.parent / "elsewhere.safetensors")
    index = {"weight_map": {"model.shared.weight": "../elsewhere.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))


def not_a_pickle(directory):
    (directory / "model.safetensors").unlink()
    with zipfile.ZipFile(directory / "pytorch_model.bin", "w") as file:
        file.writestr("archive/data.pkl", b"nonsense")


DAMAGES = {
    "no config": (remove("config.json"), "original"),
    "config is no JSON": (write("config.json", b"{"), "config.json"),
    "config is a list": (write("config.json", b"[]"), "config.json"),
    "deep JSON": (write("config.json", b"[" * 100_000), "config.json"),
    "T5": (configure(model_type="t5"), "'t5'"),
    "no model type": (configure(model_type=None), "config.json"),
    "activation": (configure(activation_function="gelu_new"), "gelu_new"),
    "heads": (configure(encoder_attention_heads=5, decoder_attention_heads=5), "config.json"),
    "width": (configure(d_model=48), "original"),
    "huge width": (configure(d_model=1 << 40), "d_model"),
    "negative width": (configure(d_model=-8), "d_model"),
    "text for width": (configure(d_model="24"), "d_model"),
    "more layers": (configure(encoder_layers=3), "layers.2"),
    "too many layers": (configure(encoder_layers=10**9), "encoder_layers"),
    "too many positions": (configure(max_position_embeddings=10**9), "max_position_embeddings"),
    "larger vocabulary": (configure(vocab_size=500, decoder_vocab_size=500), "embedding"),
    "smaller vocabulary": (configure(vocab_size=9, decoder_vocab_size=9), "vocab.json"),
    "start outside": (configure(decoder_start_token_id=10**6), "1000000"),
    "no vocabulary": (remove("vocab.json"), "vocab.json"),
    "vocabulary is a list": (write("vocab.json", b"[]"), "vocab.json"),
    "rows are text": (write("vocab.json", b'{"a": "b"}'), "vocab.json"),
    "no tokenizer": (remove("source.spm"), "source.spm"),
    "truncated tokenizer": (truncate("target.spm"), "target.spm"),
    "tokenizer is text": (write("source.spm", b"hello" * 100), "source.spm"),
    "empty tokenizer": (write("source.spm", b""), "source.spm"),
    "only tokenizer.json": (
        lambda directory: (write("tokenizer.json", b"{}")(directory), remove("source.spm")(directory)),
        "source.spm: is missing; tokenizer.json",
    ),
    "other heads in the decoder": (configure(decoder_attention_heads=2), "attention_heads differs"),
    "no weights": (remove("model.safetensors"), "original"),
    "truncated weights": (truncate("model.safetensors"), "model.safetensors"),
    "truncated header": (truncate("model.safetensors", 0.001), "model.safetensors"),
    "missing tensor": (change_tensor(lambda tensors: tensors.pop("model.decoder.layers.0.fc1.bias")), "layers.0.fc1"),
    "integer tensor": (
        change_tensor(lambda tensors: tensors.update({"model.shared.weight": torch.zeros(3, 3, dtype=torch.int64)})),
        "model.shared",
    ),
    "NaN": (change_tensor(lambda tensors: tensors["model.shared.weight"].fill_(torch.nan)), "embedding"),
    "transposed": (
        change_tensor(
            lambda tensors: tensors.update(
                {"model.encoder.layers.0.fc1.weight": tensors["model.encoder.layers.0.fc2.weight"].clone()}
            )
        ),
        "feed_forward",
    ),
    "pickle with code": (hostile_pickle, "pytorch_model.bin"),
    "raw pickle with code": (hostile_raw_pickle, "pytorch_model.bin"),
    "broken pickle": (not_a_pickle, "pytorch_model.bin"),
    "index outside": (hostile_index, "model.safetensors.index.json"),
}


@pytest.mark.parametrize(("damage", "names"), DAMAGES.values(), ids=DAMAGES)
def test_bad_input_is_one_line_and_writes_nothing(directory, tmp_path, monkeypatch, damage, names):
    monkeypatch.chdir(tmp_path)
    damage(directory)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SoftgazeError) as caught:
        import_model(directory, tmp_path / "imported", verify=False)
    assert names in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before  # "executed" is not there either


def test_a_missing_path_and_a_used_directory_are_rejected(directory, tmp_path):
    with pytest.raises(SoftgazeError, match="absent"):
        import_model(tmp_path / "absent", tmp_path / "imported")
    with pytest.raises(SoftgazeError, match="not empty"):
        import_model(directory, directory)


def test_an_interrupted_import_leaves_nothing(directory, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("softgaze.importers.write.seal", interrupt)
    with pytest.raises(KeyboardInterrupt):
        import_model(directory, tmp_path / "imported", verify=False)
    assert {path.name for path in tmp_path.iterdir()} == {Path(directory).name}
