"""`softgaze align`: word alignments of sentence pairs."""

from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, choice, flag, option
from softgaze.cli._output import json_line, open_output, progress
from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.explain import Alignment
    from softgaze.explain.map_selection import Aligner

SELECTION_PAIRS = 256  # pairs an attention map is selected on if the model comes without one
BLOCK_PAIRS = 512  # pairs in memory at once


def align(
    model: opt.Model,
    source: Annotated[Path, argument("Source sentences, one per line (.gz too).", "SRC")],
    target: Annotated[Path, argument("Their translations, one per line.", "TGT")],
    reverse: Annotated[
        Path | None, option("Model of the other direction; combine both alignments.", metavar="MODEL")
    ] = None,
    method: Annotated[
        opt.Symmetrization | None, choice("How --reverse is combined.", default="grow-diag-final")
    ] = None,
    save_maps: Annotated[
        bool, flag("Store in both models the attention maps that agreed best.", "--save-maps")
    ] = False,
    threshold: Annotated[
        float | None, option("Link every word with attention ≥ X, not only the highest (0 < X ≤ 1).", metavar="X")
    ] = None,
    gold: opt.GoldFile = None,
    gold_base: opt.GoldBase = None,
    output: opt.Output = None,
    as_json: opt.JsonLines = False,
    device: opt.Device = "auto",
) -> None:
    """Align the words of sentence pairs.

    softgaze align runs/m30k test.en test.de
    softgaze align runs/en-fr test.en test.fr --gold gold.talp --gold-base 1

    Prints one line per pair in Pharaoh format (source-target, from 0).
    Words are separated by spaces. Links come from the model's selected
    attention map while it scores the given translation. With --gold, prints
    the alignment error rate (AER) to stderr, or to stdout with --output.
    """
    from softgaze.bundle import ATTENTION, add_facts
    from softgaze.data.corpus import count_lines, read_pairs

    if reverse is None and (method is not None or save_maps):
        raise UsageError(f"{'--method' if method else '--save-maps'} needs two models; give the other with --reverse")
    if threshold is not None and not 0 < threshold <= 1:
        raise UsageError(f"--threshold must be above 0 and at most 1, got {threshold}")
    is_empty = all(path.is_file() and not path.stat().st_size for path in (source, target))
    total = count_lines(source) if source.is_file() and not is_empty else None  # a pipe can be read only once
    gold_alignments = opt.read_gold(gold, gold_base, source, total)
    pairs = iter(()) if is_empty else opt.check_gold_links(read_pairs(source, target), gold_alignments, gold)
    first = list(islice(pairs, SELECTION_PAIRS))  # unreadable files are reported before a model is loaded
    aligner = load_aligner(model, reverse, method, threshold, device).with_selected_maps(first)
    for path, reader in ((model, aligner.forward), (reverse, aligner.reverse)):
        if save_maps and path is not None and reader is not None and reader.selected_map is not None:
            add_facts(path, {ATTENTION: reader.selected_map.to_dict()})
    alignments: list[Alignment] = []
    with open_output(output) as file, progress(total, enabled=output) as advance:
        for block in opt.blocks(chain(first, pairs), BLOCK_PAIRS):
            block_alignments = aligner.align(block)
            for pair, alignment in zip(block, block_alignments, strict=True):
                line = str(alignment)
                if as_json:
                    record = {"source": pair.source, "target": pair.target, "alignment": line}
                    line = json_line({**record, "links": [list(link) for link in alignment]})
                file.write(f"{line}\n".encode())
            alignments += block_alignments if gold_alignments is not None else []
            advance(len(block))
        file.flush()
    if gold_alignments is not None:
        typer.echo(error_report(alignments, gold_alignments, aligner, as_json=as_json), err=output is None)


def load_aligner(
    model: Path, reverse: Path | None, method: opt.Symmetrization | None, threshold: float | None, device: str
) -> "Aligner":
    """Load both models; they need attention and opposite directions."""
    from softgaze.explain.map_selection import METHOD
    from softgaze.translator import load

    forward = load(model, device, explain_with_torch=False)
    backward = load(reverse, device, explain_with_torch=False) if reverse else None
    if backward:  # a model of the same direction would silently give wrong links
        (source, target), actual = opt.direction(forward), opt.direction(backward)
        if actual != (target, source) and all((source, target, *actual)):
            raise UsageError(
                f"--reverse must translate {target} → {source}; this model translates {' → '.join(actual)}"
            )
    aligner = forward.aligner(backward, method=method or METHOD, threshold=threshold)
    for path, reader in ((model, aligner.forward), (reverse, aligner.reverse)):
        if reader and not reader.has_cross_attention:
            raise UsageError(f"{path}: this model has no attention to align with")
    return aligner


def error_report(alignments: "list[Alignment]", gold: "list[Alignment]", aligner: "Aligner", *, as_json: bool) -> str:
    """Return the alignment error rate and the attention maps it belongs to."""
    from softgaze.explain.alignment import count_corpus

    counts = count_corpus(alignments, gold)
    sources = {"map": aligner.forward, "reverse map": aligner.reverse}
    selected = {name: source for name, source in sources.items() if source and source.selected_map}
    if as_json:
        values = {name: round(getattr(counts, name), 6) for name in ("aer", "precision", "recall")}
        maps = [source.selected_map.to_dict() for source in selected.values() if source.selected_map]
        return json_line({**values, **counts._asdict(), "sentences": len(alignments), "maps": maps})
    rates = f"AER {counts.aer:.1%}  precision {counts.precision:.1%}  recall {counts.recall:.1%}"
    sizes = f"({counts.links:,} links, {counts.sure:,} sure gold links, {len(alignments):,} sentences)"
    return "\n".join([f"{rates}  {sizes}", *(f"{name}: {source.describe()}" for name, source in selected.items())])
