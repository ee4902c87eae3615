"""Imported tokenizers give the ids of the original tokenizers, special tokens included."""

import pytest

from importers import foreign
from softgaze import load
from softgaze.importers import import_model, read_foreign

CASES = {
    "marian": (foreign.marian, {}, (None, None), "MarianTokenizer"),
    "marian-separate": (foreign.marian, {"separate": True}, (None, None), "MarianTokenizer"),
    "m2m": (foreign.m2m, {}, ("en", "zu"), "M2M100Tokenizer"),
    "mbart50": (foreign.mbart, {}, ("en_XX", "ko_KR"), "MBart50Tokenizer"),
    "mbart25": (foreign.mbart, {"tokenizer": "MBartTokenizer"}, ("en_XX", "ko_KR"), "MBartTokenizer"),
}
TEXTS = (*foreign.SENTENCES, "Ｆａｃｅ  a\u00a0bed", "ﬁg ☃ cafe", "(bad), deaf; 'cab' \"egg\"")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "options", "languages", "name"), CASES.values(), ids=CASES)
def test_ids_are_those_of_the_original_tokenizer(tmp_path, make, options, languages, name):
    make(tmp_path / "original", **options)
    arguments = {"src_lang": languages[0]} if languages[0] else {}
    if options.get("separate"):
        arguments = {"separate_vocabs": True, "target_vocab_file": str(tmp_path / "original" / "target_vocab.json")}
    original = getattr(foreign.transformers, name).from_pretrained(tmp_path / "original", **arguments)
    order = read_foreign(tmp_path / "original").source_order
    import_model(tmp_path / "original", tmp_path / "imported", verify=False)
    translator = load(tmp_path / "imported", source_lang=languages[0], target_lang=languages[1])
    tokenizer = translator.bundle.tokenizers.source
    # The "tokenizers" backend of mBART-25 keeps double spaces, which its SentencePiece model removes.
    for text in foreign.SENTENCES if name == "MBartTokenizer" else TEXTS:
        [ids] = tokenizer.encode([text])
        assert [order.rows[token] for token in tokenizer.add_eos(ids)] == original(text).input_ids
