"""A trainer on a few lines, whose text is prepared once for all tests, and a listener that keeps what it hears."""

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
from softgaze.training import loop as loop_module
from softgaze.training.launch import make_trainer
from softgaze.training.listeners import Listener, Update, Validation
from softgaze.training.loop import Trainer
from softgaze.training.prepare import Prepared, prepare
from softgaze.training.run import RunDirectory
from softgaze.training.signals import Stop


class Notes(Listener):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.validations: list[Validation] = []
        self.messages: list[str] = []

    @property
    def steps(self) -> list[int]:
        return [update.step for update in self.updates]

    def updated(self, update: Update, share: float | None) -> None:
        self.updates.append(update)

    def validated(self, validation: Validation) -> None:
        self.validations.append(validation)

    def said(self, message: str) -> None:
        self.messages.append(message)


@cache
def prepared() -> Prepared:
    """Sixty pairs, not to be changed; removed when all tests are done."""
    directory = Path(tempfile.mkdtemp(prefix="softgaze-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    config = small()
    return prepare(directory / "encoded", corpus(directory), None, config.data, config.training.seed)


def trainer(path: Path, config: Config | None = None, listener: Listener = Listener()) -> Trainer:
    """As `train` makes it, about to resume."""
    config = resolve(config or small())
    path.mkdir(exist_ok=True)
    run = RunDirectory(path)
    run.prepare(config, fresh=False)
    return make_trainer(run, config, prepared(), torch.device("cpu"), listener)


def complete(trainer: Trainer) -> dict[str, Any]:
    """From where it stands to the end."""
    trainer.resume()
    assert trainer.train(Stop())
    return trainer.finish()


def script_scores(monkeypatch: pytest.MonkeyPatch, *bleu: float) -> None:
    """Validations find these, one after the other, and then the last for ever; nothing is translated."""
    left = list(bleu)

    def quality(*arguments: Any) -> tuple[dict[str, float], tuple[()]]:
        found = left.pop(0) if len(left) > 1 else left[0]
        return {"loss": 1.0, "bleu": found, "chrf": found}, ()

    monkeypatch.setattr(loop_module, "quality", quality)


def spoil_weights(monkeypatch, step):
    """The weights have a NaN after this update, the first time it is made; what is returned then has an item."""
    plain, spoilt = Trainer.update, []

    def update(self, group):
        result = plain(self, group)
        if self.progress.step == step and not spoilt:
            spoilt.append(next(self.model.parameters()).data.view(-1)[0].fill_(torch.nan))
        return result

    monkeypatch.setattr(Trainer, "update", update)
    return spoilt
