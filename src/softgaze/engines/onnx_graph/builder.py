"""A builder of ONNX graphs, with the layers that every model uses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

Array = np.typing.NDArray[Any]

OPSET = 17
MASKED_SCORE = float(np.finfo(np.float32).min / 2)  # as in `attention.masked_softmax`


class GraphBuilder:
    """Each method adds nodes and returns the name of their output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.parameters: dict[int, tuple[Tensor, str]] = {}  # a tied matrix is stored once

    def input(self, name: str, shape: Sequence[str | int], kind: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def output(self, name: str, value: str, shape: Sequence[str | int]) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))

    def constant(self, value: Array | Sequence[int] | float) -> str:
        """Add a constant: float32, or int64 for integers."""
        array = np.asarray(value)
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        name = f"constant{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def parameter(self, value: Tensor) -> str:
        if id(value) not in self.parameters:
            self.parameters[id(value)] = value, self.constant(value.detach().cpu().numpy())
        return self.parameters[id(value)][1]

    def op(self, kind: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """Add a node and return the name of its result, or a list of names."""
        names = [f"{kind}{len(self.nodes)}_{index}" for index in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if results == 1 else names

    # --- layers

    def linear(self, layer: nn.Linear, vectors: str) -> str:
        """W x + b of vectors (…, D)."""
        product: str = self.op("MatMul", vectors, self.constant(layer.weight.detach().cpu().numpy().T))
        return product if layer.bias is None else str(self.op("Add", product, self.parameter(layer.bias)))

    def norm(self, layer: nn.LayerNorm, vectors: str) -> str:
        learned = (self.parameter(part) for part in (layer.weight, layer.bias))
        return str(self.op("LayerNormalization", vectors, *learned, axis=-1, epsilon=layer.eps))

    def convolution(
        self, layer: nn.Conv1d | nn.Conv2d, value: str, pads: Sequence[int], kernel: Tensor | None = None
    ) -> str:
        """Convolve (N, D, …) with zero padding `pads` before and after each axis; `kernel` replaces the layer's."""
        weight = layer.weight if kernel is None else kernel
        learned = [self.parameter(part) for part in (weight, layer.bias) if part is not None]
        return str(self.op("Conv", value, *learned, pads=pads, strides=[*layer.stride], group=layer.groups))

    # --- shapes

    def cast(self, value: str, kind: int = TensorProto.FLOAT) -> str:
        return str(self.op("Cast", value, to=kind))

    def reshape(self, value: str, *shape: str | int) -> str:
        """Reshape to sizes that are numbers (−1: the rest) or names of (1,) tensors."""
        return str(self.op("Reshape", value, self.shape(*shape)))

    def shape(self, *sizes: str | int) -> str:
        """Concatenate sizes to a shape."""
        parts = [self.constant([size]) if isinstance(size, int) else size for size in sizes]
        return str(self.op("Concat", *parts, axis=0))

    def size(self, value: str, axis: int) -> str:
        """Return the (1,) length of an axis."""
        return str(self.op("Shape", value, start=axis, end=axis + 1))

    def unsqueeze(self, value: str, *axes: int) -> str:
        return str(self.op("Unsqueeze", value, self.constant([*axes])))

    def stack(self, values: Sequence[str], axis: int) -> str:
        """Stack along a new axis."""
        return str(self.op("Concat", *(self.unsqueeze(value, axis) for value in values), axis=axis))

    def select(self, value: str, index: int, axis: int = 1) -> str:
        """Select one index of an axis, which disappears."""
        return str(self.op("Gather", value, self.constant(index), axis=axis))

    def arange(self, count: str) -> str:
        """Return (S,) 0.0, 1.0, … for a `count` (1,)."""
        size = self.op("Squeeze", count, self.constant([0]))
        return self.cast(self.op("Range", self.constant(0), size, self.constant(1)))

    def padding_mask(self, vectors: str, lengths: str) -> str:
        """Return (N, 1, S): 1 for an item of (N, S, …), 0 for padding."""
        mask = self.op("Less", self.arange(self.size(vectors, 1)), self.unsqueeze(self.cast(lengths), 1))
        return self.unsqueeze(self.cast(mask), 1)

    def additive_mask(self, mask: str) -> str:
        """Return the bias of scores that gives positions with mask 0 no weight."""
        return str(self.op("Mul", self.op("Sub", self.constant(1.0), mask), self.constant(MASKED_SCORE)))

    def build(self, name: str) -> Any:
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, [*self.constants.values()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="softgaze")
        model.ir_version = 9
        onnx.checker.check_model(model, full_check=True)
        return model
