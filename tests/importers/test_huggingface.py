"""Hugging Face models: equal logits and equal text, for every family and its variants."""

import pytest

from importers import foreign
from softgaze.importers import import_model

CASES = {
    "marian": (foreign.marian, {}),
    "marian-one-layer-odd-heads": (
        foreign.marian,
        {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    ),
    "marian-unscaled-relu": (foreign.marian, {"scale_embedding": False, "activation_function": "relu"}),
    "marian-separate": (foreign.marian, {"separate": True}),
}


@pytest.mark.parametrize(("make", "options"), CASES.values(), ids=CASES)
def test_logits_are_those_of_the_original(tmp_path, make, options):
    make(tmp_path / "original", **options)
    report = import_model(tmp_path / "original", tmp_path / "imported")
    assert "transformers" in report.compared_with
    assert report.largest_difference < 1e-5
