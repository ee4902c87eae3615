"""Marian's Transformer in NumPy, independent of the package, and small random models to compare with."""

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import sentencepiece

from importers.foreign import spm

SETTINGS: dict[str, Any] = {
    "type": "transformer",
    "dim-emb": 16,
    "dim-vocabs": [0, 0],
    "enc-depth": 2,
    "dec-depth": 2,
    "transformer-heads": 4,
    "transformer-dim-ffn": 24,
    "transformer-ffn-depth": 2,
    "transformer-ffn-activation": "relu",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
    "transformer-postprocess-emb": "d",
    "transformer-decoder-autoreg": "self-attention",
    "dec-cell": "ssru",
    "transformer-tied-layers": [],
    "transformer-no-projection": False,
    "transformer-guided-alignment-layer": "last",
}
SSRU = {"transformer-decoder-autoreg": "rnn"}
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}


@cache
def marian_spm(seed: int = 0, letters: str = "abcdefg") -> bytes:
    """A SentencePiece model with the special ids of Marian: </s> 0, <unk> 1, no others."""
    words = sentencepiece.SentencePieceProcessor(model_proto=spm(seed, letters))
    lines = [" ".join(letters[i:] + letters[:i] for i in range(n % 7)) + "." for n in range(200)]
    lines += [words.id_to_piece(row).replace("\u2581", "") for row in range(3, words.get_piece_size())]
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(filter(None, lines)),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
        eos_id=0,
        unk_id=1,
        bos_id=-1,
        pad_id=-1,
    )
    return model.getvalue()


def random_tensors(
    settings: dict[str, Any], rows: tuple[int, int], seed: int = 0, tie: str = "all"
) -> dict[str, np.ndarray]:
    """Random weights under Marian's names; `tie` is all, source-target, output or none."""
    draw = np.random.default_rng(seed)
    width, inner = settings["dim-emb"], settings["transformer-dim-ffn"]
    suffix = "_pre" if settings["transformer-preprocess"] == "n" else ""

    def normal(*shape: int, mean: float = 0.0) -> np.ndarray:
        return (mean + 0.3 * draw.normal(size=shape)).astype(np.float32)

    tensors: dict[str, np.ndarray] = {}

    def norm(name: str, ending: str = suffix) -> None:
        tensors[f"{name}_ln_scale{ending}"], tensors[f"{name}_ln_bias{ending}"] = (
            normal(1, width, mean=1.0),
            normal(1, width),
        )

    def attention(name: str) -> None:
        for letter in "qkvo":
            tensors[f"{name}_W{letter}"], tensors[f"{name}_b{letter}"] = normal(width, width), normal(1, width)
        norm(f"{name}_Wo")

    for side, depth in (("encoder", settings["enc-depth"]), ("decoder", settings["dec-depth"])):
        for layer in (f"{side}_l{index + 1}" for index in range(depth)):
            if side == "decoder":
                attention(f"{layer}_context")
            if side == "decoder" and settings["transformer-decoder-autoreg"] == "rnn":
                tensors |= {f"{layer}_rnn_W": normal(width, width), f"{layer}_rnn_Wf": normal(width, width)}
                tensors[f"{layer}_rnn_bf"] = normal(1, width)
                norm(f"{layer}_rnn_ffn")
            else:
                attention(f"{layer}_self")
            tensors |= {f"{layer}_ffn_W1": normal(width, inner), f"{layer}_ffn_b1": normal(1, inner)}
            tensors |= {f"{layer}_ffn_W2": normal(inner, width), f"{layer}_ffn_b2": normal(1, width)}
            norm(f"{layer}_ffn_ffn")
        if suffix:
            norm(f"{side}_top", "")
        if "n" in settings["transformer-postprocess-emb"]:
            norm(f"{side}_emb", "_pre")
    if tie in ("all", "source-target"):
        tensors["Wemb"] = normal(rows[0], width)
    else:
        tensors["encoder_Wemb"], tensors["decoder_Wemb"] = normal(rows[0], width), normal(rows[1], width)
    if tie in ("source-target", "none"):
        tensors["decoder_ff_logit_out_W"] = normal(width, rows[1])
    tensors["decoder_ff_logit_out_b"] = normal(1, rows[1])
    if settings.get("transformer-train-position-embeddings"):
        tensors["Wpos"] = normal(64, width)
    return tensors


class MarianReference:
    """The forward pass, one sentence at a time, in float64."""

    def __init__(self, tensors: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.tensors = {name: values.astype(np.float64) for name, values in tensors.items()}
        self.settings, self.width = settings, settings["dim-emb"]

    def logits(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        """Source ids with </s>, and target ids without a start token -> (T + 1, V)."""
        memory = self.embed("encoder", self.rows("encoder")[list(source)])
        for index in range(self.settings["enc-depth"]):
            name = f"encoder_l{index + 1}"
            memory = self.around(f"{name}_self_Wo", memory, lambda x, n=name: self.attention(f"{n}_self", x, x))
            memory = self.around(f"{name}_ffn_ffn", memory, lambda x, n=name: self.feed_forward(n, x))
        memory = self.top("encoder", memory)
        start = np.zeros((1, self.width))
        x = self.embed("decoder", np.concatenate([start, self.rows("decoder")[list(target)]]))
        for index in range(self.settings["dec-depth"]):
            name = f"decoder_l{index + 1}"
            if self.settings["transformer-decoder-autoreg"] == "rnn":
                x = self.around(f"{name}_rnn_ffn", x, lambda y, n=name: self.recurrence(n, y))
            else:
                x = self.around(f"{name}_self_Wo", x, lambda y, n=name: self.attention(f"{n}_self", y, y, causal=True))
            x = self.around(f"{name}_context_Wo", x, lambda y, n=name: self.attention(f"{n}_context", y, memory))
            x = self.around(f"{name}_ffn_ffn", x, lambda y, n=name: self.feed_forward(n, y))
        x = self.top("decoder", x)
        output = self.tensors.get("decoder_ff_logit_out_W", self.rows("decoder").T)
        return x @ output + self.tensors["decoder_ff_logit_out_b"]

    def rows(self, side: str) -> np.ndarray:
        return self.tensors.get(f"{side}_Wemb", self.tensors.get("Wemb"))

    def embed(self, side: str, vectors: np.ndarray) -> np.ndarray:
        if "Wpos" in self.tensors:
            vectors = vectors + self.tensors["Wpos"][: len(vectors)]
        else:
            half = self.width // 2
            rates = np.exp(-np.arange(half) * np.log(10000) / (half - 1))
            angles = np.arange(len(vectors))[:, None] * rates
            vectors = np.sqrt(self.width) * vectors + np.concatenate([np.sin(angles), np.cos(angles)], 1)
        return self.normed(f"{side}_emb", vectors, "_pre") if f"{side}_emb_ln_scale_pre" in self.tensors else vectors

    def top(self, side: str, x: np.ndarray) -> np.ndarray:
        return self.normed(f"{side}_top", x) if self.settings["transformer-postprocess-top"] == "n" else x

    def around(self, name: str, x: np.ndarray, layer: Any) -> np.ndarray:
        if self.settings["transformer-preprocess"] == "n":
            return x + layer(self.normed(name, x, "_pre"))
        return self.normed(name, x + layer(x))

    def normed(self, name: str, x: np.ndarray, ending: str = "") -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-9)
        return scaled * self.tensors[f"{name}_ln_scale{ending}"] + self.tensors[f"{name}_ln_bias{ending}"]

    def dense(self, name: str, x: np.ndarray, kind: str) -> np.ndarray:
        return x @ self.tensors[f"{name}_W{kind}"] + self.tensors[f"{name}_b{kind}"]

    def attention(self, name: str, x: np.ndarray, memory: np.ndarray, causal: bool = False) -> np.ndarray:
        size, contexts = self.width // self.settings["transformer-heads"], []
        queries, keys, values = self.dense(name, x, "q"), self.dense(name, memory, "k"), self.dense(name, memory, "v")
        for first in range(0, self.width, size):
            part = slice(first, first + size)
            scores = queries[:, part] @ keys[:, part].T / np.sqrt(size)
            if causal:
                scores[np.triu_indices(len(x), 1)] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            contexts.append(weights / weights.sum(-1, keepdims=True) @ values[:, part])
        return self.dense(name, np.concatenate(contexts, 1), "o")

    def feed_forward(self, name: str, x: np.ndarray) -> np.ndarray:
        inner = self.dense(f"{name}_ffn", x, "1")
        swish = self.settings["transformer-ffn-activation"] == "swish"
        return self.dense(f"{name}_ffn", inner / (1 + np.exp(-inner)) if swish else np.maximum(inner, 0), "2")

    def recurrence(self, name: str, x: np.ndarray) -> np.ndarray:
        gates = 1 / (1 + np.exp(-(x @ self.tensors[f"{name}_rnn_Wf"] + self.tensors[f"{name}_rnn_bf"])))
        candidates, cell, outputs = x @ self.tensors[f"{name}_rnn_W"], np.zeros(self.width), []
        for gate, candidate in zip(gates, candidates, strict=True):
            cell = gate * cell + (1 - gate) * candidate
            outputs.append(np.maximum(cell, 0))
        return np.stack(outputs)
