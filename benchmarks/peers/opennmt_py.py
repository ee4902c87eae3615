"""OpenNMT-py, through its `train` function. Its half precision is for GPUs only.

Batches: rows × the longest side within the budget, from a bucket sorted by length.
"""

from importlib.metadata import version
from typing import Any

import torch
from onmt.bin.train import _get_parser, train
from onmt.trainer import Trainer

from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of, write_words

facts: dict[str, Any] = {"version": version("OpenNMT-py")}
ATTENTIONS = {"rnn-luong": "general", "rnn-bahdanau": "mlp"}


def options(job: Job) -> dict[str, Any]:
    """Return its command-line options without the corpora."""
    width = job.model["width"]
    return {
        "src_vocab": write_words(job),
        "save_model": job.scratch("model"),
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "vocab_size_multiple": 1,
        "src_vocab_size": 1_000_000,
        "tgt_vocab_size": 1_000_000,
        "word_vec_size": width,
        "hidden_size": width,
        "dropout": [job.dropout],
        "attention_dropout": [0.0],
        "label_smoothing": job.label_smoothing,
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
        "param_init_glorot": True,
        "param_init": 0,
        "train_steps": 1_000_000,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "report_every": 100,
        "seed": job.seed,
        **(transformer(job) if job.arch == "transformer" else recurrent(job)),
    }


def transformer(job: Job) -> dict[str, Any]:
    numbers = job.model
    return {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": numbers["encoder_layers"],
        "dec_layers": numbers["decoder_layers"],
        "heads": numbers["heads"],
        "transformer_ff": numbers["feed_forward_width"],
        "position_encoding": True,
        "add_qkvbias": True,
    }


def recurrent(job: Job) -> dict[str, Any]:
    """Return the options of an RNN; as in Luong's model, attention follows the step, also with the additive score."""
    numbers = job.model
    return {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "enc_layers": numbers["layers"],
        "dec_layers": numbers["layers"],
        "rnn_type": numbers["cell"].upper(),
        "global_attention": ATTENTIONS[job.arch],
        "input_feed": int(numbers.get("input_feeding", True)),
        "bridge": True,
    }


def run(job: Job, meter: Meter) -> None:
    """Count each batch that enters its training step."""
    torch.set_num_threads(job.threads)
    step = Trainer._gradient_accumulation

    def step_and_count(self: Any, batches: Any, *rest: Any) -> Any:
        facts["parameters"] = parameters_of(self.model)
        padding = self.train_loss.padding_idx
        meter.batch(sum(int((batch["tgt"][:, 1:, 0] != padding).sum()) for batch in batches))
        return step(self, batches, *rest)

    Trainer._gradient_accumulation = step_and_count
    train(parsed(job))


def parsed(job: Job) -> Any:
    """Return the options as its own parser reads them; corpora can only be given in a file."""
    given, _ = _get_parser().parse_known_args(["-config", write_config(job)])
    return given


def write_config(job: Job) -> str:
    import yaml

    corpora = {
        name: {"path_src": job.file(f"{split}.source"), "path_tgt": job.file(f"{split}.target"), "transforms": []}
        for name, split in (("corpus", "train"), ("valid", "dev"))
    }
    path = job.scratch("options.yaml")
    with open(path, "w", encoding="utf-8") as out:
        yaml.safe_dump({**options(job), "data": corpora}, out, allow_unicode=True)
    return path


if __name__ == "__main__":
    measure(run, lambda: facts)
