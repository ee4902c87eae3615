"""A trainer on a few lines, whose text is preprocessed once for all tests, and a callback that records events."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from corpora import corpus, small
from softgaze.config import Config, resolve
from softgaze.training import trainer as trainer_module
from softgaze.training.callbacks import Callback, Update, Validation
from softgaze.training.preprocess import PreprocessedData, preprocess
from softgaze.training.run_directory import RunDirectory
from softgaze.training.signals import StopRequest
from softgaze.training.train import make_trainer
from softgaze.training.trainer import Trainer


class EventLog(Callback):
    """Records updates, validations and messages."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.validations: list[Validation] = []
        self.messages: list[str] = []

    @property
    def steps(self) -> list[int]:
        return [update.step for update in self.updates]

    def on_update(self, update: Update, share: float | None) -> None:
        self.updates.append(update)

    def on_validation(self, validation: Validation) -> None:
        self.validations.append(validation)

    def on_message(self, message: str) -> None:
        self.messages.append(message)


@cache
def preprocessed() -> PreprocessedData:
    """Sixty pairs, not to be changed; removed after all tests."""
    directory = Path(tempfile.mkdtemp(prefix="softgaze-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    config = small()
    return preprocess(directory / "encoded", corpus(directory), None, config.data, config.training.seed)


def trainer(path: Path, config: Config | None = None, callback: Callback = Callback()) -> Trainer:
    """Return a trainer as `train` makes it, before it resumes."""
    config = resolve(config or small())
    path.mkdir(exist_ok=True)
    run = RunDirectory(path)
    run.prepare(config, fresh=False)
    return make_trainer(run, config, preprocessed(), torch.device("cpu"), callback)


def complete(trainer: Trainer) -> dict[str, Any]:
    """Resume and train to the end."""
    trainer.resume()
    assert trainer.train(StopRequest())
    return trainer.finish()


def script_scores(monkeypatch: pytest.MonkeyPatch, *bleu: float) -> None:
    """Make validations return these BLEU scores in order, then the last forever, without translating."""
    remaining = list(bleu)

    def validate(*arguments: Any) -> tuple[dict[str, float], tuple[()]]:
        score = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return {"loss": 1.0, "bleu": score, "chrf": score}, ()

    monkeypatch.setattr(trainer_module, "validate", validate)


def spoil_weights(monkeypatch, step):
    """Put a NaN into the weights after the first update of this step; the returned list is then not empty."""
    original, spoiled = Trainer.update, []

    def update(self, batches):
        result = original(self, batches)
        if self.progress.step == step and not spoiled:
            spoiled.append(next(self.model.parameters()).data.view(-1)[0].fill_(torch.nan))
        return result

    monkeypatch.setattr(Trainer, "update", update)
    return spoiled
