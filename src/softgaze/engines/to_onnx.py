"""A trained RNN or captioner as ONNX Runtime has it: two graphs, written node by node from our layers.

`encoder` reads sources of any length; `step` goes on with some rows, reads one more token in each and says what
follows.

Letters: N sources of S items, R rows, each source having R / N side by side, D width, V vocabulary.
"""

from pathlib import Path
from typing import Any, cast

import numpy
import onnx
from onnx import TensorProto, helper
from onnx.external_data_helper import set_external_data
from torch import nn

from softgaze.bundle import ATTENTION, Bundle
from softgaze.data.readers import Reader
from softgaze.engines.graphs import eyes, recurrent, transformer
from softgaze.engines.graphs.graph import Graph
from softgaze.engines.onnx import ENCODER, STEP
from softgaze.errors import UsageError
from softgaze.gaze.view import Choice
from softgaze.models.captioner import Captioner
from softgaze.models.rnn import RNN
from softgaze.models.transformer import Transformer

SHARED = "shared.bin"
WORTH_SHARING = 1024  # bytes

Model = RNN | Captioner
Writer = RNN | Transformer  # what writes, of either


def export(
    bundle: Bundle, model: nn.Module, directory: Path, precision: str, attention: Choice | None
) -> dict[str, Any]:
    """Write the graphs, and say what the engine must know."""
    found = runnable(bundle.description.arch, model)
    graphs = {ENCODER: encoder(found, bundle.tokenizers.source), STEP: step(writer_of(found))}
    finished = {name: graph.finished(name) for name, graph in graphs.items()}
    share(directory / SHARED, *finished.values())
    for name, graph in finished.items():
        onnx.save(graph, str(directory / f"{name}.onnx"))
    told = {} if attention is None else {ATTENTION: attention.to_dict()}
    return {"places": None, "note": "", **told}


def share(path: Path, one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    """What both graphs hold, such as the matrix of a joint vocabulary, is written once and beside them."""
    every = [{tensor.raw_data: tensor for tensor in graph.graph.initializer} for graph in (one, other)]
    shared = [content for content in every[0] if content in every[1] and len(content) >= WORTH_SHARING]
    for number, content in enumerate(shared):
        for tensors in every:
            set_external_data(tensors[content], path.name, sum(map(len, shared[:number])), len(content))
            tensors[content].ClearField("raw_data")
    if shared:
        path.write_bytes(b"".join(shared))


def runnable(arch: str, model: nn.Module) -> Model:
    """The model, or by name what is not exported to ONNX."""
    if not isinstance(model, Model):
        instead = "; it can be exported to ctranslate2" if isinstance(model, Transformer) else ""
        raise UsageError(
            f"arch {arch} is not exported to onnx, only rnn, rnn-bahdanau, rnn-luong and captioner{instead}"
        )
    return model.float().eval()


def writer_of(model: Model) -> Writer:
    """What writes: of a captioner, a part of it."""
    return cast(Writer, model.writer) if isinstance(model, Captioner) else model


def encoder(model: Model, reader: Reader) -> Graph:
    """(N, S) ids or (N, S, …) vectors, as a reader gives them, and (N,) lengths -> what a decoder starts with."""
    graph, bare = Graph(), reader.bare
    kind = helper.np_dtype_to_tensor_dtype(numpy.dtype(bare.vectors or numpy.int64))
    source = graph.input("source", ["N", "S", *([len(bare)] if bare.vectors else [])], kind)
    lengths = graph.input("lengths", ["N"], TensorProto.INT64)
    if reader.network is not None:
        source = eyes.before_the_model(graph, reader.network, source, len(bare))
    writer = writer_of(model)
    if isinstance(model, Captioner):
        memory, final = eyes.read(graph, model, source, lengths)
    else:
        memory, final = recurrent.read(graph, model, source, lengths)
    if isinstance(writer, RNN):
        recurrent.begin(graph, writer, memory, final, lengths)
    else:
        transformer.begin(graph, writer, memory, lengths)
    return graph


def step(model: Writer) -> Graph:
    """Rows to go on with (R,), their next tokens (R,), and all that is known -> what follows, and all that is known."""
    graph = Graph()
    rows = graph.input("rows", ["R"], TensorProto.INT64)
    token = graph.input("token", ["R"], TensorProto.INT64)
    word = graph.op("Gather", graph.parameter(model.target_embedding.weight), token)  # (R, D)
    if isinstance(model, RNN):
        features = recurrent.step(graph, model, rows, word)
    else:
        features = transformer.step(graph, model, rows, word)
    logits = graph.op("MatMul", features, turned(graph, cast(nn.Linear, model.output)))
    graph.output("chances", graph.op("LogSoftmax", logits, axis=-1), ["R", model.target_embedding.num_embeddings])
    return graph


def turned(graph: Graph, layer: nn.Linear) -> str:
    """The output matrix (D, V); one that is tied is turned when the graph is loaded, not written twice."""
    return str(graph.op("Transpose", graph.parameter(layer.weight), perm=[1, 0]))
