"""Hugging Face's Marian model and its `generate`, with its cache."""

import torch
import transformers
from transformers import MarianMTModel

from benchmarks.peers.batching import END, PAD, padded
from benchmarks.peers.decode_job import Decode, Orders, Sentences, measure
from benchmarks.peers.marian import configuration


def prepare(orders: Orders) -> Decode:
    """A fresh model."""
    torch.set_num_threads(orders.job.threads)
    torch.manual_seed(1)
    model = MarianMTModel(configuration(orders.job)).eval()
    model.generation_config.forced_eos_token_id = None
    lengths = {"min_new_tokens": orders.length, "max_new_tokens": orders.length}

    def decode(sentences: Sentences) -> list[int]:
        counts = []
        for batch in orders.batches(orders.ids(sentences)):
            source = torch.tensor(padded([[*ids, END] for ids in batch]))
            found = model.generate(
                source,
                attention_mask=(source != PAD).long(),
                num_beams=orders.beam,
                do_sample=False,
                use_cache=True,
                **lengths,
            )
            counts += [found.shape[1] - 1] * len(batch)  # all but the token it starts with
        return counts

    return decode


if __name__ == "__main__":
    measure(prepare, transformers.__version__)
