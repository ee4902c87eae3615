"""What runs a bundle, behind one interface: torch, CTranslate2, ONNX Runtime. Each is imported when it is needed."""

from importlib import import_module

from softgaze.bundle import Bundle
from softgaze.engines.base import Engine, Reading
from softgaze.errors import DataError

__all__ = ["ENGINES", "Engine", "Reading", "open_engine"]

ENGINES = {
    "torch": "softgaze.engines.torch:TorchEngine",
    "ctranslate2": "softgaze.engines.ctranslate2:CTranslate2Engine",
}


def open_engine(bundle: Bundle, device: str = "auto") -> Engine:
    """The engine a bundle is made for."""
    wanted = bundle.engine["name"]
    if wanted not in ENGINES:
        raise DataError(
            f"{bundle.path}: is made for the engine {wanted!r}, which this softgaze does not know; "
            f"it knows {', '.join(ENGINES)}"
        )
    module, _, name = ENGINES[wanted].partition(":")
    chosen: type[Engine] = getattr(import_module(module), name)
    return chosen.open(bundle, device)
