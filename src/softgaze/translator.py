"""The main interface: `load` a model directory, `translate` text, get a `Translation`.

Text longer than the model was trained for is split, translated in parts and joined again, never cut. This module does
not import torch; `load` does if the model needs it.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from softgaze.bundle import ALIGNER, ATTENTION, Bundle, search_defaults
from softgaze.data.language_id import is_unspaced
from softgaze.data.tokenizer import LanguageTokens, normalise
from softgaze.engines import EncodedSource, Engine, open_engine
from softgaze.engines.base import Ids, Items, OnBatch
from softgaze.engines.selection import AutoEngine
from softgaze.errors import DataError, SoftgazeError, UsageError
from softgaze.runtime import has_torch, need_torch
from softgaze.search import Hypothesis, SearchOptions
from softgaze.special_tokens import EOS, UNK
from softgaze.translation import TranslatedPart, Translation, best_combinations, combined_score

if TYPE_CHECKING:
    from softgaze.alignment import StatisticalAligner
    from softgaze.engines.torch_engine import TorchEngine
    from softgaze.explain import Alignment, Attention, SelectedMap
    from softgaze.explain.confidence import Confidence
    from softgaze.explain.explanation import Explanation
    from softgaze.explain.map_selection import Aligner
    from softgaze.explain.recording import Matrix
    from softgaze.explain.what_if import Change
    from softgaze.glossary import Glossary
    from softgaze.models import Seq2Seq
    from softgaze.search.beam import TraceCallback
    from softgaze.search.terms import SourceTerm

WINDOW = 2048  # lines of a stream that are sorted by length together: little padding, bounded delay and memory

_CONTROL_CHARACTERS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")  # line ends, NUL, terminal escapes

Progress = Callable[[int], None]  # called with the number of texts done since the last call


def load(
    path: str | Path,
    device: str = "auto",
    *,
    engine: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    explain_with_torch: bool = True,
) -> "Translator":
    """Open a model directory. Every file is verified, and nothing in it is executed.

    The fastest engine with the same output translates: CTranslate2 for Transformers, ONNX Runtime for RNNs. The first
    call converts the model and keeps the conversion in the model directory. torch is loaded for attention, what-if and
    sampling when they are first used. An exported model runs without torch.

    Parameters
    ----------
    path
        Model directory that `train`, `export` or `import` wrote.
    device
        `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.
    engine
        `auto`, `torch`, `ctranslate2` or `onnx`.
    source_lang, target_lang
        Languages of a multilingual model; see `Translator.with_languages`.
    explain_with_torch
        Whether torch weights, if included, provide the attention of all layers and heads of an exported model; if
        not, its engine provides one map.

    Raises
    ------
    SoftgazeError
        If a file is missing, damaged or of a newer format, or if a package is not installed.
    """
    bundle = Bundle.open(Path(path))  # before anything slow is imported
    if source_lang is not None or target_lang is not None:
        bundle = bundle.with_languages(source_lang, target_lang)
    return Translator(bundle, open_engine(bundle, device, engine), explain_with_torch=explain_with_torch)


class Translator:
    """A trained model with its tokenizers. It keeps no state between calls and may be shared by threads."""

    def __init__(
        self,
        bundle: Bundle,
        engine: Engine,
        selected_map: "SelectedMap | None" = None,
        *,
        explain_with_torch: bool = True,
    ) -> None:
        self.bundle, self.engine, self.explain_with_torch = bundle, engine, explain_with_torch
        self._selected_map = selected_map

    @property
    def device(self) -> str:
        """Device the model runs on."""
        return self.engine.device

    @property
    def model(self) -> "Seq2Seq":
        """The torch model."""
        return self.torch_engine.model

    @property
    def max_positions(self) -> int | None:
        """Most tokens the model has positions for; None if unlimited."""
        return self.engine.max_positions

    @property
    def has_attention(self) -> bool:
        """Whether the model attends to its source."""
        return self.engine.cross_attention_shape != (0, 0)

    @cached_property
    def search_defaults(self) -> SearchOptions:
        """The search options that apply where a caller gives none; an imported model may set them."""
        try:
            return SearchOptions(**search_defaults(self.bundle.facts))
        except (TypeError, UsageError) as error:
            raise DataError(f"{self.bundle.path}: its manifest sets invalid search options: {error}") from error

    @property
    def languages(self) -> LanguageTokens | None:
        """The languages of a multilingual model."""
        return self.bundle.tokenizers.languages

    def with_languages(self, source: str | None, target: str | None) -> "Translator":
        """Return a translator of another language pair of a multilingual model; the model itself is shared."""
        bundle = self.bundle.with_languages(source, target)
        chosen = copy.copy(self)
        for name in ("torch_engine", "scorer", "max_source_length", "_separator"):
            vars(chosen).pop(name, None)  # cached properties that depend on the languages
        chosen.bundle, chosen.engine = bundle, self.engine.with_tokenizers(bundle.tokenizers)
        if "torch_engine" in vars(self):
            vars(chosen)["torch_engine"] = self.torch_engine.with_tokenizers(bundle.tokenizers)
        return chosen

    # --- translating

    @overload
    def translate(self, text: str, options: SearchOptions | None = None, **fields: Any) -> Translation: ...

    @overload
    def translate(self, text: list[str], options: SearchOptions | None = None, **fields: Any) -> list[Translation]: ...

    def translate(
        self, text: str | list[str], options: SearchOptions | None = None, **fields: Any
    ) -> Translation | list[Translation]:
        """Translate a text, or a list of texts in order.

        Empty text stays empty. White space of any kind counts as one space. A text with more subwords than the model
        was trained for is split at its sentences; its score is that of all parts together.

        Parameters
        ----------
        text
            One text, or a list of texts.
        options
            The options of the search; by default those of the model.
        **fields
            Fields of `SearchOptions` that differ, such as `beam_size=1`.

        Returns
        -------
        Translation or list of Translation
        """
        if isinstance(text, str):
            return next(self.translate_lines([text], options, **fields))
        return list(self.translate_lines(text, options, ahead=True, **fields))

    def translate_lines(
        self,
        lines: Iterable[str],
        options: SearchOptions | None = None,
        *,
        window: int = WINDOW,
        progress: Progress | None = None,
        ahead: bool = False,
        **fields: Any,
    ) -> Iterator[Translation]:
        """Translate a stream: yield one translation for each line, in order, reading `window` lines at a time.

        With `ahead` the engine may start the next windows before this one is done. Use it for lines that are all
        available: a client that sends a line only after the previous answer would wait forever. If a line cannot be
        read, the lines before it are translated before the error is raised.
        """
        options = SearchOptions.of(options or self.search_defaults, fields)
        windows = _Windows(lines, window)
        for group in [windows] if ahead else ([texts] for texts in windows):
            yield from self._translate_windows(group, options, progress)
        if windows.error is not None:
            raise windows.error

    def _translate_windows(
        self, windows: Iterable[list[str]], options: SearchOptions, progress: Progress | None
    ) -> Iterator[Translation]:
        started: deque[tuple[list[str], list[list[EncodedSource]]]] = deque()

        def encoded_windows() -> Iterator[list[EncodedSource]]:
            for texts in windows:
                encoded = self.encode(texts, options)
                started.append((texts, encoded))
                if progress is not None:
                    progress(encoded.count([]))  # empty texts are done
                yield [source for sources in encoded for source in sources]

        def on_batch(sources: Sequence[EncodedSource]) -> None:
            if progress is not None:
                progress(sum(source.part == 0 for source in sources))  # a text counts with its first part

        for results in self._search(encoded_windows(), options, on_batch):
            texts, encoded = started.popleft()
            remaining = iter(results)
            best = [
                self._best(text, sources, list(islice(remaining, len(sources))), options)
                for text, sources in zip(texts, encoded, strict=True)
            ]
            yield from self._with_terms(best) if options.glossary else best

    def _search(
        self, windows: Iterable[list[EncodedSource]], options: SearchOptions, on_batch: OnBatch
    ) -> Iterator[list[list[Hypothesis]]]:
        """Search with the engine; sources with terms with torch, which generates them, if it can be used."""
        if options.glossary is None:
            yield from self.engine.search(windows, options, on_batch)
            return
        for sources in windows:
            results: list[list[Hypothesis]] = [[] for _ in sources]
            groups: dict[str, list[int]] = {}
            for index, source in enumerate(sources):
                groups.setdefault(self._engine_for([source]).name, []).append(index)
            for indices in groups.values():
                batch = [sources[index] for index in indices]
                [found] = self._engine_for(batch).search([batch], options, on_batch)
                for index, hypotheses in zip(indices, found, strict=True):
                    results[index] = hypotheses
            yield results

    def _engine_for(self, sources: Sequence[EncodedSource]) -> Engine:
        has_terms = any(source.terms for source in sources)
        return self.torch_engine if has_terms and self.supports_interventions else self.engine

    def translate_stream(
        self, text: str, on_text: Callable[[str], None], glossary: "Glossary | None" = None
    ) -> Translation:
        """Translate greedily and call `on_text` with each word as soon as the next one begins.

        The streamed pieces concatenate to the translation unless the engine had to decode a part again, or a term of
        the glossary was inserted after the search.
        """
        options = replace(self.search_defaults, beam_size=1, glossary=glossary)
        streamer = _WordStreamer(self.decode, on_text, self._separator)
        [sources] = self.encode([text], options)
        results = []
        for source in sources:
            [best] = self._engine_for(sources).search_stream(source, options, streamer.on_tokens)
            streamer.finish(best.tokens)
            results.append([best])
        translation = self._best(text, sources, results, options)
        return next(self._with_terms([translation])) if glossary else translation

    # --- explaining, scoring and aligning

    def explain(self, translation: Translation) -> "Explanation":
        """Return the explanation of a translation: attention, occlusion, what-if edits, beam, faithfulness."""
        from softgaze.explain.explanation import Explanation

        return Explanation(self, translation)

    def attentions(self, translations: Sequence[Translation]) -> "list[Attention | None]":
        """Return the attention of many translations, batched."""
        from softgaze.explain.explanation import attention_maps

        return attention_maps(self, translations)

    def occlusions(self, translations: Sequence[Translation]) -> "list[Matrix]":
        """Return the occlusion scores, with a last row for EOS, of many translations, batched."""
        from softgaze.explain.explanation import occlusions

        return occlusions(self, translations)

    def confidences(self, translations: Sequence[Translation]) -> "list[Confidence]":
        """Return the confidence of each word of many translations, batched."""
        from softgaze.explain.confidence import confidences

        return confidences(self, translations)

    def score(self, source: str, target: str) -> Translation:
        """Return a given target as a translation by this model, with its log-probability."""
        from softgaze.explain.scoring import IdPair, TokenizedPair, check_max_positions

        tokenizers = self.bundle.tokenizers
        check_max_positions(TokenizedPair.of(source, target, tokenizers), self.max_positions)
        [source_ids], [target_ids] = tokenizers.source.encode([source]), tokenizers.target.encode([target])
        text = normalise(target)
        if not len(source_ids) or not target_ids:
            return Translation(source, text, 0.0, (), translator=self)
        with_eos = [*target_ids, EOS]
        [log_probs] = self.scorer.log_probs([IdPair(source_ids, with_eos)])
        hypothesis = Hypothesis.of(with_eos, float(log_probs.sum()), 1.0)
        part = self.part(tokenizers.source.add_eos(source_ids), hypothesis)
        return Translation(source, text, combined_score([part], 1.0), (part,), translator=self)

    def aligner(self, reverse: "Translator | None" = None, **options: Any) -> "Aligner":
        """Return a word aligner, with the `reverse` model if given; `options` are those of `Aligner`."""
        from softgaze.explain.map_selection import Aligner, AttentionReader

        sources = [
            AttentionReader(
                each.scorer, each.bundle.tokenizers, each.selected_map, each.max_positions, each.bundle.alignment_head
            )
            for each in (self, reverse)
            if each
        ]
        return Aligner(sources[0], sources[1] if reverse else None, **options)

    def align(
        self, sources: Sequence[str], targets: Sequence[str], reverse: "Translator | None" = None, **options: Any
    ) -> "list[Alignment]":
        """Align the words of sentence pairs, by attention and by the lexicon of the bundle if it has one.

        The map is selected on these pairs if the model has none.
        """
        from softgaze.alignment import CombinedAligner

        pairs = list(zip(sources, targets, strict=True))
        attention, statistics = self.aligner(reverse, **options).with_selected_maps(pairs), self.statistical_aligner
        return attention.align(pairs) if statistics is None else CombinedAligner(attention, statistics).align(pairs)

    @cached_property
    def statistical_aligner(self) -> "StatisticalAligner | None":
        """The word aligner of the bundle, which needs no attention; None if it has none."""
        if ALIGNER not in self.bundle.files:
            return None
        from softgaze.alignment import StatisticalAligner

        return StatisticalAligner.load(self.bundle.path / ALIGNER)  # its SHA-256 was verified

    # --- what explanations use

    @property
    def supports_interventions(self) -> bool:
        """Whether `what_if` works: it needs torch and the torch weights."""
        return self.bundle.has_weights and has_torch()

    def need_weights(self) -> None:
        """Raise without torch, or without torch weights."""
        if not self.bundle.has_weights:
            raise UsageError(
                f"{self.bundle.path}: this model was exported to {self.engine.name} without its torch weights; "
                "use the model it was made from, or export it again with --with-weights"
            )
        need_torch()

    @cached_property
    def torch_engine(self) -> "TorchEngine":
        """The torch engine; of an exported model, from the torch weights it includes."""
        self.need_weights()
        from softgaze.engines.torch_engine import TorchEngine

        if isinstance(self.engine, AutoEngine):
            return self.engine.torch
        if isinstance(self.engine, TorchEngine):
            return self.engine
        engine = TorchEngine.open(self.bundle)
        engine.note = f"from the torch weights, not from {self.engine.name}"
        return engine

    @cached_property
    def scorer(self) -> Engine:
        """The engine that records attention: torch if its weights are available, else the engine itself."""
        with_torch = self.explain_with_torch or isinstance(self.engine, AutoEngine)
        return self.torch_engine if with_torch and self.supports_interventions else self.engine

    @cached_property
    def selected_map(self) -> "SelectedMap | None":
        """The attention map selected for this model; None if none was selected."""
        from softgaze.explain.recording import SelectedMap

        stored = (self.bundle.facts if self.scorer.name == "torch" else self.engine.facts).get(ATTENTION)
        return SelectedMap.from_dict(stored) if stored else self._selected_map

    def with_selected_map(self, pairs: Iterable[tuple[str, str]]) -> "Translator":
        """Return this translator with an attention map, selected on these sentence pairs if it has none."""
        from softgaze.explain.map_selection import select_by_occlusion

        if self.selected_map is not None:
            return self
        selected = select_by_occlusion(self.aligner().forward, pairs)
        return Translator(self.bundle, self.engine, selected, explain_with_torch=self.explain_with_torch)

    def search_again(self, translation: Translation, changes: "Sequence[tuple[Change, ...]]") -> Iterator[Translation]:
        """Yield the translation searched again with each tuple of changes, all in one search; needs torch."""
        if not changes:
            return
        encoded = [self._encode_again(translation, own) for own in changes]
        [results] = self.torch_engine.search(
            [[source for sources in encoded for source in sources]], translation.options
        )
        remaining = iter(results)
        for own, sources in zip(changes, encoded, strict=True):
            best = self._best(translation.source, sources, list(islice(remaining, len(sources))), translation.options)
            alternatives = tuple(
                replace(alternative, changes=own, original=translation) for alternative in best.alternatives
            )
            yield replace(best, alternatives=alternatives, changes=own, original=translation)

    def continue_part(
        self, part: TranslatedPart, prefixes: Sequence[Ids], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of a part that begin with each prefix."""
        [results] = self.engine.search([[EncodedSource(part.source_ids, prefix) for prefix in prefixes]], options)
        return results

    def trace(self, translation: Translation, part: int, on_candidate: "TraceCallback") -> Hypothesis:
        """Search one part again, report every candidate and return the best hypothesis; needs torch."""
        source = self._encode_again(translation, translation.changes)[part]
        [[best, *_]] = self.torch_engine.decode_batch([source], translation.options, on_candidate)
        return best

    def _encode_again(self, translation: Translation, changes: "tuple[Change, ...]") -> list[EncodedSource]:
        from softgaze.explain.explanation import interventions_of

        prefix = self._prefix(translation.options)
        return [
            EncodedSource(part.source_ids, () if index else prefix, index, interventions_of(changes, index), part.terms)
            for index, part in enumerate(translation.parts)
        ]

    # --- text to ids and back

    def encode(self, texts: Sequence[str], options: SearchOptions) -> list[list[EncodedSource]]:
        """Return the encoded parts of each text: none if it is empty, several if it is too long."""
        tokenizer, prefix, glossary = self.bundle.tokenizers.source, self._prefix(options), options.glossary
        encoded = []
        for text, ids in zip(texts, tokenizer.encode(texts), strict=True):
            parts = [(text, ids)]
            if len(ids) > self.max_source_length or options.split_sentences:
                from softgaze.data.sentence_split import split_text

                sentences = split_text(text, tokenizer, self.max_source_length)
                parts = list(zip(sentences, tokenizer.encode(sentences), strict=True))
            sources: list[EncodedSource] = []
            for own, part in parts:
                if len(part):
                    terms = self._terms(own, part, glossary) if glossary else ()
                    index = len(sources)
                    sources.append(EncodedSource(tokenizer.add_eos(part), () if index else prefix, index, terms=terms))
            encoded.append(sources)
        return encoded

    def _terms(self, text: str, ids: Ids, glossary: "Glossary") -> "tuple[SourceTerm, ...]":
        from softgaze.term_placement import source_terms

        return source_terms(text, ids, glossary, self.bundle.tokenizers, self.bundle.description.target_language)

    def _with_terms(self, translations: list[Translation]) -> Iterator[Translation]:
        from softgaze.term_placement import insert_missing_terms

        return insert_missing_terms(self, translations)

    @cached_property
    def max_source_length(self) -> int:
        """Most source subwords in one part, EOS not counted."""
        trained = self.bundle.tokenizers.source.max_items(self.bundle.description.max_length)
        return trained if self.max_positions is None else min(trained, self.max_positions - 1)

    def _prefix(self, options: SearchOptions) -> Ids:
        if not options.prefix:
            return ()
        tokenizer = self.bundle.tokenizers.target
        [ids] = tokenizer.encode([options.prefix])
        if UNK in ids:
            unknown = [word for word in options.prefix.split() if UNK in tokenizer.encode([word])[0]]
            raise UsageError(f"the vocabulary of this model does not contain {', '.join(unknown)}; use another prefix")
        return tuple(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids on one line without control characters."""
        return normalise(self.bundle.tokenizers.target.decode(ids).translate(_CONTROL_CHARACTERS))

    def part(self, source_ids: Items, hypothesis: Hypothesis, terms: "tuple[SourceTerm, ...]" = ()) -> TranslatedPart:
        """Return a hypothesis with its source as a part of a translation."""
        tokenizers = self.bundle.tokenizers
        return TranslatedPart(
            source_ids,
            hypothesis.tokens,
            tuple(tokenizers.source.pieces(source_ids)),
            tuple(tokenizers.target.pieces(hypothesis.tokens)),
            hypothesis.log_prob,
            hypothesis.finished,
            len(tokenizers.target.start) - 1,
            terms,
        )

    def join(
        self, source: str, parts: tuple[TranslatedPart, ...], options: SearchOptions, engine: str = ""
    ) -> Translation:
        """Join parts to one translation."""
        text = self._separator.join(filter(None, (self.decode(part.target_ids) for part in parts)))
        score = combined_score(parts, options.length_penalty)
        return Translation(source, text, score, parts, translator=self, options=options, engine=engine)

    @cached_property
    def _separator(self) -> str:
        return "" if is_unspaced(self.bundle.description.target_language) else " "

    def _best(
        self,
        text: str,
        sources: Sequence[EncodedSource],
        results: Sequence[Sequence[Hypothesis]],
        options: SearchOptions,
    ) -> Translation:
        """Return the best translation of a text from the hypotheses of its parts, with its alternatives."""
        parts = [
            [self.part(source.ids, hypothesis, source.terms) for hypothesis in hypotheses]
            for source, hypotheses in zip(sources, results, strict=True)
        ]
        combinations = (
            list(zip(*parts, strict=True)) or [()] if options.is_sampling else best_combinations(parts, options)
        )
        engine = self._engine_for(sources).name
        best, *alternatives = [self.join(text, chosen, options, engine) for chosen in combinations]
        return replace(best, alternatives=tuple(alternatives)) if alternatives else best


class _WordStreamer:
    """Reports a growing text word by word, or character by character in scripts without spaces."""

    def __init__(self, decode: Callable[[Sequence[int]], str], on_text: Callable[[str], None], separator: str) -> None:
        self.decode, self.on_text, self.separator = decode, on_text, separator
        self.sent = 0  # characters of this part
        self.before_part = ""

    def on_tokens(self, tokens: Sequence[int]) -> None:
        """Send all but the last word, which may still grow."""
        text = self.decode(tokens)
        self._send(text[: text.rfind(" ") + 1] if self.separator else text[:-1])

    def finish(self, tokens: Sequence[int]) -> None:
        """Send the rest of a part."""
        self._send(self.decode(tokens))
        if self.sent:
            self.before_part = self.separator
        self.sent = 0

    def _send(self, text: str) -> None:
        if len(text) > self.sent:
            self.on_text(f"{'' if self.sent else self.before_part}{text[self.sent :]}")
            self.sent = len(text)


class _Windows:
    """A stream, up to `size` lines at a time. It ends at a line that cannot be read, with `error` set."""

    def __init__(self, lines: Iterable[str], size: int) -> None:
        self.stream, self.size = iter(lines), size
        self.error: SoftgazeError | None = None

    def __iter__(self) -> Iterator[list[str]]:
        while self.error is None:
            texts: list[str] = []
            try:
                texts.extend(islice(self.stream, self.size))  # keeps the lines before an error
            except SoftgazeError as error:
                self.error = error
            if not texts:
                return
            yield texts
