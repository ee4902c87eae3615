"""Export an RNN, a captioner or a Transformer with a recurrent decoder to ONNX: two graphs, built node by node.

`encoder` reads sources of any length. `step` continues rows with one token each and returns the log-probabilities of
the next one.

Letters: N sources of S items, R rows (R / N for each source, in order), D width, V vocabulary.
"""

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.external_data_helper import set_external_data
from torch import nn

from softgaze.attention import MultiHeadAttention
from softgaze.bundle import ATTENTION, Bundle
from softgaze.data.tokenizer import Processor
from softgaze.engines.base import MAX_POSITIONS
from softgaze.engines.onnx_engine import ENCODER, STEP
from softgaze.engines.onnx_graph import feature_encoders, rnn, transformer
from softgaze.engines.onnx_graph.builder import GraphBuilder
from softgaze.errors import UsageError
from softgaze.explain.recording import SelectedMap
from softgaze.local_attention import LocalMultiHeadAttention
from softgaze.models.captioner import Captioner
from softgaze.models.rnn import RecurrentSeq2Seq
from softgaze.models.transformer import Transformer

SHARED_FILE = "shared.bin"
MIN_SHARED_BYTES = 1024

OnnxModel = RecurrentSeq2Seq | Captioner | Transformer
OnnxDecoderModel = RecurrentSeq2Seq | Transformer


def export(
    bundle: Bundle,
    model: nn.Module,
    directory: Path,
    precision: str,
    attention: SelectedMap | None,
    attempt: int = 0,
) -> dict[str, Any]:
    """Write the graphs, and return the facts of the engine; there is one `attempt`."""
    onnx_model = cast(OnnxModel, model.float().eval())
    decoder = cast(OnnxDecoderModel, model.decoder if isinstance(model, Captioner) else model)
    graphs = {
        ENCODER: encoder_graph(onnx_model, decoder, bundle.tokenizers.source).build(ENCODER),
        STEP: step_graph(decoder).build(STEP),
    }
    share_tensors(directory / SHARED_FILE, *graphs.values())
    for name, graph in graphs.items():
        onnx.save(graph, str(directory / f"{name}.onnx"))
    return {
        MAX_POSITIONS: onnx_model.max_positions,
        "note": "",
        **({} if attention is None else {ATTENTION: attention.to_dict()}),
    }


def check_model(model: nn.Module) -> None:
    """Reject options of a Transformer that have no graph."""
    if any(isinstance(module, LocalMultiHeadAttention | nn.RMSNorm) for module in model.modules()):
        raise UsageError("a Transformer with a window or RMSNorm cannot be exported to onnx; use it with torch")
    if any(isinstance(module, MultiHeadAttention) and module.heads != module.key_heads for module in model.modules()):
        raise UsageError("a Transformer with shared key heads cannot be exported to onnx; use it with torch")


def share_tensors(path: Path, one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    """Store tensors of both graphs, such as a joint vocabulary's embeddings, once in a file of their own."""
    tensors = [{tensor.raw_data: tensor for tensor in model.graph.initializer} for model in (one, other)]
    shared = [content for content in tensors[0] if content in tensors[1] and len(content) >= MIN_SHARED_BYTES]
    offset = 0
    for content in shared:
        for by_content in tensors:
            set_external_data(by_content[content], path.name, offset, len(content))
            by_content[content].ClearField("raw_data")
        offset += len(content)
    if shared:
        path.write_bytes(b"".join(shared))


def encoder_graph(model: OnnxModel, decoder: OnnxDecoderModel, processor: Processor) -> GraphBuilder:
    """(N, S) ids or (N, S, …) features and (N,) lengths -> the decoder's memory and first state."""
    graph, inputs = GraphBuilder(), processor.without_backbone
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(inputs.vector_dtype or np.int64))
    source = graph.input("source", ["N", "S", *([len(inputs)] if inputs.vector_dtype else [])], dtype)
    lengths = graph.input("lengths", ["N"], TensorProto.INT64)
    if processor.backbone is not None:
        source = feature_encoders.frozen_backbone(graph, processor.backbone, source, len(inputs))
    if isinstance(model, Captioner):
        memory, final = feature_encoders.encode(graph, model, source, lengths)
    elif isinstance(model, Transformer):
        memory, final = transformer.encode(graph, model, source, lengths), ""
    else:
        memory, final = rnn.encode(graph, model, source, lengths)
    if isinstance(decoder, RecurrentSeq2Seq):
        rnn.start(graph, decoder, memory, final, lengths)
    else:
        transformer.start(graph, decoder, memory, lengths)
    return graph


def step_graph(model: OnnxDecoderModel) -> GraphBuilder:
    """Rows to continue (R,), their next tokens (R,) and the state -> log-probabilities (R, V) and the next state."""
    graph = GraphBuilder()
    rows = graph.input("rows", ["R"], TensorProto.INT64)
    token = graph.input("token", ["R"], TensorProto.INT64)
    embedded = graph.op("Gather", graph.parameter(model.target_embedding.weight), token)  # (R, D)
    module: Any = rnn if isinstance(model, RecurrentSeq2Seq) else transformer
    features = module.step(graph, model, rows, embedded)
    # A tied matrix is transposed when the graph is loaded, not stored twice.
    output = graph.op("Transpose", graph.parameter(cast(nn.Linear, model.output).weight), perm=[1, 0])  # (D, V)
    logits, bias = graph.op("MatMul", features, output), cast(nn.Linear, model.output).bias
    if bias is not None:
        logits = graph.op("Add", logits, graph.parameter(bias))
    log_probs = graph.op("LogSoftmax", logits, axis=-1)
    graph.output("log_probs", log_probs, ["R", model.target_embedding.num_embeddings])
    return graph
