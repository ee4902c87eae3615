"""`softgaze explain`: attention maps of translations as a page, figure, JSON or text."""

import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, choice, flag, option
from softgaze.cli._output import (
    check_output_path,
    count_of,
    interruption,
    json_line,
    progress,
    report_written,
    warn,
)
from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.explain import Alignment, Attention
    from softgaze.explain.corpus_report import CorpusReport, SentenceReport
    from softgaze.search.options import SearchOptions
    from softgaze.translation import Translation
    from softgaze.translator import Translator

MAP, CORPUS = "Attention map", "Corpus report"  # panels of the help
LABEL_WIDTH = 13
ATTRIBUTIONS = ("gradient", "gradient-norm", "contribution", "occlusion")  # measures that are not attention
WITHOUT_ATTENTION = ("gradient", "gradient-norm", "occlusion")  # measures of any model
CORPUS_SUFFIXES = (".html", ".json")
BLOCK_SENTENCES = 128  # sentences whose maps are in memory at once
SELECTION_SENTENCES = 128  # sentences an attention map is selected on if the model comes without one
RANKED_SENTENCES = 10  # of each ranking that are printed


class Request(NamedTuple):
    """The options of translating and showing texts."""

    model: Path
    device: str
    languages: opt.LanguagePair
    search: "SearchOptions"
    output: Path | None
    as_json: bool
    target: str | None = None
    gold: "Alignment | None" = None
    what_if: bool = False
    view: dict[str, Any] | None = None  # fields that differ from the selected map


def explain(
    model: opt.Model,
    text: Annotated[str | None, argument("Text to translate and explain; -: each line of stdin.", "TEXT")] = None,
    output: opt.Figure = None,
    target: Annotated[
        str | None, option("Explain this translation instead of the model's own.", metavar="TEXT")
    ] = None,
    gold: Annotated[
        str | None, option('Gold alignment, such as "0-0 1p2"; with --corpus a file.', metavar="LINKS", panel=opt.GOLD)
    ] = None,
    gold_base: opt.GoldBase = None,
    no_what_if: Annotated[bool, flag("Leave out the what-if results: a smaller page, sooner.", "--no-what-if")] = False,
    attention_history: Annotated[
        bool, flag("Show how one sentence was learnt (train --attention-history).", "--attention-history")
    ] = False,
    as_json: opt.Json = False,
    device: opt.Device = "auto",
    kind: Annotated[opt.AttentionKind | None, choice("Which attention.", default="cross", panel=MAP)] = None,
    layer: Annotated[int | None, option("Layer, from 0.", default="selected", panel=MAP, min=0)] = None,
    head: Annotated[int | None, option("Head of --layer, from 0.", default="mean", panel=MAP, min=0)] = None,
    rows: Annotated[
        opt.RowMeaning | None,
        choice("Step a row shows: predicting or reading its word.", default="selected", panel=MAP),
    ] = None,
    measure: Annotated[
        opt.MapMeasure | None, choice("Values of the map.", of=opt.MapMeasure, default="selected", panel=MAP)
    ] = None,
    subwords: Annotated[bool, flag("Show subwords instead of words.", "--subwords", panel=MAP)] = False,
    corpus: Annotated[
        Path | None, option("Rank the sentences of a file by likely errors.", metavar="SRC", panel=CORPUS)
    ] = None,
    reference: Annotated[Path | None, option("Reference translations of SRC.", metavar="REF", panel=CORPUS)] = None,
    limit: Annotated[int | None, option("Only the first N lines.", default="all", panel=CORPUS, min=1)] = None,
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
    beam_size: opt.BeamSize = None,
) -> None:
    """Show the attention of a translation.

    softgaze explain runs/m30k "A dog runs."
    softgaze explain runs/m30k "A dog runs." -o attention.html
    softgaze explain runs/m30k --corpus test.en -o corpus.html
    softgaze explain runs/m30k --attention-history -o history.html

    Shows the map that measurement selected for this model, unless
    the options of the attention map choose another. Faithfulness is the
    agreement of the map with occlusion: how much less likely each word
    becomes when a source word is removed. A page is one file that works
    offline.
    """
    from softgaze.explain import Alignment

    map_options = {"--kind": kind, "--layer": layer, "--head": head, "--rows": rows, "--measure": measure}
    text_options = {"TEXT": text, "--target": target, **map_options, "--subwords": subwords, "--no-what-if": no_what_if}
    corpus_options = {"--reference": reference, "--limit": limit}
    if attention_history:
        others = {"--gold": gold, "--gold-base": gold_base, "--beam-size": beam_size, "--json": as_json}
        opt.reject_options("with --attention-history", {**text_options, **corpus_options, **others, "--corpus": corpus})
        write_history_page(model, output)
        return
    languages = opt.LanguagePair(source_lang, target_lang)
    request = Request(model, device, languages, opt.search_options(model, beam_size=beam_size), output, as_json)
    if corpus is not None:
        opt.reject_options("with --corpus", text_options)
        check_output_path(output, CORPUS_SUFFIXES)
        lines, total = read_corpus(corpus, reference, Path(gold) if gold is not None else None, gold_base, limit)
        with interruption("nothing was written"):
            explain_corpus(request, corpus, lines, total)
        return
    opt.reject_options("without --corpus SRC", corpus_options)
    if target is not None:
        opt.reject_options("with --target, which needs no search", {"--beam-size": beam_size})
    if output is None or output.suffix.lower() != ".html":
        opt.reject_options("without a page (-o attention.html)", {"--no-what-if": no_what_if})
    if head is not None and layer is None:
        raise UsageError(f"--head {head} needs --layer")
    if measure == "rollout" and layer is not None:
        raise UsageError("--measure rollout combines all layers; leave out --layer and --head")
    if measure in ATTRIBUTIONS:
        opt.reject_options(f"with --measure {measure}", {**map_options, "--measure": None, "--subwords": subwords})
    choices = {"kind": kind, "rows": rows, "measure": measure, "unit": "subwords" if subwords else None}
    view: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if layer is not None or measure == "rollout" or kind not in (None, "cross"):
        view |= {"layer": layer, "head": head}  # the selected layer and head belong to another kind of attention
    first_index = opt.check_gold_base(gold, gold_base, "LINKS")
    links = None if gold is None or first_index is None else Alignment.parse(gold, first_index)
    explain_texts(read_texts(text), request._replace(target=target, gold=links, what_if=not no_what_if, view=view))


# --- one text


def read_texts(text: str | None) -> list[str]:
    """Return the argument, or the non-empty lines of stdin."""
    if text is not None and text != "-":
        texts = [" ".join(opt.check_text(text).split())]
    elif text is None and sys.stdin.isatty():
        raise UsageError('no text: give TEXT, such as "A dog runs.", or --corpus SRC')
    else:
        from softgaze.data.corpus import stream_lines

        texts = list(filter(str.strip, stream_lines(sys.stdin.buffer, Path("stdin"))))
    if not any(map(str.strip, texts)):
        raise UsageError("the text is empty, so there is nothing to explain")
    return texts


def explain_texts(texts: list[str], request: Request) -> None:
    output = request.output
    check_output_path(output)
    if len(texts) > 1 and (output is not None or request.target is not None):
        option = output if output is not None else "--target"
        raise UsageError(f"{option} is for one text, got {len(texts)}; for many: --corpus FILE -o corpus.html")
    # Attention needs torch in any case, so one text is translated by it too.
    needs_attention = (request.view or {}).get("measure") not in WITHOUT_ATTENTION
    translator = opt.load_attentive(
        request.model, request.device, request.languages, engine="torch", needs_attention=needs_attention
    )
    what_if = request.what_if and translator.supports_interventions  # an exported model records attention, no more
    for index, text in enumerate(texts):
        if request.target is None:
            translation = translator.translate(text, request.search)
        else:
            translation = translator.score(text, request.target)
        attention = requested_map(translation, request)
        if output is not None:
            write_map(output, translation, attention, request.gold, what_if)
        if request.as_json:
            typer.echo(explanation_json(translation, attention, request))
        elif output is None:
            typer.echo("\n" * (index > 0) + explanation_text(translation, attention, request))
    if output is not None and not request.as_json:
        report_written(output)


def requested_map(translation: "Translation", request: Request) -> "Attention":
    """Return the map to show; raise if it does not exist or if the gold alignment does not fit it."""
    from softgaze.explain.alignment import Alignment, check_bounds

    view = request.view or {}
    is_page = request.output is not None and request.output.suffix.lower() == ".html"  # has a switch instead
    if not view and not is_page and (measure := translation.explanation.most_faithful_measure):
        view = {"measure": measure}
    measure, scorer = view.get("measure"), translation.explanation.translator.scorer
    if measure in ("norms", "rollout") and not scorer.records_all_maps:
        raise UsageError(
            f"{scorer.name} records the weights of one map, so it has no {measure}; use the model it was made from, or "
            "export it again with --with-weights"
        )
    is_attribution, attention = measure in ATTRIBUTIONS, translation.attention
    if is_attribution and translation.text:
        attention = translation.attribution(view["measure"]).map()
    if attention is None or not translation.text:
        raise UsageError(f"the translation of {translation.source!r} is empty, so it has no attention")
    try:
        if view and not is_attribution:
            attention = attention.with_view(**view)
    except ValueError as error:
        raise UsageError(f"no such attention map: {error}") from error
    if request.gold is not None and attention.view.kind != "cross":
        raise UsageError(f"--gold aligns source and translation; --kind {attention.view.kind} shows only one of them")
    sizes = len(attention.recording.source.words), len(attention.recording.target.words)
    check_bounds(request.gold or Alignment(), sizes, "--gold", "is --gold-base right for these links?")
    return attention


def write_map(
    path: Path, translation: "Translation", attention: "Attention", gold: "Alignment | None", what_if: bool
) -> None:
    """Write the map in the format of the file's suffix."""
    from softgaze.atomic_io import write_text
    from softgaze.explain.render.pages import attention_page

    suffix = path.suffix.lower()
    if suffix == ".json":
        write_text(path, attention.to_json() + "\n")
    elif suffix != ".html":
        attention.plot(gold).save(path)
    elif attention.grid is not None:  # pages of images have no what-ifs
        write_text(path, attention.to_html())
    else:
        results = translation.explanation.counterfactuals(attention) if what_if else ()
        page = attention_page(
            attention,
            gold=gold,
            occlusion=translation.occlusion,
            counterfactuals=results,
            opens_with=translation.explanation.opens_with(attention),
            unsupported=translation.explanation.unsupported,
            omitted=translation.explanation.omitted,
            source_share=translation.explanation.source_share,
        )
        write_text(path, page)


def explanation_text(translation: "Translation", attention: "Attention", request: Request) -> str:
    """Return source, translation, heat map and metrics, free of terminal control characters."""
    from softgaze.explain.render.terminal import summarize
    from softgaze.explain.render.text_layout import clean

    label = "given" if request.target else "translation"
    texts = [
        f"{'source':<{LABEL_WIDTH}}{clean(translation.source)}",
        f"{label:<{LABEL_WIDTH}}{clean(translation.text)}",
    ]
    width = max(shutil.get_terminal_size().columns - 1, 2 * LABEL_WIDTH) - LABEL_WIDTH
    metrics = []
    for name, value in metric_texts(translation, attention, request.gold).items():
        lines = textwrap.wrap(clean(value), width, break_long_words=False, break_on_hyphens=False)
        metrics.append(f"{name:<{LABEL_WIDTH}}" + f"\n{'':{LABEL_WIDTH}}".join(lines))
    return "\n".join([*texts, "", str(attention), "", clean(summarize(attention)), "", *metrics])


def metric_texts(translation: "Translation", attention: "Attention", gold: "Alignment | None") -> dict[str, str]:
    from softgaze.explain.alignment import count_corpus
    from softgaze.explain.corpus_report import source_needs
    from softgaze.explain.occlusion import faithfulness
    from softgaze.explain.render.terminal import (
        describe_coverage,
        describe_entropy,
        describe_faithfulness,
        describe_sink,
        describe_source_share,
        list_words,
    )

    texts: dict[str, str] = {}
    if attention.view.kind == "cross":
        occlusion = translation.explanation.occlusion_with_eos
        texts["faithfulness"] = describe_faithfulness(faithfulness(attention, occlusion[:-1]))
        need, words = source_needs(occlusion), attention.recording.source.words
        if omitted := translation.explanation.omitted:
            names = list_words([words[position] for position in omitted])
            likelier = -min(need[position] for position in omitted)
            texts["omitted"] = f"{names} (without, the translation is {likelier:.1f} nats likelier)"
        output = attention.recording.target.words
        if unsupported := translation.explanation.unsupported:
            texts["unsupported"] = list_words([output[position] for position in unsupported])
        if (share := translation.explanation.source_share) is not None:
            texts["from source"] = describe_source_share(share.tolist(), output)
    if attention.reliability is not None:
        texts["reliability"] = attention.reliability_text
    texts["entropy"] = describe_entropy(attention)
    texts["coverage"] = describe_coverage(attention)
    texts["sink"] = describe_sink(attention)
    if gold is not None:
        counts = count_corpus([attention.alignment()], [gold])
        texts["gold"] = f"AER {counts.aer:.0%}: {counts.allowed} of {counts.links} links are correct"
    return texts


def explanation_json(translation: "Translation", attention: "Attention", request: Request) -> str:
    """Return the numbers of the map as a JSON line; all layers and heads are in `-o attention.json`."""
    from softgaze.explain.alignment import count_corpus
    from softgaze.explain.occlusion import faithfulness
    from softgaze.explain.render.terminal import summarize

    explanation, words = translation.explanation, attention.recording.source.words
    output, is_cross = attention.recording.target.words, attention.view.kind == "cross"
    agreement = faithfulness(attention, explanation.occlusion) if is_cross else math.nan
    aer = None if request.gold is None else round(count_corpus([attention.alignment()], [request.gold]).aer, 4)
    return json_line(
        {
            "source": translation.source,
            "text": translation.text,
            "score": translation.score,
            "given": request.target is not None,
            "shows": attention.description,
            "plain": summarize(attention),
            "reliability": attention.reliability and attention.reliability.to_dict(),
            "faithfulness": None if math.isnan(agreement) else round(agreement, 4),
            "omitted": [words[position] for position in explanation.omitted],
            "support": explanation.support.round(4).tolist(),
            "unsupported": [output[position] for position in explanation.unsupported],
            "source_share": None if explanation.source_share is None else explanation.source_share.round(4).tolist(),
            "sink": round(attention.sink, 4),
            "rows": attention.target,
            "columns": attention.source,
            "weights": attention.weights.round(4).tolist(),
            "entropy": attention.entropy().round(4).tolist(),
            "coverage": attention.coverage().round(4).tolist(),
            "alignment": str(attention.alignment()) if is_cross else None,
            "aer": aer,
        }
    )


def write_history_page(run: Path, output: Path | None) -> None:
    """Write a page of how the attention of one sentence developed; the training may still be running."""
    from softgaze.atomic_io import write_text
    from softgaze.explain.render.pages import run_history_page

    if output is None:
        raise UsageError("--attention-history needs a page: -o history.html")
    check_output_path(output, (".html",))
    write_text(output, run_history_page(run))
    report_written(output)


# --- a corpus


class CorpusLine(NamedTuple):
    """A source sentence with its reference and gold alignment, if given."""

    source: str
    reference: str | None
    gold: "Alignment | None"


def read_corpus(
    corpus: Path, reference: Path | None, gold: Path | None, base: opt.IndexBase | None, limit: int | None
) -> tuple[Iterator[CorpusLine], int | None]:
    """Return the lines of the files in parallel, and their number if it is known."""
    from softgaze.data.corpus import count_lines, read_lines, read_pairs

    if gold is not None and reference is None:
        raise UsageError("--gold aligns the words of reference translations; give them with --reference REF")
    total = count_lines(corpus) if corpus.is_file() else None
    alignments = opt.read_gold(gold, base, corpus, total)
    if reference:
        pairs: Iterator[Any] = opt.check_gold_links(read_pairs(corpus, reference), alignments, gold)
    else:
        pairs = ((line, None) for line in read_lines(corpus))
    links = iter(alignments) if alignments is not None else None
    lines = (CorpusLine(source, target, next(links) if links else None) for source, target in pairs)
    first = list(islice(lines, 1))  # an unreadable file is reported before a model is loaded
    return islice(chain(first, lines), limit), min(total, limit) if total and limit else total


def explain_corpus(request: Request, corpus: Path, lines: Iterator[CorpusLine], total: int | None) -> None:
    """Rank the sentences of a corpus by omitted or repeated words and by doubtful attention."""
    from softgaze.explain.corpus_report import report_corpus

    search = request.search
    translator = opt.load_attentive(request.model, request.device, request.languages, engine="auto")
    first = list(islice(lines, SELECTION_SENTENCES))

    def selection_pairs() -> Iterator[tuple[str, str]]:  # translates only if a pair is requested
        if all(line.reference is not None for line in first):
            yield from ((line.source, line.reference or "") for line in first)
        else:
            translations = translator.translate([line.source for line in first], search)
            yield from ((translation.source, translation.text) for translation in translations)

    selected = translator.with_selected_map(selection_pairs())
    with progress(total) as advance:

        def analyses() -> "Iterator[SentenceReport | None]":
            start = 1
            for block in opt.blocks(chain(first, lines), BLOCK_SENTENCES):
                yield from analyze_block(selected, block, start, search)
                start += len(block)
                advance(len(block))

        result = report_corpus(analyses())
    example = selected.translate("a").attention
    shows = example.words().map_description if example is not None else ""
    facts = {"model": str(request.model), "corpus": str(corpus), "beam_size": search.beam_size, "shows": shows}
    show_corpus(result, facts, request.output, request.as_json)


def analyze_block(
    translator: "Translator", block: list[CorpusLine], start: int, search: "SearchOptions"
) -> "Iterator[SentenceReport | None]":
    """Yield the numbers of each line; None for a line without attention."""
    from softgaze.explain.confidence import word_features
    from softgaze.explain.corpus_report import report_sentence
    from softgaze.explain.explanation import linked_words
    from softgaze.metrics import sentence_scores

    language = translator.bundle.description.target_language
    translations = translator.translate([line.source for line in block], search)
    maps, occlusions = translator.attentions(translations), translator.occlusions(translations)
    log_probs = [features[:, 0] for _, features in word_features(translator, translations)]
    linked = linked_words(translator, translations, translator.statistical_aligner)
    alignments: list[Alignment] = []
    if block[0].gold is not None:
        alignments = translator.aligner().align([(line.source, line.reference or "") for line in block])
    for index, (line, translation) in enumerate(zip(block, translations, strict=True)):
        attention = maps[index]
        if attention is None:
            yield None
            continue
        yield report_sentence(
            start + index,
            attention,
            occlusions[index],
            reference=line.reference,
            log_probs=log_probs[index],
            scores=sentence_scores(translation.text, line.reference, language=language) if line.reference else None,
            links=(alignments[index], line.gold) if line.gold is not None else None,
            linked=linked[index],
        )


def show_corpus(result: "CorpusReport", facts: dict[str, Any], output: Path | None, as_json: bool) -> None:
    """Print the corpus report, or write it as a page or JSON."""
    from softgaze.atomic_io import write_text
    from softgaze.explain.render.pages import corpus_page

    if output is None and not as_json:
        typer.echo(corpus_text(result, facts))
        return
    line = json_line({**facts, **result.summary(), "reports": [entry.to_dict() for entry in result.kept()]})
    if as_json:
        typer.echo(line)
    if output is not None:
        write_text(output, line + "\n" if output.suffix.lower() == ".json" else corpus_page(result, facts))
        warn(corpus_headline(result))
        report_written(output)


def corpus_headline(result: "CorpusReport") -> str:
    summary = result.summary()
    parts = [count_of(summary["sentences"], "sentence"), count_of(summary["words"]["all"], "word")]
    parts += [f"{count:,} {name}" for name, count in summary["words"].items() if name != "all"]
    parts += [f"AER {summary['aer']:.1%}"] if summary["aer"] is not None else []
    parts += [f"{count_of(summary['empty'], 'line')} without attention"] if summary["empty"] else []
    return ", ".join(parts)


def corpus_text(result: "CorpusReport", facts: dict[str, Any]) -> str:
    """Return the first sentences of each ranking, with the words it is about in brackets."""
    from softgaze.explain.corpus_report import RANKINGS
    from softgaze.explain.render.text_layout import clean

    def bracketed(words: Sequence[str], positions: Sequence[int]) -> str:
        return clean(" ".join(f"[{word}]" if index in positions else word for index, word in enumerate(words)))

    parts = [corpus_headline(result), f"map: {facts['shows']}"]
    for name, ranking in RANKINGS.items():
        worst, count = result.worst(name, RANKED_SENTENCES), result.summary()["rankings"][name]
        lines = [f"{ranking.title} ({count:,} of {result.sentences:,} sentences): {ranking.explained}"]
        for entry in worst:
            in_source = {"uncovered": entry.uncovered, "omitted": entry.omitted}.get(name, ())
            in_output = {"unsupported": entry.unsupported, "repetition": entry.repeated, "chrf": entry.different}.get(
                name, ()
            )
            lines.append(f"  {entry.line:>6,}  {ranked_value(name, entry):>9}  {bracketed(entry.source, in_source)}")
            lines.append(f"  {'':>6}  {'':>9}  → {bracketed(entry.output, in_output)}")
        parts += ["\n".join(lines)] if worst else []
    return "\n\n".join(parts)


def ranked_value(ranking: str, entry: "SentenceReport") -> str:
    """Return the number by which the sentence is ranked, with its unit."""
    return {
        "uncovered": count_of(len(entry.uncovered), "word"),
        "omitted": f"{entry.misfit:.1f} nats",
        "unsupported": count_of(len(entry.unsupported), "word"),
        "repetition": f"{entry.repetition:.0%}",
        "faithfulness": f"{entry.faithfulness:.2f}" if entry.faithfulness is not None else "",
        "reliability": f"{entry.reliability:.0%}" if entry.reliability is not None else "",
        "aer": f"{entry.aer:.0%}" if entry.aer is not None else "",
        "chrf": f"{entry.scores.get('chrf', 0):.0f}",
    }[ranking]
