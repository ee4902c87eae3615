"""Engines that run a bundle: torch, CTranslate2, ONNX Runtime. Each is imported when it is needed."""

from softgaze.engines.base import EncodedSource, Engine
from softgaze.engines.selection import ENGINES, choose_engine, open_engine

__all__ = ["ENGINES", "EncodedSource", "Engine", "choose_engine", "open_engine"]
