"""ONNX graphs of our layers, built node by node: tracing torch would fix the length of the source."""
