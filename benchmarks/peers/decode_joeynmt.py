"""JoeyNMT, through its `search` function."""

from collections.abc import Sequence
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from benchmarks.peers.batching import EOS
from benchmarks.peers.decode_job import Decode, Orders, Sentences, Written, measure, until
from benchmarks.peers.job import SPECIAL_TOKENS
from benchmarks.peers.joeynmt import recurrent, transformer
from benchmarks.peers.weights import Names, attention, load, norms, read, renamed

PAD = 1
LAYERS = ("q_layer", "k_layer", "v_layer", "output_layer")
FEED_FORWARD = {
    "feed_forward.inner": "feed_forward.pwff_layer.0",
    "feed_forward.outer": "feed_forward.pwff_layer.3",
    "around_feed_forward.norm": "feed_forward.layer_norm",
}
ENCODER = {**attention("attention", "src_src_att", LAYERS), "around_attention.norm": "layer_norm", **FEED_FORWARD}
DECODER = {
    **attention("attention", "trg_trg_att", LAYERS),
    **attention("cross", "src_trg_att", LAYERS),
    "around_attention.norm": "x_layer_norm",
    "around_cross.norm": "dec_layer_norm",
    **FEED_FORWARD,
}
NAMES = Names(
    {"encoder": "encoder.layers", "decoder": "decoder.layers"},
    {"encoder": ENCODER, "decoder": DECODER},
    {
        "source_embedding.weight": ["src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight"],
        **norms("encoder.layer_norm", "decoder.layer_norm"),
    },
)


def prepare(orders: Orders) -> Decode:
    torch.set_num_threads(orders.job.threads)
    torch.manual_seed(1)
    vocabulary = special(orders.job.vocabulary)
    shape = transformer if orders.job.arch == "transformer" else recurrent
    model = build_model(shape(orders.job), src_vocab=vocabulary, trg_vocab=vocabulary).eval()
    if orders.weights:
        fill(model, read(orders.weights))

    def decode(sentences: Sentences) -> Written:
        written: list[Any] = []
        for ids in orders.batches(orders.ids(sentences)):
            order = sorted(range(len(ids)), key=lambda number: -len(ids[number]))  # its RNNs need the longest first
            found, _, _ = search(
                model,
                batch_of([ids[number] for number in order]),
                orders.most(ids),
                0 if orders.beam == 1 else orders.beam,
                1.0,
                min_output_length=orders.length,
                generate_unk=False,
            )
            back = dict(zip(order, found.tolist(), strict=True))
            written += [until(back[number], EOS) for number in range(len(ids))]
        return written

    return decode


def fill(model: Any, weights: dict[str, Any]) -> None:
    """Load our weights; ids of UNK and PAD are swapped, and its norms have another epsilon."""
    words = weights["source_embedding.weight"]
    words = torch.cat([words[:2].flip(0), words[2:]])
    load(model, renamed({**weights, "source_embedding.weight": words}, NAMES), r"\.pe\.pe$")
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-5


def special(size: int) -> Vocabulary:
    """Return a vocabulary of `size` words; JoeyNMT needs UNK first and PAD second."""
    names = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>", "sep": None}
    ids = {"unk": 0, "pad": PAD, "bos": 2, "eos": EOS, "sep": None}
    marks = {f"{name}_token": value for name, value in names.items()} | {f"{n}_id": value for n, value in ids.items()}
    return Vocabulary([f"w{number}" for number in range(size - SPECIAL_TOKENS)], SimpleNamespace(lang_tags=[], **marks))


def batch_of(ids: Sequence[Sequence[int]]) -> Batch:
    rows = [torch.tensor([*row, EOS]) for row in ids]
    return Batch(
        src=pad_sequence(rows, batch_first=True, padding_value=PAD),
        src_length=torch.tensor([len(row) for row in rows]),
        src_prompt_mask=None,
        trg=None,
        trg_prompt_mask=None,
        indices=torch.arange(len(rows)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=EOS,
        is_train=False,
    )


if __name__ == "__main__":
    measure(prepare, version("joeynmt"))
