"""Which engine runs a model, and why: the fastest one that gives the same output as torch."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self

from softgaze.bundle import Bundle, Tokenizers
from softgaze.engines.base import EncodedSource, Engine, EngineFiles, OnBatch
from softgaze.engines.conversion import REJECTED, TORCH, RejectedError, convert, find_conversion
from softgaze.errors import DataError, UsageError, pick
from softgaze.runtime import has_nvidia_gpu, has_torch, need
from softgaze.search import Hypothesis, SearchOptions

if TYPE_CHECKING:
    from softgaze.engines.torch_engine import TorchEngine
    from softgaze.explain.recording import Matrix, PartAttention
    from softgaze.explain.scoring import IdPair
    from softgaze.search.beam import TraceCallback

AUTO = "auto"

log = logging.getLogger("softgaze.engines")


# --- a converted model that behaves as the trained one ---


class SharedTorch:
    """The torch engine of a bundle, opened when it is needed first, once for all threads and language pairs."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle, self.lock = bundle, Lock()
        self.opened: TorchEngine | None = None

    def engine(self) -> "TorchEngine":
        from softgaze.engines.torch_engine import TorchEngine

        with self.lock:
            if self.opened is None:
                self.opened = TorchEngine.open(self.bundle, "cpu")
        return self.opened


class AutoEngine(Engine):
    """Searches with a converted model where that gives the same text; torch is loaded when it is needed first."""

    def __init__(self, fast: Engine, bundle: Bundle, shared_torch: "SharedTorch | None" = None) -> None:
        self.fast, self.tokenizers, self.shared_torch = fast, bundle.tokenizers, shared_torch or SharedTorch(bundle)
        self.name, self.precision, self.device, self.facts = fast.name, fast.precision, fast.device, fast.facts
        self.num_positions = fast.facts[TORCH]["max_positions"]
        if has_torch():
            fast.decode_exactly = self.decode_batch

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto", files: EngineFiles | None = None) -> Self:
        raise NotImplementedError("`open_engine` opens it from a conversion")

    def with_tokenizers(self, tokenizers: Tokenizers) -> Self:
        """Return this engine for another language pair; both models are shared."""
        engine = super().with_tokenizers(tokenizers)
        engine.fast = self.fast.with_tokenizers(tokenizers)
        if has_torch():
            engine.fast.decode_exactly = engine.decode_batch
        return engine

    @property
    def torch(self) -> "TorchEngine":
        """The torch engine of the same weights."""
        opened = self.shared_torch.engine()
        return opened if opened.tokenizers is self.tokenizers else opened.with_tokenizers(self.tokenizers)

    def supports(self, options: SearchOptions) -> bool:
        return True

    def search(
        self, windows: Iterable[Sequence[EncodedSource]], options: SearchOptions, on_batch: OnBatch | None = None
    ) -> Iterator[list[list[Hypothesis]]]:
        return self._for(options).search(windows, options, on_batch)

    def search_stream(
        self, source: EncodedSource, options: SearchOptions, on_tokens: Callable[[Sequence[int]], None]
    ) -> list[Hypothesis]:
        return self._for(options).search_stream(source, options, on_tokens)

    def decode_batch(
        self, batch: Sequence[EncodedSource], options: SearchOptions, on_candidate: "TraceCallback | None" = None
    ) -> list[list[Hypothesis]]:
        return self.torch.decode_batch(batch, options, on_candidate)

    def _for(self, options: SearchOptions) -> Engine:
        """Return the engine for a search: the fast one if it finds the same text, or if there is no torch."""
        return self.fast if self.fast.supports(options) or not has_torch() else self.torch

    # --- recording: torch, which has every map; the engine's own map without it

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        if not has_torch():
            return self.fast.cross_attention_shape
        layers, heads = self.facts[TORCH]["cross_attention_shape"]
        return layers, heads

    def record(self, pairs: "Sequence[IdPair]") -> "list[PartAttention]":
        return (self.torch if has_torch() else self.fast).record(pairs)

    def log_probs(self, pairs: "Sequence[IdPair]") -> "list[Matrix]":
        """Score with the fast engine; interventions, and targets that it has no positions for, need torch."""
        limit = self.fast.max_positions
        is_long = limit is not None and any(max(len(pair.source), len(pair.target)) >= limit for pair in pairs)
        needs_torch = any(pair.interventions for pair in pairs) or (is_long and has_torch())
        return (self.torch if needs_torch else self.fast).log_probs(pairs)


# --- the choice ---


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
    is_recurrent = arch == "transformer" and bundle.description.options.get("decoder_self", "attention") != "attention"
    fastest = "onnx" if is_recurrent else FASTEST.get(arch)  # CTranslate2 has no recurrent layers
    name = fastest if engine == AUTO else engine
    if name is None:
        return EngineChoice(TORCH, f"arch {arch} has no faster engine")
    obstacle = find_obstacle(name, device)
    files = None if obstacle else find_conversion(bundle, name, ENGINES[name].packages[0])
    if files is None:
        missing = [package for package in ENGINES[name].converters if find_spec(package) is None]
        if missing and not obstacle:
            obstacle = f"{missing[0]}, which converts a model to {name}, is not installed"
    elif REJECTED in files.facts:
        obstacle = f"{name} was rejected: {files.facts[REJECTED]}"
    if obstacle:
        return EngineChoice(TORCH, obstacle)
    if files is None:
        return EngineChoice(name, "gives the same output faster; the next load converts and verifies the model")
    return EngineChoice(name, f"gives the same output faster; verified conversion in {files.directory}", files)


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


def find_obstacle(name: str, device: str) -> str:
    """Return why an engine cannot run on this device or in this process, or nothing."""
    if device not in (AUTO, "cpu"):
        return f"torch runs on {device}"
    if device == AUTO and has_nvidia_gpu():
        return "torch runs on the GPU"
    package, conflict = ENGINES[name].packages[0], ENGINES[name].conflict
    if find_spec(package) is None:
        return f"{package} is not installed"
    return f"{package} cannot share a process with {conflict}, which is loaded" if conflict in sys.modules else ""


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
