"""The explanation of a translation: attention, occlusion, faithfulness, what-if requests and the beam.

An `Explanation` takes a `Translator` and a `Translation` of the layer above, which this module does not import.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from softgaze.bundle import FAITHFULNESS
from softgaze.errors import UsageError, pick
from softgaze.explain.attention_map import Attention, default_attention
from softgaze.explain.beam_tree import STATUSES, BeamHypothesis, BeamTrace, SearchLog
from softgaze.explain.occlusion import faithfulness, occlusion_scores, unsupported_words, word_support
from softgaze.explain.recording import Matrix
from softgaze.explain.scoring import IdPair, TokenizedPair, record_attention
from softgaze.explain.what_if import (
    MAX_COUNTERFACTUALS,
    Change,
    ChangeRequest,
    Counterfactual,
    HeadName,
    TextDiff,
    Word,
    candidate_questions,
    word_diff,
)
from softgaze.explain.word_spans import EOS_MARK
from softgaze.search.beam import BeamCandidate
from softgaze.search.options import Hypothesis
from softgaze.special_tokens import EOS

if TYPE_CHECKING:
    from softgaze.explain.attribution import Contrast
    from softgaze.explain.attribution_map import Attribution
    from softgaze.explain.confidence import Confidence, WordAlternative
    from softgaze.explain.interventions import Intervention
    from softgaze.explain.reliability import WordAligner

Translator = Any  # softgaze.translator.Translator
Translation = Any  # softgaze.translator.Translation

NO_ATTENTION = "the text is empty, or the model has no attention (arch rnn)"


class Explanation:
    """Why a model produced a translation. Everything is computed on first use; the translation never changes."""

    def __init__(self, translator: Translator, translation: Translation) -> None:
        self.translator, self.translation = translator, translation

    @cached_property
    def attention(self) -> Attention | None:
        """The attention map, with photo and token probabilities if the source is an image; None without attention."""
        [attention] = attention_maps(self.translator, [self.translation])
        photo = self.translator.bundle.tokenizers.source.photo(self.translation.source)
        if attention is None or photo is None:
            return attention
        parts = tokenized_pair(self.translator, self.translation).parts
        log_probs = self.translator.scorer.log_probs([part._replace(target=(*part.target, EOS)) for part in parts])
        token_probs = tuple(math.exp(value) for row in log_probs for value in row)
        return replace(attention, recording=replace(attention.recording, photo=photo, token_probs=token_probs))

    @property
    def occlusion(self) -> Matrix:
        """(target words, source words): the log-probability each target word loses without a source word."""
        return self.occlusion_with_eos[:-1]

    @cached_property
    def occlusion_with_eos(self) -> Matrix:
        """The occlusion scores with one more row for EOS."""
        return occlusions(self.translator, [self.translation])[0]

    def faithfulness(self) -> float:
        """Return the rank correlation of attention and occlusion: 1 is full agreement, 0 is none."""
        if self.attention is None:
            raise UsageError(f"there is no attention to compare with occlusion: {NO_ATTENTION}")
        return faithfulness(self.attention, self.occlusion)

    @cached_property
    def confidence(self) -> "Confidence":
        """The probability that each word is right."""
        from softgaze.explain.confidence import confidences

        [confidence] = confidences(self.translator, [self.translation])
        return confidence

    def alternatives_at(self, word: int, count: int = 5) -> "list[WordAlternative]":
        """Return the likeliest words in the position of a word, each with the translation that continues from it."""
        from softgaze.explain.confidence import word_alternatives

        return word_alternatives(self.translator, self.translation, word, count)

    @cached_property
    def support(self) -> Matrix:
        """(output words,): how far the source explains each word, 0 to 1; see `occlusion.word_support`."""
        return word_support(self.occlusion, self._word_features[1][:, 0])

    @cached_property
    def _word_features(self) -> tuple[tuple[str, ...], Matrix]:
        """The output words and their features."""
        from softgaze.explain.confidence import word_features

        [found] = word_features(self.translator, [self.translation])
        return found

    @property
    def unsupported(self) -> tuple[int, ...]:
        """The output words that the source hardly explains, perhaps hallucinated."""
        return unsupported_words(self._word_features[0], self.support)

    @property
    def omitted(self) -> tuple[int, ...]:
        """The source words that the translation does not express, perhaps dropped."""
        from softgaze.explain.corpus_report import omitted_words

        [linked] = linked_words(self.translator, [self.translation], self.translator.statistical_aligner)
        return omitted_words(self.occlusion_with_eos, linked)

    @cached_property
    def source_share(self) -> Matrix | None:
        """(output words,): the share of contributions that comes from the source, the rest from earlier output words.

        None without torch weights.
        """
        if not self.translator.supports_interventions:
            return None
        from softgaze.explain.attribution import attribute

        return attribute(self.translator, self.translation).source_share

    def attribution(self, method: str = "gradient") -> "Attribution":
        """Attribute each output word by a method of `attribution_map.METHODS`; all but occlusion need torch."""
        from softgaze.explain.attribution_map import METHODS, OCCLUSION, attribute_by_occlusion

        pick("method", method, METHODS)
        if method == OCCLUSION:
            attribution = attribute_by_occlusion(self.translator, self.translation)
        else:
            self.translator.need_weights()
            from softgaze.explain.attribution import attribute

            attribution = attribute(self.translator, self.translation, method)
        return replace(attribution, reliability=self.attention.reliability if self.attention else None)

    @property
    def most_faithful_measure(self) -> str | None:
        """The attribution that training measured as clearly more faithful than attention; None if there is none."""
        from softgaze.explain.erasure import most_faithful

        scores = self.translator.bundle.facts.get(FAITHFULNESS, {})
        return most_faithful(scores) if self.translator.supports_interventions else None

    def opens_with(self, attention: Attention) -> str:
        """Return the map that a page shows first: occlusion if the selected attention map cannot be relied on."""
        if attention.selected_map is not None and not attention.is_selected:
            return "attention"  # the reader chose another map
        is_low = attention.reliability is not None and attention.reliability.is_low
        return "occlusion" if is_low or self.most_faithful_measure else "attention"

    def why(self, word: str | int, instead_of: str) -> "Contrast":
        """Explain a word against another one in its position; needs torch."""
        self.translator.need_weights()
        from softgaze.explain.attribution import contrast

        return contrast(self.translator, self.translation, word, instead_of)

    def what_if(
        self,
        *,
        mask: Word | Sequence[Word] = (),
        attend: Mapping[int, Word] | None = None,
        ablate: Sequence[HeadName] = (),
        sharpen: float = 1.0,
        where: Sequence[HeadName] | None = None,
    ) -> Translation:
        """Translate again with changed attention; see `Translation.what_if`."""
        return self.what_ifs([ChangeRequest(mask, attend, ablate, sharpen, where)])[0]

    def what_ifs(self, requests: Sequence[ChangeRequest]) -> list[Translation]:
        """Return one changed translation for each request, all from one search."""
        if self.attention is None:
            raise UsageError(f"there is no attention to change: {NO_ATTENTION}")
        translation = self.translation
        changes = [request.resolve(self.attention.recording) for request in requests]
        all_changes = [(*translation.changes, *([change] if any(change.parts) else [])) for change in changes]
        changed = [combined for combined in all_changes if combined != translation.changes]  # others need no search
        results = iter(self.translator.search_again(translation, changed))
        return [
            next(results) if combined != translation.changes else replace(translation, original=translation)
            for combined in all_changes
        ]

    def counterfactuals(self, shown: Attention | None = None, limit: int = MAX_COUNTERFACTUALS) -> list[Counterfactual]:
        """Translate without each source word, without each head, and with sharper and flatter weights, for a page.

        `shown` is the map to compare with, by default `attention`. All changes take one search and one recording pass;
        without attention there are none.
        """
        if self.attention is None:
            return []
        shown = shown or self.attention
        questions = candidate_questions(shown, limit)
        changed = self.what_ifs([question.request for question in questions])
        return [
            Counterfactual(
                question.kind,
                question.values,
                question.source_word,
                new.text,
                new.score,
                word_diff(self.translation.text, new.text),
                replace(shown, recording=attention.recording, reliability=None) if attention is not None else None,
                before=self.translation.score,
            )
            for question, new, attention in zip(
                questions, changed, attention_maps(self.translator, changed), strict=True
            )
        ]

    def diff(self) -> TextDiff:
        """Return the difference from the translation that `what_if` started from."""
        original = self.translation.original
        if original is None:
            raise UsageError("diff needs a translation made by what_if")
        return TextDiff(word_diff(original.text, self.translation.text), original.score, self.translation.score)

    @cached_property
    def beam(self) -> BeamTrace:
        """Every hypothesis the beam search considered, from a second, identical search."""
        if self.translation.options.is_sampling:
            raise UsageError("a sampled translation has no beam; translate without a temperature")
        logs = [self._search_log(part) for part in range(len(self.translation.parts))]
        hypotheses = [
            self._beam_hypothesis(part, log, tokens) for part, log in enumerate(logs) for tokens in log.leaves()
        ]
        order = list(STATUSES)
        hypotheses.sort(key=lambda leaf: (leaf.part, order.index(leaf.status), -leaf.score))
        return BeamTrace(tuple(log.root() for log in logs), tuple(hypotheses))

    def _search_log(self, part: int) -> SearchLog:
        """Search one part again and keep every candidate."""
        considered: dict[tuple[int, ...], tuple[float, bool]] = {}

        def on_candidate(_: int, candidate: BeamCandidate) -> None:
            considered[candidate.tokens] = candidate.log_prob, candidate.ended

        target = self.translator.bundle.tokenizers.target
        best = self.translator.trace(self.translation, part, on_candidate)
        return SearchLog(
            considered,
            (*best.tokens, *[EOS] * best.finished),
            lambda token: EOS_MARK if token == EOS else target.pieces([token])[0],
            self.translator.decode,
        )

    def _beam_hypothesis(self, part: int, log: SearchLog, tokens: tuple[int, ...]) -> BeamHypothesis:
        """Build a finished or pruned hypothesis as a translation of its part of the text."""
        translation, translator = self.translation, self.translator
        hypothesis = Hypothesis.of(tokens, log.considered[tokens][0], translation.options.length_penalty)
        translated = translator.part(translation.parts[part].source_ids, hypothesis)
        decode_source = translator.bundle.tokenizers.source.decode
        source = translation.source if len(translation.parts) == 1 else decode_source(translated.source_ids)
        alone = replace(
            translator.join(source, (translated,), translation.options),
            changes=tuple(replace(change, parts=(change.parts[part],)) for change in translation.changes),
            original=translation,
        )
        return BeamHypothesis(
            alone.text, alone.tokens, alone.score, alone.log_prob, log.status(tokens), part, lambda: alone.attention
        )


# --- many translations at once ----------------------------------------------------------------------------------


def attention_maps(translator: Translator, translations: Sequence[Translation]) -> list[Attention | None]:
    """Record the attention of many translations in one pass; a what-if shows the same map as its original."""
    from softgaze.explain.reliability import with_reliability

    pairs = [tokenized_pair(translator, translation) for translation in translations]
    recordings = record_attention(translator.scorer, translator.bundle.tokenizers, pairs)
    originals = (translation.original.attention if translation.original else None for translation in translations)
    maps = [
        replace(original, recording=recording, reliability=None)
        if original and "cross" in recording.kinds
        else default_attention(recording, translator.selected_map, translator.bundle.alignment_head)
        for original, recording in zip(originals, recordings, strict=True)
    ]
    return with_reliability(translator, pairs, maps)


def occlusions(translator: Translator, translations: Sequence[Translation]) -> list[Matrix]:
    """Return the occlusion scores (target words + EOS, source words) of many translations, batched."""
    pairs = [tokenized_pair(translator, translation) for translation in translations]
    return occlusion_scores(translator.scorer, translator.bundle.tokenizers, pairs, include_eos=True)


def linked_words(
    translator: Translator, translations: Sequence[Translation], aligner: "WordAligner | None"
) -> list[frozenset[int] | None]:
    """Return the source words that a word aligner links to the output; None without an aligner or without spaces."""
    if aligner is None:
        return [None] * len(translations)
    found = aligner.align([(translation.source, translation.text) for translation in translations])
    tokenizers = translator.bundle.tokenizers
    sources = [tokenized_pair(translator, translation).texts(tokenizers)[0].words for translation in translations]
    return [
        frozenset(source for source, _ in own.links) if [*words] == translation.source.split() else None
        for translation, words, own in zip(translations, sources, found, strict=True)
    ]


def tokenized_pair(translator: Translator, translation: Translation) -> TokenizedPair:
    """Return the ids of a translation's parts, with the interventions of its what-ifs."""
    strip_eos = translator.bundle.tokenizers.source.strip_eos
    parts = tuple(
        IdPair(strip_eos(part.source_ids), part.target_ids, interventions_of(translation.changes, index))
        for index, part in enumerate(translation.parts)
    )
    note = ", ".join(change.note for change in translation.changes)
    return TokenizedPair(translation.source, translation.text, parts, note)


def interventions_of(changes: Sequence[Change], part: int) -> "tuple[Intervention, ...]":
    return tuple(intervention for change in changes for intervention in change.parts[part])
