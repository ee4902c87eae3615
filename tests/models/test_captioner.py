"""A captioner is held to everything that models of text are, and its eyes to what a picture is."""

import pytest
import torch

import checks
from checks import SMALL, VECTORS, VOCABULARY, same
from errors import one_line_error
from softgaze.attention import padding_mask
from softgaze.errors import UsageError
from softgaze.models import Source, build_model
from softgaze.models.feature_encoders import CNNEncoder, PatchMLP

FRAMES = SMALL["captioner"]
CASES = {
    "rnn": FRAMES,
    "rnn-2": FRAMES.but(layers=2),
    "transformer": FRAMES.but(decoder="transformer", heads=2, layers=2, attentions={"decoder": 2, "cross": 2}),
}
PICTURES = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2, "dropout": 0.0}
CELLS, PATCH = 16, 2


@pytest.mark.parametrize(("check", "case"), checks.every(CASES))
def test_every_check(check, case):
    check(case)


def pictures(count: int = 2, seed: int = 0) -> Source:
    draw = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 256, (count, CELLS, 3 * PATCH**2), dtype=torch.uint8, generator=draw)
    return Source(values, torch.full((count,), CELLS))


def captioner(encoder: str, decoder: str = "rnn", **options):
    torch.manual_seed(1)
    sides = {"source_vocabulary": 3 * PATCH**2, "target_vocabulary": VOCABULARY}
    return build_model("captioner", **sides, **{**PICTURES, **options}, encoder=encoder, decoder=decoder).eval()


@pytest.mark.parametrize("decoder", ["rnn", "transformer"])
@pytest.mark.parametrize("encoder", ["cnn", "patches"])
def test_a_picture_has_a_vector_for_each_patch_and_pictures_do_not_mix(encoder, decoder):
    model, source = captioner(encoder, decoder), pictures()
    memory = model.encode(source)
    assert memory.values.shape == (2, CELLS, 16)
    alone = [model.encode(Source(*(part[row : row + 1] for part in source))) for row in range(2)]
    same(memory.values, torch.cat([each.values for each in alone]), within=1e-5)
    target = torch.tensor([[2, 5, 6], [2, 7, 8]])
    step = model.step(target[:, 0], model.start(memory))
    assert step.weights.shape[2] == CELLS
    assert model(source, target).shape == (2, 3, VOCABULARY)


@pytest.mark.parametrize("encoder", ["cnn", "patches"])
def test_the_eyes_know_where_a_patch_is(encoder):
    """The same patch everywhere, away from the edges, has another vector at every place."""
    plain = Source(torch.full((1, 64, 3 * PATCH**2), 90, dtype=torch.uint8), torch.tensor([64]))
    vectors = captioner(encoder).encode(plain).values[0]
    apart = torch.cdist(vectors, vectors) + torch.eye(64) * 9
    assert apart.min() > 1e-3


def test_what_a_cnn_sees_at_a_patch_is_what_lies_around_it():
    """A change in the first patch reaches its neighbours and not the other corner."""
    model, source = captioner("cnn", encoder_layers=1), pictures(1)
    changed = source.values.clone()
    changed[0, 0] = 255 - changed[0, 0]
    # Norms of groups are over the whole picture, so only their small effect is left far away.
    moved = (model.encode(source).values - model.encode(source._replace(values=changed)).values).norm(dim=-1)[0]
    assert moved[0] > 4 * moved[-1]


def seen_of(encoder: CNNEncoder, side: int) -> torch.Tensor:
    """(side, side): how much each pixel of a picture does to the patch in its middle, the norms of groups left out."""
    picture = torch.rand(1, 3, side, side, requires_grad=True)
    halfway = picture
    for halve in encoder.downsample:
        halfway = halve(halfway)
    middle = halfway.shape[-1] // 2
    halfway[0, :, middle, middle].pow(2).sum().backward()
    return picture.grad.norm(dim=1)[0]


@pytest.mark.parametrize(("patch", "around"), [(2, 1), (4, 3), (8, 5), (16, 9)])
def test_a_patch_sees_about_half_a_patch_around_it_and_that_dimly(patch, around):
    torch.manual_seed(0)
    seen = seen_of(CNNEncoder(3 * patch**2, 64, 1, 2, 0.0), side=5 * patch)
    start, stop = 2 * patch - around, 3 * patch + around
    inside = seen[start:stop, start:stop]
    assert (inside > 0).all()
    assert inside.sum() == pytest.approx(seen.sum())  # and nothing beyond
    own = seen[2 * patch : 3 * patch, 2 * patch : 3 * patch]
    assert own.mean() > 2 * (seen.sum() - own.sum()) / (inside.numel() - own.numel())


def test_what_is_thought_of_a_patch_stays_with_it():
    torch.manual_seed(0)
    thought, vectors = PatchMLP(16, 0.0), torch.randn(1, 4, 16)
    changed = vectors.clone()
    changed[0, 1] += 1
    moved = (thought(vectors) - thought(changed)).abs().sum(-1)[0]
    assert (moved > 0).tolist() == [False, True, False, False]


def test_what_a_cnn_sees_is_not_moved():
    """As much of a patch comes from its left as from its right, whatever the weights: mirrored, it sees the mirror."""
    torch.manual_seed(0)
    encoder = CNNEncoder(3 * 8**2, 16, 1, 2, 0.0).eval()
    with torch.no_grad():
        for layer in (each for each in encoder.modules() if isinstance(each, torch.nn.Conv2d)):
            layer.weight.copy_((layer.weight + layer.weight.flip(-1)) / 2)
        encoder.positions.project.weight.zero_()
    picture = torch.randint(0, 256, (1, 3, 32, 32), dtype=torch.uint8)
    real = padding_mask(torch.tensor([16]), 16)
    seen, mirrored = (encoder(patches_of(each), real).unflatten(1, (4, 4)) for each in (picture, picture.flip(-1)))
    same(seen.flip(2), mirrored, within=1e-5)


def patches_of(picture: torch.Tensor) -> torch.Tensor:
    """(1, 3, 32, 32) -> (1, 16, 192): patches of 8 × 8 in reading order, colours last."""
    cells = picture.unfold(2, 8, 8).unfold(3, 8, 8)  # (1, 3, 4, 4, 8, 8)
    return cells.permute(0, 2, 3, 4, 5, 1).reshape(1, 16, 192)


def test_self_attention_among_patches_can_be_watched():
    seen = checks.Recorder()
    captioner("patches").encode(pictures(), seen)
    assert [*seen.seen] == [("encoder", 0)]
    assert seen.seen["encoder", 0][0][1].shape == (2, 2, CELLS, CELLS)


@pytest.mark.parametrize("width", [1, 3])
def test_frames_may_be_narrow(width):
    model = build_model("captioner", source_vocabulary=width, target_vocabulary=9, **FRAMES.options).eval()
    assert model.encode(Source(torch.randn(1, 5, width), torch.tensor([5]))).values.shape == (1, 5, 16)


def test_sources_and_decoders_that_do_not_fit_are_rejected():
    with one_line_error(UsageError, "expected items of 11 numbers"):
        FRAMES.model.encode(Source(VECTORS[:3, :7][None], torch.tensor([3])))
    with one_line_error(ValueError, "square grid of patches, got 15"):
        captioner("cnn").encode(Source(pictures().values[:, :15], torch.tensor([15, 15])))
    with one_line_error(UsageError, "decoder"):
        captioner("cnn", "lstm")


def regions(count: int = 2) -> Source:
    """Features of a frozen backbone, nine regions each."""
    values = torch.randn(count, 9, 6, generator=torch.Generator().manual_seed(3))
    return Source(values, torch.full((count,), 9))


def on_features(**options):
    """A captioner of precomputed features; the name of the backbone is not loaded while it is frozen."""
    torch.manual_seed(1)
    sides = {"source_vocabulary": 6, "target_vocabulary": VOCABULARY}
    return build_model("captioner", **sides, **{**PICTURES, **options}, encoder="efficientnet").eval()


@pytest.mark.parametrize("decoder", ["rnn", "transformer"])
def test_pooled_features_are_one_vector_and_their_order_does_not_matter(decoder):
    model, source, target = on_features(decoder=decoder, pooling="mean"), regions(), torch.tensor([[2, 5], [2, 7]])
    assert model.encode(source).values.shape == (2, 1, 16)
    assert (model.has_cross_attention, model.cross_attention_shape, model.exports_to) == (False, (0, 0), ())
    before = model(source, target)
    model.feature_encoder.positions.project.weight.data.zero_()
    flat = model(source, target)
    shuffled = Source(source.values[:, torch.randperm(9)], source.lengths)
    same(flat, model(shuffled, target), within=1e-5)
    assert not torch.allclose(before, model(Source(source.values * 2 + 1, source.lengths), target))


def test_features_are_normed_and_projected_but_need_no_gradient():
    encoder, source = on_features().feature_encoder, regions()
    for parameter in (encoder.norm.weight, encoder.norm.bias, encoder.project.bias):
        torch.nn.init.normal_(parameter)
    mask = padding_mask(source.lengths, source.values.shape[1])
    reference = encoder.positions(encoder.project(encoder.norm(source.values)))
    parameters = [*encoder.norm.parameters(), *encoder.project.parameters()]
    draw = torch.randn(reference.shape)
    expected = torch.autograd.grad((reference * draw).sum(), parameters)
    features = encoder(source.values, mask)
    same(features, reference, within=1e-5)
    for one, other in zip(torch.autograd.grad((features * draw).sum(), parameters), expected, strict=True):
        same(one, other, within=1e-4)
    functions = {features.grad_fn}
    while more := {each for one in functions for each, _ in one.next_functions if each} - functions:
        functions |= more
    assert not any("LayerNorm" in function.name() for function in functions)  # its gradient is the widest product


def test_self_attention_among_regions_is_seen_by_a_hook():
    model, seen = on_features(self_attention=True, encoder_layers=2), []

    def hook(site, weights, values):
        seen.append((site.kind, site.layer, tuple(weights.shape)))
        return weights

    model.encode(regions(), hook)
    assert seen == [("encoder", layer, (2, 2, 9, 9)) for layer in range(2)]
    assert not any("layers" in name for name, _ in on_features().feature_encoder.named_parameters())


def test_pooling_has_two_ways():
    with pytest.raises(UsageError) as error:
        on_features(pooling="max")
    one_line_error(error, "mean")
