"""eole, through its `train` function; with its own mixed precision if the job has bfloat16.

Batches: rows × the longest side within the budget, from a bucket sorted by length.
"""

from importlib.metadata import version
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer

from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of, write_words

facts: dict[str, Any] = {"version": version("eole")}
ATTENTIONS = {"rnn-luong": "general", "rnn-bahdanau": "mlp"}
PRECISIONS = {"float32": "fp32", "bfloat16": "bf16"}


def settings(job: Job) -> dict[str, Any]:
    """Return the content of its YAML file."""
    corpora = {
        name: {"path_src": job.file(f"{split}.source"), "path_tgt": job.file(f"{split}.target"), "transforms": []}
        for name, split in (("corpus", "train"), ("valid", "dev"))
    }
    return {
        "data": corpora,
        "src_vocab": write_words(job),
        "tgt_vocab": write_words(job),
        "share_vocab": True,
        "vocab_size_multiple": 1,
        "seed": job.seed,
        "report_every": 100,
        "training": training(job),
        "model": transformer(job) if job.arch == "transformer" else recurrent(job),
    }


def training(job: Job) -> dict[str, Any]:
    return {
        "model_path": job.scratch("model"),
        "batch_size": job.batch_tokens,
        "batch_type": "tokens",
        "batch_size_multiple": 1,
        "normalization": "tokens",
        "bucket_size": 16_384,
        "num_workers": 0,
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": RATE,
        "max_grad_norm": 1.0,
        "param_init_method": "xavier_uniform",
        "dropout": [job.dropout],
        "attention_dropout": [0.0],
        "label_smoothing": job.label_smoothing,
        "compute_dtype": PRECISIONS[job.precision],
        "train_steps": 1_000_000,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "gpu_ranks": [],
        "world_size": 1,
    }


def transformer(job: Job) -> dict[str, Any]:
    """Return the model section; pre-norm is its default, biases must be enabled."""
    numbers = job.model
    return {
        "architecture": "transformer",
        "hidden_size": numbers["width"],
        "heads": numbers["heads"],
        "transformer_ff": numbers["feed_forward_width"],
        "add_qkvbias": True,
        "add_final_linear_bias": True,
        "add_ffnbias": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "embeddings": {"word_vec_size": numbers["width"], "position_encoding_type": "SinusoidalInterleaved"},
        "encoder": {"encoder_type": "transformer", "layers": numbers["encoder_layers"]},
        "decoder": {"decoder_type": "transformer", "layers": numbers["decoder_layers"]},
    }


def recurrent(job: Job) -> dict[str, Any]:
    """Return the model section; as in Luong's model, attention follows the step, also with the additive score."""
    numbers = job.model
    cell = {"layers": numbers["layers"], "hidden_size": numbers["width"], "rnn_type": numbers["cell"].upper()}
    return {
        "architecture": "custom",  # under "rnn" it silently makes the encoder one-directional
        "hidden_size": numbers["width"],
        "input_feed": int(numbers.get("input_feeding", True)),
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "embeddings": {"word_vec_size": numbers["width"]},
        "encoder": {"encoder_type": "brnn", **cell},  # its bridge does not fit a bidirectional encoder
        "decoder": {"decoder_type": "rnn", "global_attention": ATTENTIONS[job.arch], **cell},
    }


def run(job: Job, meter: Meter) -> None:
    """Count each batch that enters its training step."""
    torch.set_num_threads(job.threads)
    step = Trainer._train_step

    def step_and_count(self: Any, batches: Any, *rest: Any, **named: Any) -> Any:
        facts["parameters"] = parameters_of(self.model)
        padding = self.train_loss.padding_idx
        meter.batch(sum(int((batch["tgt"][:, 1:] != padding).sum()) for batch in batches))
        return step(self, batches, *rest, **named)

    Trainer._train_step = step_and_count
    train(TrainConfig(**settings(job)))


if __name__ == "__main__":
    measure(run, lambda: facts)
