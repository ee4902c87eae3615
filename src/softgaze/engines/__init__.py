"""Engines that run a bundle: torch, CTranslate2, ONNX Runtime. Each is imported when it is needed."""

from importlib import import_module
from typing import NamedTuple

from softgaze.bundle import Bundle
from softgaze.engines.base import EncodedSource, Engine
from softgaze.errors import DataError
from softgaze.runtime import need

__all__ = ["ENGINES", "EncodedSource", "Engine", "open_engine"]


class EngineEntry(NamedTuple):
    module: str
    class_name: str
    packages: tuple[str, ...]
    install: str  # argument of pip install


ENGINES = {
    "torch": EngineEntry("softgaze.engines.torch_engine", "TorchEngine", ("torch", "safetensors"), "softgaze[train]"),
    "ctranslate2": EngineEntry(
        "softgaze.engines.ctranslate2_engine", "CTranslate2Engine", ("ctranslate2",), "ctranslate2"
    ),
    "onnx": EngineEntry("softgaze.engines.onnx_engine", "OnnxEngine", ("onnxruntime",), "softgaze[onnx]"),
}


def open_engine(bundle: Bundle, device: str = "auto") -> Engine:
    """Open a bundle with its engine; raise if that is unknown or not installed."""
    name = bundle.engine["name"]
    if name not in ENGINES:
        raise DataError(
            f"{bundle.path}: was exported to the engine {name!r}, which this version does not know; "
            f"known: {', '.join(ENGINES)}"
        )
    entry = ENGINES[name]
    for package in entry.packages:
        need(package, entry.install)
    engine: type[Engine] = getattr(import_module(entry.module), entry.class_name)
    return engine.open(bundle, device)
