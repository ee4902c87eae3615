"""Recordings and views: rows sum to 1, parts are independent, a rollout follows known paths, selections are stored."""

import json
from dataclasses import replace

import numpy as np
import pytest

from maps import TOKENS, random_recording, random_stack
from softgaze.errors import DataError, UsageError
from softgaze.explain.recording import (
    AttentionStack,
    PartAttention,
    Recording,
    SelectedMap,
    View,
    block_diagonal,
    normalize_rows,
)
from softgaze.explain.word_spans import TokenizedText

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
    weights = recording.map(view)
    sides = {"cross": (1, 0), "encoder": (0, 0), "decoder": (1, 1)}[view.kind]
    rows, columns = ([len(part[side]) + 1 for part in TOKENS] for side in sides)
    assert weights.shape == (sum(rows), sum(columns))
    assert np.allclose(weights.sum(axis=1), 1)
    assert not weights[: rows[0], columns[0] :].any()
    assert not weights[rows[0] :, : columns[0]].any()


def test_layers_heads_and_their_means():
    part = random_recording().parts[0]
    weights = part.cross.weights
    assert np.allclose(part.map(View(layer=1, head=0)), weights[1, 0])
    assert np.allclose(part.map(View(layer=1)), weights[1].mean(0))
    assert np.allclose(part.map(View(head=1)), weights[:, 1].mean(0))
    assert np.allclose(part.map(View()), weights.mean((0, 1)))


def test_a_value_with_norm_zero_gets_no_weight():
    part = random_recording().parts[0]
    norms = part.cross.norms.copy()
    norms[:, :, 1] = 0
    silent = replace(part, cross=AttentionStack(part.cross.weights, norms))
    assert not silent.map(View(measure="norms"))[:, 1].any()
    assert silent.map(View())[:, 1].all()


def test_equal_norms_change_nothing():
    part = random_recording().parts[0]
    alike = replace(part, cross=AttentionStack(part.cross.weights, np.full_like(part.cross.norms, 3)))
    assert np.allclose(alike.map(View(layer=1, measure="norms")), part.map(View(layer=1)))


@pytest.mark.parametrize(("view", "message"), [({"layer": 3}, "no layer 3"), ({"head": 2}, "no head 2")])
def test_a_missing_layer_or_head_is_named(view, message):
    with pytest.raises(ValueError, match=message):
        random_recording().map(View(**view))


def permutation(order):
    """One layer with one head whose row k attends only to `order[k]`."""
    return np.eye(len(order), dtype=np.float32)[order][None, None]


def ones(stack):
    return AttentionStack(stack, np.ones((*stack.shape[:2], stack.shape[3]), dtype=np.float32))


def test_without_self_attention_a_single_layer_rolls_out_to_itself():
    stack = random_stack(np.random.default_rng(0), 4, 5, layers=1, heads=2)
    part = PartAttention(cross=stack)
    assert np.allclose(part.map(View(measure="rollout")), part.map(View()))


def test_a_rollout_includes_the_encoder():
    """The decoder attends to position 0; half of that vector is word 0, the other half word 2."""
    part = PartAttention(ones(permutation([0])[..., :1, :].repeat(3, -1) * [1, 0, 0]), ones(permutation([2, 1, 0])))
    assert np.allclose(part.map(View(measure="rollout")), [[0.5, 0, 0.5]])
    assert np.allclose(part.map(View(kind="encoder", measure="rollout"))[0], [0.5, 0, 0.5])


def test_a_rollout_includes_the_decoder():
    """Layer 0: output k attends to word k. Layer 1: output 1 attends to output 0, and to word 1 again."""
    cross = ones(np.concatenate([permutation([0, 1])] * 2))
    decoder = ones(np.concatenate([permutation([0, 1]), permutation([0, 0])]))
    assert np.allclose(PartAttention(cross, None, decoder).map(View(measure="rollout"))[1], [1 / 6, 5 / 6])


def test_missing_kinds_are_named_and_not_counted():
    recording = Recording(
        TokenizedText.from_words(["a"]),
        TokenizedText.from_words(["x"]),
        (PartAttention(ones(np.ones((1, 1, 1, 1), np.float32))),),
    )
    assert recording.kinds == ("cross",)
    with pytest.raises(ValueError, match="no self-attention of the encoder"):
        recording.map(View(kind="encoder"))
    assert Recording(TokenizedText.from_words([]), TokenizedText.from_words([]), ()).kinds == ()


def test_weights_of_the_wrong_shape_are_rejected():
    with pytest.raises(ValueError, match="1 queries × 2 keys, got 2 × 2"):
        Recording(
            TokenizedText.from_words(["a", "b"]),
            TokenizedText.from_words(["x"]),
            (PartAttention(ones(np.ones((1, 1, 2, 2), np.float32))),),
        )
    with pytest.raises(ValueError, match="need value norms"):
        AttentionStack(np.ones((1, 1, 2, 2), np.float32), np.ones((1, 2, 2), np.float32))


def test_a_row_of_zeros_stays_zero():
    assert normalize_rows(np.array([[0.0, 0.0], [1.0, 3.0]])).tolist() == [[0, 0], [0.25, 0.75]]


def test_blocks_lie_on_the_diagonal():
    matrix = block_diagonal([np.ones((1, 2)), np.ones((2, 1))])
    assert matrix.tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 1]]


# --- views


def test_a_description_names_every_option():
    description = View(layer=2, head=1, rows="reading", measure="norms").describe(4, 2)
    for words in (
        "cross-attention",
        "layer 2 of 0–3",
        "head 1 of 0–1",
        "value norms",
        "words with their punctuation",
        "after reading",
    ):
        assert words in description


def test_a_description_names_means():
    assert "mean of 4 layers, mean of 2 heads" in View().describe(4, 2)
    assert "one layer, one head" in View(layer=0).describe(1, 1)
    assert "layer" not in View(measure="rollout").describe(4, 2).replace("through all layers", "")


def test_encoder_rows_are_not_shifted():
    assert "after reading" in View(kind="encoder").describe(1, 1)
    assert not View(kind="encoder", rows="reading").is_shifted


@pytest.mark.parametrize("wrong", [{"kind": "cros"}, {"rows": "writing"}, {"measure": "weight"}, {"unit": "letters"}])
def test_unknown_options_are_rejected(wrong):
    with pytest.raises(UsageError, match="unknown"):
        View(**wrong)


@pytest.mark.parametrize("wrong", [{"layer": -1}, {"head": 1.5}, {"layer": True}])
def test_invalid_indices_are_rejected(wrong):
    with pytest.raises(ValueError, match="integer of at least 0"):
        View(**wrong)


def test_a_selected_map_survives_json_and_ignores_other_keys():
    selected = SelectedMap(View(layer=1, head=0, rows="reading"), 0.625, "occlusion", 24)
    stored = json.loads(json.dumps(selected.to_dict())) | {"of": "the future"}
    assert SelectedMap.from_dict(stored) == selected
    assert "0.62 on 24 sentences" in selected.describe()


@pytest.mark.parametrize("wrong", [{}, {"layer": "x"}, {"score": None}])
def test_a_damaged_selection_is_rejected(wrong):
    stored = SelectedMap(View(), 0.5, "occlusion", 24).to_dict() | wrong if wrong else {}
    with pytest.raises(DataError, match="stored selection"):
        SelectedMap.from_dict(stored)
