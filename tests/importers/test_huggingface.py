"""Hugging Face models: equal logits and equal text, for every family and its variants."""

import pytest
import torch

from importers import foreign
from softgaze import load
from softgaze.bundle import Bundle
from softgaze.engines.export import export
from softgaze.importers import import_model, read_foreign
from softgaze.special_tokens import BOS, EOS, PAD, UNK

CASES = {
    "marian": (foreign.marian, {}),
    "marian-one-layer-odd-heads": (
        foreign.marian,
        {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    ),
    "marian-unscaled-relu": (foreign.marian, {"scale_embedding": False, "activation_function": "relu"}),
    "marian-separate": (foreign.marian, {"separate": True}),
    "marian-separate-untied": (foreign.marian, {"separate": True, "tie_word_embeddings": False}),
    "marian-multi-target": (foreign.marian, {"languages": ("deu", "fra")}),
    "marian-sharded": (foreign.marian, {"max_shard_size": "20KB"}),
    "m2m": (foreign.m2m, {}),
    "m2m-untied": (foreign.m2m, {"tie_word_embeddings": False, "scale_embedding": False}),
    "nllb": (foreign.nllb, {}),
    "nllb-legacy": (foreign.nllb, {"legacy": True}),
    "mbart50": (foreign.mbart, {}),
    "mbart25": (foreign.mbart, {"tokenizer": "MBartTokenizer"}),
}


@pytest.mark.parametrize(("make", "options"), CASES.values(), ids=CASES)
def test_logits_are_those_of_the_original(tmp_path, make, options):
    make(tmp_path / "original", **options)
    report = import_model(tmp_path / "original", tmp_path / "imported")
    assert "transformers" in report.compared_with
    assert report.largest_difference < 1e-5


def generate(original, translator, text, beam_size):
    """The reference's own search over our tokens of a text: token ids of our vocabulary, without special ones."""
    order_in, order_out = (read_foreign(original).source_order, read_foreign(original).target_order)
    tokenizers = translator.bundle.tokenizers
    [ids] = tokenizers.source.encode([text])
    rows = [order_in.rows[token] for token in tokenizers.source.add_eos(ids)]
    start = [order_out.rows[token] for token in tokenizers.target.start]
    model = foreign.load(original)
    never = {order_out.rows[token] for token in (PAD, UNK)} | {order_out.rows[BOS]} - {order_out.rows[EOS], -1}
    generated = model.generate(
        torch.tensor([rows]),
        forced_bos_token_id=start[1] if len(start) > 1 else None,
        num_beams=beam_size,
        max_new_tokens=11 + len(start),
        early_stopping=beam_size > 1,
        length_penalty=1.0,
        suppress_tokens=sorted(never),
        forced_eos_token_id=None,
        decoder_start_token_id=start[0],
    )[0, len(start) :].tolist()
    ours = {row: token for token, row in reversed([*enumerate(order_out.rows)]) if token != BOS}
    return [ours[row] for row in generated if ours[row] not in (PAD, EOS)]


def with_last_languages(translator):
    """The translator of the last language pair of a multilingual model."""
    if translator.languages is None:
        return translator
    sides = translator.languages.source, translator.languages.target
    return translator.with_languages(*((*side, None)[len(side) - 1] for side in sides))


@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize(("make", "options"), CASES.values(), ids=CASES)
def test_text_is_that_of_the_original(tmp_path, make, options, beam_size):
    make(tmp_path / "original", **options)
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    translator = with_last_languages(load(tmp_path / "imported"))
    for text in foreign.SENTENCES:
        [part] = translator.translate(text, beam_size=beam_size, max_length=12).parts
        assert list(part.target_ids) == generate(tmp_path / "original", translator, text, beam_size)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize(("make", "options"), CASES.values(), ids=CASES)
def test_ctranslate2_gives_the_same_text(tmp_path, make, options, precision):
    make(tmp_path / "original", **options)
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    bundle = Bundle.open(tmp_path / "imported")
    (tmp_path / "exported").mkdir()
    export(bundle, bundle.model(), tmp_path / "exported", "ctranslate2", precision, None)
    torch_model, exported = (with_last_languages(load(tmp_path / name)) for name in ("imported", "exported"))
    for text in foreign.SENTENCES:
        one, other = (model.translate(text, max_length=12) for model in (torch_model, exported))
        if precision == "float32":
            assert other.text == one.text
            assert other.score == pytest.approx(one.score, abs=1e-5)
        else:  # a random model has no margin between words, so that text may differ
            assert exported.score(text, one.text).log_prob == pytest.approx(
                torch_model.score(text, one.text).log_prob, rel=0.05
            )
    assert exported.translate(text).attention is not None
