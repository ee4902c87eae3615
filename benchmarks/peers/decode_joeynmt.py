"""JoeyNMT, through its `search` function."""

from collections.abc import Sequence
from importlib.metadata import version
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from torch.nn.utils.rnn import pad_sequence

from benchmarks.peers.batching import END
from benchmarks.peers.decode_job import Decode, Orders, Sentences, measure
from benchmarks.peers.job import SPECIAL
from benchmarks.peers.joeynmt import recurrent, transformer

PAD = 1


def prepare(orders: Orders) -> Decode:
    """A fresh model."""
    torch.set_num_threads(orders.job.threads)
    torch.manual_seed(1)
    vocabulary = special(orders.job.vocabulary)
    shape = transformer if orders.job.arch == "transformer" else recurrent
    model = build_model(shape(orders.job), src_vocab=vocabulary, trg_vocab=vocabulary).eval()

    def decode(sentences: Sentences) -> list[int]:
        counts = []
        for ids in orders.batches(orders.ids(sentences)):
            found, _, _ = search(
                model,
                batch_of(ids),
                orders.length,
                0 if orders.beam == 1 else orders.beam,
                1.0,
                min_output_length=orders.length,
                generate_unk=False,
            )
            counts += [found.shape[1]] * len(found)
        return counts

    return decode


def special(size: int) -> Vocabulary:
    """As many words as everybody has; it wants the unknown one first, and padding second."""
    names = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>", "sep": None}
    ids = {"unk": 0, "pad": PAD, "bos": 2, "eos": END, "sep": None}
    marks = {f"{name}_token": value for name, value in names.items()} | {f"{n}_id": value for n, value in ids.items()}
    return Vocabulary([f"w{number}" for number in range(size - SPECIAL)], SimpleNamespace(lang_tags=[], **marks))


def batch_of(ids: Sequence[Sequence[int]]) -> Batch:
    """As its loader makes them."""
    rows = [torch.tensor([*row, END]) for row in sorted(ids, key=len, reverse=True)]  # as its RNNs want them
    return Batch(
        src=pad_sequence(rows, batch_first=True, padding_value=PAD),
        src_length=torch.tensor([len(row) for row in rows]),
        src_prompt_mask=None,
        trg=None,
        trg_prompt_mask=None,
        indices=torch.arange(len(rows)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=END,
        is_train=False,
    )


if __name__ == "__main__":
    measure(prepare, version("joeynmt"))
