"""A graph of ONNX being written, and the layers that every model is made of."""

from collections.abc import Sequence
from typing import Any

import numpy
import numpy.typing
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

Array = numpy.typing.NDArray[Any]

OPSET = 17
LOW = float(numpy.finfo(numpy.float32).min / 2)  # as `attention.masked_softmax`: of what may not be seen


class Graph:
    """A graph being written: each method adds a node and returns the name of what it gives."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.known: dict[int, tuple[Tensor, str]] = {}  # a tied matrix is written once

    def input(self, name: str, shape: Sequence[str | int], kind: int = TensorProto.FLOAT) -> str:
        """Something given at every run."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def output(self, name: str, value: str, shape: Sequence[str | int]) -> None:
        """Something to give back."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))

    def constant(self, value: Array | Sequence[int] | float) -> str:
        """Numbers; whole ones stay whole."""
        array = numpy.asarray(value)
        array = array.astype(numpy.float32 if array.dtype.kind == "f" else numpy.int64)
        name = f"constant{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(numpy.array(array, order="C"), name)
        return name

    def parameter(self, value: Tensor) -> str:
        """Learned numbers."""
        if id(value) not in self.known:
            self.known[id(value)] = value, self.constant(value.detach().cpu().numpy())
        return self.known[id(value)][1]

    def op(self, kind: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """A node; its results by name, one alone or a list."""
        names = [f"{kind}{len(self.nodes)}_{number}" for number in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if results == 1 else names

    # --- layers

    def linear(self, layer: nn.Linear, vectors: str) -> str:
        """W x + b of vectors (…, D)."""
        product: str = self.op("MatMul", vectors, self.constant(layer.weight.detach().cpu().numpy().T))
        return product if layer.bias is None else str(self.op("Add", product, self.parameter(layer.bias)))

    def norm(self, layer: nn.LayerNorm, vectors: str) -> str:
        """Of vectors (…, D)."""
        learned = (self.parameter(part) for part in (layer.weight, layer.bias))
        return str(self.op("LayerNormalization", vectors, *learned, axis=-1, epsilon=layer.eps))

    def convolution(
        self, layer: nn.Conv1d | nn.Conv2d, value: str, pads: Sequence[int], kernel: Tensor | None = None
    ) -> str:
        """(N, D, …), with so many zeros before and behind each axis; its `kernel` if that is not the layer's own."""
        weight = layer.weight if kernel is None else kernel
        learned = [self.parameter(part) for part in (weight, layer.bias) if part is not None]
        return str(self.op("Conv", value, *learned, pads=pads, strides=[*layer.stride], group=layer.groups))

    # --- shapes

    def cast(self, value: str, kind: int = TensorProto.FLOAT) -> str:
        """As another kind of number."""
        return str(self.op("Cast", value, to=kind))

    def reshape(self, value: str, *shape: str | int) -> str:
        """To sizes that are numbers (−1: the rest) or names of such."""
        return str(self.op("Reshape", value, self.shape(*shape)))

    def shape(self, *sizes: str | int) -> str:
        """Sizes in a row."""
        parts = [self.constant([size]) if isinstance(size, int) else size for size in sizes]
        return str(self.op("Concat", *parts, axis=0))

    def size(self, value: str, axis: int) -> str:
        """(1,) the length of an axis."""
        return str(self.op("Shape", value, start=axis, end=axis + 1))

    def wider(self, value: str, *axes: int) -> str:
        """With new axes of length 1."""
        return str(self.op("Unsqueeze", value, self.constant([*axes])))

    def stack(self, values: Sequence[str], axis: int) -> str:
        """Side by side, along a new axis."""
        return str(self.op("Concat", *(self.wider(each, axis) for each in values), axis=axis))

    def pick(self, value: str, number: int, axis: int = 1) -> str:
        """One of those that stand side by side."""
        return str(self.op("Gather", value, self.constant(number), axis=axis))

    def places(self, count: str) -> str:
        """(S,) 0.0, 1.0, …: places of a source with `count` (1,) items."""
        size = self.op("Squeeze", count, self.constant([0]))
        return self.cast(self.op("Range", self.constant(0), size, self.constant(1)))

    def real(self, vectors: str, lengths: str) -> str:
        """(N, 1, S): 1 where there is an item of (N, S, …), 0 where there is padding."""
        mask = self.op("Less", self.places(self.size(vectors, 1)), self.wider(self.cast(lengths), 1))
        return self.wider(self.cast(mask), 1)

    def hidden(self, mask: str) -> str:
        """What is added to scores, so that nobody looks where the mask is 0."""
        return str(self.op("Mul", self.op("Sub", self.constant(1.0), mask), self.constant(LOW)))

    def finished(self, name: str) -> Any:
        """The whole, checked."""
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, [*self.constants.values()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="softgaze")
        model.ir_version = 9
        onnx.checker.check_model(model, full_check=True)
        return model
