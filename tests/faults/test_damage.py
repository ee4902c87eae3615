"""One bit flipped, or some bytes cut, anywhere: refused by name, and an older checkpoint used where there is one.

Nothing damaged is ever loaded in silence. The long form of `make soak` strikes each 200 times.
"""

import random
import shutil
from pathlib import Path

import pytest
import torch

from bundles import tiny_bundle
from engines.exported import exported, lively_bundle
from faults.amounts import times
from runs import EventLog, complete, preprocessed, trainer
from softgaze.errors import DataError
from softgaze.models import build_model
from softgaze.training.checkpoint import (
    TrainingProgress,
    checkpoints,
    load_checkpoint,
    newest_checkpoint,
    parameters_of,
    save_checkpoint,
)
from softgaze.training.preprocess import PreprocessedData
from softgaze.translator import load

STRIKES = times(40, 200)


def files_of(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def damage(path: Path, dice: random.Random) -> str:
    """Flip one bit, or cut the end off; where small files matter as much as large ones."""
    content = bytearray(path.read_bytes())
    place = dice.randrange(len(content))
    if dice.random() < 0.5:
        path.write_bytes(content[: dice.choice([place, len(content) - 1])])
        return f"{path.name} cut at {place:,}"
    content[place] ^= 1 << dice.randrange(8)
    path.write_bytes(content)
    return f"{path.name} flipped at {place:,}"


def strikes(seed: str, names: list[str]):
    """Which file next, each as often as the others."""
    dice = random.Random(seed)
    return [(dice, names[number % len(names)]) for number in range(STRIKES)]


@pytest.fixture(scope="module", params=["torch", "ctranslate2", "onnx"])
def bundle(request, tmp_path_factory):
    """A model as it was trained, and exported to each engine."""
    if request.param == "torch":
        return tiny_bundle()
    place = tmp_path_factory.mktemp("exported")
    changes = {"arch": "rnn-luong", "options": {"width": 16}} if request.param == "onnx" else {}
    return exported(lively_bundle(place / "plain", **changes), place / request.param, request.param, told=None)


def test_a_damaged_bundle_is_never_loaded(tmp_path, bundle, monkeypatch):
    """Refused before an engine sees it: those read damaged files in silence."""
    names = [str(path.relative_to(bundle)) for path in files_of(bundle)]
    names = [name for name in names if not name.startswith(".engines/")]  # made again if damaged: test_conversion.py
    assert "manifest.json" in names
    monkeypatch.setattr("softgaze.translator.open_engine", lambda *_: "anything")
    assert load(bundle).engine == "anything"
    for number, (dice, name) in enumerate(strikes("bundle", names)):
        place = Path(shutil.copytree(bundle, tmp_path / str(number)))
        what = damage(place / name, dice)
        with pytest.raises(DataError) as caught:
            pytest.fail(f"{what}: loaded in silence: {load(place)}")
        assert name in str(caught.value) or name == "manifest.json", what
        assert str(place) in str(caught.value)
        assert "\n" not in str(caught.value)
        shutil.rmtree(place)


def model_and_optimiser():
    torch.manual_seed(3)
    model = build_model("rnn-luong", source_vocabulary=20, width=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    sum(value.square().sum() for value in model.parameters()).backward()
    optimizer.step()
    return model, optimizer


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    place = tmp_path_factory.mktemp("checkpoints")
    model, optimizer = model_and_optimiser()
    for step in (1, 2):
        save_checkpoint(place, model, optimizer, TrainingProgress(step=step))
    return place, parameters_of(model)


def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path, two_checkpoints):
    plain, weights = two_checkpoints
    names = [path.name for path in files_of(plain / "step-00000002")]
    assert len(names) == 4
    for number, (dice, name) in enumerate(strikes("checkpoint", names)):
        place = Path(shutil.copytree(plain, tmp_path / str(number)))
        what = damage(place / "step-00000002" / name, dice)
        found, complaints = newest_checkpoint(place)
        assert found == place / "step-00000001", what
        assert len(complaints) == 1
        assert "step-00000002" in complaints[0]
        model, optimizer = model_and_optimiser()
        assert load_checkpoint(found, model, optimizer).step == 1
        assert all(torch.equal(value, weights[key]) for key, value in parameters_of(model).items())
        shutil.rmtree(place)


def test_damaged_checkpoints_neither_count_nor_vanish(tmp_path, two_checkpoints):
    """Else those to come would be taken for the old ones to remove, having smaller numbers."""
    place = Path(shutil.copytree(two_checkpoints[0], tmp_path / "place"))
    damage(place / "step-00000002" / "progress.json", random.Random(1))
    newest_checkpoint(place)
    assert sorted(path.name for path in place.iterdir()) == ["damaged-step-00000002", "step-00000001"]
    save_checkpoint(place, *model_and_optimiser(), TrainingProgress(step=2))
    assert [path.name for path in checkpoints(place)] == ["step-00000001", "step-00000002"]


def test_without_a_whole_checkpoint_nothing_is_begun_again(tmp_path, two_checkpoints):
    place = Path(shutil.copytree(two_checkpoints[0], tmp_path / "run" / "checkpoints"))
    for path in checkpoints(place):
        damage(path / "weights.safetensors", random.Random(1))
    with pytest.raises(DataError, match=r"step-00000002.*no older checkpoint of this run is intact.*--init.*--fresh"):
        newest_checkpoint(place)
    assert len(checkpoints(place)) == 2


def test_a_run_goes_on_from_the_checkpoint_before(tmp_path):
    complete(trainer(tmp_path / "straight"))
    complete(trainer(tmp_path / "run"))
    damage(tmp_path / "run" / "checkpoints" / "step-00000008" / "optimiser.safetensors", random.Random(2))
    (tmp_path / "run" / "result.json").unlink()
    notes = EventLog()
    complete(trainer(tmp_path / "run", callback=notes))
    assert "step-00000008" in notes.messages[0]
    assert "using an older checkpoint" in notes.messages[0]
    assert notes.steps == [5, 6, 7, 8]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "run")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("seed", range(times(3, 20)))
def test_a_damaged_snapshot_is_left_out_of_the_average(tmp_path, seed):
    complete(trainer(tmp_path / "run"))
    snapshots = sorted((tmp_path / "run" / "checkpoints").glob("snapshot-*"))
    assert len(snapshots) == 2
    damage(snapshots[0], random.Random(seed))
    (tmp_path / "run" / "result.json").unlink()
    complete(trainer(tmp_path / "run", callback=(notes := EventLog())))
    assert any(f"{snapshots[0].name}" in message and "left out" in message for message in notes.messages)
    assert not any("average of" in message for message in notes.messages)


def test_damaged_encoded_text_is_refused(tmp_path):
    """Training on another text than was given would go unnoticed for ever."""
    plain = tmp_path / "plain"
    shutil.copytree(encoded(), plain)
    names = [str(path.relative_to(plain)) for path in files_of(plain) if path.name != "facts.json"]
    for number, (dice, name) in enumerate(strikes("encoded", names)):
        place = Path(shutil.copytree(plain, tmp_path / str(number)))
        if not (place / name).stat().st_size:
            continue
        what = damage(place / name, dice)
        with pytest.raises(DataError) as caught:
            pytest.fail(f"{what}: opened in silence: {PreprocessedData.open(place)}")
        assert name in str(caught.value), what
        assert f"remove {place}" in str(caught.value)
        shutil.rmtree(place)


def encoded() -> Path:
    """Where the text of `runs.data` lies."""
    tokens = preprocessed().train.shards[0][0].tokens
    return Path(tokens.filename).parents[1]
