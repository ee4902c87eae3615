"""JoeyNMT trained for some minutes; its translations of the development text at each validation are written to a file.

It uses its own `train` and its own greedy validation. Time spent on validation is not counted.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import joeynmt.training
from joeynmt.training import TrainManager, train

from benchmarks.peers.job import Job
from benchmarks.peers.joeynmt import settings

started, validating = time.monotonic(), 0.0


def learning(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Return its settings with our learning rate, warm-up and validations."""
    config = settings(job)
    config["testing"] = {"batch_size": 64, "beam_size": 1, "eval_metrics": ["bleu"]}
    config["training"] |= {
        "learning_rate": options["learning_rate"],
        "learning_rate_warmup": options["warmup"],
        "validation_freq": options["every"],
        "logging_freq": options["every"] // 2 or 1,
        "early_stopping_metric": "bleu",
        "keep_best_ckpts": 1,
    }
    return config


def record_validations(path: Path) -> None:
    """Write a row for every validation: training seconds before it, updates, and the translations."""
    validate, predict = TrainManager._validate, joeynmt.training.predict
    outputs: dict[str, Any] = {}

    def predict_and_keep(*arguments: Any, **named: Any) -> Any:
        found = predict(*arguments, **named)
        outputs["sentences"] = list(found[2])
        return found

    def validate_and_write(self: Any, *arguments: Any) -> Any:
        global validating
        began = time.monotonic()
        found = validate(self, *arguments)
        row = {"seconds": began - started - validating, "step": self.stats.steps, **outputs}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        validating += time.monotonic() - began
        return found

    joeynmt.training.predict = predict_and_keep
    TrainManager._validate = validate_and_write


def stop_in_time(minutes: float) -> None:
    """Exit at the first update after the budget."""
    step = TrainManager._train_step

    def step_or_leave(self: Any, batch: Any) -> Any:
        if time.monotonic() - started - validating > 60 * minutes:
            os._exit(0)
        return step(self, batch)

    TrainManager._train_step = step_or_leave


if __name__ == "__main__":
    job, options = Job.read(sys.argv[1]), json.loads(sys.argv[2])
    record_validations(Path(job.scratch("validations.jsonl")))
    stop_in_time(options["minutes"])
    train(rank=0, world_size=None, cfg=learning(job, options), skip_test=True)
