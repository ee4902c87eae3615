"""Checkpoints restore everything bit by bit; a damaged one is reported and the one before it used."""

import json

import pytest
import torch

from softgaze.atomic_io import TEMPORARY
from softgaze.errors import DataError
from softgaze.models import build_model
from softgaze.training.checkpoint import (
    KEEP,
    TrainingProgress,
    check_checkpoint,
    checkpoints,
    load_checkpoint,
    newest_checkpoint,
    save_checkpoint,
)


def model_and_optimizer(seed):
    torch.manual_seed(seed)
    model = build_model("rnn-luong", source_vocabulary=20, width=8)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)


def learn(model, optimizer):
    """Make one update that needs no data."""
    optimizer.zero_grad()
    sum((value * torch.arange(value.numel()).view_as(value)).sum() for value in model.parameters()).backward()
    optimizer.step()


def parameters(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_a_restored_model_learns_the_same(tmp_path):
    model, optimizer = model_and_optimizer(1)
    learn(model, optimizer)
    path = save_checkpoint(tmp_path, model, optimizer, TrainingProgress(step=1, elapsed=2.5, snapshots=["a"]))
    learn(model, optimizer)

    other, fresh = model_and_optimizer(2)
    progress = load_checkpoint(path, other, fresh)
    assert progress == TrainingProgress(step=1, elapsed=2.5, snapshots=["a"])
    learn(other, fresh)
    for name, value in parameters(model).items():
        assert torch.equal(value, parameters(other)[name]), name


def test_only_the_newest_are_kept_and_leftovers_removed(tmp_path):
    model, optimizer = model_and_optimizer(1)
    (tmp_path / f"{TEMPORARY}step-00000009").mkdir()
    for step in range(5):
        save_checkpoint(tmp_path, model, optimizer, TrainingProgress(step=step))
    assert [path.name for path in checkpoints(tmp_path)] == [f"step-{step:08d}" for step in range(5 - KEEP, 5)]
    assert not list(tmp_path.glob(f"{TEMPORARY}*"))


@pytest.mark.parametrize("file", ["weights.safetensors", "optimiser.safetensors", "progress.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_checkpoint_is_reported_and_the_older_one_used(tmp_path, file, damage):
    model, optimizer = model_and_optimizer(1)
    learn(model, optimizer)
    older = save_checkpoint(tmp_path, model, optimizer, TrainingProgress(step=1))
    newer = save_checkpoint(tmp_path, model, optimizer, TrainingProgress(step=2))
    damaged = newer / file
    content = bytearray(damaged.read_bytes())
    if damage == "gone":
        damaged.unlink()
    else:
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content[:-1] if damage == "cut" else content)
    with pytest.raises(DataError, match=r"step-00000002"):
        check_checkpoint(newer)
    path, errors = newest_checkpoint(tmp_path)
    assert path == older
    assert len(errors) == 1
    assert [entry.name for entry in tmp_path.iterdir() if entry != older] == ["damaged-step-00000002"]


def test_counters_with_earlier_names_are_read(tmp_path):
    model, optimizer = model_and_optimizer(1)
    path = save_checkpoint(tmp_path, model, optimizer, TrainingProgress(step=3))
    earlier = {"step": 3, "elapsed": 9.5, "waited": 0.5, "rate_scale": 0.5, "went_back": True}
    (path / "progress.json").write_text(json.dumps(earlier))
    expected = TrainingProgress(step=3, elapsed=9.5, data_wait=0.5, lr_scale=0.5, rolled_back=True)
    assert load_checkpoint(path, model, optimizer) == expected
