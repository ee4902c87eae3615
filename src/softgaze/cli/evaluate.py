"""`softgaze evaluate`: score translations or captions of a test set."""

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import flag, option
from softgaze.cli._output import check_output_path, open_output, print_json, progress, report_written, warn
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.data.captions import CaptionedFile, LabelledBox
    from softgaze.evaluation.attention_metrics import PointingScore, RegionScore
    from softgaze.evaluation.by_length import Bucket
    from softgaze.evaluation.report import Evaluation, System
    from softgaze.explain import Alignment
    from softgaze.glossary import Glossary
    from softgaze.search.options import SearchOptions
    from softgaze.translation import Translation
    from softgaze.translator import Translator

REPORT_SUFFIXES = (".html", ".svg", ".json")


class TestSet(NamedTuple):
    """Sentences, reference translations and, if given, gold alignments."""

    sources: tuple[str, ...]
    references: tuple[str, ...]
    gold: "list[Alignment] | None"


class RunOptions(NamedTuple):
    """Options of running the models and of the output files."""

    search: "SearchOptions"
    languages: opt.LanguagePair
    device: str
    engine: opt.EngineName
    with_attention: bool
    with_confidence: bool
    calibrates: bool
    as_json: bool
    output: Path | None  # of the translations
    reports: Sequence[Path]


def evaluate(
    model: opt.Model,
    test: opt.TestFiles = None,
    pairs: Annotated[
        Path | None, option("Test set in one file: TSV, CSV, JSONL, TMX, XLIFF or PO.", metavar="FILE")
    ] = None,
    images: opt.Images = None,
    features: opt.Features = None,
    captions: opt.Captions = None,
    boxes: Annotated[
        Path | None,
        option("COCO JSON of object boxes: score where nouns attend (pointing game).", metavar="FILE", panel=opt.DATA),
    ] = None,
    by_length: Annotated[
        bool,
        flag(
            "Add BLEU and chrF by source length, with 95 % confidence intervals.", "--by-length", panel=opt.COMPARISON
        ),
    ] = False,
    edges: Annotated[
        str | None,
        option("Longest source of each length bucket.", metavar="N,N,…", default="automatic", panel=opt.COMPARISON),
    ] = None,
    against: Annotated[
        list[Path] | None,
        option(
            "Compare with another model or a file of translations. Repeatable.", metavar="OTHER", panel=opt.COMPARISON
        ),
    ] = None,
    attention: Annotated[
        bool, flag("Add attention metrics: entropy, coverage, faithfulness; with --gold AER.", "--attention")
    ] = False,
    gold: opt.GoldFile = None,
    gold_base: opt.GoldBase = None,
    confidence: Annotated[
        bool, flag("Add the reliability of word confidence: calibration error, AUC.", "--confidence")
    ] = False,
    calibrate: Annotated[
        bool, flag("Fit word confidence on this test set; store it in the model.", "--calibrate")
    ] = False,
    report: Annotated[
        list[Path] | None, option("Write a report: .html, .json or .svg (the chart). Repeatable.", metavar="FILE")
    ] = None,
    as_json: opt.Json = False,
    output: Annotated[
        Path | None, option("Also write the translations to FILE.", "--output", "-o", metavar="FILE")
    ] = None,
    device: opt.Device = "auto",
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
    engine: opt.Engine = "auto",
    beam_size: opt.BeamSize = None,
    batch_tokens: opt.BatchTokens = None,
    glossary: opt.GlossaryFile = None,
) -> None:
    """Score a model on a test set.

    softgaze evaluate runs/m30k --test test.en test.de
    softgaze evaluate runs/m30k --pairs memory.en-de.tmx
    softgaze evaluate runs/photos --images photos --captions captions.csv
    softgaze evaluate runs/new --test test.en test.de --against runs/old

    Text: BLEU, chrF and TER of sacreBLEU with their signatures, exact
    matches, and speed without loading the model. Both sides are first
    normalised to Unicode NFC and single spaces. Confidence intervals use
    1,000 bootstrap resamples; --against tests each difference by paired
    bootstrap and by approximate randomisation.

    Confidence: the probability that a word is right, which means that the
    reference has it too. Training fits it on held-out text; --calibrate fits
    it for an imported model.

    Captions: BLEU-1 to 4, CIDEr-D, ROUGE-L and exact matches against all
    references, tokenised as the COCO caption tools do (no METEOR, which
    needs Java). With --boxes, also the attention of each noun on its object,
    compared with uniform attention and with the mean map. --attention
    occludes the regions that a word attends to.
    """
    from softgaze.evaluation.by_length import check_edges, make_buckets, source_lengths

    files = opt.CaptionFiles(images, features, captions)
    search = opt.search_options(model, beam_size=beam_size, batch_tokens=batch_tokens, glossary=glossary)
    languages = opt.LanguagePair(source_lang, target_lang)
    with_attention = attention or gold is not None
    with_confidence = confidence or calibrate
    options = RunOptions(
        search, languages, device, engine, with_attention, with_confidence, calibrate, as_json, output, report or ()
    )
    if files.is_given or boxes is not None:
        text_options = {
            "--test": test,
            "--pairs": pairs,
            "--by-length": by_length,
            "--edges": edges,
            "--against": against,
        }
        metric_options = {
            "--gold": gold,
            "--gold-base": gold_base,
            "--report": report,
            "--confidence": confidence,
            "--calibrate": calibrate,
        }
        opt.reject_options("on captions", {**text_options, **metric_options, "--glossary": glossary})
        evaluate_captions(model, files, boxes, options)
        return
    if (test is None) == (pairs is None):
        found = "two test sets" if test else "no test set"
        raise UsageError(f"{found}: give --test SRC TGT, --pairs FILE, or --images DIR --captions FILE")
    paths = test or (Path(str(pairs)),)
    has_buckets = by_length or edges is not None
    for path in options.reports:
        check_output_path(path, REPORT_SUFFIXES)
        if path.suffix.lower() == ".svg" and has_buckets == with_confidence:
            raise UsageError(f"{path}: a chart needs either --by-length or --confidence")
    bucket_edges = opt.parse_ints("--edges", edges)
    if bucket_edges is not None:
        check_edges(bucket_edges)
    test_set = read_test_set(paths, gold, gold_base)
    others = [(path, read_translations(path, paths[0], len(test_set.sources))) for path in against or []]
    buckets = make_buckets(source_lengths(test_set.sources), bucket_edges) if has_buckets else ()
    evaluate_text(model, paths, test_set, others, tuple(buckets), options)


# --- text


def read_test_set(test: tuple[Path, ...], gold: Path | None, base: opt.IndexBase | None) -> TestSet:
    """Read the test set from one or two files; its gold alignments must fit its sentences."""
    from softgaze.data.corpus import Corpus

    pairs = list(Corpus.of([(test[0], test[1])] if len(test) > 1 else [], test if len(test) == 1 else []))
    if not pairs:
        raise DataError(f"{test[0]}: there is no pair with text on both sides")
    alignments = opt.read_gold(gold, base, test[0], len(pairs))
    sources, references = zip(*opt.check_gold_links(pairs, alignments, gold), strict=True)
    return TestSet(sources, references, alignments)


def read_translations(path: Path, source: Path, lines: int) -> list[str] | None:
    """Read the translations in a file; None for a model directory, which is checked now so that a typo is found."""
    from softgaze.bundle import Bundle
    from softgaze.data.corpus import read_lines

    if path.is_dir():
        Bundle.open(path)
        return None
    texts = list(read_lines(path))
    if len(texts) != lines:
        raise DataError(f"{source} has {lines:,} lines and {path} {len(texts):,}; line n must translate line n")
    return texts


def evaluate_text(
    model: Path,
    test: tuple[Path, ...],
    test_set: TestSet,
    others: Sequence[tuple[Path, list[str] | None]],
    buckets: "tuple[Bucket, ...]",
    options: RunOptions,
) -> None:
    """Translate the test set, score it, compare it with others, and print and write the result."""
    from softgaze.evaluation.benchmark import translation_speed
    from softgaze.evaluation.report import Evaluation, System, evaluation_record
    from softgaze.evaluation.significance import count_ngrams
    from softgaze.metrics import score
    from softgaze.translator import load

    translator = load(model, options.device, engine=options.engine, **options.languages._asdict())
    check_models(translator, model, [path for path, texts in others if texts is None], options)
    translations, seconds = translate_test_set(translator, test_set, options)
    if options.output is not None:
        with open_output(options.output) as file:
            file.write("".join(f"{translation.text}\n" for translation in translations).encode())
    if options.calibrates:
        translator = calibrated(translator, translations, test_set.references)
    language = translator.bundle.description.target_language
    scores = score([translation.text for translation in translations], test_set.references, language=language)
    record: dict[str, Any] = {
        "model": str(model),
        "test": [*map(str, test)],
        "beam_size": options.search.beam_size,
        "device": str(translator.device),
        "engine": translator.engine.name,
        **scores.to_dict(),
        "speed": translation_speed(translations, seconds),
    }
    if options.search.glossary is not None:
        record["terms"] = count_terms(translations, test_set.references, options.search.glossary)
    evaluation = None
    if buckets or others or options.with_attention or options.with_confidence or options.reports:
        paths = [model, *(path for path, _ in others)]
        names = opt.system_names(paths)
        systems = [system_of_model(names[0], translator, translations, test_set, options)]
        for name, (path, texts) in zip(names[1:], others, strict=True):
            if texts is not None:
                systems.append(System(name, count_ngrams(texts, test_set.references, language=language)))
                continue
            other = load(path, options.device, engine=options.engine)
            if other.languages is not None:
                other = other.with_languages(*options.languages)
            other_translations, _ = translate_test_set(other, test_set, options)
            systems.append(system_of_model(name, other, other_translations, test_set, options))
        if options.with_attention and not any(system.attention for system in systems):
            warn(f"no system has attention ({', '.join(names)}), so there are no attention metrics")
        evaluation = Evaluation(tuple(systems), buckets)
        sources = dict(zip(names, map(str, paths), strict=True))
        record = {**record, "systems": sources, **evaluation_record(evaluation)}
    show_evaluation(scores.lines(), record, evaluation, options.as_json)
    if evaluation is not None:
        for path in options.reports:
            write_report(path, evaluation, record)


def check_models(translator: "Translator", model: Path, others: Sequence[Path], options: RunOptions) -> None:
    """Raise if the models translate in different directions, or if no model can have attention."""
    from softgaze.bundle import Bundle

    direction = opt.direction(translator)
    for path in others:
        other = Bundle.open(path).description
        other_direction = other.source_language, other.target_language
        if direction != other_direction and all((*direction, *other_direction)):
            raise UsageError(f"{model} translates {' → '.join(direction)}, and {path} {' → '.join(other_direction)}")
    if options.with_attention and not others and not translator.has_attention:
        arch = translator.bundle.description.arch
        raise UsageError(f"{model}: a model of arch {arch} has no attention; leave out --attention and --gold")


def translate_test_set(
    translator: "Translator", test_set: TestSet, options: RunOptions
) -> "tuple[list[Translation], float]":
    """Translate the test set; return the translations and the seconds it took."""
    started = perf_counter()
    with progress(len(test_set.sources)) as advance:
        translations = list(translator.translate_lines(test_set.sources, options.search, progress=advance))
    return translations, perf_counter() - started


def count_terms(
    translations: "Sequence[Translation]", references: Sequence[str], glossary: "Glossary"
) -> dict[str, int]:
    """Count the terms of the sources, how they got into the translations, and how many are in the references."""
    from softgaze.data.tokenizer import normalise
    from softgaze.glossary import find_forms

    matches = [glossary.find(normalise(translation.source)) for translation in translations]
    in_references = [find_forms(normalise(text), own) for text, own in zip(references, matches, strict=True)]
    ways = [term.by for translation in translations for term in translation.terms]
    return {
        "total": sum(map(len, matches)),
        "sentences": sum(map(bool, matches)),
        "placed_by_search": ways.count("search"),
        "inserted_by_alignment": ways.count("alignment"),
        "in_references": sum(span is not None for spans in in_references for span in spans),
    }


def system_of_model(
    name: str, translator: "Translator", translations: "list[Translation]", test_set: TestSet, options: RunOptions
) -> "System":
    """Return the n-gram counts of a model's translations, and its attention metrics if requested."""
    from softgaze.evaluation.attention_metrics import measure_attention
    from softgaze.evaluation.report import System
    from softgaze.evaluation.significance import count_ngrams

    attention = None
    if options.with_attention:
        with progress(len(translations)) as advance:
            attention = measure_attention(translator, translations, test_set.references, test_set.gold, advance)
    confidence = None
    if options.with_confidence:
        from softgaze.evaluation.confidence_metrics import measure_confidence

        confidence = measure_confidence(translator, translations, test_set.references)
    texts = [translation.text for translation in translations]
    stats = count_ngrams(texts, test_set.references, language=opt.direction(translator)[1])
    return System(name, stats, attention, confidence)


def calibrated(
    translator: "Translator", translations: "Sequence[Translation]", references: Sequence[str]
) -> "Translator":
    """Fit the confidence of words on translations, store it in the model, and return the model with it."""
    from softgaze.bundle import add_facts
    from softgaze.explain.confidence import MIN_WORDS, calibrate

    path, fitted = translator.bundle.path, calibrate(translator, translations, references)
    if fitted is None:
        raise UsageError(f"too little text to calibrate: it takes {MIN_WORDS} output words, some right and some wrong")
    add_facts(path, fitted.to_facts())
    warn(f"{path}: confidence is now fitted on {fitted.words:,} words; measure it on other text")
    translator.bundle.facts.update(fitted.to_facts())
    return translator


def show_evaluation(
    score_lines: Sequence[str], record: dict[str, Any], evaluation: "Evaluation | None", as_json: bool
) -> None:
    """Print the scores and speed, then the tables of the evaluation with their signatures."""
    from softgaze.evaluation.report import evaluation_tables
    from softgaze.evaluation.significance import TITLES

    if as_json:
        print_json(record)
        return
    speed = record["speed"]
    rates = f"{speed['sentences_per_second']:,.1f} sentences/s, {speed['tokens_per_second']:,.0f} tokens/s"
    setting = f"{record['engine']}, {record['device']}, beam size {record['beam_size']}"
    term_lines = []
    if terms := record.get("terms"):
        numbers = f"{terms['total']:,} terms in {terms['sentences']:,} sentences"
        inserted, agreeing = terms["inserted_by_alignment"], terms["in_references"]
        term_lines = [
            f"glossary      {numbers}, {inserted:,} inserted after the search; {agreeing:,} in the references"
        ]
    typer.echo("\n".join([*score_lines, *term_lines, f"speed         {rates} ({setting})"]))
    if evaluation is not None:
        signatures = [f"{TITLES[name]:<5} {signature}" for name, signature in evaluation.signatures.items()]
        tables = [table.text() for table in evaluation_tables(evaluation)]
        typer.echo("\n" + "\n\n".join([*tables, "\n".join(signatures)]))


def write_report(path: Path, evaluation: "Evaluation", record: dict[str, Any]) -> None:
    """Write a report in the format of the file's suffix."""
    from softgaze.atomic_io import write_text
    from softgaze.evaluation.by_length import length_chart
    from softgaze.evaluation.confidence_metrics import reliability_chart
    from softgaze.evaluation.report import evaluation_page

    suffix = path.suffix.lower()
    if suffix == ".json":
        text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    elif suffix == ".svg":
        has_buckets = bool(evaluation.buckets)
        chart = length_chart(evaluation.curves, signatures=evaluation.signatures) if has_buckets else None
        text = (chart or reliability_chart(evaluation.confidences)) + "\n"
    else:
        facts = {
            "model": record["model"],
            "test": " ".join(record["test"]),
            "beam size": str(record["beam_size"]),
            "exact": f"{record['exact']:.2f} %",
            "TER": f"{record['ter']:.2f} {record['signatures']['ter']}",
            "speed": f"{record['speed']['sentences_per_second']:,.1f} sentences/s",
            "engine": f"{record['engine']}, {record['device']}",
        }
        text = evaluation_page(evaluation, facts)
    write_text(path, text)
    report_written(path)


# --- captions


class CaptionedSet(NamedTuple):
    """The readable files of a test set, their generated captions, and the seconds it took."""

    entries: "list[CaptionedFile]"
    captions: "list[Translation]"
    seconds: float


def evaluate_captions(model: Path, files: opt.CaptionFiles, boxes: Path | None, options: RunOptions) -> None:
    """Caption every file of a directory and score the captions against all references."""
    from softgaze.atomic_io import write_text
    from softgaze.caption_metrics import score_captions
    from softgaze.data.captions import read_boxes, read_coco, scan_captions
    from softgaze.evaluation.attention_metrics import region_faithfulness
    from softgaze.evaluation.benchmark import translation_speed

    directory, caption_file = files.directory_and_captions()
    skip = opt.SkipReporter()
    # A box file without a list of images refers to the images of the caption file.
    labels = None if boxes is None else read_boxes(boxes, None if "images" in read_coco(boxes) else caption_file)
    entries = scan_captions(directory, caption_file, skip)
    translator = opt.load_captioner(model, options.device)
    kind = translator.bundle.tokenizers.source.kind
    if kind != ("image" if files.images else "features"):
        raise UsageError(
            f"{model} was trained on {'--images' if kind == 'image' else '--features'} DIR; test it on these"
        )
    test_set = caption_test_set(translator, entries, skip, options.search)
    skip.summarize()
    texts = [caption.text for caption in test_set.captions]
    language = translator.bundle.description.target_language
    scores = score_captions(texts, [entry.captions for entry in test_set.entries], language=language)
    speed = translation_speed(test_set.captions, test_set.seconds)
    has_maps = translator.has_attention
    pointing, regions = (
        score_boxes(translator, test_set, directory, labels) if labels is not None and has_maps else (None, None)
    )
    if options.with_attention and not has_maps:
        raise UsageError(f"{model}: a captioner of pooled features has no attention; leave out --attention")
    erasure, correlation = region_faithfulness(translator, test_set.captions) if options.with_attention else ({}, None)
    if options.output is not None:
        names = [entry.path.relative_to(directory).as_posix() for entry in test_set.entries]
        lines = [f"{name}\t{text}\n" for name, text in zip(names, texts, strict=True)]
        write_text(options.output, "".join(lines))
    beam_size, used_device = options.search.beam_size, str(translator.device)
    if options.as_json:
        facts = {"model": str(model), "folder": str(directory), "captions": str(caption_file), "beam_size": beam_size}
        results = {**scores.to_dict(), "speed": speed, "pointing": pointing and pointing._asdict()}
        results |= {"self_attention": regions._asdict()} if regions else {}
        if erasure:
            maps = {name: each.to_dict() for name, each in erasure.items()}
            results["faithfulness"] = {"rank_correlation": correlation, "maps": maps}
        print_json({**facts, "device": used_device, **results})
        return
    typer.echo("\n".join(scores.lines()))
    if boxes is not None:
        typer.echo(f"{'pointing':<8} {pointing or 'no noun of a caption names an object with a box'}")
    if regions is not None:
        typer.echo(f"{'encoder':<8} {regions}")
    for name, each in erasure.items():
        drops = f"comprehensiveness {each.comprehensiveness:.3f}, sufficiency {each.sufficiency:.3f}"
        typer.echo(f"{'occluded':<8} {name}: {drops} ({each.words:,} words)")
    typer.echo(f"{'speed':<8} {speed['sentences_per_second']:,.1f} files/s ({used_device}, beam size {beam_size})")


def caption_test_set(
    translator: "Translator", entries: "Sequence[CaptionedFile]", skip: opt.SkipReporter, search: "SearchOptions"
) -> CaptionedSet:
    """Caption every readable file, in blocks of bounded size."""
    processor = translator.bundle.tokenizers.source
    readable: list[CaptionedFile] = []
    captions: list[Translation] = []
    started = perf_counter()
    with progress(len(entries), "files") as advance:
        for block in opt.blocks(entries, processor.batch_size):
            names = opt.readable(processor, [str(entry.path) for entry in block], skip)
            readable += [entry for entry in block if str(entry.path) in names]
            captions += translator.translate_lines(names, search, progress=advance)
    if not captions:
        raise DataError(f"none of the {len(entries):,} files with captions could be read")
    return CaptionedSet(readable, captions, perf_counter() - started)


def score_boxes(
    translator: "Translator", test_set: CaptionedSet, directory: Path, labels: "dict[str, tuple[LabelledBox, ...]]"
) -> "tuple[PointingScore | None, RegionScore | None]":
    """Return the attention of nouns on the objects they name, and the self-attention of regions inside objects."""
    from softgaze.evaluation.attention_metrics import (
        label_mentions,
        mean_region_score,
        noun_maps,
        pointing_game,
        region_scores,
    )

    maps, regions = [], []
    processor = translator.bundle.tokenizers.source
    for block in opt.blocks(zip(test_set.entries, test_set.captions, strict=True), processor.batch_size):
        recorded = translator.attentions([caption for _, caption in block])
        for (entry, caption), attention in zip(block, recorded, strict=True):
            own = labels.get(entry.path.relative_to(directory).as_posix(), ())
            photo = processor.photo(str(entry.path)) if own else None
            if attention is not None and photo is not None:
                maps += noun_maps(attention, photo, label_mentions(caption.text, own))
                regions += region_scores(attention, photo, own)
    return pointing_game(maps), mean_region_score(regions)
