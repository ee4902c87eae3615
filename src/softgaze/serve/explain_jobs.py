"""Jobs that record attention: explained translations, what-if edits, explain pages and image captions."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.documents.placeholders import Placeholders
from softgaze.errors import SoftgazeError, UsageError
from softgaze.explain.attention_map import UNUSED
from softgaze.explain.confidence import word_features
from softgaze.explain.corpus_report import omitted_words
from softgaze.explain.explanation import linked_words, tokenized_pair
from softgaze.explain.occlusion import unsupported_words, word_support
from softgaze.explain.what_if import word_diff
from softgaze.explain.word_spans import is_unspaced_text
from softgaze.search.options import Hypothesis, SearchOptions
from softgaze.serve.errors import HTTPError
from softgaze.serve.model_registry import ServedModel
from softgaze.serve.translate_jobs import hypothesis_json, restore_lines, translate_texts, translation_json
from softgaze.special_tokens import SPECIAL_TOKENS
from softgaze.translation import Translation

if TYPE_CHECKING:
    from softgaze.explain import Attention

MAX_EXPLAINED_CHARACTERS = 2000  # per text: a longer attention map cannot be read
MAX_WEIGHTS = 40_000  # larger maps are sent without weights
DIGITS = 4
IMAGE_DIGITS = 6


class Explained(NamedTuple):
    """The fields of a translation that cost time."""

    attention: bool = True
    confidence: bool = False
    support: bool = False


@dataclass(frozen=True)
class ExplainJob:
    """Translate texts; return the attention and confidence of the translations and their alternatives."""

    model: ServedModel
    options: SearchOptions
    explained: Explained

    def run(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        translator, patterns = self.model.translator, Placeholders.of()
        found = explain_all(self.model, translate_texts(translator, texts, self.options), self.explained)
        with_placeholders = [number for number, text in enumerate(texts) if patterns.find(text)]
        own, options = [texts[number] for number in with_placeholders], replace(self.options, num_hypotheses=1)
        protected = translate_texts(translator, own, options, keeps_placeholders=True)
        for number, translation in zip(with_placeholders, protected, strict=True):
            found[number]["protected_text"] = translation.text
        return found


def explain_all(
    model: ServedModel, translations: Sequence[Translation], explained: Explained = Explained()
) -> list[dict[str, Any]]:
    """Return the JSON of translations with attention and confidence, each computed in one batch."""
    hypotheses = [hypothesis for best in translations for hypothesis in (best, *best.alternatives)]
    nothing = [None] * len(hypotheses)
    attention = record_attention(model, hypotheses) if explained.attention else nothing
    confidence = model.translator.confidences(hypotheses) if explained.confidence else nothing
    support = word_supports(model, hypotheses) if explained.support else nothing
    fields = iter(
        [
            {"attention": weights, "confidence": values and values.to_dict(), "support": flags}
            for weights, values, flags in zip(attention, confidence, support, strict=True)
        ]
    )
    return [
        translation_json(best, next(fields), [{**hypothesis_json(each), **next(fields)} for each in best.alternatives])
        for best in translations
    ]


def word_supports(model: ServedModel, translations: Sequence[Translation]) -> Iterator[dict[str, Any] | None]:
    """Yield the words of each translation that may be hallucinated or omitted; None if the text is too long."""
    short = [each for each in translations if len(each.source) <= MAX_EXPLAINED_CHARACTERS]
    translator = model.translator
    linked = linked_words(translator, short, translator.statistical_aligner)
    found = zip(word_features(translator, short), translator.occlusions(short), linked, strict=True)
    for translation in translations:
        if len(translation.source) > MAX_EXPLAINED_CHARACTERS:
            yield None
            continue
        (words, features), occlusion, expressed = next(found)
        source = tokenized_pair(translator, translation).texts(model.bundle.tokenizers)[0].words
        values = word_support(occlusion[:-1], features[:, 0])
        flags = (words, unsupported_words(words, values)), (source, omitted_words(occlusion, expressed))
        unsupported, omitted = ([{"index": index, "text": own[index]} for index in indices] for own, indices in flags)
        share = translation.explanation.source_share
        shares = None if share is None else share.round(DIGITS).tolist()
        yield {
            "values": values.round(DIGITS).tolist(),
            "source_share": shares,
            "unsupported": unsupported,
            "omitted": omitted,
        }


@dataclass(eq=False)  # never equal, so never batched with others
class AlternativesJob:
    """Find other words for a word of a translation, and continue the translation from each."""

    model: ServedModel
    options: SearchOptions
    translation: str
    word: int
    count: int
    attention: bool

    def run(self, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
        """Return the alternatives of one text as JSON."""
        [text], translator = texts, self.model.translator
        [sources] = translator.encode([text], self.options)
        [ids] = translator.bundle.tokenizers.target.encode([self.translation])
        if len(sources) != 1 or not ids:
            raise UsageError(
                "q must be one sentence that the model translates at once, and translation its translation"
            )
        if not set(SPECIAL_TOKENS).isdisjoint(ids):
            raise UsageError("the translation contains a character that this model cannot write")
        part = translator.part(sources[0].ids, Hypothesis(tuple(ids), 0.0, 0.0, finished=True))
        given = translator.join(text, (part,), self.options)
        found = given.alternatives_at(self.word, self.count)
        explained = explain_all(
            self.model, [alternative.translation for alternative in found], Explained(self.attention, confidence=True)
        )
        return [
            [
                {"word": each.word, "probability": round(each.probability, DIGITS), "translation": fields}
                for each, fields in zip(found, explained, strict=True)
            ]
        ]


def record_attention(model: ServedModel, translations: Sequence[Translation]) -> list[dict[str, Any] | None]:
    """Return the attention of each translation as JSON; None if it has none or the text is too long."""
    if not model.has_attention:
        return [None] * len(translations)
    is_short = [len(translation.source) <= MAX_EXPLAINED_CHARACTERS for translation in translations]
    recorded = iter(model.prepare_attention().attentions([*compress(translations, is_short)]))
    return [attention_json(next(recorded)) if short else None for short in is_short]


def attention_json(attention: "Attention | None") -> dict[str, Any] | None:
    """Return the word-level attention map, its alignment and the uncovered source words."""
    if attention is None or not attention.recording.parts:
        return None
    source, target = attention.recording.source.words, attention.recording.target.words
    weights = attention.words().word_weights()  # (target words, source words)
    coverage = weights.sum(axis=0)
    return {
        "source_words": [*source],
        "target_words": [*target],
        "source_spaced": not is_unspaced_text(source),
        "target_spaced": not is_unspaced_text(target),
        "weights": weights.round(DIGITS).tolist() if weights.size <= MAX_WEIGHTS else None,
        "alignment": [[s, t, round(float(weights[t, s]), DIGITS)] for s, t in sorted(attention.alignment().links)],
        "coverage": coverage.round(DIGITS).tolist(),
        "uncovered": [
            {"index": index, "text": word, "coverage": round(float(coverage[index]), DIGITS)}
            for index, word in enumerate(source)
            if coverage[index] < UNUSED and any(map(str.isalnum, word))
        ],
        "map": attention.description,
        "reliability": attention.reliability and attention.reliability.to_dict(),
    }


@dataclass(eq=False)  # never equal, so never batched with others
class WhatIfJob:
    """Translate a text, and translate it again with changed attention."""

    model: ServedModel
    options: SearchOptions
    change: dict[str, Any] = field(repr=False)  # keyword arguments of `what_if`

    def run(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Return both translations of one text and their difference as JSON."""
        if not self.model.supports_what_if:
            raise UsageError(f"{self.model.id} does not support what-if edits: it has no attention or no torch weights")
        translator = self.model.prepare_attention()
        [before] = translate_texts(translator, texts, self.options)
        after = restore_lines(translator, before, before.what_if(**self.change))
        before_json, after_json = (explain_all(self.model, [result])[0] for result in (before, after))
        note = ", ".join(change.note for change in after.changes)
        diff = [[*piece] for piece in word_diff(before.text, after.text)]
        return [{"before": before_json, "after": after_json, "note": note, "diff": diff}]


@dataclass(eq=False)
class ExplainPageJob:
    """Translate a text and render the page that `softgaze explain` writes."""

    model: ServedModel
    options: SearchOptions
    what_if: bool

    def run(self, texts: Sequence[str]) -> list[str | None]:
        """Return the page of one text, or None if there is no attention to show or the text is too long."""
        from softgaze.explain.render.pages import attention_page

        [text] = texts
        if not self.model.supports_what_if or len(text) > MAX_EXPLAINED_CHARACTERS:
            return [None]
        [best] = translate_texts(self.model.prepare_attention(), texts, self.options)
        if best.attention is None or not best.parts:
            return [None]
        what_ifs = best.explanation.counterfactuals(best.attention) if self.what_if else ()
        explanation = best.explanation
        page = attention_page(
            best.attention,
            occlusion=explanation.occlusion,
            counterfactuals=what_ifs,
            opens_with=explanation.opens_with(best.attention),
            unsupported=explanation.unsupported,
            omitted=explanation.omitted,
            source_share=explanation.source_share,
        )
        return [page]


@dataclass(frozen=True)
class CaptionJob:
    model: ServedModel
    options: SearchOptions
    attention: bool
    directory: Path  # for temporary files: captioners read images by file name
    mask: tuple[int, ...] = ()  # regions that get no attention

    def run(self, images: Sequence[bytes]) -> list[dict[str, Any]]:
        paths = [self.directory / f"image-{secrets.token_hex(16)}" for _ in images]
        try:
            for path, content in zip(paths, images, strict=True):
                path.write_bytes(content)
            return self.caption([str(path) for path in paths])
        except SoftgazeError as error:
            message = str(error)
            for path in paths:  # the names of temporary files mean nothing to the client
                message = message.replace(str(path), "the image")
            raise HTTPError(400, " ".join(message.split())) from error
        finally:
            for path in paths:
                path.unlink(missing_ok=True)

    def caption(self, paths: list[str]) -> list[dict[str, Any]]:
        """Return the captions of image files as JSON."""
        translator = self.model.prepare_attention()
        captions = list(translator.translate_lines(paths, self.options))
        if self.mask:
            captions = [caption.explanation.what_if(mask=self.mask) for caption in captions]
        recorded: Sequence[Attention | None] = [None] * len(captions)
        if self.attention and self.model.has_attention:
            recorded = translator.attentions(captions)
        return [
            {
                **hypothesis_json(caption),
                "alternatives": [hypothesis_json(alternative) for alternative in caption.alternatives],
                "attention": self.image_attention_json(caption.source, attention),
            }
            for caption, attention in zip(captions, recorded, strict=True)
        ]

    def image_attention_json(self, path: str, attention: "Attention | None") -> dict[str, Any] | None:
        """Return the attention of each word over the grid cells of the image."""
        grid = getattr(attention, "grid", None)
        if attention is None or grid is None:
            return None
        processor: Any = self.model.bundle.tokenizers.source
        crop = [*map(float, processor.load(path).view.crop)]
        return {
            "target_words": [*attention.recording.target.words],
            "grid": {"rows": grid[0], "columns": grid[1], "crop": crop},
            "weights": attention.words().word_weights().round(IMAGE_DIGITS).tolist(),  # (words, rows * columns)
            "map": attention.description,
        }
