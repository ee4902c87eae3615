"""What runs a bundle, behind one interface: torch, CTranslate2, ONNX Runtime. Each is imported when it is needed."""

from importlib import import_module
from typing import NamedTuple

from softgaze.bundle import Bundle
from softgaze.devices import need
from softgaze.engines.base import Engine, Reading
from softgaze.errors import DataError

__all__ = ["ENGINES", "Engine", "Reading", "open_engine"]


class Entry(NamedTuple):
    """Where an engine is, and what it needs."""

    module: str
    name: str
    packages: tuple[str, ...]
    install: str  # what pip is asked for


ENGINES = {
    "torch": Entry("softgaze.engines.torch", "TorchEngine", ("torch", "safetensors"), "softgaze[train]"),
    "ctranslate2": Entry("softgaze.engines.ctranslate2", "CTranslate2Engine", ("ctranslate2",), "ctranslate2"),
    "onnx": Entry("softgaze.engines.onnx", "OnnxEngine", ("onnxruntime",), "softgaze[onnx]"),
}


def open_engine(bundle: Bundle, device: str = "auto") -> Engine:
    """The engine a bundle is made for; one line where it is unknown, or not installed."""
    wanted = bundle.engine["name"]
    if wanted not in ENGINES:
        raise DataError(
            f"{bundle.path}: is made for the engine {wanted!r}, which this softgaze does not know; "
            f"it knows {', '.join(ENGINES)}"
        )
    entry = ENGINES[wanted]
    for package in entry.packages:
        need(package, entry.install)
    chosen: type[Engine] = getattr(import_module(entry.module), entry.name)
    return chosen.open(bundle, device)
