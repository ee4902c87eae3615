"""The comparison with Inseq: one model in both formats, and one rule for the links of every map."""

import random

import numpy as np
import pytest
from safetensors.torch import load_file

from benchmarks import marian_model
from benchmarks.inseq import link_words, word_map
from softgaze.explain import Attention
from softgaze.importers import import_model
from softgaze.translator import load


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """An untrained Marian model, and its import."""
    pytest.importorskip("transformers", reason="the reference implementation is not installed")
    folder, dice = tmp_path_factory.mktemp("marian"), random.Random(3)
    for name in ("src", "tgt"):
        words = ["".join(dice.choices("abcdefghij", k=4)) for _ in range(60)]
        lines = [" ".join(dice.choices(words, k=5)) for _ in range(200)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marian_model, "VOCABULARY", 60)
        marian_model.write_new([folder / "src", folder / "tgt"], folder / "untrained")
    import_model(folder / "untrained", folder / "imported")
    return folder


def test_copied_weights_are_those_of_the_run(marian):
    """An import that was not trained gives the original weights back."""
    original = load_file(marian / "untrained" / marian_model.WEIGHTS)
    marian_model.fill(marian / "untrained", marian / "imported", marian / "copy")
    copy = load_file(marian / "copy" / marian_model.WEIGHTS)
    assert copy.keys() == original.keys()
    for name, tensor in original.items():
        assert np.allclose(copy[name].numpy(), tensor.float().numpy(), atol=1e-6), name


def test_links_follow_the_rule_of_attention_maps():
    weights = np.random.default_rng(1).random((4, 5))
    attention = Attention.of([*"abcde"], [*"vwxy"], weights)
    assert link_words(weights) == attention.alignment()


def test_tokens_become_words_without_start_and_eos(marian):
    translator = load(marian / "imported", "cpu", engine="torch")
    translation = translator.score("ab cd", "ef gh")
    sizes = [len(translator.bundle.tokenizers.source.encode([text])[0]) for text in ("ab cd", "ef gh")]
    matrix = np.zeros((sizes[1] + 2, sizes[0] + 1))  # a row for the start token and EOS, a column for EOS
    matrix[0], matrix[-1], matrix[:, -1] = 7, 7, 7
    found = word_map(translator, translation, {"matrix": matrix.tolist(), "source": [], "target": []})
    assert found.shape == (2, 2)
    assert not found.any()
    with pytest.raises(ValueError, match="tokens"):
        word_map(translator, translation, {"matrix": matrix[:, 1:].tolist(), "source": [], "target": []})
