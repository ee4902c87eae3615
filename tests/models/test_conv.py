import pytest
import torch
from torch import nn

import checks
from checks import RAGGED, SMALL, batch_of, normal, same
from softgaze.models.base import Memory
from softgaze.models.conv import Conv, GatedConvolution

CONV = SMALL["conv"]
CASES = {
    "plain": CONV,
    "dilated": CONV.but(dilation=2),
    "even-kernel": CONV.but(kernel=2, dilation=3),
    "sinusoidal": CONV.but(positions="sinusoidal"),
    "no-positions-tie-none": CONV.but(positions="none", tie="none"),
}


@pytest.mark.parametrize(("check", "case"), checks.every(CASES))
def test_every_check(check, case):
    check(case)


def test_a_gated_convolution_is_a_times_sigmoid_of_b():
    layer = checks.randomize(GatedConvolution(4, kernel=3, dilation=1, dropout=0.0)).double()
    vectors = normal(2, 5, 4)
    windows = vectors.unfold(1, 3, 1)  # (B, N, D, kernel)
    both = torch.einsum("bndk,odk->bno", windows, layer.convolution.weight) + layer.convolution.bias
    same(layer(vectors), both[..., :4] * both[..., 4:].sigmoid())


@torch.no_grad()
@pytest.mark.parametrize(("dilation", "reach"), [(1, 2 + 2), (3, 2 + 6)])
def test_dilation_reaches_further_into_the_past(dilation, reach):
    """How far back the first word is still heard through two layers of kernel 3."""
    model, batch = CONV.but(dilation=dilation, positions="none").model, batch_of([3], 12)
    other = batch.target.clone()
    other[:, 0] = (other[:, 0] + 1) % checks.VOCABULARY
    memory = model.encode(batch.source)
    changed = (model.decode(memory, batch.target) != model.decode(memory, other)).any(-1)[0]
    assert changed.nonzero().max() == reach


@torch.no_grad()
def test_every_decoder_layer_looks_with_its_own_query():
    hook = checks.Recorder()
    CONV.model(*RAGGED, hook)
    first, second = (hook.seen["cross", layer][0][1] for layer in range(2))
    assert not torch.allclose(first, second)


@torch.no_grad()
def test_a_decoder_layer_is_the_papers_formulas():
    """d = (W h + g) √½; c from softmax(d · z); and both sums keep their size (eq. 1, 2 and §3.2)."""
    layer = checks.randomize(Conv(9, 9, width=4, encoder_layers=1, decoder_layers=1)).double().eval().decoder[0]
    memory = Memory(normal(1, 5, 4), torch.ones(1, 1, 1, 5, dtype=torch.bool), (normal(1, 5, 4),))
    vectors, words, half = normal(1, 3, 4), normal(1, 3, 4), 0.5**0.5
    recent = torch.zeros(1, 2, 4, dtype=torch.float64)
    found, recent, _ = layer(vectors, words, recent, memory, hook=None, need_weights=False)
    gated = layer.gated(torch.cat([torch.zeros(1, 2, 4), vectors], 1))
    weights = ((layer.query(gated) + words) * half @ memory.extra[0].transpose(1, 2)).softmax(-1)
    joined = (gated + layer.context(weights @ memory.values)) * half
    same(found, (joined + vectors) * half)
    same(recent, vectors[:, 1:])


@torch.no_grad()
def test_values_are_the_keys_with_the_words_added():
    model = CONV.model
    memory, (values, _) = model.encode(RAGGED.source), RAGGED.source
    places = torch.arange(values.shape[1])
    words = model.source_positions.add(model.source_embedding(values) * 8**0.5, places)
    same(memory.values, (memory.extra[0] + words) * 0.5**0.5)


def test_parameters_start_at_the_papers_size():
    model = Conv(9, 9, width=64, encoder_layers=2, decoder_layers=2, dropout=0.0)
    for convolution in (part for part in model.modules() if isinstance(part, nn.Conv1d)):
        assert convolution.weight.std().item() == pytest.approx((4 / (3 * 64)) ** 0.5, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": 1}, "kernel must be at least 2, got 1"),
        ({"positions": "rotary"}, "unknown positions of conv 'rotary'"),
    ],
)
def test_options_that_do_not_fit_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        CONV.but(**options).make()
