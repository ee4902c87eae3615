"""The production engine of Transformers: CTranslate2, float32 or int8, without torch.

There is one worker with one thread for each core: int8 with two threads in one worker is slower than float32. Batches
are submitted before the workers need them, and results are decoded while the workers continue.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from softgaze.bundle import Bundle, Tokenizers
from softgaze.engines.base import (
    MAX_POSITIONS,
    NEEDS_VNNI,
    EncodedSource,
    Engine,
    EngineFiles,
    OnBatch,
    check_not_loaded,
    length_batches,
    reject_interventions,
)
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.runtime import has_vnni, threads
from softgaze.search import Hypothesis, SearchOptions
from softgaze.special_tokens import BOS, EOS, PAD, UNK

if TYPE_CHECKING:
    from softgaze.explain.recording import Matrix, PartAttention
    from softgaze.explain.scoring import IdPair

NAME = "ctranslate2"  # of the engine, of its package, and of the directory in a bundle
NO_TRUNCATION = {"max_input_length": 0}  # by default CTranslate2 silently cuts sources at 1,024 tokens
PREFETCH = 2  # batches submitted per worker: they cannot be cancelled, so an interrupt waits for them


class SubmittedBatch(NamedTuple):
    """Sources that the workers decode."""

    sources: list[EncodedSource]
    limit: int  # most tokens generated
    futures: Sequence[Any]


class CTranslate2Engine(Engine):
    """An exported Transformer."""

    name = NAME
    records_all_maps = False

    def __init__(self, translator: Any, tokenizers: Tokenizers, facts: dict[str, Any], device: str) -> None:
        self.translator, self.tokenizers, self.facts, self.device = translator, tokenizers, facts, device
        self.precision, self.num_positions, self.note = facts["precision"], facts[MAX_POSITIONS], facts["note"]

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto", files: EngineFiles | None = None) -> Self:
        """Load files that were verified: CTranslate2 itself loads damaged files silently."""
        directory, facts = files or EngineFiles.of(bundle)
        if facts.get(NEEDS_VNNI) and not has_vnni():
            raise ResourceError(
                f"{bundle.path}: was exported for processors with VNNI, and its int8 sums would overflow on this one; "
                "export the trained model on this machine"
            )
        check_not_loaded("onnxruntime")
        import ctranslate2

        chosen = pick_ctranslate2_device(device, ctranslate2.get_cuda_device_count())
        kind, _, index = chosen.partition(":")
        workers = {"inter_threads": threads(), "intra_threads": 1} if kind == "cpu" else {}

        def build() -> Any:
            return ctranslate2.Translator(
                str(directory), kind, device_index=int(index or 0), max_queued_batches=-1, **workers
            )

        try:
            with ThreadPoolExecutor(1) as pool:  # it sets the OpenMP threads of its caller, which torch uses too
                translator = pool.submit(build).result()
        except (RuntimeError, ValueError) as error:
            raise DataError(f"{directory}: CTranslate2 cannot load it: {error}") from error
        return cls(translator, bundle.tokenizers, facts, chosen)

    # --- search

    def supports(self, options: SearchOptions) -> bool:
        """Whether the text is that of torch: CTranslate2 draws other samples and normalizes after constraints."""
        longest = max(options.max_length or 0, len(options.prefix.encode()) + 2)  # a token has at least a byte
        has_positions = self.max_positions is None or longest <= self.max_positions
        return has_positions and not (options.is_sampling or options.min_length or options.no_repeat_ngram_size)

    def search(
        self, windows: Iterable[Sequence[EncodedSource]], options: SearchOptions, on_batch: OnBatch | None = None
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yield the results of each window; batches of the next window are submitted before this one is done."""
        if options.is_sampling:
            raise UsageError(
                "CTranslate2 cannot repeat a sample with the same seed; to sample, use the model this was made from"
            )
        started: deque[tuple[deque[list[int]], list[list[Hypothesis]]]] = deque()  # batches and results of each window

        def submit_windows() -> Iterator[SubmittedBatch]:
            for sources in windows:
                batches_of_window = length_batches(sources, options.batch_budget(self.batch_tokens)) or [[]]
                started.append((deque(batches_of_window), [[] for _ in sources]))
                for indices in batches_of_window:
                    yield self._submit([sources[index] for index in indices], options)

        for batch in _prefetch(submit_windows(), PREFETCH * self.translator.num_translators):
            while not started[0][0]:  # all batches of this window are done
                yield started.popleft()[1]
            remaining, results = started[0]
            for index, hypotheses in zip(remaining.popleft(), self._collect(batch, options), strict=True):
                results[index] = hypotheses
            if on_batch is not None:
                on_batch(batch.sources)
        for _, results in started:
            yield results

    def search_stream(
        self, source: EncodedSource, options: SearchOptions, on_tokens: Callable[[Sequence[int]], None]
    ) -> list[Hypothesis]:
        """Search greedily, reporting the tokens so far; a special token makes the final result differ from them."""
        tokens: list[int] = []

        def callback(step: Any) -> bool:
            token = self.tokenizers.target.piece_ids[step.token]
            if token not in (EOS, *self._tags):
                tokens.append(token)
                on_tokens(tokens)
            return False

        [hypotheses] = self._collect(self._submit([source], options, callback=callback), options)
        return hypotheses

    def _submit(self, sources: list[EncodedSource], options: SearchOptions, **arguments: Any) -> SubmittedBatch:
        if not sources:
            return SubmittedBatch([], 0, ())
        reject_interventions(sources)
        limit = max(self._limit(source, options) for source in sources)
        prefixes = [self.tokenizers.target.pieces((*self._tags, *source.prefix)) for source in sources]
        futures = self.translator.translate_batch(
            [self.tokenizers.source.pieces(source.ids) for source in sources],
            prefixes if any(prefixes) else None,
            asynchronous=True,
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            min_decoding_length=min(options.min_length, limit) + self._forced,
            max_decoding_length=limit + self._forced,
            return_scores=True,
            return_end_token=True,
            **NO_TRUNCATION,
            **arguments,
        )
        return SubmittedBatch(sources, limit, futures)

    def _limit(self, source: EncodedSource, options: SearchOptions) -> int:
        return options.length_limit(len(source.ids), len(source.prefix), self.max_positions)

    def _collect(self, batch: SubmittedBatch, options: SearchOptions) -> list[list[Hypothesis]]:
        """Wait for the results of a batch.

        CTranslate2 takes one maximum length per batch; sources that reached their own shorter limit are decoded again
        with it.
        """
        results: list[list[Hypothesis]] = [[] for _ in batch.sources]
        too_long: dict[int, list[int]] = {}
        with_special: list[int] = []
        for index, (source, future) in enumerate(zip(batch.sources, batch.futures, strict=True)):
            result, limit = future.result(), self._limit(source, options)
            pieces = result.hypotheses  # read once: each access makes new strings
            if limit < batch.limit and max(map(len, pieces)) >= limit + self._forced:
                too_long.setdefault(limit, []).append(index)
            elif self.decode_exactly is not None and self._has_special(pieces):
                with_special.append(index)
            else:
                results[index] = self._hypotheses(source, pieces, result.scores, options)
        retries = [
            (indices, self._submit([batch.sources[index] for index in indices], options))
            for indices in too_long.values()
        ]
        for indices, retry in retries:
            for index, hypotheses in zip(indices, self._collect(retry, options), strict=True):
                results[index] = hypotheses
        if self.decode_exactly is not None and with_special:
            exact = self.decode_exactly([batch.sources[index] for index in with_special], options)
            for index, hypotheses in zip(with_special, exact, strict=True):
                results[index] = hypotheses
        return results

    def _hypotheses(
        self, source: EncodedSource, pieces: list[list[str]], scores: list[float], options: SearchOptions
    ) -> list[Hypothesis]:
        """Return the best hypotheses with the scores that every engine gives."""
        constrained = bool(source.prefix or options.min_length or options.no_repeat_ngram_size)
        best = pieces if constrained else pieces[: options.num_hypotheses]
        if self._has_special(best):
            # Decode again without special tokens; forbidding them always would change all scores.
            forbidden = [[piece] for piece in self.tokenizers.target.pieces([PAD, BOS])]
            retry = self._submit([source], options, disable_unk=True, suppress_sequences=forbidden)
            return self._rescored(source, retry.futures[0].result().hypotheses, options)
        if constrained:
            return self._rescored(source, best, options)
        penalty = options.length_penalty
        return [
            Hypothesis.of(self._target_ids(target), score * len(target) ** penalty, penalty, self._forced)
            for target, score in zip(best, scores, strict=False)
        ]

    def _rescored(
        self, source: EncodedSource, pieces: Sequence[Sequence[str]], options: SearchOptions
    ) -> list[Hypothesis]:
        """Rank by the model's own log-probabilities: CTranslate2's leave out forced and forbidden tokens."""
        from softgaze.explain.scoring import IdPair

        targets = list(map(self._target_ids, pieces))
        log_probs = self.log_probs([IdPair(self.tokenizers.source.strip_eos(source.ids), target) for target in targets])
        hypotheses = [
            Hypothesis.of(target, float(values.sum()), options.length_penalty, self._forced)
            for target, values in zip(targets, log_probs, strict=True)
        ]
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[: options.num_hypotheses]

    def _target_ids(self, pieces: Sequence[str]) -> list[int]:
        """Return the ids of a hypothesis without its language tokens."""
        ids = self.tokenizers.target.piece_ids
        return [ids[piece] for piece in pieces[self._forced :]]

    @property
    def _forced(self) -> int:
        """Language tokens that a hypothesis starts with."""
        return len(self.tokenizers.target.start) - 1

    @property
    def _tags(self) -> tuple[int, ...]:
        """Tokens given before a target: all but BOS, which CTranslate2 adds."""
        start = self.tokenizers.target.start
        return start[1:] if start[0] == BOS else start

    def _has_special(self, hypotheses: Iterable[Sequence[str]]) -> bool:
        return not all(self._special_pieces.isdisjoint(target[self._forced :]) for target in hypotheses)

    @cached_property
    def _special_pieces(self) -> frozenset[str]:
        return frozenset(self.tokenizers.target.pieces([PAD, UNK, BOS]))

    # --- scoring

    def log_probs(self, parts: "Sequence[IdPair]") -> "list[Matrix]":
        from softgaze.explain.scoring import batches

        reject_interventions(parts)
        results: list[Matrix] = [np.zeros(0)] * len(parts)
        submitted = []
        for indices in batches(parts):
            batch = [parts[index] for index in indices]
            # CTranslate2 adds EOS to each target itself.
            targets = [part.target[:-1] if part.target and part.target[-1] == EOS else part.target for part in batch]
            futures = self.translator.score_batch(
                [self.tokenizers.source.pieces(self.tokenizers.source.add_eos(part.source)) for part in batch],
                [self.tokenizers.target.pieces((*self._tags, *target)) for target in targets],
                asynchronous=True,
                **NO_TRUNCATION,
            )
            submitted.append((indices, futures))
        for indices, futures in submitted:
            for index, future in zip(indices, futures, strict=True):
                results[index] = np.array(future.result().log_probs)[self._forced :][: len(parts[index].target)]
        return results

    def record(self, parts: "Sequence[IdPair]") -> "list[PartAttention]":
        """Return the one map that CTranslate2 provides, while each target is forced as a prefix."""
        from softgaze.explain.recording import AttentionStack, PartAttention
        from softgaze.explain.scoring import batches

        reject_interventions(parts)
        results: list[PartAttention] = [PartAttention()] * len(parts)
        submitted = []
        for indices in batches(parts):
            batch = [parts[index] for index in indices]
            futures = self.translator.translate_batch(
                [self.tokenizers.source.pieces(self.tokenizers.source.add_eos(part.source)) for part in batch],
                [self.tokenizers.target.pieces((*self._tags, *part.target)) for part in batch],
                asynchronous=True,
                beam_size=1,
                # the last gives the row of EOS
                max_decoding_length=max(len(part.target) for part in batch) + self._forced + 1,
                return_end_token=True,
                return_attention=True,
                **NO_TRUNCATION,
            )
            submitted.append((indices, futures))
        for indices, futures in submitted:
            for index, future in zip(indices, futures, strict=True):
                rows = future.result().attention[0][self._forced :][: len(parts[index].target) + 1]
                weights = np.array(rows, np.float32)[None, None]  # (1, 1, Q, K)
                results[index] = PartAttention(cross=AttentionStack(weights, np.ones_like(weights[:, :, 0])))
        return results


def _prefetch(stream: Iterable[SubmittedBatch], count: int) -> Iterator[SubmittedBatch]:
    """Yield the items of a stream, having taken `count` more of them in advance."""
    taken: deque[SubmittedBatch] = deque()
    for item in stream:
        taken.append(item)
        if len(taken) > count:
            yield taken.popleft()
    yield from taken


def pick_ctranslate2_device(name: str, gpus: int) -> str:
    """Return CTranslate2's name of a device; auto selects a GPU if there is one."""
    if name == "auto":
        return "cuda" if gpus else "cpu"
    kind, _, index = name.partition(":")
    available = {"cpu": 1, "cuda": gpus}.get(kind, 0)
    if not (index or "0").isdecimal() or int(index or 0) >= available:
        raise UsageError(f"device {name} is not available to CTranslate2; available: cpu and {gpus} of cuda")
    return name
