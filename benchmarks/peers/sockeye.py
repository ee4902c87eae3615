"""Sockeye, through its training program. Its mixed precision is for GPUs only.

Batches: rows × the padded target length of a bucket (`max-word`), within the budget.
"""

import json
import sys
from importlib.metadata import version
from typing import Any

from sockeye import constants
from sockeye.train import main
from sockeye.training import EarlyStoppingTrainer

from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of, write_words

facts: dict[str, Any] = {"version": version("sockeye")}


def arguments(job: Job) -> list[str]:
    numbers = job.model
    vocabulary = write_vocabulary(job)
    named = {
        "source": job.file("train.source"),
        "target": job.file("train.target"),
        "validation-source": job.file("dev.source"),
        "validation-target": job.file("dev.target"),
        "source-vocab": vocabulary,
        "target-vocab": vocabulary,
        "output": job.scratch("model"),
        "batch-type": "max-word",
        "batch-size": job.batch_tokens,
        "batch-sentences-multiple-of": 1,
        "max-seq-len": "256:256",
        "num-layers": f"{numbers['encoder_layers']}:{numbers['decoder_layers']}",
        "transformer-model-size": f"{numbers['width']}:{numbers['width']}",
        "transformer-attention-heads": f"{numbers['heads']}:{numbers['heads']}",
        "transformer-feed-forward-num-hidden": f"{numbers['feed_forward_width']}:{numbers['feed_forward_width']}",
        "transformer-preprocess": "n:n",
        "transformer-postprocess": "dr:dr",
        "transformer-dropout-prepost": f"{job.dropout}:{job.dropout}",
        "transformer-dropout-act": f"{job.dropout}:{job.dropout}",
        "transformer-dropout-attention": "0.0:0.0",
        "weight-tying-type": "src_trg_softmax",
        "label-smoothing": job.label_smoothing,
        "optimizer": "adam",
        "initial-learning-rate": RATE,
        "gradient-clipping-type": "norm",
        "gradient-clipping-threshold": 1.0,
        "checkpoint-interval": 1_000_000,
        "max-updates": 1_000_000,
        "decode-and-evaluate": 0,
        "seed": job.seed,
    }
    flags = ["--shared-vocab", "--use-cpu", "--overwrite-output"]
    return flags + [word for name, value in named.items() for word in (f"--{name}", str(value))]


def write_vocabulary(job: Job) -> str:
    """Write its special tokens, then the pieces; return the path."""
    with open(write_words(job), encoding="utf-8") as file:
        pieces = file.read().split()
    words = [constants.PAD_SYMBOL, constants.UNK_SYMBOL, constants.BOS_SYMBOL, constants.EOS_SYMBOL, *pieces]
    path = job.scratch("vocabulary.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({word: number for number, word in enumerate(words)}, out)
    return path


def run(job: Job, meter: Meter) -> None:
    """Count each batch that enters its training step."""
    step = EarlyStoppingTrainer._step

    def step_and_count(self: Any, batch: Any) -> Any:
        facts["parameters"] = parameters_of(self.sockeye_model)
        meter.batch(int((batch.labels[constants.TARGET_LABEL_NAME] != constants.PAD_ID).sum()))
        return step(self, batch)

    EarlyStoppingTrainer._step = step_and_count
    sys.argv = ["sockeye-train", *arguments(job)]
    main()


if __name__ == "__main__":
    measure(run, lambda: facts)
