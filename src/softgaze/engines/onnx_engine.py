"""The production engine of RNNs, SSRU decoders and captioners: ONNX Runtime, without torch, with torch's search.

A batch is decoded by one thread; as many batches as there are cores run in parallel. Each step returns all
cross-attention weights, so `record` has every layer and head; self-attention is not recorded.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing

from softgaze.bundle import Bundle, Tokenizers
from softgaze.engines.base import (
    MAX_POSITIONS,
    EncodedSource,
    Engine,
    EngineFiles,
    Items,
    check_not_loaded,
    reject_interventions,
)
from softgaze.errors import DataError, UsageError
from softgaze.runtime import thread_map, threads
from softgaze.search import Hypothesis, SearchOptions, generate
from softgaze.search.decoder import ArrayLogProbs
from softgaze.special_tokens import BOS, PAD

if TYPE_CHECKING:
    from softgaze.explain.recording import Matrix, PartAttention
    from softgaze.explain.scoring import IdPair
    from softgaze.search.beam import TraceCallback

NAME = "onnx"  # of the engine, and of the directory in a bundle
ENCODER, STEP = "encoder", "step"  # names of the graphs
RENAMED_OUTPUTS = {"chances": "log_probs", "after": "next_hidden"}  # in graphs of earlier versions

Array = np.typing.NDArray[Any]
Session = Any  # onnxruntime.InferenceSession


class OnnxEngine(Engine):
    """An exported RNN, captioner or Transformer with recurrent decoder layers."""

    name = NAME
    device = "cpu"

    def __init__(self, encoder: Session, step: Session, tokenizers: Tokenizers, facts: dict[str, Any]) -> None:
        self.encoder, self.step, self.tokenizers, self.facts = encoder, step, tokenizers, facts
        self.precision, self.num_positions, self.note = facts["precision"], facts[MAX_POSITIONS], facts["note"]

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        """Layers and heads of the output "weights"; a single attention has no axes for them."""
        shapes = {output.name: output.shape for output in self.step.get_outputs()}
        if "weights" not in shapes:
            return 0, 0
        layers, heads = shapes["weights"][2:-1] or (1, 1)
        return layers, heads

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto", files: EngineFiles | None = None) -> Self:
        if device not in ("auto", "cpu"):
            raise UsageError(f"device {device} is not available to ONNX Runtime; available: cpu")
        check_not_loaded("ctranslate2")
        directory, facts = files or EngineFiles.of(bundle)
        encoder, step = load_graph(directory, ENCODER), load_graph(directory, STEP)
        return cls(encoder, step, bundle.tokenizers, facts)

    def decode_batches(
        self, batches: Sequence[Sequence[EncodedSource]], options: SearchOptions
    ) -> Iterator[list[list[Hypothesis]]]:
        return thread_map(lambda batch: self.decode_batch(batch, options), batches, threads())

    def decode_batch(
        self, batch: Sequence[EncodedSource], options: SearchOptions, on_candidate: "TraceCallback | None" = None
    ) -> list[list[Hypothesis]]:
        reject_interventions(batch)
        decoder = self._decoder([source.ids for source in batch])
        return generate(decoder, options, [source.prefix for source in batch], self.max_positions, on_candidate)

    def _decoder(self, sources: Sequence[Items]) -> "OnnxDecoder":
        lengths = np.array([len(source) for source in sources])
        return OnnxDecoder(
            self.encoder, self.step, pad(sources, self.tokenizers.source.vector_dtype or "int64"), lengths
        )

    # --- scoring

    def log_probs(self, parts: "Sequence[IdPair]") -> "list[Matrix]":
        results: list[Matrix] = [np.zeros(len(part.target)) for part in parts]
        for index, position, decoder, row in self._force(parts):
            target = parts[index].target
            if position < len(target):
                results[index][position] = decoder.log_probs[row, target[position]]
        return results

    def record(self, parts: "Sequence[IdPair]") -> "list[PartAttention]":
        from softgaze.explain.recording import AttentionStack, PartAttention

        weights: list[list[Array]] = [[] for _ in parts]
        norms: dict[int, Array] = {}
        for index, position, decoder, row in self._force(parts):
            length = decoder.lengths[row]
            if decoder.weights is not None and position <= len(parts[index].target):
                weights[index].append(decoder.weights[row, ..., :length])
                norms[index] = decoder.norms[row, ..., :length]
        return [
            PartAttention(cross=AttentionStack(np.stack(rows, axis=2), norms[index])) if rows else PartAttention()
            for index, rows in enumerate(weights)
        ]

    def _force(self, parts: "Sequence[IdPair]") -> Iterator[tuple[int, int, "OnnxDecoder", int]]:
        """Decode given targets; yield (index of a part, position, decoder, its row) for every part and position."""
        from softgaze.explain.scoring import batches

        reject_interventions(parts)
        for indices in batches(parts):
            decoder = self._decoder([self.tokenizers.source.add_eos(parts[index].source) for index in indices])
            targets = pad([(BOS, *parts[index].target) for index in indices])
            for position, tokens in enumerate(targets.T):
                decoder.step(np.arange(len(indices))[:, None], tokens[:, None])
                for row, index in enumerate(indices):
                    yield index, position, decoder, row


class OnnxDecoder:
    """Steps of the exported graphs over one batch."""

    start, forced = BOS, 0
    attention: Array | None = None

    def __init__(self, encoder: Session, step: Session, sources: Array, lengths: Array) -> None:
        self.session, self.sources, self.lengths = step, sources, lengths
        names = [output.name for output in encoder.get_outputs()]
        outputs = encoder.run(None, {"source": self.sources, "lengths": self.lengths})
        self.memory: dict[str, Array] = dict(zip(names, outputs, strict=True))  # one row for each source
        self.hidden: Array = self.memory.pop("hidden")  # one row for each hypothesis
        self.input_names = {node.name for node in step.get_inputs()}
        self.output_names = [RENAMED_OUTPUTS.get(node.name, node.name) for node in step.get_outputs()]
        self.position = 0
        self.log_probs: Array = self.hidden
        self.weights: Array | None = None  # (R, layers, heads, S); None without cross-attention

    def step(self, rows: Array, tokens: Array) -> ArrayLogProbs:
        """Continue `rows` (N, W) of the step before with one more token each."""
        num_sources = len(next(iter(self.memory.values())))
        if len(rows) != num_sources:
            sources = rows[:, 0] // (len(self.hidden) // num_sources)
            self.memory = {name: value[sources] for name, value in self.memory.items()}
        inputs = {
            **self.memory,
            "rows": rows.ravel(),
            "token": tokens.ravel(),
            "hidden": self.hidden,
            "position": np.array([self.position]),
        }
        inputs = {name: value for name, value in inputs.items() if name in self.input_names}
        outputs = dict(zip(self.output_names, self.session.run(None, inputs), strict=True))
        self.position += 1
        self.hidden, self.log_probs = outputs["next_hidden"], outputs["log_probs"]
        if "weights" in outputs:
            self.weights = outputs["weights"].reshape(len(self.hidden), *self.layers_and_heads, -1)
        return ArrayLogProbs(self.log_probs)

    @property
    def layers_and_heads(self) -> tuple[int, ...]:
        """Shape of the cross-attention; an RNN has one layer and head, and no axes for them."""
        return self.memory["memory"].shape[1:-2] or (1, 1)

    @cached_property
    def norms(self) -> Array:
        """(N, layers, heads, S) norms of the values, of the sources in the batch at first use."""
        norms: Array = np.linalg.norm(self.memory["memory"], axis=-1)
        return norms.reshape(len(norms), *self.layers_and_heads, -1)


def load_graph(directory: Path, name: str) -> Session:
    """Return a session that runs a graph in the calling thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    path = directory / f"{name}.onnx"
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors have no other common class
        raise DataError(f"{path}: ONNX Runtime cannot load it: {str(error).splitlines()[0]}") from error


def pad(rows: Sequence[Items], dtype: str = "int64") -> Array:
    """Return ids (S,) or feature vectors (S, …) as one padded array."""
    arrays = [np.asarray(row, dtype) for row in rows]
    padded = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), PAD, dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded
