"""A converted model that behaves as the trained one: a fast engine for searches, torch for everything else."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Self

from softgaze.bundle import Bundle, Tokenizers
from softgaze.engines.base import EncodedSource, Engine, EngineFiles, OnBatch
from softgaze.engines.conversion import TORCH
from softgaze.runtime import has_torch
from softgaze.search import Hypothesis, SearchOptions

if TYPE_CHECKING:
    from softgaze.engines.torch_engine import TorchEngine
    from softgaze.explain.recording import Matrix, PartAttention
    from softgaze.explain.scoring import IdPair
    from softgaze.search.beam import TraceCallback


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
        self.max_positions = fast.facts[TORCH]["max_positions"]
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

    # --- scoring and recording: torch, which has every map; the engine's own map without it

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        if not has_torch():
            return self.fast.cross_attention_shape
        layers, heads = self.facts[TORCH]["cross_attention_shape"]
        return layers, heads

    def record(self, pairs: "Sequence[IdPair]") -> "list[PartAttention]":
        return (self.torch if has_torch() else self.fast).record(pairs)

    def log_probs(self, pairs: "Sequence[IdPair]") -> "list[Matrix]":
        return (self.torch if has_torch() else self.fast).log_probs(pairs)
