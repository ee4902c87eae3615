"""`softgaze evaluate`: translate a test set and score it. Knows files and printing, not scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softgaze.cli.explain import refuse
from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.evaluation.buckets import Bucket
    from softgaze.evaluation.looks import Looks
    from softgaze.evaluation.report import Evaluation, System
    from softgaze.gaze import Alignment
    from softgaze.translator import Translation, Translator

ENDINGS = (".html", ".svg", ".json")


class Pairs(NamedTuple):
    """The test set."""

    sources: tuple[str, ...]
    references: tuple[str, ...]
    gold: "list[Alignment] | None"


class Way(NamedTuple):
    """How models are run."""

    beam: int
    batch_tokens: int | None
    device: str
    looks: bool  # whether it is asked where they look


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    test: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SRC TGT", help="Sentences and their right translations (.gz too)."),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of a captioner: a folder of pictures, with --captions.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder of arrays (.npy, .npz) or sounds (.wav) instead.")
    ] = None,
    captions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Right captions, any number for each file of the folder.")
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="COCO's JSON of boxes: does it look at what it names?"),
    ] = None,
    by_length: Annotated[
        bool, typer.Option("--by-length", help="BLEU and chrF by source length, with 95 % bands.")
    ] = False,
    edges: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="By length: the longest of each bucket.  [automatic]")
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="OTHER", help="Another model, or a file of translations: is MODEL better? May be repeated."
        ),
    ] = None,
    attention: Annotated[
        bool, typer.Option("--attention", help="Where the models look: entropy, coverage; with --gold AER.")
    ] = False,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Right links of the test set (1-2 sure, 1p2 possible).")
    ] = None,
    gold_base: Annotated[
        int | None, typer.Option(metavar="0|1", help="Whether --gold counts words from 0 or from 1; must be said.")
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Write it all as .html, .json or (the chart) .svg. May be repeated."),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at each step; 1 is fastest.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the translations to FILE too.")
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Padded tokens × beam at once: memory against speed.  [by engine]")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
) -> None:
    """Translate or caption a test set and compare: BLEU, chrF and TER by sacreBLEU, exact matches, and speed.

    softgaze evaluate runs/m30k --test test.en test.de

    softgaze evaluate runs/photos --images photos --captions captions.csv

    softgaze evaluate runs/new --test test.en test.de --against runs/old --against google.de --by-length

    Every score comes with its sacreBLEU signature, without which two scores cannot be compared. Both sides are first
    brought to Unicode NFC and single spaces. Speed counts translating alone, not loading the model.

    Bands are of 1,000 bootstrap resamples; --against tests each difference twice, by paired bootstrap and by
    approximate randomisation, over all sentences and in each bucket of --by-length.

    Captions are scored against all their references: BLEU-1 to 4, CIDEr-D, ROUGE-L and exact matches. METEOR is not
    among them, since it needs Java. With --boxes, how much of the look of a noun lies on what it names is told beside
    what a look that is the same everywhere would get.
    """
    from softgaze.cli.captions import evaluate_captions
    from softgaze.cli.folders import Folders
    from softgaze.evaluation.report import Evaluation
    from softgaze.translator import load

    folders = Folders(images, features, captions)
    if folders.given or boxes is not None:
        pairs_only = {"--test": test, "--by-length": by_length or None, "--edges": edges, "--against": against}
        looks = {"--attention": attention or None, "--gold": gold, "--gold-base": gold_base, "--report": report}
        refuse("captions", {**pairs_only, **looks})
        evaluate_captions(model, folders, boxes, beam, as_json, output, batch_tokens, device)
        return
    if test is None:
        raise UsageError("what shall it be tested on? give --test SRC TGT, or --images DIR --captions FILE")
    reports, others, is_cut = report or [], against or [], by_length or edges is not None
    check_reports(reports, is_charted=is_cut)
    ends = parse_edges(edges)
    pairs = read_test(test, gold, gold_base)
    texts = [read_other(path, test[0], len(pairs.sources)) for path in others]
    way = Way(beam, batch_tokens, device, attention or gold is not None)
    translator = load(model, device)
    check_others(translator, model, others)
    check_looks(translator, model, others, way)
    found, seconds = translated(translator, pairs, way)
    write(found, output)
    told = plain_record(translator, found, seconds, pairs.references)
    told = {"model": str(model), "test": [*map(str, test)], "beam": beam, "device": str(translator.device), **told}
    if not (is_cut or others or way.looks or reports):
        show(told, None, as_json)
        return
    names, language = distinct([model, *others]), translator.bundle.description.target_language
    systems = [system(names[0], found, pairs, language, seen(translator, found, pairs, way))]
    for name, path, own in zip(names[1:], others, texts, strict=True):
        systems.append(other(name, path, own, pairs, language, way))
    if way.looks:
        tell_blind(systems)
    evaluation = Evaluation(tuple(systems), buckets_of(pairs, ends) if is_cut else ())
    told = whole_record(told, evaluation, dict(zip(names, map(str, [model, *others]), strict=True)))
    show(told, evaluation, as_json)
    for path in reports:
        write_report(path, evaluation, told)


# --- in ---------------------------------------------------------------------------------------------------------


def check_reports(reports: Sequence[Path], *, is_charted: bool) -> None:
    """What cannot be written is said before a model is loaded."""
    from softgaze.cli.explain import check_output

    for path in reports:
        check_output(path, 1, ENDINGS)
        if path.suffix.lower() == ".svg" and not is_charted:
            raise UsageError(f"{path}: the chart shows quality against length; add --by-length")


def parse_edges(text: str | None) -> list[int] | None:
    """10,20,30 as numbers."""
    from softgaze.evaluation.buckets import check_edges

    if text is None:
        return None
    try:
        return check_edges([int(part) for part in text.split(",")])
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"--edges are lengths that grow, such as 10,20,30; not {text!r}") from error


def read_test(test: tuple[Path, Path], gold: Path | None, base: int | None) -> Pairs:
    """The test set, whose words the gold links must fit."""
    from softgaze.cli.align import read_gold, within
    from softgaze.data.corpus import read_pairs
    from softgaze.errors import DataError

    right = read_gold(gold, base)
    sources, references = zip(*within(read_pairs(*test), right, gold), strict=True)
    if right is not None and len(right) != len(sources):
        raise DataError(
            f"{test[0]} has {len(sources):,} lines and {gold} {len(right):,}; gold needs a line for each sentence"
        )
    return Pairs(sources, references, right)


def read_other(path: Path, source: Path, lines: int) -> list[str] | None:
    """The translations in a file; None for a model, whose directory is opened now, so that a typo is found in time."""
    from softgaze.bundle import Bundle
    from softgaze.data.corpus import read_lines
    from softgaze.errors import DataError

    if path.is_dir():
        Bundle.open(path)
        return None
    texts = list(read_lines(path))
    if len(texts) != lines:
        raise DataError(f"{source} has {lines:,} lines and {path} {len(texts):,}; line n must translate line n")
    return texts


def check_others(translator: "Translator", model: Path, others: Sequence[Path]) -> None:
    """Models that translate into another language cannot be compared."""
    from softgaze.bundle import Bundle

    own = translator.bundle.description
    for path in filter(Path.is_dir, others):
        their = Bundle.open(path).description
        one, other = ((each.source_language, each.target_language) for each in (own, their))
        if one != other and all((*one, *other)):
            raise UsageError(f"{model} translates {one[0]} → {one[1]}, and {path} {other[0]} → {other[1]}")


def check_looks(translator: "Translator", model: Path, others: Sequence[Path], way: Way) -> None:
    """A model without attention has nothing to tell, unless one that looks may be beside it."""
    if way.looks and not any(map(Path.is_dir, others)) and not translator.aligner().forward.can_look:
        arch = translator.bundle.description.arch
        raise UsageError(f"{model}: a model of arch {arch} has no attention; leave out --attention and --gold")


def distinct(paths: Sequence[Path]) -> list[str]:
    """A name for each system: the last part of its path, or all of it where that would be another's, too."""
    import os

    names = [os.path.basename(os.path.abspath(path)) for path in paths]  # "." has a name, too; a link keeps its own
    whole = [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]
    return [
        name if whole.count(name) == 1 else f"{name} ({1 + whole[:place].count(name)})"
        for place, name in enumerate(whole)
    ]


# --- translating and looking ------------------------------------------------------------------------------------


def translated(translator: "Translator", pairs: Pairs, way: Way) -> "tuple[list[Translation], float]":
    """The test set by one model, and how many seconds that took."""
    from time import perf_counter

    from softgaze.cli.translate import progress

    began = perf_counter()
    with progress(len(pairs.sources)) as advance:
        rows = translator.translate_lines(pairs.sources, progress=advance, beam=way.beam, batch_tokens=way.batch_tokens)
        found = list(rows)
    return found, perf_counter() - began


def seen(translator: "Translator", found: "list[Translation]", pairs: Pairs, way: Way) -> "Looks | None":
    """Where a model looked, if that was asked and it can look."""
    from softgaze.cli.translate import progress
    from softgaze.evaluation.looks import look_at

    if not way.looks:
        return None
    with progress(len(found)) as advance:
        return look_at(translator, found, pairs.references, pairs.gold, advance)


def other(name: str, path: Path, texts: list[str] | None, pairs: Pairs, language: str, way: Way) -> "System":
    """What the model is compared with: a file's translations, or another model's."""
    from softgaze.translator import load

    if texts is not None:
        return system(name, texts, pairs, language)
    translator = load(path, way.device)
    found, _ = translated(translator, pairs, way)
    return system(name, found, pairs, language, seen(translator, found, pairs, way))


def tell_blind(systems: "Sequence[System]") -> None:
    """Say why there is nothing about attention where it was asked for and nobody has any."""
    if not any(each.looks for each in systems):
        names = ", ".join(each.name for each in systems)
        typer.echo(f"no system looks ({names}): there is no attention to tell about", err=True)


def system(
    name: str, found: "Sequence[str | Translation]", pairs: Pairs, language: str, looks: "Looks | None" = None
) -> "System":
    """One system, counted; all are scored as the language of the model asks."""
    from softgaze.evaluation.counts import count_system
    from softgaze.evaluation.report import System

    return System(name, count_system([*map(str, found)], pairs.references, language=language), looks)


def buckets_of(pairs: Pairs, edges: list[int] | None) -> "tuple[Bucket, ...]":
    """The test set by length."""
    from softgaze.evaluation.buckets import make_buckets, source_lengths

    return tuple(make_buckets(source_lengths(pairs.sources), edges))


# --- out --------------------------------------------------------------------------------------------------------


def write(found: "list[Translation]", output: Path | None) -> None:
    """The translations, a line each."""
    from softgaze.cli.translate import text_line, write_all, writer

    if output is not None:
        with writer(output) as file:
            write_all(found, text_line, file, len(found))


def plain_record(
    translator: "Translator", found: "list[Translation]", seconds: float, references: Sequence[str]
) -> dict[str, Any]:
    """Scores of all sentences, and speed."""
    from softgaze.evaluation.speed import speed_of
    from softgaze.metrics import score

    language = translator.bundle.description.target_language
    scores = score([each.text for each in found], references, language=language)
    return {**scores.to_dict(), "speed": speed_of(found, seconds)}


def whole_record(told: dict[str, Any], evaluation: "Evaluation", paths: dict[str, str]) -> dict[str, Any]:
    """And everything else that was asked for."""
    from softgaze.evaluation.report import record

    return {**told, "systems": paths, **record(evaluation)}


def show(told: dict[str, Any], evaluation: "Evaluation | None", as_json: bool) -> None:
    """Print the result."""
    import json

    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2))
        return
    for line in plain_lines(told):
        typer.echo(line)
    if evaluation is not None:
        typer.echo(as_text(evaluation))


def plain_lines(told: dict[str, Any]) -> list[str]:
    """Scores with their signatures, and speed."""
    from dataclasses import fields

    from softgaze.metrics import Scores

    scores = Scores(**{field.name: told[field.name] for field in fields(Scores)})
    speed = told["speed"]
    rates = f"{speed['sentences_per_second']:,.1f} sentences/s, {speed['tokens_per_second']:,.0f} tokens/s"
    return [*scores.lines(), f"speed         {rates} ({told['device']}, beam {told['beam']})"]


def as_text(evaluation: "Evaluation") -> str:
    """For a terminal: the tables, and the signatures they need."""
    from softgaze.evaluation.counts import TITLES
    from softgaze.evaluation.report import tables

    parts = [table.text() for table in tables(evaluation)]
    signatures = [f"{TITLES[name]:<5} {own}" for name, own in evaluation.signatures.items()]
    return "\n" + "\n\n".join([*parts, "\n".join(signatures)])


def write_report(path: Path, evaluation: "Evaluation", told: dict[str, Any]) -> None:
    """As the ending of the file says."""
    import json

    from softgaze.evaluation.chart import length_chart
    from softgaze.evaluation.page import evaluation_page
    from softgaze.files import write_text

    texts = {
        ".json": lambda: json.dumps(told, ensure_ascii=False, indent=2) + "\n",
        ".svg": lambda: length_chart(evaluation.curves, signatures=evaluation.signatures) + "\n",
        ".html": lambda: evaluation_page(evaluation, facts_of(told)),
    }
    write_text(path, texts[path.suffix.lower()]())
    typer.echo(f"wrote {path} ({path.stat().st_size / 1000:,.0f} kB)", err=True)


def facts_of(told: dict[str, Any]) -> dict[str, str]:
    """The head of a page: what was measured besides, and on what."""
    return {
        "model": told["model"],
        "test": " ".join(told["test"]),
        "beam": str(told["beam"]),
        "exact": f"{told['exact']:.2f} %",
        "TER": f"{told['ter']:.2f} {told['signatures']['ter']}",
        "speed": f"{told['speed']['sentences_per_second']:,.1f} sentences/s on {told['device']}",
    }
