"""The document side of `softgaze translate`: one file in, one file of the same format out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from softgaze.cli._output import open_output, progress, report_written
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.documents.placeholders import Placeholders
    from softgaze.search.options import SearchOptions
    from softgaze.translator import Translator


def find_document(text: str | None, source: Path | None, format_name: str | None) -> Path | None:
    """Return the document to translate: TEXT if it names a file of a known format, or --input with --format."""
    from softgaze.documents.formats import SUFFIXES

    if format_name is not None:
        path = source if source is not None else Path(text) if text else None
        if path is None or not path.is_file():
            raise UsageError(f"--format {format_name} needs a file: give its name, got {path or 'nothing'}")
        return path
    if text is None or source is not None or "\n" in text or Path(text).suffix.lower() not in SUFFIXES:
        return None
    try:
        if Path(text).is_file():
            return Path(text)
    except OSError:  # a text that is too long for a name
        return None
    if any(character.isspace() for character in text):
        return None
    raise UsageError(f"{text}: no such file; to translate this as text, pipe it to softgaze translate")


def translate_document(
    path: Path,
    target: Path | None,
    translator: "Translator",
    search: "SearchOptions",
    placeholders: "Placeholders",
    *,
    format_name: str | None,
    overwrite: bool,
) -> None:
    """Translate a document into a file, or to stdout if its format is text."""
    from softgaze.documents import DocumentOptions, open_document
    from softgaze.documents.formats import ZIPPED, detect_format
    from softgaze.documents.translate import SegmentTranslator

    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if target is None and (format_name or detect_format(path.name, content)) in ZIPPED:
        raise UsageError(f"{path.name} is not a text file: give --output FILE")
    if search.num_hypotheses > 1:
        raise UsageError("--num-hypotheses is for lines; a document has one translation")
    description = translator.bundle.description
    options = DocumentOptions(description.source_language, description.target_language, overwrite)
    document = open_document(content, str(path), options, format_name)
    shows_progress = target is not None or not sys.stdout.isatty()
    with progress(len(document.segments), "segments", enabled=shows_progress, transient=False) as advance:
        written = SegmentTranslator(translator, search, placeholders, advance).write(document)
    with open_output(target) as file:
        file.write(written)
    if target is not None:
        report_written(target)
