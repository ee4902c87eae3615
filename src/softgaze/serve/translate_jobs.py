"""Translate texts of several lines, in batches or as a stream of words; line breaks and indents are preserved."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from starlette.requests import Request

from softgaze.documents.html import HTML_RULES, TagRules, split_html
from softgaze.documents.inline import Segment, restore_whitespace
from softgaze.documents.translate import SegmentTranslator
from softgaze.glossary import Glossary
from softgaze.search.options import SearchOptions
from softgaze.serve.errors import log_error, to_http_error
from softgaze.serve.model_registry import ServedModel
from softgaze.serve.service import Disconnected, Service
from softgaze.translation import Translation, combined_score
from softgaze.translator import Translator

Event = tuple[str, Any]


@dataclass(frozen=True)
class TranslateJob:
    model: ServedModel
    options: SearchOptions
    keeps_placeholders: bool = False  # the tokens of a translation are then those of the masked text

    def run(self, texts: Sequence[str]) -> list[Translation]:
        return translate_texts(self.model.translator, texts, self.options, self.keeps_placeholders)


@dataclass(frozen=True)
class TranslateSegmentsJob:
    model: ServedModel
    options: SearchOptions

    def run(self, segments: Sequence[Segment]) -> list[str]:
        """Return the markup of each segment's translation."""
        translator = self.model.prepare_attention() if self.model.has_attention else self.model.translator
        return [best for best, *_ in SegmentTranslator(translator, self.options).translate(segments)]


def translate_texts(
    translator: Translator, texts: Sequence[str], options: SearchOptions, keeps_placeholders: bool = False
) -> list[Translation]:
    """Translate each line of each text, all in one batch, and join the lines of each text."""
    lines = [text.splitlines(keepends=True) for text in texts]
    flat = [line for text_lines in lines for line in text_lines]
    if keeps_placeholders:
        translated = SegmentTranslator(translator, options).translate_lines(flat)
    else:
        translated = translator.translate_lines(flat, options)
    return [
        join_lines(text, list(islice(translated, len(text_lines))), options)
        for text, text_lines in zip(texts, lines, strict=True)
    ]


def join_lines(text: str, lines: Sequence[Translation], options: SearchOptions) -> Translation:
    """Join the translations of lines; alternative n joins the n-th alternatives of all lines."""
    if not lines:
        return Translation(text, text, 0.0, (), options=options)
    ranked = [[line, *line.alternatives] for line in lines]
    joined: dict[str, Translation] = {}  # by text: hypotheses that differ only in subwords are the same
    for rank in range(max(map(len, ranked))):
        chosen = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in ranked]
        parts = tuple(part for line in chosen for part in line.parts)
        translated = "".join(restore_whitespace(line.source, line.text) for line in chosen)
        score = combined_score(parts, options.length_penalty)
        terms = tuple(term for line in chosen for term in line.terms)
        engine = ", ".join(dict.fromkeys(line.engine for line in chosen if line.parts))
        whole = replace(chosen[0], source=text, text=translated, score=score, parts=parts, terms=terms, engine=engine)
        joined.setdefault(translated, whole)
    best, *alternatives = joined.values()
    return replace(best, alternatives=tuple(alternatives))


def restore_lines(translator: Translator, before: Translation, after: Translation) -> Translation:
    """Restore the lines of a text in the result of `what_if`, which changes no line's number of parts."""
    lines = before.source.splitlines(keepends=True)
    counts = map(len, translator.encode(lines, before.options))
    parts = iter(after.parts)
    texts = [
        restore_whitespace(line, translator.join(line, tuple(islice(parts, count)), before.options).text)
        for line, count in zip(lines, counts, strict=True)
    ]
    return replace(after, text="".join(texts))


def hypothesis_json(translation: Translation) -> dict[str, Any]:
    """Return the JSON fields of a translation that its alternatives have too."""
    return {
        "text": translation.text,
        "score": finite_or_none(translation.score),
        "log_prob": finite_or_none(translation.log_prob),
        "finished": translation.finished,
        "tokens": [*translation.tokens],
    }


def translation_json(
    translation: Translation, explained: dict[str, Any] | None = None, alternatives: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the JSON of a translation; `explained` are its attention and its confidence."""
    if alternatives is None:
        alternatives = [hypothesis_json(alternative) for alternative in translation.alternatives]
    return {
        **hypothesis_json(translation),
        "source": translation.source,
        "source_tokens": [*translation.source_tokens],
        "engine": translation.engine,
        "terms": [term._asdict() for term in translation.terms],
        "alternatives": alternatives,
        "protected_text": None,
        **(explained or {"attention": None, "confidence": None, "support": None}),
    }


def finite_or_none(value: float) -> float | None:
    """Return None for NaN and infinity, which JSON lacks."""
    return value if math.isfinite(value) else None


# --- streaming --------------------------------------------------------------------------------------------------


@dataclass(eq=False)  # never equal, so never batched with others
class StreamJob:
    """Translate a text with greedy search, and call `on_word` for each word as it is generated."""

    model: ServedModel
    on_word: Callable[[str], None]
    to_json: Callable[[Translation], dict[str, Any]]
    glossary: Glossary | None = None

    def run(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Translate one text line by line; the white space around lines is streamed too."""
        [text] = texts
        lines = []
        for line in text.splitlines(keepends=True):
            before, _, after = restore_whitespace(line, "\0").partition("\0")
            if before:
                self.on_word(before)
            lines.append(self.model.translator.translate_stream(line, self.on_word, self.glossary))
            if after:
                self.on_word(after)
        return [self.to_json(join_lines(text, lines, self.model.translator.search_defaults))]


async def stream_events(
    service: Service,
    request: Request,
    model: ServedModel,
    text: str,
    to_json: Callable[[Translation], dict[str, Any]],
    glossary: Glossary | None = None,
) -> AsyncIterator[Event]:
    """Yield each word as ("word", text), then ("done", JSON of the translation) or ("error", message)."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def on_word(word: str) -> None:  # called in the thread that translates
        loop.call_soon_threadsafe(queue.put_nowait, ("word", word))

    def on_done(task: "asyncio.Future[list[Any]]") -> None:
        exception = Disconnected() if task.cancelled() else task.exception()
        if exception is None:
            queue.put_nowait(("done", task.result()[0]))
        elif isinstance(exception, Disconnected):
            queue.put_nowait(("error", "the client disconnected"))
        else:
            error = to_http_error(exception)
            if error.status >= 500:
                log_error("a stream", exception)
            queue.put_nowait(("error", error.message))

    task = asyncio.ensure_future(service.run(request, StreamJob(model, on_word, to_json, glossary), [text]))
    task.add_done_callback(on_done)
    try:
        event = await queue.get()
        while event[0] == "word":
            yield event
            event = await queue.get()
        yield event
    finally:
        task.cancel()


@dataclass(frozen=True)
class TranslateHtmlJob:
    """Translate HTML texts: every tag is kept, and inline tags move with their words."""

    model: ServedModel
    options: SearchOptions
    rules: TagRules = HTML_RULES

    def run(self, documents: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return each document and its alternatives; the segments of all documents are translated in one batch."""
        translator = self.model.prepare_attention() if self.model.has_attention else self.model.translator
        split = [split_html(document, self.rules) for document in documents]
        segments = [part for parts in split for part in parts if isinstance(part, Segment)]
        translated = iter(SegmentTranslator(translator, self.options).translate(segments))
        results = []
        for parts in split:
            columns = [[part] if isinstance(part, str) else next(translated) for part in parts]
            ranks = range(max(map(len, columns), default=1))
            best, *others = dict.fromkeys(
                "".join(column[min(rank, len(column) - 1)] for column in columns) for rank in ranks
            )
            results.append((best, others))
        return results
