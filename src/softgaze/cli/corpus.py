"""`softgaze explain --corpus`: a file in, its worst sentences out. Knows files and printing, not what is bad."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from softgaze.gaze import Alignment
    from softgaze.gaze.corpus import Look, Survey
    from softgaze.translator import Translator

ENDINGS = (".html", ".json")
BLOCK = 128  # sentences whose maps are in memory at once
SAMPLE = 128  # lines among which a map is chosen for all, where the model comes without a choice
SHOWN = 10  # of each ranking on the screen


class Line(NamedTuple):
    """What the files say about one sentence."""

    source: str
    reference: str | None
    gold: "Alignment | None"


def explain_corpus(
    model: Path,
    corpus: Path,
    reference: Path | None,
    gold: str | None,
    gold_base: int | None,
    output: Path | None,
    limit: int | None,
    *,
    beam: int,
    device: str,
    json: bool,
) -> None:
    """Translate a corpus and show where words seem to be dropped or repeated, or the map to be wrong."""
    from softgaze.cli.explain import check_output, looking
    from softgaze.cli.translate import progress
    from softgaze.gaze.corpus import survey

    check_output(output, 1, ENDINGS)
    lines, total = read(corpus, reference, gold, gold_base, limit)
    first = list(islice(lines, SAMPLE))
    translator = looking(model, device)
    translator = translator.measured(pairs_of(translator, first, beam))
    with progress(total) as advance:
        found = survey(all_looks(translator, chained(first, lines), beam, advance))
    facts = {"model": str(model), "corpus": str(corpus), "beam": beam, "shows": shows(translator)}
    show(found, facts, output, json)


# --- in ---------------------------------------------------------------------------------------------------------


def read(
    corpus: Path, reference: Path | None, gold: str | None, base: int | None, limit: int | None
) -> tuple[Iterator[Line], int | None]:
    """The lines of the files side by side, and how many there will be if that is known."""
    from softgaze.cli.align import read_gold, within
    from softgaze.data.corpus import count_lines, read_lines, read_pairs
    from softgaze.errors import DataError, UsageError

    path = Path(gold) if gold is not None else None
    right = read_gold(path, base)
    if right is not None and reference is None:
        raise UsageError("--gold links the words of given translations; give them with --reference REF")
    total = count_lines(corpus) if corpus.is_file() else None
    if right is not None and total not in (None, len(right)):
        raise DataError(f"{corpus} has {total:,} lines and {gold} {len(right):,}; gold needs a line for each sentence")
    pairs = (
        within(read_pairs(corpus, reference), right, path)
        if reference
        else ((line, None) for line in read_lines(corpus))
    )
    links = iter(right) if right is not None else None
    lines = (Line(source, wanted, next(links) if links else None) for source, wanted in pairs)
    first = list(islice(lines, 1))  # a file that cannot be read is named before a model is loaded
    return islice(chained(first, lines), limit), min(total, limit) if total and limit else total


def chained(first: Iterable[Line], rest: Iterable[Line]) -> Iterator[Line]:
    """One after the other."""
    yield from first
    yield from rest


def blocks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Lines in blocks of bounded size."""
    while block := list(islice(lines, BLOCK)):
        yield block


# --- looking ----------------------------------------------------------------------------------------------------


def pairs_of(translator: "Translator", lines: list[Line], beam: int) -> Iterator[tuple[str, str]]:
    """Sentences with their references or else their translations; nothing is translated before the first is wanted."""
    if all(line.reference is not None for line in lines):
        yield from ((line.source, line.reference or "") for line in lines)
    else:
        found = translator.translate([line.source for line in lines], beam=beam)
        yield from ((each.source, each.text) for each in found)


def all_looks(
    translator: "Translator", lines: Iterator[Line], beam: int, advance: Callable[[int], None] | None
) -> Iterator["Look | None"]:
    """The numbers of each line, block by block."""
    for number, block in enumerate(blocks(lines)):
        yield from looks(translator, block, 1 + number * BLOCK, beam)
        if advance:
            advance(len(block))


def looks(translator: "Translator", block: list[Line], first: int, beam: int) -> Iterator["Look | None"]:
    """The numbers of each line; None where there is nothing to look at."""
    from softgaze.gaze.corpus import look
    from softgaze.metrics import sentence_scores

    language = translator.bundle.description.target_language
    found = translator.translate([line.source for line in block], beam=beam)
    maps, mattered = translator.attentions(found), translator.influences(found)
    links = links_of(translator, block)
    for number, (line, each, attention, influence) in enumerate(zip(block, found, maps, mattered, strict=True)):
        yield (
            None
            if attention is None
            else look(
                first + number,
                attention,
                influence,
                reference=line.reference,
                scores=sentence_scores(each.text, line.reference, language=language) if line.reference else None,
                links=(links[number], line.gold) if line.gold is not None else None,
            )
        )


def links_of(translator: "Translator", block: list[Line]) -> "list[Alignment]":
    """Of source and reference, where there is gold to compare with."""
    if not block or block[0].gold is None:
        return []
    return translator.aligner().align([(line.source, line.reference or "") for line in block])


def shows(translator: "Translator") -> str:
    """Which map was looked at."""
    found = translator.translate("a").attention
    return found.words().shows if found is not None else ""


# --- out --------------------------------------------------------------------------------------------------------


def show(survey: "Survey", facts: dict[str, Any], output: Path | None, as_json: bool) -> None:
    """As a page, as JSON, or on the screen."""
    import json

    from softgaze.files import write_text
    from softgaze.gaze.lettering import escaped

    if output is None and not as_json:
        typer.echo(as_text(survey, facts))
        return
    record = {**facts, **survey.summary(), "looks": [each.to_dict() for each in survey.kept()]}
    line = escaped(json.dumps(record, ensure_ascii=False))
    if as_json:
        typer.echo(line)
    if output is None:
        return
    if output.suffix.lower() == ".json":
        write_text(output, line + "\n")
    else:
        from softgaze.gaze.corpus_page import corpus_page

        write_text(output, corpus_page(survey, facts))
    typer.echo(f"{headline(survey)}\nwrote {output} ({output.stat().st_size / 1000:,.0f} kB)", err=True)


def headline(survey: "Survey") -> str:
    """The corpus in one line."""
    told = survey.summary()
    words = [f"{count:,} {name}" for name, count in told["words"].items() if name != "all"]
    parts = [plural(told["sentences"], "sentence"), plural(told["words"]["all"], "word"), *words]
    parts += [f"alignment error rate {100 * told['aer']:.1f} %"] if told["aer"] is not None else []
    parts += [f"{plural(told['empty'], 'line')} had nothing to look at"] if told["empty"] else []
    return ", ".join(parts)


def as_text(survey: "Survey", facts: dict[str, Any]) -> str:
    """The worst of each ranking."""
    from softgaze.gaze.corpus import RANKINGS

    parts = [headline(survey), f"map: {facts['shows']}"]
    for name, ranking in RANKINGS.items():
        worst, count = survey.worst(name, SHOWN), survey.summary()["rankings"][name]
        if worst:
            title = f"{ranking.title} ({count:,} of {survey.sentences:,} sentences): {ranking.explained}"
            parts.append("\n".join([title, *(line for each in worst for line in entry(name, each))]))
    return "\n\n".join(parts)


def entry(name: str, each: "Look") -> list[str]:
    """One sentence in a ranking; the words it is about stand in brackets, and none does anything to a terminal."""
    from softgaze.gaze.lettering import clean

    value = {
        "uncovered": plural(len(each.uncovered), "word"),
        "unsaid": f"{each.misfit:.1f} nats",
        "repetition": f"{100 * each.repetition:.0f} %",
        "honesty": f"{each.honesty:.2f}" if each.honesty is not None else "",
        "aer": f"{100 * each.aer:.0f} %" if each.aer is not None else "",
        "chrf": f"{each.scores.get('chrf', 0):.0f}",
    }[name]
    marked = {
        "uncovered": (bracketed(each.source, each.uncovered), " ".join(each.output)),
        "unsaid": (bracketed(each.source, each.unsaid), " ".join(each.output)),
        "repetition": (" ".join(each.source), bracketed(each.output, each.repeated)),
        "chrf": (" ".join(each.source), bracketed(each.output, each.different)),
    }
    source, output = marked.get(name, (" ".join(each.source), " ".join(each.output)))
    return [f"  {each.line:>6,}  {value:>9}  {clean(source)}", f"  {'':>6}  {'':>9}  → {clean(output)}"]


def plural(count: int, noun: str) -> str:
    """1 word, 2 words."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def bracketed(words: tuple[str, ...], places: tuple[int, ...]) -> str:
    """Words, those at `places` in brackets."""
    return " ".join(f"[{word}]" if place in places else word for place, word in enumerate(words))
