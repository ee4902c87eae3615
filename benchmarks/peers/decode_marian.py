"""Hugging Face's `generate` with its cache: Marian, or M2M-100 for a trained pre-norm model."""

from typing import Any

import torch
import transformers
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianMTModel

from benchmarks.peers.batching import EOS, PAD, padded
from benchmarks.peers.decode_job import Decode, Orders, Sentences, Written, measure, until
from benchmarks.peers.marian import configuration
from benchmarks.peers.weights import Names, attention, load, norms, read, renamed, sinusoids

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
ENCODER = {
    **attention("attention", "self_attn", PROJECTIONS),
    "around_attention.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "around_feed_forward.norm": "final_layer_norm",
}
DECODER = {
    **ENCODER,
    **attention("cross", "encoder_attn", PROJECTIONS),
    "around_cross.norm": "encoder_attn_layer_norm",
}
WORDS = ["model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"]  # one matrix
NAMES = Names(
    {"encoder": "model.encoder.layers", "decoder": "model.decoder.layers"},
    {"encoder": ENCODER, "decoder": DECODER},
    {
        "source_embedding.weight": [f"{name}.weight" for name in WORDS],
        **norms("model.encoder.layer_norm", "model.decoder.layer_norm"),
    },
)


def prepare(orders: Orders) -> Decode:
    torch.set_num_threads(orders.job.threads)
    torch.manual_seed(1)
    model = trained(orders) if orders.weights else MarianMTModel(configuration(orders.job))
    model.eval().generation_config.forced_eos_token_id = None

    def decode(sentences: Sentences) -> Written:
        written: list[Any] = []
        for batch in orders.batches(orders.ids(sentences)):
            source = torch.tensor(padded([[*ids, EOS] for ids in batch]))
            found = model.generate(
                source,
                attention_mask=(source != PAD).long(),
                num_beams=orders.beam,
                do_sample=False,
                use_cache=True,
                early_stopping=orders.beam > 1,  # like ours, stop when as many hypotheses ended as the beam is wide
                min_new_tokens=orders.length,
                max_new_tokens=orders.most(batch),
            )
            written += [until(row[1:], EOS) for row in found.tolist()]  # without the start token
        return written

    return decode


def trained(orders: Orders) -> Any:
    """Return a model with our weights and our positional encodings: theirs separate sines from cosines."""
    settings = configuration(orders.job)
    post = orders.job.model.get("residual", "pre") == "post"
    model = MarianMTModel(settings) if post else M2M100ForConditionalGeneration(M2M100Config(**settings.to_dict()))
    load(model, renamed(read(orders.weights), NAMES), "embed_positions|final_logits_bias")
    for stack in (model.model.encoder, model.model.decoder):
        if post:
            stack.embed_positions.weight.data = sinusoids(settings.d_model)
        else:
            stack.embed_positions.weights = sinusoids(settings.d_model, first=PAD + 1)  # it counts from there
    return model


if __name__ == "__main__":
    measure(prepare, transformers.__version__)
