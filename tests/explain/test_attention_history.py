"""The attention history survives its file, has one view, and ignores an incomplete last line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention
from softgaze.errors import DataError
from softgaze.explain import SelectedMap, View
from softgaze.explain.attention_history import HISTORY_FILE, Snapshot, read_history
from softgaze.explain.attention_map import sharpest_layer

SELECTED = SelectedMap(View(layer=1, head=0, rows="reading", measure="norms"), 0.5, "occlusion", 24)


def snapshot(step):
    scores = {"loss": 9.0 / (step + 1), "bleu": float(step)} if step else {}
    return Snapshot(step, step / 10, scores, f"개가 \u2028자요 {step}", random_attention(seed=step))


def write(path, snapshots):
    path.write_text("".join(f"{each.to_line()}\n" for each in snapshots), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["", HISTORY_FILE])
def test_every_snapshot_survives_in_order(tmp_path, name):
    snapshots = [snapshot(step) for step in (0, 4, 8)]
    write(tmp_path / HISTORY_FILE, snapshots)
    loaded = read_history(tmp_path / name)
    for one, other in zip(loaded, snapshots, strict=True):
        assert (one.step, one.minutes, one.scores, one.text) == (other.step, other.minutes, other.scores, other.text)
        weights = [each.attention.recording.parts[0].cross.weights for each in (one, other)]
        assert np.allclose(*weights, atol=1e-4)


@pytest.mark.parametrize("selected", [None, SELECTED])
def test_all_snapshots_have_the_same_view(tmp_path, selected):
    snapshots = read_history(write(tmp_path / HISTORY_FILE, [snapshot(step) for step in range(5)]), selected)
    assert {each.attention.view for each in snapshots} == {
        selected.view if selected else sharpest_layer(snapshots[-1].attention.recording)
    }
    assert {each.attention.selected_map for each in snapshots} == {selected}


LINES = [f"{snapshot(step).to_line()}\n".encode() for step in (0, 4)]


@given(size=st.integers(0, len(LINES[1])))
def test_an_incomplete_last_line_is_ignored(tmp_path_factory, size):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:size])
    assert [each.step for each in read_history(path)] == ([0, 4] if size == len(LINES[1]) else [0])


def test_an_empty_history(tmp_path):
    assert read_history(write(tmp_path / HISTORY_FILE, [])) == []


@pytest.mark.parametrize("content", [None, "{}\n", "no film\n", '{"step": 1, "attention": 3}\n'])
def test_an_invalid_history_is_rejected_in_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / HISTORY_FILE).write_text(content)
    with pytest.raises(DataError, match=HISTORY_FILE) as caught:
        read_history(tmp_path)
    assert "\n" not in str(caught.value)
