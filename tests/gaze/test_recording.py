"""Maps of a recording: rows are shares, parts never see each other, and a rollout follows known paths."""

from dataclasses import replace

import numpy
import pytest

from maps import PIECES, random_recording, random_stack
from softgaze.gaze.recording import Part, Recording, Stack, along_the_diagonal, shares
from softgaze.gaze.view import View
from softgaze.gaze.words import Side

VIEWS = [
    View(kind=kind, layer=layer, head=head, measure=measure)
    for kind in ("cross", "encoder", "decoder")
    for layer, head, measure in [
        (None, None, "weights"),
        (1, None, "norms"),
        (2, 1, "weights"),
        (None, None, "rollout"),
    ]
]


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_every_row_of_every_map_sums_to_one_and_stays_in_its_part(view):
    recording = random_recording()
    found = recording.map(view)
    sides = {"cross": (1, 0), "encoder": (0, 0), "decoder": (1, 1)}[view.kind]
    rows, columns = ([len(part[side]) + 1 for part in PIECES] for side in sides)
    assert found.shape == (sum(rows), sum(columns))
    assert numpy.allclose(found.sum(axis=1), 1)
    assert not found[: rows[0], columns[0] :].any()
    assert not found[rows[0] :, : columns[0]].any()


def test_a_layer_a_head_and_the_means_are_what_they_say():
    part = random_recording().parts[0]
    weights = part.cross.weights
    assert numpy.allclose(part.map(View(layer=1, head=0)), weights[1, 0])
    assert numpy.allclose(part.map(View(layer=1)), weights[1].mean(0))
    assert numpy.allclose(part.map(View(head=1)), weights[:, 1].mean(0))
    assert numpy.allclose(part.map(View()), weights.mean((0, 1)))


def test_a_value_of_length_zero_was_not_looked_at():
    part = random_recording().parts[0]
    norms = part.cross.norms.copy()
    norms[:, :, 1] = 0
    silent = replace(part, cross=Stack(part.cross.weights, norms))
    assert not silent.map(View(measure="norms"))[:, 1].any()
    assert silent.map(View())[:, 1].all()


def test_lengths_that_are_all_alike_change_nothing():
    part = random_recording().parts[0]
    alike = replace(part, cross=Stack(part.cross.weights, numpy.full_like(part.cross.norms, 3)))
    assert numpy.allclose(alike.map(View(layer=1, measure="norms")), part.map(View(layer=1)))


@pytest.mark.parametrize(("wrong", "said"), [({"layer": 3}, "no layer 3"), ({"head": 2}, "no head 2")])
def test_what_is_not_there_is_named(wrong, said):
    with pytest.raises(ValueError, match=said):
        random_recording().map(View(**wrong))


def permutation(order):
    """One layer, one head that looks exactly at `order`."""
    return numpy.eye(len(order), dtype=numpy.float32)[order][None, None]


def ones(stack):
    return Stack(stack, numpy.ones((*stack.shape[:2], stack.shape[3]), dtype=numpy.float32))


def test_without_self_attention_a_single_layer_rolls_out_to_itself():
    stack = random_stack(numpy.random.default_rng(0), 4, 5, layers=1, heads=2)
    part = Part(cross=stack)
    assert numpy.allclose(part.map(View(measure="rollout")), part.map(View()))


def test_a_rollout_follows_the_encoder_to_where_a_vector_came_from():
    """The decoder looks at place 0; half of that vector is word 0, the other half came from word 2."""
    part = Part(ones(permutation([0])[..., :1, :].repeat(3, -1) * [1, 0, 0]), ones(permutation([2, 1, 0])))
    assert numpy.allclose(part.map(View(measure="rollout")), [[0.5, 0, 0.5]])
    assert numpy.allclose(part.map(View(kind="encoder", measure="rollout"))[0], [0.5, 0, 0.5])


def test_a_rollout_passes_on_what_earlier_outputs_saw():
    """Layer 0: output k looks at word k. Layer 1: output 1 looks back at output 0, and at word 1 again."""
    cross = ones(numpy.concatenate([permutation([0, 1])] * 2))
    own = ones(numpy.concatenate([permutation([0, 1]), permutation([0, 0])]))
    assert numpy.allclose(Part(cross, None, own).map(View(measure="rollout"))[1], [1 / 6, 5 / 6])


def test_missing_kinds_are_named_and_not_counted():
    recording = Recording(Side.plain(["a"]), Side.plain(["x"]), (Part(ones(numpy.ones((1, 1, 1, 1), numpy.float32))),))
    assert recording.kinds == ("cross",)
    with pytest.raises(ValueError, match="no self-attention of the encoder"):
        recording.map(View(kind="encoder"))
    assert Recording(Side.plain([]), Side.plain([]), ()).kinds == ()


def test_weights_that_do_not_fit_the_words_are_refused():
    with pytest.raises(ValueError, match="do not fit 1 outputs × 2 inputs"):
        Recording(Side.plain(["a", "b"]), Side.plain(["x"]), (Part(ones(numpy.ones((1, 1, 2, 2), numpy.float32))),))
    with pytest.raises(ValueError, match="do not fit lengths"):
        Stack(numpy.ones((1, 1, 2, 2), numpy.float32), numpy.ones((1, 2, 2), numpy.float32))


def test_a_row_that_looked_nowhere_stays_zero():
    assert shares(numpy.array([[0.0, 0.0], [1.0, 3.0]])).tolist() == [[0, 0], [0.25, 0.75]]


def test_outside_the_blocks_is_what_was_asked_for():
    whole = along_the_diagonal([numpy.ones((1, 2)), numpy.ones((2, 1))], empty=-1)
    assert whole.tolist() == [[1, 1, -1], [-1, -1, 1], [-1, -1, 1]]
