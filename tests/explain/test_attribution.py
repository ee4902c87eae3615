"""Attribution: equal to a calculation by hand, to derivatives, and complete where the method promises it."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from bundles import SMALL, make_bundle, tokenizer
from pictures import image_bundle, write_scenes
from softgaze.bundle import Tokenizers
from softgaze.errors import UsageError
from softgaze.explain import Attention
from softgaze.explain.attribution import block_contributions, gradient_times_input
from softgaze.explain.scoring import IdPair
from softgaze.models.base import Advance, Memory, Seq2Seq, select_rows
from softgaze.special_tokens import BOS
from softgaze.translator import load

BOTH = Tokenizers(tokenizer(), tokenizer())
SOURCE, TARGET = "the small dog sleeps.", "작은 개 자요."
RECURRENT = {"width": 16, "layers": 1}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "transformer": {**SMALL, "tie": "output"},
    "rnn": {**RECURRENT, "tie": "output"},
    "rnn-bahdanau": {**RECURRENT, "tie": "output"},
    "rnn-luong": {**RECURRENT, "tie": "output"},
    "conv": {"width": 16, "tie": "output"},
}


class SumState(NamedTuple):
    total: torch.Tensor  # (B, D)

    def reorder(self, index):
        return select_rows(self, index)


class LinearModel(Seq2Seq):
    """Its features are the sum of all embeddings read so far, so gradient × input is exact."""

    def __init__(self) -> None:
        super().__init__()
        size = len(tokenizer())
        self.source_embedding, self.target_embedding = nn.Embedding(size, 8), nn.Embedding(size, 8)
        self.output = nn.Linear(8, size, bias=False)
        self.eval()

    def encode(self, source, hook=None):
        values = self.source_embedding(source.values)
        mask = torch.arange(values.shape[1]) < source.lengths[:, None]
        return Memory(values * mask[..., None], mask[:, None, None])

    def start(self, memory):
        return SumState(memory.values.sum(1))

    def advance(self, tokens, state, hook=None, *, need_weights=False):
        features = state.total[:, None] + self.target_embedding(tokens).cumsum(1)
        return Advance(features, SumState(features[:, -1]), None)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("attribution") / request.param
    return load(make_bundle(path, arch=request.param, options=ARCHITECTURES[request.param]), "cpu", engine="torch")


def test_contributions_of_a_linear_model_are_exact_and_complete():
    torch.manual_seed(1)
    linear, source, target, other = LinearModel(), [5, 6, 7], [8, 9], [8, 10]
    found = gradient_times_input(linear, BOTH, [IdPair(source, target), IdPair(source, other)], [[1], [1]])
    contrast = linear.output.weight[9] - linear.output.weight[10]
    by_hand = linear.source_embedding.weight[BOTH.source.add_eos(source),] @ contrast
    np.testing.assert_allclose(found.source[0] - found.source[1], by_hand.detach(), atol=1e-5)
    total = (found.source.sum(1) + found.prefix.sum(1)) @ [1, -1]
    assert total == pytest.approx(found.log_probs @ [1, -1], abs=1e-5)
    assert found.prefix[:, 2] == pytest.approx(0)  # the last token is predicted, not read


def test_the_norm_of_gradient_times_input_does_not_cancel_out():
    torch.manual_seed(1)
    linear, source, target = LinearModel(), [5, 6, 7], [8, 9]
    found = gradient_times_input(linear, BOTH, [IdPair(source, target)], [[1]], takes_norm=True)
    features = linear.source_embedding.weight[BOTH.source.add_eos(source),].sum(0) + linear.target_embedding.weight[
        [BOS, 8]
    ].sum(0)
    probs = linear.output(features).softmax(-1)
    gradient = linear.output.weight[9] - probs @ linear.output.weight
    by_hand = (linear.source_embedding.weight[BOTH.source.add_eos(source),] * gradient).norm(dim=-1)
    np.testing.assert_allclose(found.source[0], by_hand.detach(), atol=1e-5)
    signed = gradient_times_input(linear, BOTH, [IdPair(source, target)], [[1]])
    assert (found.source * 8**0.5 >= abs(signed.source) - 1e-6).all()  # 8 is the width
    assert found.log_probs == pytest.approx(signed.log_probs)


def test_contributions_are_derivatives(model):
    """Scaling all source embeddings by 1 + x changes the log-probability by x times the sum of the contributions."""
    pair = IdPair([5, 6, 7, 8], [9, 10, 11])
    found = gradient_times_input(model.model, BOTH, [pair], [[0, 1, 2]])
    assert found.log_probs == pytest.approx(model.engine.log_probs([pair])[0].sum(), abs=1e-4)
    for name, expected in (("source", found.source), ("target", found.prefix)):
        table, step, scored = getattr(model.model, f"{name}_embedding"), 2e-3, []
        before = table.weight.data.clone()
        for factor in (1 + step, 1 - step):
            changed = nn.Embedding.from_pretrained(before * factor)  # not in place: the output layer is tied
            model.model._modules[f"{name}_embedding"] = changed
            scored.append(model.engine.log_probs([pair])[0].sum())
        model.model._modules[f"{name}_embedding"] = table
        assert expected.sum() == pytest.approx((scored[0] - scored[1]) / (2 * step), rel=0.02, abs=5e-3)


@pytest.mark.parametrize("method", ["gradient", "gradient-norm"])
def test_words_are_attributed_to_source_and_earlier_words_only(model, method, tmp_path):
    translation = model.score(SOURCE, TARGET)
    found = translation.attribution(method)
    assert found.method == method
    words = len(found.target_words)
    assert found.source.shape == (words, len(found.source_words))
    assert not np.triu(found.prefix, 1).any()  # the subwords of a word may contribute to each other
    assert ((found.source_share > 0) & (found.source_share <= 1)).all()
    assert model.score(SOURCE, TARGET) == translation  # nothing was changed
    weights = found.map().to_numpy()
    assert ((weights.sum(1) < 1 + 1e-5) & (weights.min(1) >= 0)).all()
    found.map().to_json(tmp_path / "map.json")
    assert Attention.load(tmp_path / "map.json").description == found.map().description


def test_occlusion_is_a_map_like_any_other(model):
    translation = model.score(SOURCE, TARGET)
    found = translation.attribution("occlusion")
    np.testing.assert_allclose(found.source, np.nan_to_num(translation.occlusion), atol=1e-6)
    assert found.map().description.startswith("occlusion")
    assert found.map().alignment().links


def test_contributions_to_the_cross_attention(model):
    translation = model.score(SOURCE, TARGET)
    if not model.has_attention:
        with pytest.raises(UsageError, match="no cross-attention"):
            translation.attribution("contribution")
        return
    found = translation.attribution("contribution").source
    assert (found >= 0).all()
    assert (found.sum(1) <= 1 + 1e-5).all()
    assert found.sum() > 0


def test_the_l1_contribution_equals_a_calculation_by_hand():
    weights, values = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, -4.0]]])
    # Row 0: vectors (1, 0) and (0, -2), output (1, -2): |y| = 3, without the first 2, without the second 1.
    np.testing.assert_allclose(block_contributions(weights, values), [[1 / 3, 2 / 3], [1, 0]], atol=1e-6)
    swapped = block_contributions(weights, values, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(swapped, [[1 / 3, 2 / 3], [1, 0]], atol=1e-6)
    scaled = block_contributions(weights, values, torch.diag(torch.tensor([4.0, 1.0])))
    np.testing.assert_allclose(scaled, [[4 / 6, 2 / 6], [1, 0]], atol=1e-6)


def test_a_word_is_explained_against_another(model):
    translation = model.score(SOURCE, TARGET)
    found = translation.why(0, instead_of="고양이")
    [part], [other] = translation.parts, tokenizer().encode(["고양이"])
    [rival] = model.engine.log_probs([IdPair(part.source_ids[:-1], other)])
    assert found.log_odds == pytest.approx(np.log(translation.confidence.values[0]) - rival.sum(), abs=1e-3)
    assert found.word == "작은"
    assert (found.prefix, set(found.source)) == ({}, set(translation.attribution("occlusion").source_words))
    assert "instead of 고양이" in str(found)
    with pytest.raises(UsageError, match="no word"):
        translation.why("absent", instead_of="개")


def test_captions_are_attributed_to_image_regions(tmp_path):
    captioner = load(image_bundle(), "cpu", engine="torch")
    write_scenes(tmp_path, 1)
    found = captioner.translate(str(next(tmp_path.glob("*.png"))), max_length=6).attribution("gradient")
    assert np.abs(found.source).sum() > 0
