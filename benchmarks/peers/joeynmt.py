"""JoeyNMT, through its `train` function. It has no bfloat16 on a CPU.

Batches: rows × the longest side, closed once they reach the budget, without sorting by length.
"""

from importlib.metadata import version
from typing import Any

from joeynmt.training import TrainManager, train

from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of, write_words

facts: dict[str, Any] = {"version": version("joeynmt")}
ATTENTIONS = {"rnn-luong": "luong", "rnn-bahdanau": "bahdanau"}


def settings(job: Job) -> dict[str, Any]:
    """Return the content of its YAML file."""
    side = {"level": "word", "lowercase": False, "normalize": False, "max_length": 256, "voc_file": write_words(job)}
    return {
        "name": "benchmark",
        "model_dir": job.out,
        "use_cuda": False,
        "fp16": False,
        "num_workers": 0,
        "random_seed": job.seed,
        "data": {
            "train": job.file("train"),
            "dev": job.file("dev"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {"batch_size": 64},
        "training": training(job),
        "model": transformer(job) if job.arch == "transformer" else recurrent(job),
    }


def training(job: Job) -> dict[str, Any]:
    return {
        "batch_size": job.batch_tokens,
        "batch_type": "token",
        "normalization": "tokens",
        "optimizer": "adam",
        "learning_rate": RATE,
        "scheduling": "warmupinversesquareroot",  # its plateau and none do not start under this torch
        "learning_rate_min": 1e-9,
        "label_smoothing": job.label_smoothing,
        "clip_grad_norm": 1.0,
        "epochs": 1_000_000,
        "validation_freq": 1_000_000,
        "logging_freq": 100,
    }


def transformer(job: Job) -> dict[str, Any]:
    """Return the model section of a Transformer; pre-norm, as ours, unless the job has another kind."""
    numbers = job.model
    common = {
        "type": "transformer",
        "num_heads": numbers["heads"],
        "hidden_size": numbers["width"],
        "ff_size": numbers["feed_forward_width"],
        "dropout": job.dropout,
        "layer_norm": numbers.get("residual", "pre"),
        "embeddings": {"embedding_dim": numbers["width"], "scale": True, "dropout": job.dropout},
    }
    return {
        "initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**common, "num_layers": numbers["encoder_layers"]},
        "decoder": {**common, "num_layers": numbers["decoder_layers"]},
    }


def recurrent(job: Job) -> dict[str, Any]:
    """Return the model section of an RNN; the width of its bidirectional encoder is that of one direction."""
    numbers = job.model
    common = {
        "type": "recurrent",
        "rnn_type": numbers["cell"],
        "num_layers": numbers["layers"],
        "dropout": job.dropout,
        "embeddings": {"embedding_dim": numbers["width"], "scale": False, "dropout": job.dropout},
    }
    return {
        "initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**common, "hidden_size": numbers["width"] // 2, "bidirectional": True},
        "decoder": {
            **common,
            "hidden_size": numbers["width"],
            "attention": ATTENTIONS[job.arch],
            "input_feeding": numbers.get("input_feeding", True),
            "hidden_dropout": job.dropout,
            "init_hidden": "bridge",
        },
    }


def run(job: Job, meter: Meter) -> None:
    """Count each batch that enters its training step."""
    step = TrainManager._train_step

    def step_and_count(self: Any, batch: Any) -> Any:
        facts["parameters"] = parameters_of(self.model)
        meter.batch(batch.ntokens)
        return step(self, batch)

    TrainManager._train_step = step_and_count
    train(rank=0, world_size=None, cfg=settings(job), skip_test=True)


if __name__ == "__main__":
    measure(run, lambda: facts)
