"""What each change does to weights, against attention computed the long way round."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softgaze.attention import attend
from softgaze.gaze.edits import Ablate, Edit, Force, Heads, Mask, Sharpen, moved_up
from softgaze.models.base import Place

EVERYWHERE = (Heads(),)
CROSS = Place("cross", 1, 0)
NOBODY = torch.full((2, 4), -1)
PLACES = st.sets(st.integers(0, 5), min_size=1, max_size=5).map(lambda places: tuple(sorted(places)))


def vectors(seed, keys=6):
    """Queries, keys and values of 2 rows and 3 heads."""
    dice = torch.Generator().manual_seed(seed)
    return (torch.randn(2, 3, size, 8, generator=dice, dtype=torch.double) for size in (4, keys, keys))


def looked(seed, edit=None, mask=None, sharper=1.0):
    query, keys, values = vectors(seed)

    def look(weights, values):
        return weights if edit is None else edit.apply(CROSS, weights, NOBODY)

    return attend(query * sharper, keys, values, mask, need_weights=True, look=look)


@given(seed=st.integers(0, 2**32), places=PLACES)
def test_masking_after_the_softmax_is_masking_before_it(seed, places):
    allowed = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    allowed[..., places] = False
    for found, wanted in zip(looked(seed, Mask(EVERYWHERE, places)), looked(seed, mask=allowed), strict=True):
        torch.testing.assert_close(found, wanted)


@given(seed=st.integers(0, 2**32), factor=st.floats(0.1, 8))
def test_sharpening_the_weights_is_multiplying_the_scores(seed, factor):
    for found, wanted in zip(looked(seed, Sharpen(EVERYWHERE, factor)), looked(seed, sharper=factor), strict=True):
        torch.testing.assert_close(found, wanted)


def test_nothing_is_left_when_everything_is_masked():
    context, weights = looked(0, Mask(EVERYWHERE, tuple(range(6))))
    assert not weights.any()
    assert not context.any()


def test_an_extreme_factor_gives_numbers():
    weights = torch.tensor([0.6, 0.4, 0.0, 1e-40]).expand(1, 1, 1, 4)
    sharp, flat = (Sharpen(EVERYWHERE, factor).apply(CROSS, weights, NOBODY[:1, :1]) for factor in (1e6, 1e-6))
    torch.testing.assert_close(sharp.flatten(), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    assert flat[..., 2].item() == 0  # what may not be looked at stays unseen
    assert flat.sum().item() == pytest.approx(1)


def test_a_head_that_is_off_has_no_context():
    context, weights = looked(0, Ablate((Heads("cross", 1, 2),)))
    plain = looked(0)
    assert not context[:, 2].any()
    assert torch.equal(weights[:, :2], plain.weights[:, :2])


def test_all_weight_goes_to_the_forced_places_in_proportion():
    weights = torch.tensor([0.5, 0.2, 0.3]).expand(1, 1, 2, 3)
    found = Force(EVERYWHERE, ((7, (1, 2)),)).apply(CROSS, weights, torch.tensor([[6, 7]]))
    torch.testing.assert_close(found[0, 0], torch.tensor([[0.5, 0.2, 0.3], [0.0, 0.4, 0.6]]))


def test_places_without_any_weight_share_alike_and_a_row_of_nothing_stays_nothing():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).expand(1, 1, 2, 3)
    found = Force(EVERYWHERE, ((0, (1, 2)),)).apply(CROSS, weights, torch.zeros(1, 2))
    assert found[0, 0].tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("heads", "wanted"),
    [
        ((Heads(),), [0, 1, 2]),
        ((Heads("cross", 1),), [0, 1, 2]),
        ((Heads("cross", 1, 2), Heads("cross", None, 0)), [0, 2]),
        ((Heads("cross", 0),), []),
        ((Heads("encoder"),), []),
    ],
)
def test_only_the_named_heads_are_changed(heads, wanted):
    assert Ablate(heads).at(CROSS, 3) == wanted
    _, weights = looked(0, Ablate(heads))
    assert [head for head in range(3) if not weights[:, head].any()] == wanted


@given(places=PLACES, gone=PLACES)
def test_places_follow_their_pieces_when_others_are_left_out(places, gone):
    left = [piece for piece in range(6) if piece not in gone]
    assert [left[place] for place in moved_up(places, gone)] == [place for place in places if place not in gone]


def test_an_edit_is_left_out_with_its_pieces():
    force = Force(EVERYWHERE, ((0, (1,)), (2, (4, 5))))
    assert force.without([1, 4]).looks == ((2, (3,)),)
    assert Mask(EVERYWHERE, (0, 3)).without([0, 1]).places == (1,)
    assert isinstance(Ablate(EVERYWHERE).without([0]), Edit)
