"""Options that several commands share, and the inputs they name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import typer
from typer.core import TyperCommand

from softgaze.cli._output import warn
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.bundle import Bundle
    from softgaze.config import Config
    from softgaze.data.captions import CaptionCorpus
    from softgaze.data.corpus import Pair
    from softgaze.data.tokenizer import Processor
    from softgaze.explain import Alignment
    from softgaze.search.options import SearchOptions
    from softgaze.translator import Translator

Item = TypeVar("Item")

SEARCH, DATA, LIMITS, MODEL_PANEL = "Search", "Data", "Limits", "Model"  # panels of the help
GOLD, COMPARISON, DIRECTIONS = "Gold alignment", "Comparison", "Two directions"
MAX_SKIPS_SHOWN = 10  # skipped caption rows that are printed one by one
DEFAULT_BEAM_SIZE = 5

# Choices; a test compares each with the table of the module that implements it.
ArchName = Literal["transformer", "rnn-luong", "rnn-bahdanau", "conv", "rnn", "captioner"]
SizeName = Literal["tiny", "small", "base", "big"]
WarmStart = Literal["statistics", "none"]
AttentionKind = Literal["cross", "encoder", "decoder"]
RowMeaning = Literal["predicting", "reading"]
MapMeasure = Literal["weights", "norms", "rollout", "gradient", "gradient-norm", "contribution", "occlusion"]
Symmetrization = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
AlignBy = Literal["both", "attention", "lexicon"]
ExportEngine = Literal["ctranslate2", "onnx"]
EngineName = Literal["auto", "torch", "ctranslate2", "onnx"]
WeightPrecision = Literal["float32", "int8", "int8_float32"]
DocumentFormat = Literal[
    "txt", "md", "html", "docx", "pptx", "odt", "odp", "epub", "srt", "vtt", "po", "xliff", "tmx", "json", "properties",
    "android", "strings",
]  # fmt: skip
IndexBase = Literal["0", "1"]  # of the first word in an alignment file


def option(
    text: str, *names: str, metavar: str | None = "N", panel: str | None = None, default: str | None = None, **rest: Any
) -> Any:
    """Return an option; `default` describes what happens if it is not given."""
    show_default: Any = True if default is None else default
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, show_default=show_default, **rest)


def choice(text: str, *names: str, of: Any = None, **rest: Any) -> Any:
    """Return an option whose choices the framework shows; spaces let a long list `of` choices wrap between them."""
    return option(text, *names, metavar=" | ".join(get_args(of)) or None, **rest)


def flag(text: str, *names: str, panel: str | None = None) -> Any:
    """Return an on-off option without the `--no-` form."""
    return typer.Option(*names, help=text, metavar="", rich_help_panel=panel)


def argument(text: str, metavar: str, show_default: bool | str = False) -> Any:
    return typer.Argument(metavar=metavar, help=text, show_default=show_default)


Model = Annotated[Path, argument("Model directory.", "MODEL")]
Device = Annotated[str, option("auto, cpu, cuda, cuda:N or mps.", metavar="DEVICE")]
Engine = Annotated[EngineName, choice("What runs the model; auto: the fastest with the same output.", of=EngineName)]
Json = Annotated[bool, flag("Print one JSON object instead of text.", "--json")]
JsonLines = Annotated[bool, flag("Print one JSON object per line.", "--json")]
Output = Annotated[Path | None, option("Write to FILE (.gz too) instead of stdout.", "--output", "-o", metavar="FILE")]
Figure = Annotated[
    Path | None, option("Write a page (.html), figure (.svg .png .pdf) or .json.", "--output", "-o", metavar="FILE")
]

BeamSize = Annotated[
    int | None,
    option(
        "Hypotheses kept per step; 1 is greedy search.",
        "--beam-size",
        default="that of the model, or 5",
        panel=SEARCH,
        min=1,
    ),
]
BatchTokens = Annotated[
    int | None, option("Padded source tokens x beam size per batch.", default="set by the engine", panel=SEARCH, min=1)
]

GlossaryFile = Annotated[
    Path | None,
    option("TSV file of terms: source, target forms (a|b), flags (case).", "--glossary", metavar="FILE", panel=SEARCH),
]

GoldFile = Annotated[
    Path | None,
    option("Gold alignment, a line per pair: 1-2 sure, 1p2 possible.", "--gold", metavar="FILE", panel=GOLD),
]
GoldBase = Annotated[IndexBase | None, choice("Index of the first word in --gold (required with --gold).", panel=GOLD)]

Images = Annotated[Path | None, option("Directory of images.", metavar="DIR", panel=DATA)]
Features = Annotated[
    Path | None,
    option("Directory of feature arrays (.npy .npz) or audio (.wav .flac .ogg).", metavar="DIR", panel=DATA),
]
Captions = Annotated[
    Path | None,
    option("Captions of the files: image,caption CSV, image#k<TAB>caption or COCO JSON.", metavar="FILE", panel=DATA),
]
TrainFiles = Annotated[
    list[Path] | None,
    option("Parallel text: line n translates line n. Repeatable.", "--train", metavar="SRC TGT", panel=DATA),
]
PairFiles = Annotated[
    list[Path] | None,
    option("Pairs in one file: TSV, CSV, JSONL, TMX, XLIFF, PO. Repeatable.", "--pairs", metavar="FILE", panel=DATA),
]
DevFiles = Annotated[
    list[Path] | None,
    option(
        "Validation files (captioner: DIR CAPTIONS).",
        "--dev",
        metavar="SRC TGT",
        default="part of the training pairs",
        panel=DATA,
    ),
]
TestFiles = Annotated[
    tuple[Path, Path] | None, option("Test sentences and their reference translations.", "--test", metavar="SRC TGT")
]
SourceLang = Annotated[str | None, option("Source language.", metavar="CODE", default="from file suffix", panel=DATA)]
TargetLang = Annotated[str | None, option("Target language.", metavar="CODE", default="from file suffix", panel=DATA)]
ModelSource = Annotated[
    str | None,
    option(
        "Source language of a multilingual model.",
        "--source-lang",
        metavar="CODE",
        default="of the model",
        panel=MODEL_PANEL,
    ),
]
ModelTarget = Annotated[
    str | None,
    option(
        "Target language of a multilingual model.",
        "--target-lang",
        metavar="CODE",
        default="of the model",
        panel=MODEL_PANEL,
    ),
]
Vocabulary = Annotated[int | None, option("Vocabulary size, in subwords.", default="from corpus", panel=DATA)]
ModelSize = Annotated[SizeName | None, choice("Model size.", default="tiny", panel=MODEL_PANEL)]
Minutes = Annotated[
    float | None, option("Training time in minutes, over all resumes.", default="no limit", panel=LIMITS)
]
Steps = Annotated[int | None, option("Number of updates.", default="no limit", panel=LIMITS)]
Seed = Annotated[int | None, option("Random seed.", default="1")]
ConfigFile = Annotated[Path | None, option("YAML file of settings.", metavar="FILE")]
Assignments = Annotated[
    list[str] | None,
    option("One of `softgaze settings`, such as training.clip=5. Repeatable.", "--set", metavar="KEY=VALUE"),
]


# --- search


def search_options(
    model: Path | None = None,
    *,
    beam_size: int | None = None,
    num_hypotheses: int = 1,
    glossary: Path | None = None,
    **flags: Any,
) -> "SearchOptions":
    """Return the search options of the flags that were given (are not None), validated before a model is loaded.

    An imported model may set the others. A sampling flag requests sampling, at temperature 1 unless given.
    """
    from softgaze.bundle import read_search_defaults
    from softgaze.search.options import SearchOptions

    if glossary is not None:
        from softgaze.glossary import Glossary

        flags["glossary"] = Glossary.read(glossary)
    defaults = {"beam_size": DEFAULT_BEAM_SIZE, **(read_search_defaults(model) if model else {})}
    default_beam_size = defaults.pop("beam_size")
    given = {**defaults, **{name: value for name, value in flags.items() if value is not None}}
    if given.keys() & {"temperature", "top_k", "top_p", "seed"}:
        if beam_size is not None:
            raise UsageError("--beam-size has no effect with --temperature, --top-k, --top-p or --seed, which sample")
        return SearchOptions(num_hypotheses=num_hypotheses, **{"temperature": 1.0, **given})
    beam_size = beam_size or max(default_beam_size, num_hypotheses)
    return SearchOptions(beam_size=beam_size, num_hypotheses=num_hypotheses, **given)


# --- checks and parsing


def reject_options(reason: str, options: Mapping[str, object]) -> None:
    """Raise if one of the `options` was given (is neither None nor False) although it has no effect here."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise UsageError(f"{name} has no effect {reason}")


def parse_ints(option: str, text: str | None) -> list[int] | None:
    """Return `64,128` as [64, 128]."""
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} takes comma-separated integers, such as 10,20,30; got {text!r}") from None


def check_text(text: str) -> str:
    """Return an argument unless it holds undecodable bytes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"TEXT is not UTF-8 at character {error.start + 1}; check the terminal's encoding") from error
    return text


def read_settings(
    config: Path | None, assignments: Sequence[str] | None, implied: Mapping[str, Any], **flags: dict[str, Any]
) -> dict[str, Any]:
    """Merge the settings that are implied, in the file, of the flags given (by section) and of --set, in this order."""
    from softgaze.config import merge_settings, parse_assignments, read_config

    given = {
        section: {key: value for key, value in values.items() if value is not None} for section, values in flags.items()
    }
    return merge_settings(implied, read_config(config) if config else {}, given, parse_assignments(assignments or []))


def system_names(paths: Sequence[Path]) -> list[str]:
    """Return a distinct name for each path: its last part, or all of it if two would be equal."""
    names = [path.absolute().name for path in paths]  # "." has a name too; a symbolic link keeps its own
    names = [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({1 + names[:index].count(name)})"
        for index, name in enumerate(names)
    ]


def direction(translator: "Translator") -> tuple[str, str]:
    """Return source and target language; either may be empty."""
    about = translator.bundle.description
    return about.source_language, about.target_language


def blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of bounded size."""
    stream = iter(items)
    while block := list(islice(stream, size)):
        yield block


# --- pairs of files


class PlainHelp:
    """Leave the Python types of arguments and of --help out of the help: metavar and text describe them."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: None
            elif parameter.is_flag:
                parameter.metavar = ""
        return parameters


class Command(PlainHelp, TyperCommand):
    """A command with a plain help."""


class PairCommand(Command):
    """A command whose `--train`, `--dev` and `--mix` take two files each and repeat, which Typer does not support."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite `--train A B` to `--train A --train B` and parse."""
        repeated: list[str] = []
        for option, argument in zip(["", "", *args], args, strict=False):
            is_second_file = option in ("--train", "--dev", "--mix") and not argument.startswith("-")
            repeated += [option, argument] if is_second_file else [argument]
        rest: list[str] = super().parse_args(ctx, repeated)
        return rest


def file_pairs(option: str, files: Sequence[Path] | None) -> list[tuple[Path, Path]]:
    """Return the files of a repeated pair option as (source, target)."""
    names = list(files or [])
    if len(names) % 2:
        raise UsageError(f"{option} takes two files, source and target; got only {names[-1]}")
    return list(zip(names[::2], names[1::2], strict=True))


# --- captioned files


class SkipReporter:
    """Prints why files or caption rows are skipped: the first few one by one, then a count by reason."""

    def __init__(self) -> None:
        self.errors: list[Any] = []

    def __call__(self, error: Any) -> None:
        self.errors.append(error)
        if len(self.errors) <= MAX_SKIPS_SHOWN:
            warn(f"skipped: {error}")

    def summarize(self) -> None:
        """Print the count by reason if not every row was printed."""
        from softgaze.data.captions import count_errors

        if len(self.errors) > MAX_SKIPS_SHOWN:
            reasons = ", ".join(f"{count:,} × {reason}" for reason, count in count_errors(self.errors).items())
            warn(f"skipped {len(self.errors):,} rows in total ({reasons})")


def readable(processor: "Processor", names: Sequence[str], skip: SkipReporter) -> list[str]:
    """Return the names of the files that the model can read; report the others."""
    items = processor.try_encode(names, skip)
    return [name for name, item in zip(names, items, strict=True) if item is not None]


class CaptionFiles(NamedTuple):
    """The options `--images`, `--features` and `--captions` as given."""

    images: Path | None
    features: Path | None
    captions: Path | None

    @property
    def is_given(self) -> bool:
        return any(self)

    def directory_and_captions(self) -> tuple[Path, Path]:
        directory = self.images or self.features
        if directory is None or (self.images and self.features):
            raise UsageError("--captions needs exactly one directory: --images DIR or --features DIR")
        if self.captions is None:
            raise UsageError(f"{directory} needs its captions: --captions FILE")
        return directory, self.captions

    def settings(self) -> dict[str, Any]:
        if not self.is_given:
            return {}
        return {"model": {"arch": "captioner", "options": {"encoder": "frames"} if self.features else {}}}

    def corpora(
        self, config: "Config", dev: Sequence[tuple[Path, Path]]
    ) -> "tuple[CaptionCorpus, CaptionCorpus | None]":
        """Return the training data, and the validation data if given."""
        from softgaze.config import resolve
        from softgaze.data.captions import CaptionCorpus
        from softgaze.data.processors import BackboneProcessor, image_processor_for
        from softgaze.runtime import user_cache_directory

        if len(dev) > 1:
            raise UsageError("--dev takes one directory and its captions: --dev DIR CAPTIONS")
        directory, captions = self.directory_and_captions()
        skip = SkipReporter()
        if self.features:
            train = CaptionCorpus.of_features(directory, captions, skip)
        else:
            options = resolve(config).model.options
            reader = image_processor_for(
                options.get("encoder", "cnn"), options.get("frozen", True), config.data.image_size
            )
            if isinstance(reader, BackboneProcessor):
                reader.use_cache(user_cache_directory() / "features")
            train = CaptionCorpus.of(directory, captions, reader, skip)
        held_out = [CaptionCorpus.of(*paths, train.processor, skip) for paths in dev]
        skip.summarize()
        if repeated := sum(corpus.repeated for corpus in (train, *held_out)):
            warn(f"each caption of a file is used once; repeated captions left out: {repeated:,}")
        return train, held_out[0] if held_out else None


# --- gold alignments


def check_gold_base(gold: object, base: IndexBase | None, metavar: str) -> int | None:
    """Return the index base as a number; it is never guessed, and useless without `--gold`."""
    if gold is None and base is not None:
        raise UsageError(f"--gold-base needs --gold {metavar}")
    if gold is not None and base is None:
        raise UsageError("--gold needs --gold-base 0 or 1: the index of its first word")
    return None if base is None else int(base)


def read_gold(path: Path | None, base: IndexBase | None, source: Path, lines: int | None) -> "list[Alignment] | None":
    """Read the gold alignments of the sentences in `source`; its number of lines is None if it is a pipe."""
    from softgaze.data.corpus import read_lines
    from softgaze.explain.alignment import parse_lines

    first_index = check_gold_base(path, base, "FILE")
    if path is None or first_index is None:
        return None
    try:
        gold = parse_lines(list(read_lines(path)), first_index, "gold")
    except DataError as error:
        raise DataError(f"{path}: {error}" if str(path) not in str(error) else str(error)) from None
    if lines not in (None, len(gold)):
        raise DataError(f"{source} has {lines:,} lines and {path} {len(gold):,}; gold needs one line per sentence")
    return gold


def check_gold_links(pairs: "Iterable[Pair]", gold: "list[Alignment] | None", path: Path | None) -> "Iterator[Pair]":
    """Yield the pairs; raise at the first whose gold links name words it does not have, as with a wrong base."""
    from softgaze.explain.alignment import check_bounds
    from softgaze.explain.word_spans import max_word_count

    for index, pair in enumerate(pairs):
        if gold is not None and index < len(gold):
            sizes = max_word_count(pair.source), max_word_count(pair.target)
            check_bounds(gold[index], sizes, f"{path}, line {index + 1:,}", "is --gold-base right for this file?")
        yield pair


# --- models


def load_captioner(model: Path, device: str) -> "Translator":
    """Load a model whose sources are files."""
    from softgaze.translator import load

    translator = load(model, device)
    if translator.bundle.tokenizers.source.kind == "text":
        raise UsageError(f"{model} translates text and captions no files; use softgaze translate {model}")
    return translator


class LanguagePair(NamedTuple):
    """The options `--source-lang` and `--target-lang` of a multilingual model."""

    source_lang: str | None
    target_lang: str | None


def open_bundle(model: Path, languages: LanguagePair) -> "Bundle":
    """Open a model directory with the languages of a request, which a multilingual model needs."""
    from softgaze.bundle import Bundle

    bundle = Bundle.open(model)
    if any(languages):
        bundle = bundle.with_languages(*languages)
    if bundle.tokenizers.source.is_text:
        bundle.tokenizers.source.add_eos(())  # raises if no languages were chosen
    return bundle


def load_attentive(
    model: Path, device: str, languages: LanguagePair, *, engine: EngineName, needs_attention: bool = True
) -> "Translator":
    """Load a model that has cross-attention; an exported one always runs on its own engine."""
    from softgaze.engines import open_engine
    from softgaze.runtime import has_torch
    from softgaze.translator import Translator

    bundle = open_bundle(model, languages)
    has_choice = bundle.engine["name"] == "torch" and has_torch()
    translator = Translator(bundle, open_engine(bundle, device, engine if has_choice else "auto"))
    if needs_attention and not translator.has_attention:
        arch = translator.bundle.description.arch
        raise UsageError(
            f"{model}: a model of arch {arch} has no attention to explain; for one text, use --measure gradient or "
            "--measure occlusion"
        )
    return translator
