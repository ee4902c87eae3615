"""Fine-tuning an imported model: its tokenizer, rows, languages and positions stay, and it learns."""

import pytest
import torch

from importers import foreign, test_marian
from importers.marian_reference import SSRU
from importers.test_ctranslate2 import write_directory, write_marian_directory
from softgaze import load
from softgaze.bundle import Bundle
from softgaze.config import parse_config
from softgaze.data.corpus import Corpus
from softgaze.importers import import_model
from softgaze.training.preprocess import PreprocessedData
from softgaze.training.train import train
from softgaze.training.validation import dev_loss

MODELS = {
    "marian": (foreign.marian, {}, ("en", "xx")),
    "marian-multi-target": (foreign.marian, {"languages": ("deu", "fra")}, ("en", "fra")),
    "nllb": (foreign.nllb, {}, ("eng_Latn", "fra_Latn")),
    "nllb-legacy": (foreign.nllb, {"legacy": True}, ("eng_Latn", "fra_Latn")),
    "mbart50": (foreign.mbart, {}, ("en_XX", "ko_KR")),
    "mbart25": (foreign.mbart, {"tokenizer": "MBartTokenizer"}, ("en_XX", "ko_KR")),
    "m2m": (foreign.m2m, {}, ("en", "fr")),
    "firefox": (test_marian.save, {"settings": SSRU}, ("en", "pt")),
    "ctranslate2": (write_directory, {}, ("en", "de")),
    "ctranslate2-marian": (write_marian_directory, {}, ("en", "xx")),
}
TEXT = [("bad cafe", "gag"), ("a deaf dad", "fag egg"), ("fed a bed", "gaff a gag"), ("beige cab", "egg gag gag")]


@pytest.mark.parametrize(("make", "options", "languages"), MODELS.values(), ids=MODELS)
def test_a_fine_tuned_import_learns_the_text(tmp_path, make, options, languages):
    make(tmp_path / "original", **options)
    stated = {}
    if make in (write_directory, write_marian_directory):  # their files have no languages
        stated = dict(zip(("source_lang", "target_lang"), languages, strict=True))
    import_model(tmp_path / "original", tmp_path / "imported", verify=False, **stated)
    for side, name in enumerate(("source", "target")):
        (tmp_path / f"train.{name}").write_text("".join(f"{pair[side]}\n" for pair in TEXT * 8))
    corpus = Corpus.of([(tmp_path / "train.source", tmp_path / "train.target")], [])
    settings = {
        "data": {"source_language": languages[0], "target_language": languages[1], "held_out": 2, "max_length": 40},
        "training": {"learning_rate": 0.01, "warmup": 5, "label_smoothing": 0.1},
        "budget": {"steps": 60},
    }
    train(parse_config(settings), corpus, None, tmp_path / "run", device="cpu", init=tmp_path / "imported")
    before, after = Bundle.open(tmp_path / "imported"), Bundle.open(tmp_path / "run")
    names = [name for name in before.files if name.startswith(("tokenizer", "vocabulary"))]
    assert {name: after.files[name] for name in names} == {name: before.files[name] for name in names}
    assert after.facts["imported"] == before.facts["imported"]
    one, other = before.model(), after.model()
    if "frozen" in before.description.options.values():
        assert torch.equal(one.source_positions.table.weight, other.source_positions.table.weight)
    assert not torch.equal(one.source_embedding.weight, other.source_embedding.weight)
    translator = load(tmp_path / "run")  # the languages of training are chosen
    original = load(tmp_path / "imported", source_lang=languages[0], target_lang=languages[1])
    first, last = (sum(model.score(*pair).log_prob for pair in TEXT) for model in (original, translator))
    assert last > first / 2
    assert translator.translate(TEXT[0][0]).attention is not None

    data = PreprocessedData.open(tmp_path / "run" / "encoded")  # the loss of training is that of a translation
    model, dev = other, data.dev_text
    tokens = sum(len(data.tokenizers.target.encode([pair.target])[0]) + 1 for pair in dev)
    scored = sum(translator.score(*pair).log_prob for pair in dev)
    loss = dev_loss(model, data.dev, torch.device("cpu"), data.tokenizers.frame)
    assert loss == pytest.approx(-scored / tokens, abs=1e-4)
