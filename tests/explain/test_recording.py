"""Recordings and views: rows sum to 1, parts are independent, a rollout follows known paths, selections are stored."""

import json
from dataclasses import replace

import numpy as np
import pytest

from maps import TOKENS, random_recording, random_stack
from softgaze.errors import DataError, UsageError
from softgaze.explain.recording import AttentionStack, PartAttention, Recording, SelectedMap, View
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

SELECTED = SelectedMap(View(layer=1, head=0, rows="reading"), 0.625, "occlusion", 24)


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


def test_a_value_with_norm_zero_gets_no_weight():
    part = random_recording().parts[0]
    norms = part.cross.norms.copy()
    norms[:, :, 1] = 0
    silent = replace(part, cross=AttentionStack(part.cross.weights, norms))
    assert not silent.map(View(measure="norms"))[:, 1].any()
    assert silent.map(View())[:, 1].all()


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


def single(source, target, weights):
    return Recording(*map(TokenizedText.from_words, (source, target)), (PartAttention(ones(weights)),))


def test_missing_kinds_are_not_counted():
    assert single("a", "x", np.ones((1, 1, 1, 1), np.float32)).kinds == ("cross",)
    assert Recording(TokenizedText.from_words([]), TokenizedText.from_words([]), ()).kinds == ()


# --- views


def test_a_selected_map_survives_json_and_ignores_other_keys():
    stored = json.loads(json.dumps(SELECTED.to_dict())) | {"of": "the future"}
    assert SelectedMap.from_dict(stored) == SELECTED
    assert "0.62 on 24 sentences" in SELECTED.describe()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: View(kind="cros"), UsageError, "unknown"),
        (lambda: View(rows="writing"), UsageError, "unknown"),
        (lambda: View(measure="weight"), UsageError, "unknown"),
        (lambda: View(unit="letters"), UsageError, "unknown"),
        (lambda: View(layer=-1), ValueError, "integer of at least 0"),
        (lambda: View(head=1.5), ValueError, "integer of at least 0"),
        (lambda: View(layer=True), ValueError, "integer of at least 0"),
        (lambda: SelectedMap.from_dict({}), DataError, "stored selection"),
        (lambda: SelectedMap.from_dict(SELECTED.to_dict() | {"layer": "x"}), DataError, "stored selection"),
        (lambda: SelectedMap.from_dict(SELECTED.to_dict() | {"score": None}), DataError, "stored selection"),
        (lambda: single("ab", "x", np.ones((1, 1, 2, 2), np.float32)), ValueError, "1 queries × 2 keys, got 2 × 2"),
        (lambda: AttentionStack(np.ones((1, 1, 2, 2)), np.ones((1, 2, 2))), ValueError, "need value norms"),
        (lambda: single("a", "x", np.ones((1, 1, 1, 1))).map(View(kind="encoder")), ValueError, "no self-attention"),
    ],
)
def test_invalid_calls_are_rejected(call, error, message):
    with pytest.raises(error, match=message):
        call()
