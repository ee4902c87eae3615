"""Hugging Face's Marian model with random weights in Hugging Face's own Trainer.

The Trainer batches by sentences only, so it is given batches of a token budget (benchmarks/peers/batching.py).
Marian is post-norm and has no other kind; the operations are the same.
"""

from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch.utils.data import DataLoader, IterableDataset
from transformers import MarianConfig, MarianMTModel, Seq2SeqTrainer, Seq2SeqTrainingArguments

from benchmarks.peers.batching import BOS, EOS, PAD, batches, padded
from benchmarks.peers.job import RATE, Job, Meter, measure, parameters_of, read_ids

facts: dict[str, Any] = {"version": transformers.__version__}
IGNORED = -100  # the label that its loss ignores


class Batches(IterableDataset[dict[str, Any]]):
    def __init__(self, job: Job) -> None:
        self.job, self.pairs = job, read_ids(job, "train")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in batches(self.pairs, self.job.batch_tokens, self.job.seed):
            source = torch.tensor(padded([[*source, EOS] for source, _ in batch]))
            target = torch.tensor(padded([[BOS, *target] for _, target in batch]))
            wanted = torch.tensor(padded([[*target, EOS] for _, target in batch]))
            yield {
                "input_ids": source,
                "attention_mask": (source != PAD).long(),
                "decoder_input_ids": target,
                "labels": wanted.masked_fill(wanted == PAD, IGNORED),
            }


def configuration(job: Job) -> MarianConfig:
    numbers = job.model
    return MarianConfig(
        vocab_size=job.vocabulary,
        d_model=numbers["width"],
        encoder_layers=numbers["encoder_layers"],
        decoder_layers=numbers["decoder_layers"],
        encoder_attention_heads=numbers["heads"],
        decoder_attention_heads=numbers["heads"],
        encoder_ffn_dim=numbers["feed_forward_width"],
        decoder_ffn_dim=numbers["feed_forward_width"],
        activation_function="relu",
        dropout=job.dropout,
        attention_dropout=0.0,
        activation_dropout=job.dropout,
        scale_embedding=True,
        max_position_embeddings=512,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=BOS,
        use_cache=False,
    )


class CountedTrainer(Seq2SeqTrainer):
    """Its own loop, with our batches, each reported to the meter."""

    meter: Meter

    def get_train_dataloader(self) -> Any:
        return DataLoader(self.train_dataset, batch_size=None)

    def training_step(self, model: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
        self.meter.batch(int((inputs["labels"] != IGNORED).sum()))
        return super().training_step(model, inputs, *rest, **named)


def run(job: Job, meter: Meter) -> None:
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    model = MarianMTModel(configuration(job))
    facts["parameters"] = parameters_of(model)
    arguments = Seq2SeqTrainingArguments(
        output_dir=job.out,
        use_cpu=True,
        bf16=job.precision == "bfloat16",
        max_steps=1_000_000,
        learning_rate=RATE,
        adam_beta2=0.98,
        max_grad_norm=1.0,
        label_smoothing_factor=job.label_smoothing,
        logging_steps=100,
        save_strategy="no",
        report_to=[],
        dataloader_num_workers=0,
        disable_tqdm=True,
        seed=job.seed,
    )
    trainer = CountedTrainer(model=model, args=arguments, train_dataset=Batches(job))
    trainer.meter = meter
    trainer.train()


if __name__ == "__main__":
    measure(run, lambda: facts)
