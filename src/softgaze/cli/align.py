"""`softgaze align`: sentence pairs in, links out. Knows files and printing; the linking is `softgaze.gaze`'s."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from softgaze.data.corpus import Pair
    from softgaze.gaze import Alignment
    from softgaze.gaze.aligner import Aligner
    from softgaze.gaze.alignment import Counts
    from softgaze.gaze.choice import Looker

SAMPLE, BLOCK = 256, 512  # pairs the map is chosen on if it must be, and pairs in memory at once


def align(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Sentences in the model's source language (.gz too).")],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Their translations, line by line.")],
    reverse: Annotated[
        Path | None, typer.Option(metavar="MODEL2", help="A model of the other direction; both have a say.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="With --reverse: intersection, union, grow-diag, grow-diag-final or grow-diag-final-and."
            "  [grow-diag-final]"
        ),
    ] = None,
    keep_maps: Annotated[
        bool, typer.Option("--keep-maps", help="With --reverse: both models keep the maps that agreed best.")
    ] = False,
    threshold: Annotated[
        float | None, typer.Option(help="Link all words with this share of a look, not just the first.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE (.gz too) when all is done.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Right links (1-2 sure, 1p2 possible): print the error rate.")
    ] = None,
    gold_base: Annotated[
        int | None, typer.Option(metavar="0|1", help="Whether --gold counts words from 0 or from 1; must be said.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each line, with words and links.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
) -> None:
    """Say which word means which: N sentence pairs in are N lines out, in Pharaoh format (source-target, from 0).

    softgaze align runs/m30k test.en test.de

    softgaze align runs/en-fr test.en test.fr --reverse runs/fr-en --gold gold.talp --gold-base 1

    Words are what stands between spaces. The links are where the model looks while it writes the given translation,
    on the map that was measured to be its best. The error rate (AER) goes to stderr, or to stdout with --output.
    """
    from softgaze.cli.translate import progress, writer
    from softgaze.data.corpus import count_lines, read_pairs
    from softgaze.errors import DataError

    right = read_gold(gold, gold_base)
    check_method(method, reverse, threshold, keep_maps)
    empty = all(path.is_file() and not path.stat().st_size for path in (source, target))
    pairs = iter(()) if empty else within(read_pairs(source, target), right, gold)
    total = count_lines(source) if source.is_file() and not empty else None  # a pipe can be read only once
    if right is not None and total not in (None, len(right)):
        raise DataError(f"{source} has {total:,} lines and {gold} {len(right):,}; gold needs a line for each sentence")
    first = list(islice(pairs, SAMPLE))  # files that cannot be read are named before a model is loaded
    aligner = make_aligner(model, reverse, method, threshold, device).measured(first)
    if keep_maps and reverse is not None:
        remember({model: aligner.forward, reverse: aligner.reverse})
    found: list[Alignment] = []
    with writer(output) as file, progress(total, shown=output) as advance:
        for block in blocks(chain(first, pairs)):
            links = aligner.align(block)
            shown = (json_line(*pair, each) if as_json else str(each) for pair, each in zip(block, links, strict=True))
            file.write("".join(f"{line}\n" for line in shown).encode())
            found += links if right is not None else []
            if advance:
                advance(len(block))
        file.flush()
    if right is not None:
        report(found, right, aligner, to_stdout=output is not None, as_json=as_json)


def read_gold(path: Path | None, base: int | None) -> "list[Alignment] | None":
    """Right links, counted from where the user says; the number is never guessed."""
    from softgaze.data.corpus import read_lines
    from softgaze.errors import DataError
    from softgaze.gaze.alignment import read_all

    counted_from = gold_base_of(path, base, "FILE")
    if path is None or counted_from is None:
        return None
    try:
        return read_all(list(read_lines(path)), counted_from, "gold")
    except DataError as error:
        raise DataError(f"{path}: {error}" if str(path) not in str(error) else str(error)) from None


def gold_base_of(gold: object, base: int | None, metavar: str) -> int | None:
    """Where the words of gold are counted from; gold and base are given together, or neither."""
    from softgaze.errors import UsageError

    if gold is None and base is not None:
        raise UsageError(f"--gold-base says how --gold counts words; give --gold {metavar} too")
    if gold is not None and base is None:
        raise UsageError("--gold needs --gold-base 0 or 1: whether its words are counted from 0 or from 1")
    return base


def within(pairs: "Iterable[Pair]", right: "list[Alignment] | None", path: Path | None) -> "Iterator[Pair]":
    """The pairs as they are read, each with the words that its gold links name: a wrong base is found in time."""
    from softgaze.gaze.alignment import check_inside
    from softgaze.gaze.words import most_words

    for number, pair in enumerate(pairs):
        if right is not None and number < len(right):
            sizes = most_words(pair.source), most_words(pair.target)
            check_inside(right[number], sizes, f"{path}, line {number + 1:,}", "is --gold-base right for this file?")
        yield pair


def check_method(method: str | None, reverse: Path | None, threshold: float | None, keep_maps: bool) -> None:
    """What cannot work is said before a model is loaded."""
    from softgaze.errors import UsageError, pick
    from softgaze.gaze.alignment import METHODS

    if method is not None:
        pick("method", method, METHODS)
        if reverse is None:
            raise UsageError("--method joins the links of two models; give the other one with --reverse MODEL2")
    if keep_maps and reverse is None:
        raise UsageError(
            "--keep-maps keeps the maps on which two models agree; give the other one with --reverse MODEL2"
        )
    if threshold is not None and not 0 < threshold <= 1:
        raise UsageError(f"--threshold is a share above 0 and at most 1, not {threshold}")


def make_aligner(
    model: Path, reverse: Path | None, method: str | None, threshold: float | None, device: str
) -> "Aligner":
    """Both models, of opposite directions and with attention."""
    from softgaze.errors import UsageError
    from softgaze.gaze.aligner import METHOD
    from softgaze.translator import load

    forward, backward = (load(path, device, full=False) if path else None for path in (model, reverse))
    assert forward is not None
    if backward:
        check_directions(forward.bundle.description, backward.bundle.description)
    aligner = forward.aligner(backward, method=method or METHOD, threshold=threshold)
    for path, each in ((model, aligner.forward), (reverse, aligner.reverse)):
        if each and not each.can_look:
            raise UsageError(f"{path}: this model has no attention, so it cannot say which word means which")
    return aligner


def remember(measured: "dict[Path, Looker | None]") -> None:
    """Write the maps of some models into their bundles, for every figure to come."""
    from softgaze.bundle import ATTENTION, add_facts

    for path, looker in measured.items():
        if looker is not None and looker.choice is not None:
            add_facts(path, {ATTENTION: looker.choice.to_dict()})


def check_directions(forward: Any, backward: Any) -> None:
    """The reverse model must translate back; swapped, every link is wrong and nothing else is seen."""
    from softgaze.errors import UsageError

    one = forward.source_language, forward.target_language
    other = backward.target_language, backward.source_language
    if one != other and all((*one, *other)):
        raise UsageError(
            f"--reverse must translate {one[1]} → {one[0]}, and this model translates {other[1]} → {other[0]}"
        )


def blocks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Pairs in blocks of bounded size."""
    stream = iter(pairs)
    while block := list(islice(stream, BLOCK)):
        yield block


def json_line(source: str, target: str, links: "Alignment") -> str:
    """One pair with its links."""
    import json

    from softgaze.cli.translate import ESCAPES

    record = {"source": source, "target": target, "alignment": str(links), "links": [list(link) for link in links]}
    return json.dumps(record, ensure_ascii=False).translate(ESCAPES)


def report(
    found: "list[Alignment]", right: "list[Alignment]", aligner: "Aligner", *, to_stdout: bool, as_json: bool
) -> None:
    """The error rate, and which maps it belongs to."""
    import json

    from softgaze.gaze.alignment import agreement

    counts = agreement(found, right)
    lookers = {"map": aligner.forward, "reverse map": aligner.reverse}
    chosen = {name: (each, each.choice) for name, each in lookers.items() if each and each.choice}
    if as_json:
        maps = [choice.to_dict() for _, choice in chosen.values()]
        text = json.dumps(as_record(counts, len(found), maps), ensure_ascii=False)
    else:
        maps_in_words = [f"{name}: {looker.describe()}" for name, (looker, _) in chosen.items()]
        text = "\n".join([as_text(counts, len(found)), *maps_in_words])
    typer.echo(text, err=not to_stdout)


def as_record(counts: "Counts", sentences: int, maps: list[dict[str, Any]]) -> dict[str, Any]:
    """For JSON; rates from 0 to 1."""
    rates = {name: round(getattr(counts, name), 6) for name in ("aer", "precision", "recall")}
    return {**rates, **counts._asdict(), "sentences": sentences, "maps": maps}


def as_text(counts: "Counts", sentences: int) -> str:
    """For people; in per cent."""
    return (
        f"AER {100 * counts.aer:.1f} %  precision {100 * counts.precision:.1f} %  recall {100 * counts.recall:.1f} %  "
        f"({counts.links:,} links, {counts.sure:,} sure ones in the gold, {sentences:,} sentences)"
    )
