"""A checkpoint puts everything back bit by bit; a damaged one is refused by name."""

import pytest
import torch

from softgaze.errors import DataError
from softgaze.files import TEMPORARY
from softgaze.models import build
from softgaze.training.checkpoint import (
    KEEP,
    Progress,
    check_checkpoint,
    checkpoints,
    load_checkpoint,
    newest_checkpoint,
    save_checkpoint,
)


def model_and_optimiser(seed):
    torch.manual_seed(seed)
    model = build("rnn-luong", source_vocabulary=20, width=8)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)


def learn(model, optimiser):
    """One update that needs no data."""
    optimiser.zero_grad()
    sum((value * torch.arange(value.numel()).view_as(value)).sum() for value in model.parameters()).backward()
    optimiser.step()


def bits(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_training_goes_on_as_if_nothing_had_happened(tmp_path):
    model, optimiser = model_and_optimiser(1)
    learn(model, optimiser)
    path = save_checkpoint(tmp_path, model, optimiser, Progress(step=1, elapsed=2.5, snapshots=["a"]))
    learn(model, optimiser)

    other, fresh = model_and_optimiser(2)
    progress = load_checkpoint(path, other, fresh)
    assert progress == Progress(step=1, elapsed=2.5, snapshots=["a"])
    learn(other, fresh)
    for name, value in bits(model).items():
        assert torch.equal(value, bits(other)[name]), name


def test_only_the_newest_are_kept_and_leftovers_removed(tmp_path):
    model, optimiser = model_and_optimiser(1)
    (tmp_path / f"{TEMPORARY}step-00000009").mkdir()
    for step in range(5):
        save_checkpoint(tmp_path, model, optimiser, Progress(step=step))
    assert [path.name for path in checkpoints(tmp_path)] == [f"step-{step:08d}" for step in range(5 - KEEP, 5)]
    assert not list(tmp_path.glob(f"{TEMPORARY}*"))


@pytest.mark.parametrize("file", ["weights.safetensors", "optimiser.safetensors", "progress.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_checkpoint_is_refused_by_name_and_the_older_one_used(tmp_path, file, damage):
    model, optimiser = model_and_optimiser(1)
    learn(model, optimiser)
    older = save_checkpoint(tmp_path, model, optimiser, Progress(step=1))
    newer = save_checkpoint(tmp_path, model, optimiser, Progress(step=2))
    path = newer / file
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content[:-1] if damage == "cut" else content)
    with pytest.raises(DataError, match=r"step-00000002"):
        check_checkpoint(newer)
    found, complaints = newest_checkpoint(tmp_path)
    assert found == older
    assert len(complaints) == 1
