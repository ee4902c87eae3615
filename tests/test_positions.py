import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from checks import normal, same, thorough
from softgaze.positions import POSITIONS, Learned, Rotary, Sinusoidal, sinusoidal
from softgaze.scores import dot

places_and_widths = given(st.integers(0, 2000), st.integers(1, 17))


@thorough
@example(0, 1)
@example(2000, 17)
@places_and_widths
def test_sinusoids_are_the_papers(place, width):
    expected = [
        (np.cos if dimension % 2 else np.sin)(place / 10000 ** (dimension // 2 * 2 / width))
        for dimension in range(width)
    ]
    # float32 angles: a place of 2,000 radians is known to about 1e-4.
    same(sinusoidal(torch.tensor([place]), width)[0].double(), torch.tensor(expected, dtype=torch.float64), within=3e-4)


def test_near_sinusoids_are_exact_to_float32():
    places = np.arange(20)[:, None] / 10000 ** (np.arange(0, 8, 2) / 8)
    expected = np.stack([np.sin(places), np.cos(places)], -1).reshape(20, 8)
    same(sinusoidal(torch.arange(20), 8).double(), torch.tensor(expected), within=2e-6)


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("first", [0, 3])
def test_a_later_piece_is_a_slice_of_the_whole(name, first):
    positions = POSITIONS[name](8, 8, 16).double()
    vectors = normal(2, 7, 8)
    places = torch.arange(7)
    same(positions.add(vectors[:, first:], places[first:]), positions.add(vectors, places)[:, first:])
    heads = vectors[:, None]
    same(positions.rotate(heads[:, :, first:], places[first:]), positions.rotate(heads, places)[:, :, first:])


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_rows_may_stand_at_places_of_their_own(name):
    positions, vectors = POSITIONS[name](8, 8, 16).double(), normal(2, 3, 8)
    placed = positions.add(vectors, torch.tensor([[0, 1, 2], [4, 5, 6]]))
    same(placed[1:], positions.add(vectors[1:], torch.tensor([4, 5, 6])))


@pytest.mark.parametrize(("kind", "acts"), [(Sinusoidal, "add"), (Learned, "add"), (Rotary, "rotate")])
def test_each_kind_does_one_of_the_two_things(kind, acts):
    positions, vectors, places = kind(8, 8, 16).double(), normal(2, 1, 4, 8), torch.arange(4)
    for name in ("add", "rotate"):
        changed = not torch.equal(getattr(positions, name)(vectors, places), vectors)
        assert changed == (name == acts)


def test_no_positions_leave_everything_as_it_is():
    positions, vectors = POSITIONS["none"](8, 8, 16), normal(2, 1, 4, 8)
    assert positions.add(vectors, torch.arange(4)) is vectors
    assert positions.rotate(vectors, torch.arange(4)) is vectors


@thorough
@example(0, 0, 0)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_rotary_scores_depend_on_the_distance_alone(place, other, shift):
    rotary, (query, key) = Rotary(8, 8, 16), normal(2, 1, 1, 1, 8).unbind()

    def score(first: int, second: int) -> torch.Tensor:
        return dot(rotary.rotate(query, torch.tensor([first])), rotary.rotate(key, torch.tensor([second])))

    same(score(place + shift, other + shift), score(place, other), within=3e-4)


def test_rotary_scores_do_depend_on_the_distance():
    rotary, query = Rotary(8, 8, 16), normal(1, 1, 1, 8)
    turned = rotary.rotate(query.expand(1, 1, 4, 8), torch.arange(4))
    assert dot(turned, turned)[0, 0, 0].diff().abs().min() > 1e-3


@thorough
@example(0)
@given(st.integers(0, 2000))
def test_a_turn_keeps_the_length(place):
    vectors = normal(1, 2, 1, 8)
    turned = Rotary(8, 8, 16).rotate(vectors, torch.tensor([place]))
    same(turned.norm(dim=-1), vectors.norm(dim=-1), within=1e-6)
    assert place or torch.equal(turned, vectors)


def test_places_past_the_learned_table_are_refused():
    learned = Learned(8, 8, max_length=4)
    learned.add(torch.zeros(1, 4, 8), torch.arange(4))
    with pytest.raises(ValueError, match="learned positions are 0 to 3, got 4 to 4; raise max_length"):
        learned.add(torch.zeros(1, 1, 8), torch.tensor([4]))


def test_rotary_needs_pairs():
    with pytest.raises(ValueError, match="even head width, got 3"):
        Rotary(6, 3, 16)


def test_rotary_turns_each_pair_as_a_complex_number():
    """(x_i + i·x_{i+D/2}) · exp(i·p·10000^(−2i/D)), Su 2021, eq. 34."""
    width, places = 8, torch.tensor([0, 1, 7, 300])
    vectors = torch.randn(1, 2, 4, width, dtype=torch.float64)
    angles = places[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    turned = torch.complex(vectors[..., :4], vectors[..., 4:]) * torch.exp(1j * angles)
    expected = torch.cat([turned.real, turned.imag], -1)
    torch.testing.assert_close(Rotary(width, width, 1).rotate(vectors, places), expected, atol=1e-4, rtol=0)
