"""Which engine runs a model, and why: the fastest one that gives the same output as torch."""

import logging
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from softgaze.bundle import Bundle, Description
from softgaze.engines.auto import AutoEngine
from softgaze.engines.base import Engine, EngineFiles
from softgaze.engines.conversion import REJECTED, RejectedError, convert, find_conversion
from softgaze.errors import DataError, UsageError, pick
from softgaze.runtime import has_nvidia_gpu, need

AUTO, TORCH = "auto", "torch"

log = logging.getLogger("softgaze.engines")


class EngineEntry(NamedTuple):
    """Where an engine is implemented, and the packages it needs."""

    module: str
    class_name: str
    packages: tuple[str, ...]  # the first one runs a model
    install: str  # argument of pip install
    converters: tuple[str, ...] = ()  # packages that convert a trained model
    conflict: str = ""  # package that cannot be loaded in the same process

    def load(self) -> type[Engine]:
        """Import the engine's class; raise if a package is missing."""
        for package in self.packages:
            need(package, self.install)
        engine: type[Engine] = getattr(import_module(self.module), self.class_name)
        return engine


ENGINES = {
    TORCH: EngineEntry("softgaze.engines.torch_engine", "TorchEngine", ("torch", "safetensors"), "softgaze[train]"),
    "ctranslate2": EngineEntry(
        "softgaze.engines.ctranslate2_engine",
        "CTranslate2Engine",
        ("ctranslate2",),
        "ctranslate2",
        ("torch", "safetensors"),
        "onnxruntime",
    ),
    "onnx": EngineEntry(
        "softgaze.engines.onnx_engine",
        "OnnxEngine",
        ("onnxruntime",),
        "softgaze[onnx]",
        ("torch", "safetensors", "onnx"),
        "ctranslate2",
    ),
}
# The fastest engine of each arch that has one besides torch, known without importing torch.
FASTEST = {"transformer": "ctranslate2", "rnn": "onnx", "rnn-bahdanau": "onnx", "rnn-luong": "onnx"}


class EngineChoice(NamedTuple):
    """The engine that runs a model, and why."""

    name: str
    reason: str
    files: EngineFiles | None = None  # of its conversion, if there is one


def choose_engine(bundle: Bundle, device: str = AUTO, engine: str = AUTO) -> EngineChoice:
    """Return the engine that `load` takes. Nothing is converted, and torch is not imported."""
    pick("engine", engine, {AUTO: None, **ENGINES})
    own, arch = str(bundle.engine["name"]), bundle.description.arch
    if own != TORCH:
        return choose_for_exported(bundle, own, engine)
    if engine == TORCH:
        return EngineChoice(TORCH, "requested")
    name = fastest_engine(bundle.description) if engine == AUTO else engine
    if name is None:
        return EngineChoice(TORCH, f"arch {arch} has no faster engine")
    obstacle = device_obstacle(device) or package_obstacle(name)
    files = None if obstacle else find_conversion(bundle, name, ENGINES[name].packages[0])
    if files is None:
        obstacle = obstacle or converter_obstacle(name)
    elif REJECTED in files.facts:
        obstacle = f"{name} was rejected: {files.facts[REJECTED]}"
    if obstacle:
        return EngineChoice(TORCH, obstacle)
    if files is None:
        return EngineChoice(name, "gives the same output faster; the next load converts and verifies the model")
    return EngineChoice(name, f"gives the same output faster; verified conversion in {files.directory}", files)


def fastest_engine(description: Description) -> str | None:
    """Return the fastest engine of a model besides torch; CTranslate2 has no recurrent layers."""
    is_recurrent = description.options.get("decoder_self", "attention") != "attention"
    return "onnx" if description.arch == "transformer" and is_recurrent else FASTEST.get(description.arch)


def choose_for_exported(bundle: Bundle, own: str, engine: str) -> EngineChoice:
    """Return the engine of an exported model: its own, or torch if requested and the weights are included."""
    if own not in ENGINES:
        raise DataError(
            f"{bundle.path}: was exported to the engine {own!r}, which this version does not know; "
            f"known: {', '.join(ENGINES)}"
        )
    if engine in (AUTO, own):
        return EngineChoice(own, "the model was exported to it")
    if engine == TORCH and bundle.has_weights:
        return EngineChoice(TORCH, "requested")
    raise UsageError(f"{bundle.path}: was exported to {own}; for {engine} use the model it was made from")


def device_obstacle(device: str) -> str:
    """Return why no conversion runs on a device, or nothing."""
    if device not in (AUTO, "cpu"):
        return f"torch runs on {device}"
    return "torch runs on the GPU" if device == AUTO and has_nvidia_gpu() else ""


def package_obstacle(name: str) -> str:
    """Return why the package of an engine cannot be used in this process, or nothing."""
    package, conflict = ENGINES[name].packages[0], ENGINES[name].conflict
    if find_spec(package) is None:
        return f"{package} is not installed"
    return f"{package} cannot share a process with {conflict}, which is loaded" if conflict in sys.modules else ""


def converter_obstacle(name: str) -> str:
    """Return why a model cannot be converted here, or nothing."""
    missing = next((package for package in ENGINES[name].converters if find_spec(package) is None), None)
    return f"{missing}, which converts a model to {name}, is not installed" if missing else ""


def open_engine(bundle: Bundle, device: str = AUTO, engine: str = AUTO) -> Engine:
    """Open a bundle with the chosen engine, after converting it where that was not done before."""
    choice = choose_engine(bundle, device, engine)
    if choice.name != TORCH and bundle.engine["name"] == TORCH:
        try:
            return AutoEngine(open_conversion(bundle, choice), bundle)
        except RejectedError as error:
            choice = EngineChoice(TORCH, f"{choice.name} was rejected: {error}")
            log.warning("%s: runs on torch: %s", bundle.path, choice.reason)
    if engine not in (AUTO, choice.name):
        raise UsageError(f"{bundle.path}: cannot run on {engine}: {choice.reason}")
    if choice.reason.endswith("is loaded"):
        log.warning("%s: runs on torch: %s", bundle.path, choice.reason)
    return ENGINES[choice.name].load().open(bundle, device)


def open_conversion(bundle: Bundle, choice: EngineChoice) -> Engine:
    """Open the conversion of a model, which is made first if there is none."""
    engine = ENGINES[choice.name].load()
    if choice.files is not None:
        try:
            return engine.open(bundle, "cpu", choice.files)
        except DataError as error:
            log.warning("%s; the model is converted again", error)
    return convert(bundle, engine, ENGINES[choice.name].packages[0])
