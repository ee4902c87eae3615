"""Imported Marian models equal a NumPy implementation of Marian; bad files give errors of one line."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from importers.foreign_files import FLOAT32, INTGEMM8, write_marian, write_npz
from importers.marian_reference import PRE_NORM, SETTINGS, SSRU, MarianReference, marian_spm, random_tensors
from softgaze import load
from softgaze.bundle import Bundle
from softgaze.errors import DataError
from softgaze.importers import import_model
from softgaze.importers.marian import read_model, read_table, sinusoids
from softgaze.models import Source
from softgaze.special_tokens import BOS, EOS

TEXT = "abc bcd. cdefg abcdefg"


def rows_of(model: bytes) -> int:
    return int(sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size())


def save(folder: Path, settings: dict[str, Any] | None = None, kind: str = "bin", **options: Any) -> MarianReference:
    """Save a small random model in a new folder; return the reference with the values that were stored."""
    folder.mkdir(exist_ok=True)
    settings = {**SETTINGS, **(settings or {})}
    separate = options.get("tie") in ("output", "none")
    spms = [marian_spm(), marian_spm(1, "cdefghi") if separate else marian_spm()]
    tensors = random_tensors(settings, (rows_of(spms[0]), rows_of(spms[1])), **options)
    if kind == "npz":
        write_npz(folder / "model.enpt.npz", tensors, settings)
    else:
        tensors = write_marian(folder / "model.enpt.bin", tensors, settings, FLOAT32 if kind == "float" else INTGEMM8)
    (folder / "lex.enpt.bin").write_bytes(b"a shortlist")
    if separate:
        (folder / "srcvocab.enpt.spm").write_bytes(spms[0])
        (folder / "trgvocab.enpt.spm").write_bytes(spms[1])
    else:
        (folder / "vocab.enpt.spm").write_bytes(spms[0])
    return MarianReference(tensors, settings)


def largest_difference(bundle: Path, reference: MarianReference) -> float:
    """Compare the logits of every foreign row on random sentences."""
    opened = Bundle.open(bundle)
    model, tokenizers = opened.model(), opened.tokenizers
    orders = [
        {piece: row for row, piece in enumerate(side.vocabulary)} for side in (tokenizers.source, tokenizers.target)
    ]
    folder_pieces = [
        [processor.id_to_piece(row) for row in range(processor.get_piece_size())]
        for processor in (tokenizers.source.sentencepiece, tokenizers.target.sentencepiece)
    ]
    ours = [[order[piece] for piece in pieces] for order, pieces in zip(orders, folder_pieces, strict=True)]
    draw, largest = np.random.default_rng(0), 0.0
    for length in (1, 4, 11):
        source, target = (
            draw.integers(2, len(table), length + extra) for table, extra in zip(ours, (0, 2), strict=True)
        )
        expected = reference.logits([*source, 0], target)
        sources = Source.of([[*(ours[0][row] for row in source), EOS]])
        with torch.inference_mode():
            logits = model(sources, torch.tensor([[BOS, *(ours[1][row] for row in target)]]))[0]
        largest = max(largest, float(np.abs(logits[:, ours[1]].numpy() - expected).max()))
    return largest


@pytest.mark.parametrize("kind", ["npz", "bin", "float"])
@pytest.mark.parametrize(
    ("settings", "tie"),
    [
        (SSRU, "all"),
        ({}, "all"),
        (PRE_NORM, "output"),
        ({"transformer-ffn-activation": "swish", "transformer-postprocess-emb": "nd"}, "source-target"),
        ({"transformer-train-position-embeddings": True, **SSRU}, "none"),
        ({"transformer-heads": 1, "enc-depth": 1, "dec-depth": 1}, "all"),
    ],
    ids=["ssru", "attention", "pre-norm", "swish-embedding-norm", "trained-positions", "one-layer"],
)
def test_logits_equal_marian(tmp_path, settings, tie, kind):
    reference = save(tmp_path / "foreign", settings, kind, tie=tie)
    report = import_model(tmp_path / "foreign", tmp_path / "bundle")
    assert report.largest_difference == 0
    assert largest_difference(tmp_path / "bundle", reference) < 1e-5


def test_a_wrong_layer_would_show(tmp_path):
    reference = save(tmp_path / "foreign", SSRU)
    import_model(tmp_path / "foreign", tmp_path / "bundle")
    reference.tensors["decoder_l1_rnn_bf"] += 0.01
    assert largest_difference(tmp_path / "bundle", reference) > 1e-4


def test_positions_are_those_of_marian():
    """Row 1 of D = 8: frequencies 1, 10000^(-1/3), 10000^(-2/3), 1/10000."""
    rates = np.array([1, 10000 ** (-1 / 3), 10000 ** (-2 / 3), 1e-4])
    np.testing.assert_allclose(
        sinusoids(8)[:3],
        np.concatenate([np.sin(np.outer(range(3), rates)), np.cos(np.outer(range(3), rates))], 1),
        atol=1e-7,
    )


# --- files ------------------------------------------------------------------------------------------------------


def test_an_import_knows_its_languages_and_search_options(tmp_path):
    save(tmp_path / "foreign", SSRU)
    config = {"models": ["model.enpt.bin"], "vocabs": ["vocab.enpt.spm"] * 2, "beam-size": 3, "normalize": 0.5}
    (tmp_path / "foreign" / "config.yml").write_text(yaml.safe_dump(config))
    (tmp_path / "foreign" / "LICENSE").write_text("do as you like")
    model = read_model(tmp_path / "foreign")
    assert (model.source_language, model.target_language) == ("en", "pt")
    assert model.search == {"beam_size": 3, "length_penalty": 0.5}
    assert model.licence == "do as you like"


def test_the_weights_file_itself_can_be_named(tmp_path):
    save(tmp_path / "foreign", SSRU)
    report = import_model(tmp_path / "foreign" / "model.enpt.bin", tmp_path / "bundle")
    assert report.family == "Marian"
    assert load(tmp_path / "bundle").translate(TEXT, max_length=5).text is not None


def test_pieces_of_a_table_get_its_rows(tmp_path):
    """OPUS-MT: rows from vocab.yml, segmentation from SentencePiece files with other ids."""
    spm = marian_spm()
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    pieces = ["</s>", "<unk>", *reversed([processor.id_to_piece(row) for row in range(2, processor.get_piece_size())])]
    folder = tmp_path / "opus-mt-en-de"
    folder.mkdir()
    settings = {**SETTINGS}
    tensors = random_tensors(settings, (len(pieces), len(pieces)))
    write_npz(folder / "opus.model.npz", tensors, settings)
    quoted = [f'"{piece}"' if row % 2 else f"'{piece}'" for row, piece in enumerate(pieces)]
    (folder / "opus.vocab.yml").write_text("".join(f"{piece}: {row}\n" for row, piece in enumerate(quoted)))
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(spm)
    model = read_model(folder)
    assert (model.source_language, model.target_language) == ("en", "de")
    import_model(folder, tmp_path / "bundle")
    bundle = Bundle.open(tmp_path / "bundle")
    source = bundle.tokenizers.source
    (ids,) = source.encode([TEXT])
    assert [source.vocabulary[row] for row in ids] == processor.encode(TEXT, out_type=str)
    embedding = bundle.model().source_embedding.weight.detach().numpy()
    for row, piece in zip(ids, processor.encode(TEXT, out_type=str), strict=True):
        np.testing.assert_array_equal(embedding[row], tensors["Wemb"][pieces.index(piece)])


def test_tables_are_read_as_marian_writes_them(tmp_path):
    (tmp_path / "vocab.yml").write_text(
        '</s>: 0\n"<unk>": 1\n"\\"": 2\n\'\'\'\': 3\n? "a:b"\n: 4\n":": 5\n\u2581the: 6\n'
    )
    assert read_table(tmp_path / "vocab.yml") == ["</s>", "<unk>", '"', "'", "a:b", ":", "\u2581the"]


# --- bad input --------------------------------------------------------------------------------------------------


def refused(path: Path, *words: str) -> None:
    output = path.parent / "never"
    with pytest.raises(DataError) as caught:
        import_model(path, output)
    message = str(caught.value)
    assert "\n" not in message
    assert not output.exists()
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"type": "s2s"}, ["type", "s2s"]),
        ({"transformer-decoder-autoreg": "average-attention"}, ["average-attention"]),
        ({"transformer-decoder-autoreg": "rnn", "dec-cell": "gru"}, ["gru"]),
        ({"transformer-ffn-activation": "gelu"}, ["gelu"]),
        ({"transformer-tied-layers": [1, 1]}, ["transformer-tied-layers"]),
        ({"enc-depth": 7}, ["encoder_l3"]),
        ({"enc-depth": "many"}, ["enc-depth", "many"]),
        ({"dim-emb": 1 << 40}, ["dim-emb"]),
        ({"dim-emb": 32}, ["shape"]),
        ({"transformer-heads": 3}, ["heads"]),
        ({"transformer-train-position-embeddings": True}, ["Wpos"]),
    ],
)
def test_settings_that_contradict_or_are_not_supported(tmp_path, settings, words):
    save(tmp_path / "foreign")
    write_marian(
        tmp_path / "foreign" / "model.enpt.bin",
        random_tensors(SETTINGS, (rows_of(marian_spm()),) * 2),
        {**SETTINGS, **settings},
    )
    refused(tmp_path / "foreign", "model.enpt.bin" if "shape" not in words else "foreign", *words)


def test_missing_and_damaged_vocabularies(tmp_path):
    save(tmp_path / "foreign")
    vocabulary = tmp_path / "foreign" / "vocab.enpt.spm"
    for content in (b"", b"no model", marian_spm()[:100], marian_spm()[:-5]):
        vocabulary.write_bytes(content)
        refused(tmp_path / "foreign", "vocab.enpt.spm")
    vocabulary.unlink()
    refused(tmp_path / "foreign", "no vocabulary")


@pytest.mark.parametrize("text", ["", "a\n", "a: b\n", "a: 99999999999\n", "</s>: 0\n<unk>: 5000\n", "a: 0\nb: 1\n"])
def test_tables_that_are_none(tmp_path, text):
    save(tmp_path / "foreign")
    (tmp_path / "foreign" / "vocab.enpt.spm").unlink()
    (tmp_path / "foreign" / "vocab.yml").write_text(text)
    for side in ("source", "target"):
        (tmp_path / "foreign" / f"{side}.spm").write_bytes(marian_spm())
    refused(tmp_path / "foreign", "vocab.yml")


def test_compressed_weights_are_rejected_with_the_way_to_unpack_them(tmp_path):
    save(tmp_path / "foreign")
    weights = tmp_path / "foreign" / "model.enpt.bin"
    (tmp_path / "foreign" / "model.enpt.bin.gz").write_bytes(gzip.compress(weights.read_bytes()))
    weights.unlink()
    refused(tmp_path / "foreign", "model.enpt.bin.gz", "gunzip")
    refused(tmp_path / "foreign" / "model.enpt.bin.gz", "gunzip")


def test_too_many_pieces_and_several_models(tmp_path):
    save(tmp_path / "foreign")
    tensors = random_tensors(SETTINGS, (7, 7))
    write_marian(tmp_path / "foreign" / "model.enpt.bin", tensors, SETTINGS)
    refused(tmp_path / "foreign", "7 rows")
    write_npz(tmp_path / "foreign" / "other.npz", tensors, SETTINGS)
    refused(tmp_path / "foreign", "several models")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "foreign"
    save(folder, SSRU)
    config = {"models": ["model.enpt.bin"], "vocabs": ["vocab.enpt.spm"] * 2, "beam-size": 3}
    (folder / "config.yml").write_text(yaml.safe_dump(config))
    return folder


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(["model.enpt.bin", "vocab.enpt.spm", "config.yml"]),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_changed_bytes_never_crash_an_import(foreign, tmp_path_factory, name, changes):
    changed = tmp_path_factory.mktemp("changed") / "foreign"
    shutil.copytree(foreign, changed)
    data = bytearray((changed / name).read_bytes())
    for where, value in changes:
        data[int(where * len(data))] = value
    (changed / name).write_bytes(data)
    message = str(changed)
    try:
        tensors = read_model(changed).tensors
        for parameter in ("decoder.0.attention.forget.weight", "encoder.1.feed_forward.outer.bias", "output.bias"):
            assert sum(len(block) for block in tensors[parameter].blocks())
    except DataError as error:
        message = str(error)
    assert "\n" not in message
    assert str(changed) in message


def test_the_alignment_head_is_shown_until_a_map_is_measured(foreign, tmp_path):
    import_model(foreign, tmp_path / "bundle")
    translator = load(tmp_path / "bundle")
    attention = translator.score("abc bcd.", "cdefg abcdefg").attention
    assert (attention.view.layer, attention.view.head) == (1, 0)
    assert "not measured" in attention.description
    measured = translator.with_selected_map([("abc bcd. cd", "cdefg abcdefg cd")]).selected_map
    assert measured.sentences == 1
