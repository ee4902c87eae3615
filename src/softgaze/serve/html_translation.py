"""Translate HTML texts of a request: every tag is kept, and inline tags move with their words."""

from collections.abc import Sequence
from dataclasses import dataclass

from softgaze.documents.html import split_html
from softgaze.documents.inline import Segment
from softgaze.documents.translate import SegmentTranslator
from softgaze.search.options import SearchOptions
from softgaze.serve.model_registry import ServedModel


@dataclass(frozen=True)
class TranslateHtmlJob:
    model: ServedModel
    options: SearchOptions

    def run(self, documents: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return each document and its alternatives; the segments of all documents are translated in one batch."""
        translator = self.model.prepare_attention() if self.model.has_attention else self.model.translator
        split = [split_html(document) for document in documents]
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
