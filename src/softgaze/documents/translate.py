"""Translate the segments of a document: placeholders and inline elements come back once each, at the aligned words.

A model with attention translates a text without its placeholders, which are inserted by alignment; benchmarks/placement
compares this with masks. A model without attention translates a text with numbers as masks; if a mask is lost, the text
between any two placeholders. If even that damages a placeholder, the source text is kept.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from softgaze.documents.base import Document
from softgaze.documents.inline import (
    AlignedSegment,
    InlineElement,
    Segment,
    mask_segment,
    placeholders_as_elements,
    render_segment,
    restore_whitespace,
    tags_as_elements,
)
from softgaze.documents.placeholders import PLACEHOLDERS, Placeholders, Span
from softgaze.errors import SoftgazeError
from softgaze.search.options import SearchOptions
from softgaze.translation import Translation
from softgaze.translator import WINDOW, Progress, Translator

MAX_ALIGNED_CHARACTERS = 2000  # of a segment: attention of longer text costs too much memory


class Target(NamedTuple):
    """The translation of a segment: aligned, or in pieces if the segment was cut at its elements."""

    pieces: tuple[str, ...]
    pair: AlignedSegment | None = None

    def render(self, segment: Segment) -> str:
        """Return the translation with the markup of the segment's elements."""
        if self.pair is not None:
            return render_segment(segment, self.pair)
        rest = iter(self.pieces)
        return "".join(segment.escape(next(rest)) if is_text else piece for is_text, piece in flatten(segment))


class Rendered(NamedTuple):
    """A translation as text, placeholders included, and with the markup of its elements."""

    text: str
    markup: str


class SegmentView(NamedTuple):
    """A segment with its placeholders."""

    source: str
    marked: Segment  # with the markup of its format
    plain: Segment  # the same, rendered as plain text
    spans: list[Span]  # of the placeholders in their text
    expected: Counter[str]  # the placeholders that a translation must have


@dataclass(frozen=True)
class SegmentTranslator:
    """Translates segments with one model."""

    translator: Translator
    options: SearchOptions
    placeholders: Placeholders = PLACEHOLDERS
    progress: Progress | None = None

    def write(self, document: Document) -> bytes:
        """Return a document with its segments translated."""
        return document.write([best for best, *_ in self.translate(document.segments)])

    def translate(self, segments: Sequence[Segment]) -> list[list[str]]:
        """Return the markup of each segment's translation, then that of its alternatives."""
        views = [self.view(segment) for segment in segments]
        pending = [index for index, view in enumerate(views) if is_translatable(view.marked.text, view.spans)]
        if self.progress is not None:
            self.progress(len(segments) - len(pending))
        targets = self.decode([self.prepared(views[index]) for index in pending])
        results = {index: self.finished(views[index], own) for index, own in zip(pending, targets, strict=True)}
        damaged = [index for index in pending if not results[index] and not self.aligns(views[index])]
        bare = [placeholders_as_elements(views[index].marked, views[index].spans) for index in damaged]
        for index, own in zip(damaged, replace(self, progress=None).decode(bare), strict=True):
            results[index] = [*self.insert(views[index], own)]
        return [finish(segment, results.get(index, [])) for index, segment in enumerate(segments)]

    def aligns(self, view: "SegmentView") -> bool:
        """Return whether the placeholders of a text are inserted by alignment instead of masked."""
        return self.translator.has_attention and len(view.source) <= MAX_ALIGNED_CHARACTERS

    def prepared(self, view: "SegmentView") -> Segment:
        """Return a segment as it is translated: without its placeholders, or with masks."""
        if self.aligns(view):
            return placeholders_as_elements(view.marked, view.spans)
        return mask_segment(view.marked, view.spans).segment

    def finished(self, view: "SegmentView", targets: Sequence[Target]) -> list[Rendered]:
        """Return the hypotheses of a prepared segment with their placeholders; none if the best one lost one."""
        return [*self.insert(view, targets)] if self.aligns(view) else self.restore(view, targets)

    def translate_lines(
        self, lines: Iterable[str], *, window: int = WINDOW, ahead: bool = False
    ) -> Iterator[Translation]:
        """Translate a stream of lines as `Translator.translate_lines` does, and keep the placeholders in them."""
        waiting: deque[SegmentView] = deque()

        def prepared_lines() -> Iterator[str]:
            for line in lines:
                view = self.view(Segment(line, line))
                waiting.append(view)
                yield self.prepared(view).text if view.expected else line

        results = self.translator.translate_lines(
            prepared_lines(), self.options, window=window, progress=self.progress, ahead=ahead
        )
        done: list[tuple[SegmentView, Translation]] = []
        try:
            for result in results:
                done.append((waiting.popleft(), result))
                if len(done) == window:
                    yield from self.protected(done)
                    done = []
        except SoftgazeError:  # the lines before one that cannot be read
            yield from self.protected(done)
            raise
        yield from self.protected(done)

    def protected(self, done: Sequence[tuple["SegmentView", Translation]]) -> Iterator[Translation]:
        """Yield translations of prepared lines with their placeholders; damaged ones are translated again."""
        if not any(view.expected for view, _ in done):
            yield from (result for _, result in done)
            return
        kept = [(view, result) for view, result in done if view.expected]
        prepared = [self.prepared(view) for view, _ in kept]
        hypotheses = [[[result, *result.alternatives]] for _, result in kept]
        targets = self.align(prepared, [[segment.text] for segment in prepared], hypotheses)
        texts = [
            [each.text for each in self.finished(view, own)] if is_translatable(view.marked.text, view.spans) else []
            for (view, _), own in zip(kept, targets, strict=True)
        ]
        damaged = [Segment(view.source, view.source) for (view, _), own in zip(kept, texts, strict=True) if not own]
        again = iter(replace(self, progress=None).translate(damaged))
        rest = iter(texts)
        for view, result in done:
            if not view.expected:
                yield result
                continue
            own = next(rest) or next(again)
            best, *others = (replace(result, source=view.source, text=text, alternatives=()) for text in own)
            yield replace(best, alternatives=tuple(others))

    def view(self, segment: Segment) -> "SegmentView":
        """Return a segment with its placeholders; tags in a plain text become inline elements."""
        spans = self.placeholders.find(segment.text)
        expected = Counter(segment.text[start:end] for start, end in spans)
        tags = [span for span in spans if segment.text[span[0]] == "<"]
        if not tags or segment.elements:
            return SegmentView(segment.text, segment, without_markup(segment), spans, expected)
        marked, plain = (tags_as_elements(each, tags) for each in (segment, replace(segment, escape=str)))
        return SegmentView(segment.text, marked, plain, self.placeholders.find(marked.text), expected)

    def restore(self, view: "SegmentView", targets: Sequence[Target]) -> list[Rendered]:
        """Return the hypotheses that kept every placeholder; none if the best one did not."""
        marked, plain = mask_segment(view.marked, view.spans), mask_segment(view.plain, view.spans)
        kept: list[Rendered] = []
        for rank, target in enumerate(targets):
            text, markup = plain.restore(target.render(plain.segment)), marked.restore(target.render(marked.segment))
            if text is not None and markup is not None and self.is_intact(view, text):
                kept.append(Rendered(text, markup))
            elif rank == 0:
                return []
        return kept

    def insert(self, view: "SegmentView", targets: Sequence[Target]) -> Iterator[Rendered]:
        """Yield the hypotheses in which every placeholder could be inserted."""
        for target in targets:
            for padding in ("", " "):  # with spaces around it, a placeholder does not join its neighbours
                plain, marked = (
                    trimmed(view.source, target.render(placeholders_as_elements(each, view.spans, padding)))
                    for each in (view.plain, view.marked)
                )
                if self.is_intact(view, plain):
                    yield Rendered(plain, marked)
                    break

    def is_intact(self, view: "SegmentView", text: str) -> bool:
        """Return whether a translation has the placeholders of its source, each as often as there."""
        return not view.expected or self.placeholders.values(text) == view.expected

    def decode(self, segments: Sequence[Segment]) -> list[list[Target]]:
        """Translate segments in one batch; return the hypotheses of each, best first."""
        pieces = [self.cut(segment) for segment in segments]
        lines = [piece for own in pieces for piece in own if is_translatable(piece)]
        options = replace(self.options, split_sentences=True)  # a segment is a paragraph; models learn sentences
        translated = self.translator.translate_lines(lines, options, progress=self.progress, ahead=True)
        found: list[list[list[Translation]]] = []  # of each piece of each segment: the hypotheses
        for own in pieces:
            best = islice(translated, sum(map(is_translatable, own)))
            found.append([[each, *each.alternatives] for each in best])
        return self.align(segments, pieces, found)

    def cut(self, segment: Segment) -> list[str]:
        """Return the text of a segment; in pieces between its elements if it cannot be aligned."""
        is_aligned = self.translator.has_attention and len(segment.text) <= MAX_ALIGNED_CHARACTERS
        if is_aligned or not segment.elements:
            return [segment.text]
        return [piece for is_text, piece in flatten(segment) if is_text]

    def align(
        self, segments: Sequence[Segment], pieces: Sequence[list[str]], found: Sequence[list[list[Translation]]]
    ) -> list[list[Target]]:
        """Return the hypotheses as targets; attention is computed for segments with elements."""
        is_aligned = [
            bool(segment.elements) and own == [segment.text] for segment, own in zip(segments, pieces, strict=True)
        ]
        tagged = [
            each for aligned, own in zip(is_aligned, found, strict=True) if aligned for ranks in own for each in ranks
        ]
        attentions = iter(self.translator.attentions(tagged) if tagged else [])
        statistics = self.translator.statistical_aligner if tagged else None
        targets: list[list[Target]] = []
        for aligned, segment, own, ranked in zip(is_aligned, segments, pieces, found, strict=True):
            if aligned:
                hypotheses = [each for ranks in ranked for each in ranks]
                texts = [restore_whitespace(segment.text, each.text) for each in hypotheses]
                pairs = [
                    AlignedSegment.of(segment.text, text, next(attentions), statistics).with_terms(each.terms)
                    for text, each in zip(texts, hypotheses, strict=True)
                ]
                targets.append(
                    [Target((text,), pair) for text, pair in zip(texts, pairs, strict=True)]
                    or [Target((segment.text,))]
                )
            else:
                targets.append([*join_pieces(own, ranked)])
        return targets


def join_pieces(pieces: Sequence[str], ranked: Sequence[Sequence[Translation]]) -> Iterator[Target]:
    """Yield the n-th hypotheses of all pieces together; those without letters stay as they are."""
    for rank in range(max(map(len, ranked), default=1)):
        rest = iter(ranked)
        yield Target(
            tuple(
                restore_whitespace(piece, chosen(next(rest), rank).text) if is_translatable(piece) else piece
                for piece in pieces
            )
        )


def chosen(hypotheses: Sequence[Translation], rank: int) -> Translation:
    return hypotheses[min(rank, len(hypotheses) - 1)]


def is_translatable(text: str, spans: Sequence[Span] = ()) -> bool:
    """Return whether a text has a letter outside of its placeholders."""
    protected = {position for start, end in spans for position in range(start, end)}
    return any(character.isalpha() and index not in protected for index, character in enumerate(text))


def flatten(segment: Segment) -> Iterator[tuple[bool, str]]:
    """Yield (is text, text or markup) of a segment in order."""

    def inside(elements: Sequence[InlineElement], start: int, end: int) -> Iterator[tuple[bool, str]]:
        for element in elements:
            if start < element.start:
                yield True, segment.text[start : element.start]
            yield False, element.before
            yield from inside(element.children, element.start, element.end)
            yield False, element.after
            start = element.end
        if start < end:
            yield True, segment.text[start:end]

    yield from inside(segment.elements, 0, len(segment.text))


def trimmed(source: str, text: str) -> str:
    """Remove white space at the ends of a text where its source has none: it was next to a placeholder."""
    text = text if source[:1].isspace() else text.lstrip()
    return text if source[-1:].isspace() else text.rstrip()


def without_markup(segment: Segment) -> Segment:
    """Return a segment that renders as plain text."""

    def bare(element: InlineElement) -> InlineElement:
        return replace(element, before="", after="", children=[bare(child) for child in element.children])

    return replace(segment, escape=str, elements=[bare(element) for element in segment.elements])


def finish(segment: Segment, hypotheses: Sequence[Rendered]) -> list[str]:
    """Return the markup of a segment in its document; without a translation, that of its source."""
    if not hypotheses:
        return [segment.finish(segment.raw) if segment.is_filled else segment.raw]
    source = None if segment.is_filled else segment.text.split()
    markups = (segment.raw if each.text.split() == source else segment.finish(each.markup) for each in hypotheses)
    return [*dict.fromkeys(markups)]
