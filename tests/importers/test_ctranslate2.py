"""Imported CTranslate2 models and Argos packages give the text and the scores of CTranslate2 itself."""

import json
import shutil
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import torch
from ctranslate2.converters import MarianConverter
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.exported import OPTIONS, lively_bundle, trained_bundle
from importers.foreign_files import write_npz, zip_directory
from importers.marian_reference import PRE_NORM, SETTINGS, marian_spm, random_tensors
from softgaze.bundle import Bundle
from softgaze.engines.export_ctranslate2 import build_spec
from softgaze.errors import DataError
from softgaze.importers import import_model
from softgaze.importers.ctranslate2 import read_model
from softgaze.models import Source
from softgaze.translator import load

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {"positions": "rotary"},
    "learned": {"positions": "learned", "max_length": 60},
    "post-norm": {"residual": "post"},
    "rms, gelu": {"norm": "rms", "feed_forward": "gelu"},
    "swiglu, two key heads": {"feed_forward": "swiglu", "key_heads": 2},
    "nothing tied": {"tie": "none"},
    "output tied": {"tie": "output"},
}
SENTENCES = ["the dog sees a small tree.", "a man runs", "작은 고양이 자요 the red cat sleeps."]
MAX_LENGTH = 24


def write_directory(folder: Path, quantization: str | None = None, eos: bool = False, **options: Any) -> Path:
    """Export a random model of ours to CTranslate2, as its own converters do, with its tokenizer."""
    ours = lively_bundle(folder.parent / f"{folder.name}-ours", options={**OPTIONS, **options})
    return export(Bundle.open(ours), folder, quantization, eos)


def export(bundle: Bundle, folder: Path, quantization: str | None, eos: bool) -> Path:
    spec = build_spec(bundle.model(), bundle.tokenizers, 60, 1, 0)
    spec.config.add_source_eos = eos
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir()
    spec.save(str(folder))
    (folder / "sentencepiece.model").write_bytes(bundle.tokenizers.source.model)
    return folder


def write_marian_directory(folder: Path, **settings: Any) -> Path:
    """Convert a random Marian model with CTranslate2's own converter."""
    settings, spm = {**SETTINGS, **settings}, marian_spm()
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    pieces = [processor.id_to_piece(row) for row in range(processor.get_piece_size())]
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        write_npz(source / "model.npz", random_tensors(settings, (len(pieces),) * 2), settings)
        (source / "vocab.yml").write_text("".join(f"'{piece}': {row}\n" for row, piece in enumerate(pieces)))
        MarianConverter(str(source / "model.npz"), [str(source / "vocab.yml")] * 2).convert(str(folder))
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(spm)
    return folder


def compare(folder: Path, bundle: Path, sentences: list[str], beams: tuple[int, ...] = (1,)) -> float:
    """Compare the tokens found; return the largest difference of log-probabilities.

    With beams only for a trained model: one that never ends a sentence is cut in another way.
    """
    engine = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    translator, opened = load(bundle), Bundle.open(bundle)
    source, target = opened.tokenizers.source, opened.tokenizers.target
    tokens = source.sentencepiece.encode(sentences, out_type=str)
    known = {piece for path in folder.glob("*_vocabulary.json") for piece in json.loads(path.read_text())}
    forbidden = [[piece] for piece in ("<s>", "<pad>") if piece in known]
    for beam in beams:
        theirs = engine.translate_batch(
            tokens, beam_size=beam, max_decoding_length=MAX_LENGTH, disable_unk=True, suppress_sequences=forbidden
        )
        ours = [translator.translate(text, beam_size=beam, max_length=MAX_LENGTH) for text in sentences]
        expected = [result.hypotheses[0] for result in theirs]
        assert [[*each.tokens] for each in ours] == expected
        assert any(expected)
    rows = [*target.text_ids.values()]
    ids = [rows[index] for index in np.random.default_rng(1).integers(len(rows), size=9)]
    scores = engine.score_batch(tokens, [target.pieces(ids)] * len(tokens))
    model, largest = opened.model(), 0.0
    for text, score in zip(sentences, scores, strict=True):
        with torch.inference_mode():
            framed = Source.of([list(source.add_eos(source.encode([text])[0]))])
            log_probs = model(framed, torch.tensor([[*target.start, *ids]])).log_softmax(-1)[0]
        found = [float(log_probs[position, token]) for position, token in enumerate(ids)]
        largest = max(largest, float(np.abs(np.array(found) - score.log_probs[: len(ids)]).max()))
    return largest


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("eos", [False, True], ids=["without eos", "with eos"])
def test_float32_directories_give_the_same_text_and_scores(tmp_path, name, eos):
    folder = write_directory(tmp_path / "foreign", eos=eos, **VARIANTS[name])
    import_model(folder, tmp_path / "bundle")
    assert compare(folder, tmp_path / "bundle", SENTENCES) < 2e-5


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "bfloat16", "int8_float16", "int8_float32"])
def test_quantized_directories_give_the_same_text_and_scores(tmp_path, quantization):
    folder = write_directory(tmp_path / "foreign", quantization)
    import_model(folder, tmp_path / "bundle")
    assert compare(folder, tmp_path / "bundle", SENTENCES) < 1e-4


@pytest.mark.parametrize("changes", [{}, PRE_NORM, {"transformer-ffn-activation": "swish"}])
def test_models_that_start_from_a_zero_vector(tmp_path, changes):
    folder = write_marian_directory(tmp_path / "foreign", **changes)
    import_model(folder, tmp_path / "bundle")
    assert compare(folder, tmp_path / "bundle", ["abc bcd.", "cdefg abcdefg cd"]) < 2e-5


def test_long_texts_without_eos_are_explained_part_by_part(tmp_path):
    folder = write_directory(tmp_path / "foreign")
    import_model(folder, tmp_path / "bundle")
    translation = load(tmp_path / "bundle").translate(" ".join(SENTENCES * 8), beam_size=1, max_length=5)
    words = len(translation.source.split())
    assert len(translation.parts) > 1
    assert translation.attention.recording.source.tokens == translation.source_tokens
    assert translation.occlusion.shape[1] == words
    assert translation.what_if(mask=words - 1).score != translation.score


def test_positions_that_the_file_leaves_out(tmp_path):
    """OpenNMT-tf: CTranslate2 then computes them."""
    folder = write_directory(tmp_path / "foreign", tie="none")  # so that only the positions are aliases
    without_variable(folder / "model.bin", "position_encodings/encodings", aliases=True)
    import_model(folder, tmp_path / "bundle")
    assert compare(folder, tmp_path / "bundle", SENTENCES) < 2e-5


def test_attributes_of_older_files(tmp_path):
    """Revision 4: num_heads, pre_norm and activation once for both sides, no configuration, vocabulary as text."""
    folder = write_directory(tmp_path / "foreign")
    whole = import_model(folder, tmp_path / "whole")
    (folder / "config.json").unlink()
    pieces = json.loads((folder / "shared_vocabulary.json").read_text())
    (folder / "shared_vocabulary.json").unlink()
    (folder / "shared_vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    older = import_model(folder, tmp_path / "older")
    assert older.parameters == whole.parameters
    assert (
        load(tmp_path / "older").translate(SENTENCES[0]).text == load(tmp_path / "whole").translate(SENTENCES[0]).text
    )


def without_variable(path: Path, ending: str, aliases: bool = False) -> None:
    """Remove the variables of model.bin whose name ends so, and with `aliases` all aliases, which must not matter."""
    data, kept = path.read_bytes(), []
    (length,) = struct.unpack_from("<H", data, 4)
    head = 4 + 2 + length + 4
    (count,) = struct.unpack_from("<I", data, head)
    position = head + 4
    for _ in range(count):
        start = position
        (size,) = struct.unpack_from("<H", data, position)
        name = data[position + 2 : position + 1 + size].decode()
        position += 2 + size
        rank = data[position]
        position += 1 + 4 * rank + 1
        (stored,) = struct.unpack_from("<I", data, position)
        position += 4 + stored
        if not name.endswith(ending):
            kept.append(data[start:position])
    end = struct.pack("<I", 0) if aliases else data[position:]
    path.write_bytes(data[:head] + struct.pack("<I", len(kept)) + b"".join(kept) + end)


# --- Argos packages ---------------------------------------------------------------------------------------------


def write_argos(folder: Path, **metadata: Any) -> Path:
    """A package as Argos publishes it: metadata, model and SentencePiece model in one zip."""
    package = folder / "package"
    package.mkdir()
    export(Bundle.open(trained_bundle()), package / "model", "int8", eos=True)
    (package / "model" / "sentencepiece.model").rename(package / "sentencepiece.model")
    (package / "metadata.json").write_text(json.dumps({"from_code": "en", "to_code": "ko", **metadata}))
    (package / "README.md").write_text("made for a test")
    (package / "stanza").mkdir()
    (package / "stanza" / "model.pt").write_bytes(b"never read")
    return zip_directory(package, folder / "translate-en_ko-1_0.argosmodel", "translate-en_ko-1_0")


def test_an_argos_package_gives_the_text_of_its_engine(tmp_path):
    archive = write_argos(tmp_path)
    before = set(Path(tempfile.gettempdir()).glob("softgaze-import-*"))
    report = import_model(archive, tmp_path / "bundle")
    assert report.family == "Argos (CTranslate2)"
    description = Bundle.open(tmp_path / "bundle").description
    assert (description.source_language, description.target_language) == ("en", "ko")
    assert compare(tmp_path / "package" / "model", tmp_path / "bundle", SENTENCES, (1, 4)) < 1e-4
    assert load(tmp_path / "bundle").translate("the dog").text.split()
    assert set(Path(tempfile.gettempdir()).glob("softgaze-import-*")) <= before
    import_model(tmp_path / "package", tmp_path / "unpacked")
    assert (
        load(tmp_path / "unpacked").translate(SENTENCES[0]).text
        == load(tmp_path / "bundle").translate(SENTENCES[0]).text
    )


def test_an_argos_target_prefix_starts_every_target(tmp_path):
    tokenizer = Bundle.open(trained_bundle()).tokenizers.target
    prefix = tokenizer.pieces(tokenizer.encode(["고양이"])[0])[0]
    bundle = tmp_path / "bundle"
    import_model(write_argos(tmp_path, target_prefix=prefix), bundle)
    engine = ctranslate2.Translator(str(tmp_path / "package" / "model"), compute_type="float32", intra_threads=1)
    tokens = Bundle.open(bundle).tokenizers.source.sentencepiece.encode(SENTENCES, out_type=str)
    theirs = engine.translate_batch(
        tokens, beam_size=1, target_prefix=[[prefix]] * len(tokens), max_decoding_length=MAX_LENGTH, disable_unk=True
    )
    ours = load(bundle, engine="torch").translate(SENTENCES, beam_size=1, max_length=MAX_LENGTH)
    assert [[*each.tokens] for each in ours] == [result.hypotheses[0][1:] for result in theirs]
    assert any(each.tokens for each in ours)
    free = load(trained_bundle(), engine="torch").translate(SENTENCES, beam_size=1, max_length=MAX_LENGTH)
    assert [each.tokens for each in free] != [each.tokens for each in ours]


def refused(path: Path, *words: str) -> None:
    before = set(Path(tempfile.gettempdir()).glob("softgaze-import-*"))
    with pytest.raises(DataError) as caught:
        import_model(path, path.parent / "never")
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    assert "softgaze-import-" not in message
    assert not (path.parent / "never").exists()
    assert set(Path(tempfile.gettempdir()).glob("softgaze-import-*")) <= before
    for word in words:
        assert word in message


@pytest.mark.parametrize("name", ["../model.bin", "/model.bin", "a/../../model.bin", "C:\\model.bin", "..\\model.bin"])
def test_names_outside_a_package_are_rejected(tmp_path, name):
    archive = write_argos(tmp_path)
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(name, b"out")
    refused(archive, "outside the package")


def test_zip_bombs_are_rejected(tmp_path):
    archive = tmp_path / "bomb.argosmodel"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("p/metadata.json", "{}")
        file.writestr("p/model/model.bin", bytes(1 << 26))
    refused(archive, "times its size")


def test_damaged_packages_are_rejected(tmp_path):
    archive = write_argos(tmp_path)
    data = archive.read_bytes()
    for length in range(0, len(data), len(data) // 25):
        archive.write_bytes(data[:length])
        refused(archive)
    for content in (b"{", b"[]", b'{"from_code": 5}', b'{"target_prefix": "__never__"}'):
        with zipfile.ZipFile(archive, "w") as file:
            for path in (tmp_path / "package").rglob("*"):
                if path.name != "metadata.json":
                    file.write(path, f"p/{path.relative_to(tmp_path / 'package')}")
            file.writestr("p/metadata.json", content)
        refused(archive, "metadata.json")


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A folder with a package, packed and unpacked."""
    folder = tmp_path_factory.mktemp("package")
    write_argos(folder)
    return folder


CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6)
FILES = ("metadata.json", "sentencepiece.model", "model/model.bin", "model/config.json", "model/shared_vocabulary.json")


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from((None, *FILES)), changes=CHANGES)
def test_changed_bytes_never_crash_an_import(package, tmp_path_factory, name, changes):
    """In the archive, where a checksum finds them, and in each file of an unpacked package."""
    changed = tmp_path_factory.mktemp("changed") / "changed.argosmodel"
    if name is None:
        shutil.copy(package / "translate-en_ko-1_0.argosmodel", changed)
    else:
        shutil.copytree(package / "package", changed)
    file = changed if name is None else changed / name
    data = bytearray(file.read_bytes())
    for where, value in changes:
        data[int(where * len(data))] = value
    file.write_bytes(data)
    message = changed.name
    try:
        for parameter, tensor in read_model(changed).tensors.items():
            if "norm.bias" not in parameter and "embedding_norm" not in parameter:
                assert sum(len(block) for block in tensor.blocks())
    except DataError as error:
        message = str(error)
    assert "\n" not in message
    assert changed.name in message


def test_a_package_without_parts_is_rejected(tmp_path):
    for name in ("metadata.json", "sentencepiece.model", "model/model.bin", "model/shared_vocabulary.json"):
        folder = tmp_path / name.replace("/", "-")
        folder.mkdir()
        write_argos(folder)
        (folder / "package" / name).unlink()
        archive = zip_directory(folder / "package", folder / "less.argosmodel", "p")
        refused(archive, Path(name).name if name.endswith(("bin", "json")) else "SentencePiece")


def test_configurations_that_contradict_the_weights_are_rejected(tmp_path):
    folder = write_directory(tmp_path / "foreign")
    config = json.loads((folder / "config.json").read_text())
    pieces = json.loads((folder / "shared_vocabulary.json").read_text())
    for change, word in (
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon"),
        ({"unk_token": "<never>"}, "<never>"),
        ({"decoder_start_token": "<never>"}, "<never>"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, **change}))
        refused(folder, word)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "shared_vocabulary.json").write_text(json.dumps([*pieces, "more"]))
    refused(folder, "vocabulary")
    (folder / "shared_vocabulary.json").write_text(json.dumps(pieces))
    without_variable(folder / "model.bin", "decoder/layer_1/ffn/linear_1/weight")
    refused(folder, "decoder/layer_1/ffn/linear_1/weight")


@pytest.mark.parametrize("name", ["model.pt", "checkpoint_best.pt"])
def test_pickled_checkpoints_are_rejected_with_the_way_to_convert_them(tmp_path, name):
    torch.save({"opt": object, "model": {}}, tmp_path / name)
    for path in (tmp_path, tmp_path / name):
        refused(path, "ct2-opennmt-py-converter", "ct2-fairseq-converter")
