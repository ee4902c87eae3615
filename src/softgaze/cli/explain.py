"""`softgaze explain`: where a model looked, as a picture, a page, or text. Knows files and printing, not attention."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from softgaze.gaze import Alignment, Attention
    from softgaze.translator import Translation, Translator

ENDINGS = (".html", ".svg", ".png", ".pdf", ".json")
BEAM = 5
MARGIN = 13  # where the values of a labelled line begin


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="What to translate and explain; - or nothing: each line of stdin."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write a page (.html), picture (.svg .png .pdf) or .json."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Explain this translation instead of the model's own.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="cross, encoder or decoder attention.  [cross]")] = None,
    layer: Annotated[int | None, typer.Option(min=0, help="This layer instead of the measured one, from 0.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="This head of --layer, from 0.  [mean of all]")] = None,
    rows: Annotated[str | None, typer.Option(help="What a row means: predicting or reading its word.")] = None,
    measure: Annotated[str | None, typer.Option(help="weights, norms or rollout.")] = None,
    subwords: Annotated[bool, typer.Option("--subwords", help="Show the pieces the model reads, not words.")] = False,
    gold: Annotated[
        str | None, typer.Option(metavar="LINKS", help='Right links, as "0-0 1p2"; with --corpus a file of them.')
    ] = None,
    gold_base: Annotated[
        int | None, typer.Option(metavar="0|1", help="Whether --gold counts words from 0 or from 1; must be said.")
    ] = None,
    no_what_if: Annotated[
        bool, typer.Option("--no-what-if", help="A page without what would have changed; quicker and smaller.")
    ] = False,
    corpus: Annotated[
        Path | None, typer.Option(metavar="SRC", help="Rank the lines of a file by what seems to go wrong (.gz too).")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(metavar="REF", help="With --corpus: right translations, line by line.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="With --corpus: only the first N lines.  [all]")] = None,
    film: Annotated[
        bool, typer.Option("--film", help="How one sentence was learnt, from a run trained with --film.")
    ] = False,
    beam: Annotated[
        int | None, typer.Option(min=1, help=f"Hypotheses kept at each step; 1 is fastest.  [{BEAM}]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
) -> None:
    """Show where a model looked while it translated, which of it can be trusted, and what it left out.

    softgaze explain runs/m30k "A dog runs."

    softgaze explain runs/m30k "A dog runs." -o look.html

    softgaze explain runs/m30k --corpus test.en --reference test.de -o corpus.html

    softgaze explain runs/m30k --film -o film.html

    Shown is the map that was measured to be this model's best, unless --kind, --layer, --head, --rows or --measure ask
    for another. Honesty says how far the map agrees with what really mattered: how much less likely each word becomes
    when a source word is left out. A page is one file that works without a network.
    """
    from softgaze.cli.corpus import explain_corpus

    single = {"TEXT": text, "--target": target, "--kind": kind, "--layer": layer, "--head": head, "--rows": rows}
    single |= {"--measure": measure, "--subwords": subwords or None, "--no-what-if": no_what_if or None}
    many = {"--reference": reference, "--limit": limit}
    if film:
        others = {"--gold": gold, "--gold-base": gold_base, "--beam": beam, "--json": as_json or None}
        refuse("--film", {**single, **many, **others, "--corpus": corpus})
        explain_film(model, output)
    elif corpus is not None:
        refuse("--corpus", single)
        files = corpus, reference, gold
        explain_corpus(model, *files, gold_base, output, limit, beam=beam or BEAM, device=device, json=as_json)
    else:
        refuse("a single TEXT; add --corpus SRC", many)
        refuse_idle(output, target, no_what_if, beam)
        asked = Asked(output, target, parse_gold(gold, gold_base), changes(kind, layer, head, rows, measure, subwords))
        explain_texts(model, lines_of(text), asked, not no_what_if, as_json, beam=beam or BEAM, device=device)


def refuse(what: str, others: dict[str, Any]) -> None:
    """Options that have no meaning together are a mistake, not a thing to ignore."""
    from softgaze.errors import UsageError

    for name, value in others.items():
        if value is not None:
            raise UsageError(f"{name} has no meaning with {what}")


def refuse_idle(output: Path | None, target: str | None, no_what_if: bool, beam: int | None) -> None:
    """Options that would change nothing of what is asked for."""
    if target is not None:
        refuse("--target, for which nothing is searched", {"--beam": beam})
    if output is None or output.suffix.lower() != ".html":
        refuse(f"{output or 'the screen'}; only a page (-o look.html) asks", {"--no-what-if": no_what_if or None})


# --- what is asked ----------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What to do with each text."""

    output: Path | None
    target: str | None
    gold: "Alignment | None"
    changes: dict[str, Any]  # of the map that was measured


def changes(
    kind: str | None, layer: int | None, head: int | None, rows: str | None, measure: str | None, subwords: bool
) -> dict[str, Any]:
    """The view that is asked for, where it is not the measured one."""
    from softgaze.errors import UsageError
    from softgaze.gaze.view import View

    if head is not None and layer is None:
        raise UsageError(f"--head {head} of which layer? give --layer too")
    if measure == "rollout" and layer is not None:
        raise UsageError("--measure rollout follows the weights through all layers; leave out --layer and --head")
    asked: dict[str, Any] = {"kind": kind, "rows": rows, "measure": measure}
    asked = {name: value for name, value in asked.items() if value is not None}
    if layer is not None or measure == "rollout" or kind not in (None, "cross"):
        asked |= {"layer": layer, "head": head}  # layers and heads of another kind are others
    if subwords:
        asked["unit"] = "subwords"
    View(**asked)  # names that do not exist are refused before a model is loaded
    return asked


def parse_gold(links: str | None, base: int | None) -> "Alignment | None":
    """Right links of one sentence pair, counted from where the user says."""
    from softgaze.cli.align import gold_base_of
    from softgaze.gaze import Alignment

    counted_from = gold_base_of(links, base, "LINKS")
    return None if links is None or counted_from is None else Alignment.parse(links, counted_from)


def lines_of(text: str | None) -> list[str]:
    """The texts to explain: an argument, or the lines of stdin."""
    from softgaze.cli.translate import typed_text
    from softgaze.data.corpus import stream_lines
    from softgaze.errors import UsageError

    if text is not None and text != "-":
        lines = [" ".join(typed_text(text).split())]
    elif text is None and sys.stdin.isatty():
        raise UsageError('what shall be explained? give a TEXT, such as "A dog runs.", or --corpus SRC')
    else:
        lines = list(filter(str.strip, stream_lines(sys.stdin.buffer, Path("stdin"))))
    if not any(map(str.strip, lines)):
        raise UsageError("the text is empty, so there is nothing to look at")
    return lines


def check_output(path: Path | None, texts: int, endings: Sequence[str] = ENDINGS) -> None:
    """What cannot be written is said before a model is loaded."""
    import os

    from softgaze.errors import ResourceError, UsageError

    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file, such as {path / ('look' + endings[0])}")
    if path.suffix.lower() not in endings:
        raise UsageError(f"{path}: what kind of file is this? its name must end in {', '.join(endings)}")
    if texts > 1:
        raise UsageError(f"{path} can hold one text, and {texts} were given; for many: --corpus FILE -o corpus.html")
    if not path.resolve().parent.is_dir():
        raise ResourceError(f"{path}: cannot be written: there is no directory {path.parent}")
    if not os.access(path.resolve().parent, os.W_OK):
        raise ResourceError(f"{path}: cannot be written: the directory {path.parent} is read-only for you")


# --- one text after the other -----------------------------------------------------------------------------------


def explain_texts(
    model: Path, texts: list[str], asked: Asked, what_if: bool, as_json: bool, *, beam: int, device: str
) -> None:
    """Each text as a file, or on the screen."""
    from softgaze.errors import UsageError

    check_output(asked.output, len(texts))
    if asked.target is not None and len(texts) > 1:
        raise UsageError(f"--target is the translation of one text, and {len(texts)} were given")
    translator = looking(model, device)
    what_if = what_if and translator.can_look_elsewhere  # an exported model only says where it looked
    for number, text in enumerate(texts):
        found = translator.translate(text, beam=beam) if asked.target is None else translator.given(text, asked.target)
        attention = view_of(found, asked)
        check_gold(asked.gold, attention)
        if asked.output is not None:
            write(asked.output, found, attention, asked.gold, what_if)
        if as_json or asked.output is None:
            show = as_record if as_json else as_text
            typer.echo("\n" * (number > 0 and not as_json) + show(found, attention, asked))
    if asked.output is not None and not as_json:
        typer.echo(f"wrote {asked.output} ({asked.output.stat().st_size / 1000:,.0f} kB)", err=True)


def looking(model: Path, device: str) -> "Translator":
    """A model that has attention."""
    from softgaze.errors import UsageError
    from softgaze.translator import load

    translator = load(model, device)
    if not translator.aligner().forward.can_look:
        arch = translator.bundle.description.arch
        raise UsageError(f"{model}: a model of arch {arch} has no attention, so there is nothing to show of it")
    return translator


def view_of(found: "Translation", asked: Asked) -> "Attention":
    """The map to show."""
    from softgaze.errors import UsageError

    attention = found.attention
    if attention is None or not found.text:
        raise UsageError(f"nothing was written for {found.source!r}, so nothing was looked at")
    try:
        return attention.seen(**asked.changes) if asked.changes else attention
    except ValueError as error:
        raise UsageError(f"there is no such map: {error}") from error


def check_gold(gold: "Alignment | None", attention: "Attention") -> None:
    """Links beyond the sentence come from another pair, or from the wrong base; one text with itself has none."""
    from softgaze.errors import UsageError
    from softgaze.gaze.alignment import Alignment, check_inside

    if gold is not None and attention.view.kind != "cross":
        raise UsageError(
            f"--gold links source and translation, and --kind {attention.view.kind} shows only one of them"
        )
    sizes = len(attention.recording.source.words), len(attention.recording.target.words)
    check_inside(gold or Alignment(), sizes, "--gold", "is --gold-base right for these links?")


# --- as a file --------------------------------------------------------------------------------------------------


def write(path: Path, found: "Translation", attention: "Attention", gold: "Alignment | None", what_if: bool) -> None:
    """In the form its ending asks for; nothing half-written is left."""
    from softgaze.files import write_text

    ending = path.suffix.lower()
    if ending == ".html":
        write_text(path, html_of(found, attention, gold, what_if))
    elif ending == ".json":
        write_text(path, attention.to_json() + "\n")
    else:
        attention.plot(gold).save(path)


def html_of(found: "Translation", attention: "Attention", gold: "Alignment | None", what_if: bool) -> str:
    """The page, with answers to what would have changed."""
    from softgaze.gaze.answers import answers
    from softgaze.gaze.page import page

    if attention.grid is not None:  # a photo is seen, not asked what if
        return attention.to_html()
    return page(attention, gold=gold, influence=found.influence, answers=answers(found, attention) if what_if else ())


# --- on the screen ----------------------------------------------------------------------------------------------


def as_text(found: "Translation", attention: "Attention", asked: Asked) -> str:
    """Source, translation, heat map, and what they come to; no word of them does anything to a terminal."""
    from softgaze.gaze.lettering import clean
    from softgaze.gaze.plain import plain

    texts = [
        f"{'source':<{MARGIN}}{clean(found.source)}",
        f"{'given' if asked.target else 'translation':<{MARGIN}}{clean(found.text)}",
    ]
    numbers = [labelled(name, clean(value)) for name, value in facts(found, attention, asked.gold).items()]
    return "\n".join([*texts, "", str(attention), "", clean(plain(attention)), "", *numbers])


def labelled(name: str, value: str) -> str:
    """A line with its name before it; what does not fit goes on below it."""
    import shutil
    import textwrap

    width = max(shutil.get_terminal_size().columns - 1, 2 * MARGIN)
    lines = textwrap.wrap(value, width - MARGIN, break_long_words=False, break_on_hyphens=False)
    return f"{name:<{MARGIN}}" + f"\n{'':{MARGIN}}".join(lines)


def facts(found: "Translation", attention: "Attention", gold: "Alignment | None") -> dict[str, str]:
    """How far the map can be trusted, and its numbers, each in words."""
    from softgaze.gaze.corpus import needs
    from softgaze.gaze.honesty import honesty
    from softgaze.gaze.plain import coverage_in_words, entropy_in_words, honesty_in_words, sink_in_words

    told: dict[str, str] = {}
    if attention.view.kind == "cross":
        influence = found.influence_and_end
        told["honesty"] = honesty_in_words(honesty(attention, influence[:-1]))
        told |= unsaid_in_words(attention.recording.source.words, needs(influence))
    told |= {
        "entropy": entropy_in_words(attention),
        "coverage": coverage_in_words(attention),
        "sink": sink_in_words(attention),
    }
    if gold is not None:
        told["gold"] = gold_in_words(attention, gold)
    return told


def unsaid_in_words(words: Sequence[str], needed: Sequence[float]) -> dict[str, str]:
    """Source words that the translation seems to leave out, if there are any."""
    from softgaze.gaze.corpus import unsaid
    from softgaze.gaze.plain import listed

    places = unsaid(needed)
    if not places:
        return {}
    most = -min(needed)
    return {
        "unsaid": f"{listed([words[place] for place in places])} (without, the translation is {most:.1f} nats likelier)"
    }


def gold_in_words(attention: "Attention", gold: "Alignment") -> str:
    """How far the links of the map are right."""
    from softgaze.gaze.alignment import agreement

    counts = agreement([attention.alignment()], [gold])
    return f"error rate {100 * counts.aer:.0f} %: {counts.allowed} of {counts.links} links are right"


def as_record(found: "Translation", attention: "Attention", asked: Asked) -> str:
    """One line of JSON: the numbers of what is shown. All layers and heads are in `-o look.json`."""
    import json
    import math

    from softgaze.gaze.alignment import agreement
    from softgaze.gaze.corpus import needs, unsaid
    from softgaze.gaze.honesty import honesty
    from softgaze.gaze.lettering import escaped
    from softgaze.gaze.plain import plain

    influence, words = found.influence_and_end, attention.recording.source.words
    value = honesty(attention, influence[:-1]) if attention.view.kind == "cross" else math.nan
    record = {
        "source": found.source,
        "text": found.text,
        "score": found.score,
        "given": asked.target is not None,
        "shows": attention.shows,
        "plain": plain(attention),
        "honesty": None if math.isnan(value) else round(value, 4),
        "unsaid": [words[place] for place in unsaid(needs(influence))],
        "sink": round(attention.sink, 4),
        "rows": attention.target,
        "columns": attention.source,
        "weights": attention.weights.round(4).tolist(),
        "entropy": attention.entropy().round(4).tolist(),
        "coverage": attention.coverage().round(4).tolist(),
        "alignment": str(attention.alignment()) if attention.view.kind == "cross" else None,
        "aer": round(agreement([attention.alignment()], [asked.gold]).aer, 4) if asked.gold is not None else None,
    }
    return escaped(json.dumps(record, ensure_ascii=False))


# --- a film -----------------------------------------------------------------------------------------------------


def explain_film(run: Path, output: Path | None) -> None:
    """How the attention of one sentence came to be, as a page; the training may still be going on."""
    from softgaze.errors import UsageError
    from softgaze.files import write_text
    from softgaze.gaze.film_page import page_of_run

    if output is None:
        raise UsageError("a film is watched in a browser; say where it goes: -o film.html")
    check_output(output, 1, (".html",))
    write_text(output, page_of_run(run))
    typer.echo(f"wrote {output} ({output.stat().st_size / 1000:,.0f} kB)", err=True)
