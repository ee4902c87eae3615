"""softgaze itself, through its own `Trainer`: the batches, the loss, the update and the measures of a real run."""

from pathlib import Path
from typing import Any

import softgaze

if __name__ == "__main__":
    softgaze.tune_cpu()  # as the command line does, before torch is imported

import torch

from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of
from softgaze.config import parse_config
from softgaze.data.batching import Batch
from softgaze.training.callbacks import Callback
from softgaze.training.distributed import Distributed
from softgaze.training.preprocess import PreprocessedData
from softgaze.training.run_directory import RunDirectory
from softgaze.training.train import make_trainer
from softgaze.training.trainer import Trainer

# Our own default is rotary, which learns faster and costs a few per cent more; the peers have sinusoids.
AS_PEERS: dict[str, dict[str, Any]] = {"transformer": {"positions": "sinusoidal"}}

model_facts: dict[str, Any] = {}


def trainer_of(job: Job, distributed: Distributed | None = None) -> Trainer:
    """Create a trainer as `softgaze train` does, on the text that was encoded for all contenders."""
    options = {**AS_PEERS.get(job.arch, {}), **job.model, "dropout": job.dropout}
    settings = {
        "model": {"arch": job.arch, "size": job.size, "options": options},
        "training": {
            "seed": job.seed,
            "batch_tokens": job.batch_tokens,
            "label_smoothing": job.label_smoothing,
            "precision": job.precision,
            "learning_rate": RATE,
            "warmup": 0,
        },
    }
    data = PreprocessedData.open(Path(job.corpus) / "encoded")
    Path(job.out).mkdir(parents=True, exist_ok=True)
    run, config = RunDirectory(Path(job.out)), parse_config(settings)
    return make_trainer(run, config, data, torch.device("cpu"), Callback(), distributed=distributed)


def counted(trainer: Trainer, meter: Meter) -> None:
    """Report each batch to the meter before the trainer's own update."""
    update = trainer.update

    def update_and_count(batches: list[Batch]) -> Any:
        meter.batch(sum(tokens_of(trainer, batch) for batch in batches))
        return update(batches)

    trainer.update = update_and_count  # type: ignore[method-assign]


def tokens_of(trainer: Trainer, batch: Batch) -> int:
    """Return the number of target tokens including EOS."""
    lengths = trainer.data.train.lengths(batch.pairs)
    return int(lengths[:, 1].sum()) + len(batch.pairs)


def train(job: Job, meter: Meter) -> None:
    """Train until the meter has enough."""
    trainer = trainer_of(job)
    counted(trainer, meter)
    model_facts["parameters"] = parameters_of(trainer.model)
    model_facts["precision"] = "bfloat16" if trainer.gradients.bfloat16 else "float32"
    for _ in trainer.updates():
        pass


if __name__ == "__main__":
    measure(train, lambda: {"version": softgaze.__version__, **model_facts})
