"""`softgaze translate`: lines in, lines out; or a document in, a document out."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, choice, flag, option
from softgaze.cli._output import check_output_path, json_line, open_output, progress, report_written, warn
from softgaze.documents.placeholders import Placeholders
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.search.options import SearchOptions
    from softgaze.translation import Translation
    from softgaze.translator import Translator

Format = Callable[["Translation"], str]
RAY = "Ray cluster (extra: scale)"
DOCUMENTS = "Documents and placeholders"
CONFIDENCE_BATCH = 64  # lines whose confidence is computed together
SAMPLING = "Sampling (any of these replaces beam search)"


def translate(
    model: opt.Model,
    text: Annotated[
        str | None, argument("Text, or a document to translate.", "TEXT|FILE", show_default="--input, else stdin")
    ] = None,
    inputs: Annotated[
        list[str] | None, option("Translate each line of FILE (.gz too).", "--input", "-i", metavar="FILE")
    ] = None,
    output: Annotated[
        str | None, option("Write to FILE (.gz too) instead of stdout.", "--output", "-o", metavar="FILE")
    ] = None,
    as_json: opt.JsonLines = False,
    confidence: Annotated[bool, flag("Add to --json the probability that each word is right.", "--confidence")] = False,
    window: Annotated[int | None, option("Lines translated together.", default="2048; terminal: 1", min=1)] = None,
    device: opt.Device = "auto",
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
    engine: opt.Engine = "auto",
    beam_size: opt.BeamSize = None,
    num_hypotheses: Annotated[
        int, option("Translations per line, tab-separated, best first.", panel=opt.SEARCH, min=1)
    ] = 1,
    length_penalty: Annotated[
        float | None,
        option(
            "Above 1 favours longer output, below 1 shorter.",
            metavar="X",
            default="that of the model, or 1",
            panel=opt.SEARCH,
        ),
    ] = None,
    no_repeat_ngram_size: Annotated[
        int, option("Never repeat N subwords in a row; 0: off.", panel=opt.SEARCH, min=0)
    ] = 0,
    split_sentences: Annotated[
        bool,
        flag(
            "Translate each sentence of a line alone, as models of single sentences need.",
            "--split-sentences",
            panel=opt.SEARCH,
        ),
    ] = False,
    prefix: Annotated[str, option("Words every translation must start with.", metavar="TEXT", panel=opt.SEARCH)] = "",
    batch_tokens: opt.BatchTokens = None,
    temperature: Annotated[
        float | None,
        option("Below 1 is more conservative, above 1 more random.", metavar="X", default="1", panel=SAMPLING),
    ] = None,
    top_k: Annotated[int | None, option("Sample from the N likeliest subwords.", default="all", panel=SAMPLING)] = None,
    top_p: Annotated[
        float | None,
        option("Sample from the likeliest subwords of total probability X.", metavar="X", default="1", panel=SAMPLING),
    ] = None,
    seed: Annotated[int | None, option("Random seed of sampling.", default="0", panel=SAMPLING)] = None,
    format_name: Annotated[
        opt.DocumentFormat | None,
        choice(
            "Format of the document.",
            "--format",
            of=opt.DocumentFormat,
            default="by its name and content",
            panel=DOCUMENTS,
        ),
    ] = None,
    overwrite: Annotated[
        bool, flag("Translate units of PO, XLIFF and TMX that have a translation.", "--overwrite", panel=DOCUMENTS)
    ] = False,
    glossary: opt.GlossaryFile = None,
    protect: Annotated[
        list[str] | None,
        option("Keep text that matches REGEX, as %s, {name}, tags and URLs are.", metavar="REGEX", panel=DOCUMENTS),
    ] = None,
    on: Annotated[Literal["ray"] | None, choice("Translate on a cluster.", panel=RAY)] = None,
    address: Annotated[
        str | None, option("Address of a running cluster.", metavar="HOST:PORT", default="a local one", panel=RAY)
    ] = None,
) -> None:
    """Translate text, a file or a pipe.

    softgaze translate runs/m30k "A dog runs."
    softgaze translate runs/m30k --input news.en --output news.de
    cat news.en | softgaze translate runs/m30k --json > news.jsonl
    softgaze translate runs/m30k report.docx --output report.de.docx

    N input lines give N output lines, in order; an empty line stays empty.
    A line longer than the model's limit is split into sentences and joined
    again, never cut. Memory use does not depend on the size of the input.
    From --input to --output, the same command resumes an interrupted run.

    A document keeps its layout; tags move with their words. Placeholders,
    tags, addresses and code come back unchanged. In PO, XLIFF and TMX files
    only missing translations are filled, and marked for review.

    A glossary has a line for each term: source TAB target, or the term alone
    if it stays unchanged. Haus|Hauses are forms to choose from. Each term is
    in the translation, where the model attends to it.

    With --on ray, --input repeats and accepts directories, .parquet tables
    and URLs (s3://…); --output is a file, a table or, if it ends in /, a
    directory of shards.
    """
    from softgaze.translator import load

    search = opt.search_options(
        model,
        beam_size=beam_size,
        num_hypotheses=num_hypotheses,
        length_penalty=length_penalty,
        no_repeat_ngram_size=no_repeat_ngram_size,
        split_sentences=split_sentences,
        prefix=prefix,
        batch_tokens=batch_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        glossary=glossary,
    )
    if confidence and not as_json:
        raise UsageError("--confidence is a field of --json; add --json")
    if address is not None and on is None:
        raise UsageError(f"--address {address} needs --on ray")
    languages = opt.LanguagePair(source_lang, target_lang)
    if on is not None:
        only_locally = {
            "--format": format_name,
            "--overwrite": overwrite,
            "--protect": protect,
            "--confidence": confidence,
        }
        opt.reject_options("with --on ray", only_locally)
        if text is not None or not inputs or not output:
            raise UsageError("--on ray translates files: give --input and --output")
        translate_on_ray(model, inputs, output, search, as_json, window, address, device, languages)
        return
    if inputs and len(inputs) > 1:
        raise UsageError(f"one --input at a time, got {len(inputs)}; --on ray accepts several")
    source, target = Path(inputs[0]) if inputs else None, Path(output) if output else None
    check_output_path(target, ())
    placeholders = Placeholders.of(protect or ())
    open_translator = partial(load, model, device, engine=engine, **languages._asdict())
    document = find_document(text, source, format_name)
    if document is not None and as_json:
        raise UsageError("--json is for lines; a document is written in its own format")
    if document is not None:
        translate_document(open_translator, search, placeholders, document, target, format_name, overwrite)
        return
    translate_lines(
        open_translator, search, placeholders, text, source, target, as_json, confidence, window, [*languages], protect
    )


# --- lines


def translate_lines(
    open_translator: Callable[[], "Translator"],
    search: "SearchOptions",
    placeholders: Placeholders,
    text: str | None,
    source: Path | None,
    target: Path | None,
    as_json: bool,
    confidence: bool,
    window: int | None,
    languages: list[str | None],
    protect: list[str] | None,
) -> None:
    """Translate TEXT, the lines of a file or those of stdin; from file to file, resume an interrupted run."""
    from softgaze.translator import WINDOW

    lines, total = read_input(text, source)
    is_interactive = text is None and source is None and sys.stdin.isatty()
    translator = open_translator()
    if is_interactive:
        warn("Type text and press Enter; Ctrl-D ends. (For a file: --input FILE, or < FILE.)")
    job = LineJob(
        translator,
        search,
        placeholders,
        window or (1 if is_interactive else WINDOW),
        translation_json if as_json else translation_text,
        confidence,
    )
    if source is not None and target is not None and can_resume(source, target):
        made_with = {"window": job.window, "json": [as_json, confidence], "protect": protect, "languages": languages}
        job.resume(lines, total, source, target, made_with)
        return
    shows_progress = not is_interactive and (target is not None or not sys.stdout.isatty())
    with open_output(target) as file:
        job.write(lines, total, file, shows_progress=shows_progress)


def read_input(text: str | None, source: Path | None) -> tuple[Iterable[str], int | None]:
    """Return the lines to translate, and their number if it is known."""
    if text is not None and source is not None:
        raise UsageError(f"give TEXT or --input {source}, not both")
    if text is not None:
        lines = opt.check_text(text).split("\n")
        return lines, len(lines)
    from softgaze.data.corpus import count_lines, read_lines, stream_lines

    if source is None or str(source) == "-":
        return stream_lines(sys.stdin.buffer, Path("stdin")), None
    if source.exists() and not source.is_file() and not source.is_dir():  # a pipe can be read only once
        return stream_lines(source.open("rb"), source), None
    if source.is_file() and not source.stat().st_size:
        return (), 0
    return read_lines(source), count_lines(source)


def translation_text(translation: "Translation") -> str:
    """Return the translation and its alternatives, tab-separated; no translation contains a tab."""
    return "\t".join(hypothesis.text for hypothesis in (translation, *translation.alternatives))


def translation_json(translation: "Translation") -> str:
    return json_line(translation.to_dict())


@dataclass(frozen=True)
class LineJob:
    """Translates lines and writes a line for each."""

    translator: "Translator"
    options: "SearchOptions"
    placeholders: Placeholders
    window: int
    line_format: Format
    with_confidence: bool = False

    def translations(
        self, lines: Iterable[str], advance: Callable[[int], None], *, ahead: bool
    ) -> Iterator["Translation"]:
        """Translate lines and keep the placeholders in them; a text at hand may have none."""
        if isinstance(lines, list) and not any(map(self.placeholders.find, lines)):
            return self.translator.translate_lines(
                lines, self.options, window=self.window, progress=advance, ahead=ahead
            )
        from softgaze.documents.translate import SegmentTranslator

        segments = SegmentTranslator(self.translator, self.options, self.placeholders, advance)
        return segments.translate_lines(lines, window=self.window, ahead=ahead)

    def formatted(self, translations: Iterable["Translation"]) -> Iterator[str]:
        """Yield a line for each translation; confidence is computed in batches."""
        rest = iter(translations)
        while batch := list(islice(rest, min(self.window, CONFIDENCE_BATCH) if self.with_confidence else 1)):
            if not self.with_confidence:
                yield self.line_format(batch[0])
                continue
            for translation, confidence in zip(batch, self.translator.confidences(batch), strict=True):
                yield json_line({**translation.to_dict(), "confidence": confidence.to_dict()})

    def write(
        self,
        lines: Iterable[str],
        total: int | None,
        file: BinaryIO,
        *,
        shows_progress: bool = True,
        save: Callable[[int], None] | None = None,
    ) -> None:
        """Write the translations; flush, or save the number of lines for a resume, after every window."""
        with progress(total, enabled=shows_progress, transient=False) as advance:
            translations = self.translations(lines, advance, ahead=total is not None)
            for count, line in enumerate(self.formatted(translations), 1):
                file.write(f"{line}\n".encode())
                if count % self.window == 0:
                    save(count) if save else file.flush()
            file.flush()

    def resume(
        self, lines: Iterable[str], total: int | None, source: Path, output: Path, made_with: dict[str, Any]
    ) -> None:
        """Write to a file, from where an interrupted run of the same command stopped."""
        from softgaze.atomic_io import open_resumable, sha256_of

        options = {**self.options.to_dict(), **made_with}
        inputs = {"input": sha256_of(source), "model": self.translator.bundle.files, "options": options}
        with open_resumable(output.resolve(), inputs) as partial:
            if partial.lines:
                warn(f"resuming after {partial.lines:,} lines of {output}.part")
            remaining = None if total is None else total - partial.lines
            try:
                self.write(islice(lines, partial.lines, None), remaining, partial.file, save=partial.checkpoint)
            except KeyboardInterrupt:
                warn(f"softgaze: stopped; {output}.part is kept, and the same command resumes")
                raise


def can_resume(source: Path, output: Path) -> bool:
    """Return whether an interrupted run can resume: both paths are regular files and differ."""
    is_regular = source.is_file() and output.suffix != ".gz" and (output.is_file() or not output.exists())
    return is_regular and source.resolve() != output.resolve()


# --- documents


def find_document(text: str | None, source: Path | None, format_name: str | None) -> Path | None:
    """Return the document to translate: TEXT if it names a file of a known format, or --input with --format."""
    if format_name is not None:
        path = source if source is not None else Path(text) if text else None
        if path is None or not path.is_file():
            raise UsageError(f"--format {format_name} needs a file: give its name, got {path or 'nothing'}")
        return path
    if text is None or source is not None or "\n" in text or not Path(text).suffix:
        return None
    from softgaze.documents.formats import SUFFIXES

    if Path(text).suffix.lower() not in SUFFIXES:
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
    open_translator: Callable[[], "Translator"],
    search: "SearchOptions",
    placeholders: Placeholders,
    path: Path,
    target: Path | None,
    format_name: str | None,
    overwrite: bool,
) -> None:
    """Translate a document into a file of its format, or to stdout if the format is text."""
    from softgaze.documents.base import DocumentOptions
    from softgaze.documents.formats import ZIPPED, detect_format, open_document
    from softgaze.documents.translate import SegmentTranslator

    translator = open_translator()
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


# --- Ray


def translate_on_ray(
    model: Path,
    inputs: list[str],
    output: str,
    search: "SearchOptions",
    as_json: bool,
    window: int | None,
    address: str | None,
    device: str,
    languages: opt.LanguagePair,
) -> None:
    """Translate files on a cluster."""
    from softgaze.scale.ray_translate import translate as ray_translate
    from softgaze.translator import WINDOW

    if as_json and output.endswith(".parquet"):
        raise UsageError(f"--json is for text output; the table {output} has a column for each field")
    with silence_ray(), progress(None) as advance:
        ray_translate(
            model,
            inputs,
            output,
            search,
            window=window or WINDOW,
            formatter=translation_json if as_json else translation_text,
            address=address,
            device=device,
            languages=languages,
            progress=advance,
        )


@contextmanager
def silence_ray() -> Iterator[None]:
    """Discard Ray's output, which C++ writes to file descriptor 2 and Python to stdout; our own stderr still works."""
    before = sys.stderr
    with open(os.dup(2), "w") as terminal, open(os.devnull, "w") as null, redirect_stdout(null):
        os.dup2(null.fileno(), 2)
        sys.stderr = terminal if before is sys.__stderr__ else before
        try:
            yield
        finally:
            sys.stderr = before
            os.dup2(terminal.fileno(), 2)
