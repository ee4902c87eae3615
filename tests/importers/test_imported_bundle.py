"""An imported bundle is an ordinary one: files, tokenizers, languages, search defaults, explanations."""

import json
from itertools import islice

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from importers import foreign
from softgaze import load
from softgaze.bundle import Bundle
from softgaze.cli import app
from softgaze.cli.translate import LineJob
from softgaze.errors import UsageError
from softgaze.importers import import_model
from softgaze.special_tokens import SPECIAL_TOKENS, UNK

MODELS = {
    "marian": (foreign.marian, {}, (None, None)),
    "marian-multi-target": (foreign.marian, {"languages": ("deu", "fra")}, (None, "fra")),
    "m2m": (foreign.m2m, {}, ("en", "fr")),
    "nllb-legacy": (foreign.nllb, {"legacy": True}, ("eng_Latn", "fra_Latn")),
    "mbart50": (foreign.mbart, {}, ("en_XX", "ko_KR")),
    "mbart25": (foreign.mbart, {"tokenizer": "MBartTokenizer"}, ("en_XX", "ko_KR")),
}


@pytest.fixture(scope="module", params=MODELS)
def translator(request, tmp_path_factory):
    make, options, languages = MODELS[request.param]
    path = tmp_path_factory.mktemp(request.param)
    make(path / "original", **options)
    import_model(path / "original", path / "imported", verify=False)
    opened = load(path / "imported")
    return opened.with_languages(*languages) if any(languages) else opened


SENTENCE = "bad cafe, a deaf dad"


def test_every_way_to_score_agrees(translator):
    translation = translator.translate(SENTENCE, beam_size=1, max_length=10)
    streamed: list[str] = []
    assert translator.translate_stream(SENTENCE, streamed.append).text == "".join(streamed)
    [part] = translation.parts
    from softgaze.explain.scoring import IdPair

    source = translator.bundle.tokenizers.source.strip_eos(part.source_ids)
    [log_probs] = translator.scorer.log_probs([IdPair(source, part.target_ids)])
    assert log_probs.sum() == pytest.approx(translation.log_prob, abs=1e-4)


def test_language_tokens_and_eos_are_sinks(translator):
    attention = translator.translate(SENTENCE, max_length=8).attention
    tokens, word_of = attention.recording.source.tokens, attention.recording.source.word_of
    before, after = translator.bundle.tokenizers.source.frame_pieces("⏎")
    assert list(tokens[: len(before)]) == before
    assert list(tokens[len(tokens) - len(after) :]) == after
    assert [index for index, word in enumerate(word_of) if word < 0] == [
        *range(len(before)),
        *range(len(tokens) - len(after), len(tokens)),
    ]
    assert attention.recording.source.words == tuple(SENTENCE.split())
    words = len(attention.recording.source.words)
    assert all(source < words for source, _ in attention.alignment().links)
    np.testing.assert_allclose(attention.weights.sum(-1), 1, atol=1e-5)


def test_occlusion_leaves_out_words_only(translator):
    target = "fed a bed"
    given = translator.score(SENTENCE, target)
    assert given.occlusion.shape == (len(target.split()), len(SENTENCE.split()))
    shorter = translator.score("bad cafe, a dad", target).log_prob
    assert given.explanation.occlusion_with_eos[:, 3].sum() == pytest.approx(given.log_prob - shorter, abs=1e-3)


def test_a_masked_word_gets_no_attention(translator):
    changed = translator.translate(SENTENCE, max_length=8).what_if(mask="deaf")
    weights = changed.attention.word_weights()
    np.testing.assert_allclose(weights[:, 3], 0, atol=1e-6)
    assert weights[:, 0].sum() > 0


def test_forced_attention_is_on_its_word(translator):
    translation = translator.translate(SENTENCE, max_length=8)
    changed = translation.what_if(attend={0: "deaf"})
    assert changed.attention.word_weights()[0].argmax() == 3


def test_text_never_becomes_a_special_or_language_token(translator):
    source = translator.bundle.tokenizers.source
    special = " ".join(sorted(source.special))
    [ids] = source.encode([f"{special} <s> </s> <pad> __en__ >>fra<< eng_Latn en_XX"])
    assert not set(ids) & (source.special_ids - {UNK})
    assert source.decode(range(len(source))) != ""
    assert not any(piece in source.decode(range(len(source))) for piece in source.special if piece.startswith("__"))


def test_a_piece_without_a_row_is_unknown(translator):
    [ids] = translator.bundle.tokenizers.source.encode(["☃"])
    assert UNK in ids
    assert translator.translate("☃ cafe", max_length=5).text is not None


def test_long_text_is_split_within_the_positions(translator):
    translation = translator.translate("deaf dad fed a beige cab. " * 12, max_length=10)
    assert len(translation.parts) > 1
    assert max(len(part.source_ids) for part in translation.parts) <= 64


# --- files ------------------------------------------------------------------------------------------------------


def test_sentencepiece_files_are_unchanged_and_rows_are_ours(tmp_path):
    foreign.marian(tmp_path / "original")
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    for ours, theirs in (("source", "source"), ("target", "target")):
        stored = (tmp_path / "imported" / f"tokenizer.{ours}.model").read_bytes()
        assert stored == (tmp_path / "original" / f"{theirs}.spm").read_bytes()
    vocabulary = json.loads((tmp_path / "imported" / "vocabulary.json").read_text())
    assert vocabulary["source"][: len(SPECIAL_TOKENS)] == ["<pad>", "<unk>", "<s>", "</s>"]


def test_the_manifest_has_origin_licence_and_search(tmp_path):
    foreign.marian(tmp_path / "opus-mt")
    stored = {"num_beams": 3, "length_penalty": 0.5, "max_length": 40}
    (tmp_path / "opus-mt" / "generation_config.json").write_text(json.dumps(stored))
    (tmp_path / "opus-mt" / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    import_model(tmp_path / "opus-mt", tmp_path / "imported", verify=False)
    facts = Bundle.open(tmp_path / "imported").facts
    assert facts["imported"]["licence"] == "cc-by-4.0"
    assert facts["imported"]["from"] == "opus-mt"
    assert {"config.json", "model.safetensors", "source.spm"} <= set(facts["imported"]["files"])
    translator = load(tmp_path / "imported")
    options = translator.translate("bad cafe").options
    assert (options.beam_size, options.length_penalty, options.max_length) == (3, 0.5, None)
    assert translator.max_source_length == 39  # longer text is split, not cut
    assert translator.translate("bad cafe", beam_size=2).options.beam_size == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_are_stored_in_the_requested_type(tmp_path, dtype):
    foreign.marian(tmp_path / "original")
    full = import_model(tmp_path / "original", tmp_path / "full", verify=False)
    report = import_model(tmp_path / "original", tmp_path / "half", dtype=dtype)
    assert 0 < report.largest_difference < 1
    sizes = [(path / "model.safetensors").stat().st_size for path in (full.path, report.path)]
    assert sizes[1] < 0.75 * sizes[0]
    model = Bundle.open(report.path).model()
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.source_positions.table.weight.requires_grad


@pytest.mark.parametrize("kind", ["float16", "bin", "sharded-bin"])
def test_other_weight_files_import_equally(tmp_path, kind):
    model = foreign.marian(tmp_path / "original")
    directory = tmp_path / "original"
    state = {name: value.clone() for name, value in model.state_dict().items()}
    if kind == "float16":
        model.half().save_pretrained(directory)
    else:
        (directory / "model.safetensors").unlink()
        names = sorted(state)
        parts = [names] if kind == "bin" else [names[::2], names[1::2]]
        files = ["pytorch_model.bin"] if kind == "bin" else ["pytorch_model-1.bin", "pytorch_model-2.bin"]
        for file, part in zip(files, parts, strict=True):
            torch.save({name: state[name] for name in part}, directory / file)
        if kind == "sharded-bin":
            index = {
                "metadata": {},
                "weight_map": {name: file for file, part in zip(files, parts, strict=True) for name in part},
            }
            (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    report = import_model(directory, tmp_path / "imported")
    assert report.largest_difference < 1e-5


def test_without_the_original_library_tensors_are_compared(tmp_path, monkeypatch):
    foreign.marian(tmp_path / "original")
    monkeypatch.setattr("softgaze.importers.huggingface.find_spec", lambda name: None)
    report = import_model(tmp_path / "original", tmp_path / "imported")
    assert "tensors" in report.compared_with
    assert report.largest_difference == 0


# --- languages --------------------------------------------------------------------------------------------------


def test_unknown_and_missing_languages_are_one_line(tmp_path):
    foreign.nllb(tmp_path / "original")
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    translator = load(tmp_path / "imported")
    with pytest.raises(UsageError, match="--source-lang and --target-lang"):
        translator.translate("bad cafe")
    with pytest.raises(UsageError, match="did you mean fra_Latn"):
        translator.with_languages("eng_Latn", "fra_Latin")
    with pytest.raises(UsageError, match="target language"):
        translator.with_languages("eng_Latn", None)
    chosen = load(tmp_path / "imported", source_lang="eng", target_lang="fra")
    assert chosen.bundle.description.target_language == "fra_Latn"
    assert chosen.model is not translator.model


def test_views_share_the_model_and_keep_their_languages(tmp_path):
    foreign.m2m(tmp_path / "original")
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    base = load(tmp_path / "imported")
    one, other = base.with_languages("en", "fr"), base.with_languages("fr", "de")
    assert one.model is other.model
    again = other.with_languages("en", "fr")
    for text in foreign.SENTENCES:
        assert one.translate(text).to_dict() == again.translate(text).to_dict()
    assert one.max_positions == other.max_positions == again.max_positions


def test_an_interrupted_file_resumes_in_its_own_languages_only(tmp_path, monkeypatch):
    foreign.m2m(tmp_path / "original")
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    (tmp_path / "in.txt").write_text("\n".join(foreign.SENTENCES) + "\n")

    def run(target: str) -> str:
        files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt"), "--window", "1"]
        languages = ["--source-lang", "en", "--target-lang", target]
        return CliRunner().invoke(app, ["translate", str(tmp_path / "imported"), *files, *languages]).stderr

    write = LineJob.write

    def write_one(job, lines, total, file, **options):
        write(job, islice(lines, 1), 1, file, **options)
        raise KeyboardInterrupt

    for target in ("fr", "de"):
        with monkeypatch.context() as interrupted:
            interrupted.setattr(LineJob, "write", write_one)
            run("fr")
        assert ("resuming after 1 lines" in run(target)) == (target == "fr")
