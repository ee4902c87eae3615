"""Our layers as ONNX has them, written node by node: to trace torch would fix the length of the source."""
