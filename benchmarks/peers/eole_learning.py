"""eole trained for some minutes; its greedy translations of the development text at each checkpoint go to a file.

It uses its own `train` with the schedule of its Transformer recipes ("noam"). Time spent on checkpoints is not counted;
they are translated after the training.
"""

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import PredictConfig, TrainConfig
from eole.inference_engine import InferenceEnginePY
from eole.models.model_saver import TrainingModelSaver
from eole.trainer import Trainer

from benchmarks.peers.eole import settings
from benchmarks.peers.job import Job


class OutOfTime(BaseException):
    """Raised by the first update after the budget."""


def learning(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Return its settings with a highest learning rate, a warmup and checkpoints."""
    config = settings(job)
    config["training"] |= {
        "decay_method": "noam",  # rate × (width × updates)^-0.5 after the warmup
        "warmup_steps": options["warmup"],
        "learning_rate": options["learning_rate"] * (job.model["width"] * options["warmup"]) ** 0.5,
        "save_checkpoint_steps": options["every"],
    }
    return config


def train_in_time(job: Job, options: dict[str, Any]) -> list[tuple[int, float]]:
    """Train for the minutes; return update and training seconds of each checkpoint."""
    began, saving, found = 0.0, 0.0, []
    step, save = Trainer._train_step, TrainingModelSaver.save

    def step_or_leave(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal began
        began = began or time.monotonic()
        if time.monotonic() - began - saving > 60 * options["minutes"]:
            raise OutOfTime
        return step(self, *arguments, **named)

    def save_and_note(self: Any, number: int, *arguments: Any, **named: Any) -> None:
        nonlocal saving
        start = time.monotonic()
        found.append((number, start - began - saving))
        save(self, number, *arguments, **named)
        saving += time.monotonic() - start

    Trainer._train_step, TrainingModelSaver.save = step_or_leave, save_and_note
    with suppress(OutOfTime):
        train(TrainConfig(**learning(job, options)))
    return found


def translate(job: Job, checkpoint: int) -> list[str]:
    """Return the greedy translations of the development text, in pieces."""
    nothing = Path(job.scratch("nothing"))
    nothing.write_text("")
    engine = InferenceEnginePY(
        PredictConfig(
            model_path=job.scratch(f"model/step_{checkpoint}"),
            src=str(nothing),
            beam_size=1,
            max_length_ratio=2,
            batch_size=64,
            batch_type="sents",
            gpu_ranks=[],
            world_size=1,
            transforms=[],
        )
    )
    lines = Path(job.file("dev.source")).read_text("utf-8").rstrip("\n").split("\n")
    _, _, found = engine.infer_list(lines)
    return [best[0] for best in found]


if __name__ == "__main__":
    job, options = Job.read(sys.argv[1]), json.loads(sys.argv[2])
    torch.set_num_threads(job.threads)
    with open(job.scratch("validations.jsonl"), "w", encoding="utf-8") as file:
        for step, seconds in train_in_time(job, options):
            row = {"seconds": seconds, "step": step, "sentences": translate(job, step)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
