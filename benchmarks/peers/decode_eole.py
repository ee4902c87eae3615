"""eole, through its inference engine: a model that its own training has just written, with our weights if given."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import PredictConfig, TrainConfig
from eole.inference_engine import InferenceEnginePY
from safetensors.torch import load_file, save_file

from benchmarks.peers.batching import BOS, EOS, PAD
from benchmarks.peers.decode_job import Decode, Orders, Sentences, Written, measure
from benchmarks.peers.eole import settings
from benchmarks.peers.weights import Names, attention, norms, read, renamed

LINEARS = ("linear_query", "linear_keys", "linear_values", "final_linear")
ENCODER = {
    **attention("attention", "self_attn", LINEARS),
    "around_attention.norm": "input_layernorm",
    "feed_forward.inner": "mlp.gate_up_proj",
    "feed_forward.outer": "mlp.down_proj",
    "around_feed_forward.norm": "post_attention_layernorm",
}
DECODER = {**ENCODER, **attention("cross", "context_attn", LINEARS), "around_cross.norm": "precontext_layernorm"}
NAMES = Names(
    {"encoder": "encoder.transformer_layers", "decoder": "decoder.transformer_layers"},
    {"encoder": ENCODER, "decoder": DECODER},
    {
        "source_embedding.weight": ["src_emb.embeddings.weight"],
        **norms("encoder.layer_norm", "decoder.layer_norm"),
    },
)
SPECIAL_TOKENS = {"<blank>": PAD, "<s>": BOS, "</s>": EOS}  # its names -> our ids


def prepare(orders: Orders) -> Decode:
    """Train for one step and load the saved model."""
    torch.set_num_threads(orders.job.threads)
    wanted = settings(orders.job)
    wanted["training"] |= {"train_steps": 1, "save_checkpoint_steps": 1, "batch_size": 256, "bucket_size": 64}
    train(TrainConfig(**wanted))
    if orders.weights:
        fill(Path(orders.job.scratch("model")), read(orders.weights), orders)
    nothing = Path(orders.job.scratch("nothing"))
    nothing.write_text("")
    engine = InferenceEnginePY(
        PredictConfig(
            model_path=orders.job.scratch("model"),
            src=str(nothing),
            beam_size=orders.beam,
            min_length=orders.length,
            max_length=orders.length or 500,
            max_length_ratio=0 if orders.length else 2,
            batch_size=orders.batch,
            batch_type="sents",
            gpu_ranks=[],
            world_size=1,
            length_penalty="avg",
            alpha=1.0,
            transforms=[],
        )
    )
    end = ["</s>"] if orders.weights else []  # our models read EOS, its own do not

    def decode(sentences: Sentences) -> Written:
        _, _, found = engine.infer_list([" ".join([*each, *end]) for each in sentences])
        return [best[0].split() for best in found]

    return decode


def fill(model: Path, weights: dict[str, Any], orders: Orders) -> None:
    """Write our weights into the file it loads: its words have another order, and it has one more bias."""
    words = json.loads((model / "vocab.json").read_text("utf-8"))["src"]
    rows = [SPECIAL_TOKENS.get(word, orders.numbers.get(word, PAD)) for word in words]
    ours = renamed({**weights, "source_embedding.weight": weights["source_embedding.weight"][rows]}, NAMES)
    path = (model / "model.00.safetensors").resolve()
    drawn = load_file(path)
    kept = [name for name in drawn if name not in ours]
    if not all(name.endswith((".pe.pe", ".layer_scalar", "generator.bias")) for name in kept):
        raise SystemExit(f"eole has parameters that ours has not: {kept}")
    if set(ours) - set(drawn):
        raise SystemExit(f"eole has no counterpart of {sorted(set(ours) - set(drawn))}")
    zero = {name: torch.zeros_like(drawn[name]) for name in kept if name == "generator.bias"}
    save_file({**drawn, **{name: value.contiguous() for name, value in ours.items()}, **zero}, path)


if __name__ == "__main__":
    measure(prepare, version("eole"))
