"""`softgaze align`: word alignments of sentence pairs, learned from them or by a model."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice, starmap
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, choice, flag, option
from softgaze.cli._output import interruption, json_line, open_output, progress, warn
from softgaze.errors import UsageError
from softgaze.runtime import need_torch, pick_device

if TYPE_CHECKING:
    from softgaze.alignment import CombinedAligner, StatisticalAligner
    from softgaze.data.corpus import FastAlignFile, FilePair, Pair
    from softgaze.explain import Alignment
    from softgaze.explain.map_selection import Aligner

    PairText = FilePair | FastAlignFile
    AnyAligner = Aligner | StatisticalAligner | CombinedAligner

COMMAND = opt.PairCommand
SELECTION_PAIRS = 256  # pairs an attention map is selected on if the model comes without one
BLOCK_PAIRS = 512  # pairs in memory at once
LOG_SECONDS = 10.0  # between two lines of a log about the same work


def align(
    files: Annotated[
        list[Path],
        argument(
            "Source sentences and their translations, one per line (.gz too), or one file with 'source ||| target' on "
            "each line. MODEL: a model directory, or an aligner written by --save; without it, an aligner is learned "
            "from the text.",
            "[MODEL] SRC TGT",
        ),
    ],
    train_files: Annotated[
        list[Path] | None,
        option("Learn from this parallel text, too. Repeatable.", "--train", metavar="SRC TGT"),
    ] = None,
    minutes: Annotated[
        float | None,
        option(
            "Also train a network on the pairs for so many minutes, which multiplies the statistics by its attention. "
            "0: statistics alone.",
            metavar="N",
            default="0",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        option(
            "Write the learned aligner to this file, or into this model directory. With --minutes, an interrupted "
            "command resumes.",
            metavar="FILE",
        ),
    ] = None,
    by: Annotated[
        opt.AlignBy | None,
        choice("Evidence of a MODEL with a lexicon.", "--by", default="both"),
    ] = None,
    reverse: Annotated[
        Path | None,
        option("Model of the other direction; combine both alignments.", metavar="MODEL", panel=opt.DIRECTIONS),
    ] = None,
    method: Annotated[
        opt.Symmetrization | None,
        choice("How --reverse is combined.", of=opt.Symmetrization, default="grow-diag-final", panel=opt.DIRECTIONS),
    ] = None,
    save_maps: Annotated[
        bool, flag("Store in both models the attention maps that agreed best.", "--save-maps", panel=opt.DIRECTIONS)
    ] = False,
    threshold: Annotated[
        float | None,
        option(
            "Link words with a score above X: higher for precision, lower for recall (0 < X < 1). With attention "
            "alone, link every word with attention ≥ X, not only the highest.",
            metavar="X",
            default="0.1; attention alone: the highest",
        ),
    ] = None,
    gold: opt.GoldFile = None,
    gold_base: opt.GoldBase = None,
    output: opt.Output = None,
    as_json: opt.JsonLines = False,
    device: opt.Device = "auto",
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
) -> None:
    """Align the words of sentence pairs.

    softgaze align corpus.en corpus.fr -o links
    softgaze align test.en test.fr --train corpus.en corpus.fr
    softgaze align runs/en-fr test.en test.fr --gold gold.talp --gold-base 1

    Prints one line per pair in Pharaoh format (source-target, from 0).
    Words are separated by spaces. Without MODEL, links are learned from the
    sentence pairs themselves, in about a minute per 200,000 pairs; --minutes
    adds a network. With a translation model, they come from its
    attention while it scores the given translation, and from its lexicon.
    With --gold, prints the alignment error rate (AER) to stderr, or to stdout
    with --output.
    """
    from softgaze.bundle import Bundle, add_aligner
    from softgaze.data.corpus import FilePair, count_lines

    model, text = model_and_text(files)
    source = text.paths[0]
    check_options(
        is_learned=model is None,
        learning={"--train": train_files, "--save": save, "--minutes": minutes is not None},
        modelling={"--by": by, "--reverse": reverse, "--method": method, "--save-maps": save_maps},
    )
    if reverse is None and (method is not None or save_maps):
        raise UsageError(f"{'--method' if method else '--save-maps'} needs two models; give the other with --reverse")
    if threshold is not None and not 0 < threshold <= 1:
        raise UsageError(f"--threshold must be above 0 and at most 1, got {threshold}")
    if minutes is not None and minutes < 0:
        raise UsageError(f"--minutes must be at least 0, got {minutes:g}")
    if save is not None and save.is_dir():
        Bundle.open(save)  # a directory that is no model is reported before anything is learned
    is_empty = all(path.is_file() and not path.stat().st_size for path in text.paths)
    total = count_lines(source) if source.is_file() and not is_empty else None  # a pipe can be read only once
    gold_alignments = opt.read_gold(gold, gold_base, source, total)
    pairs = iter(()) if is_empty else opt.check_gold_links(text, gold_alignments, gold)
    first = list(islice(pairs, SELECTION_PAIRS))  # unreadable files are reported before a model is loaded
    aligner: AnyAligner
    if model is None:
        texts = [*starmap(FilePair, opt.file_pairs("--train", train_files)), text]
        with interruption("nothing was written"):
            aligner = learned = learn_aligner(texts, minutes or 0, save, device)
        if save is not None:
            if save.is_dir():
                add_aligner(save, learned.to_bytes())
            else:
                learned.save(save)
    else:
        aligner = load_aligner(model, reverse, by, method, device, opt.LanguagePair(source_lang, target_lang))
    if threshold is not None:
        aligner = replace(aligner, threshold=threshold)
    if model is not None and not model.is_file():
        aligner = with_selected_maps(aligner, first, (model, reverse) if save_maps else ())
    alignments: list[Alignment] = []
    written = "the links are incomplete" if output is None else f"{output} was not written"
    with interruption(written), open_output(output) as file, progress(total, enabled=output or minutes) as advance:
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


def model_and_text(files: Sequence[Path]) -> "tuple[Path | None, PairText]":
    """Return MODEL, if it is given, and SRC TGT or one file of pairs."""
    from softgaze.data.corpus import FastAlignFile, FilePair

    is_model = [path.is_dir() or path.suffix == ".npz" for path in files]
    if len(files) == 1:
        return None, FastAlignFile(files[0])
    if len(files) == 2:
        return (files[0], FastAlignFile(files[1])) if is_model == [True, False] else (None, FilePair(*files))
    if len(files) == 3:
        return files[0], FilePair(*files[1:])
    raise UsageError(f"expected SRC TGT, or MODEL SRC TGT; got {len(files)} files")


def check_options(*, is_learned: bool, learning: dict[str, object], modelling: dict[str, object]) -> None:
    """Reject options that have no effect with, or without, a model."""
    for name, value in (modelling if is_learned else learning).items():
        if value:
            need = "needs a MODEL before SRC and TGT" if is_learned else "learns an aligner; leave MODEL out"
            raise UsageError(f"{name} {need}")


# --- learning ---------------------------------------------------------------------------------------------------


def learn_aligner(texts: "Sequence[PairText]", minutes: float, save: Path | None, device: str) -> "StatisticalAligner":
    """Learn from all texts, with a network if there are minutes; the texts are read again when they are aligned."""
    from softgaze.alignment import train_aligner

    for path in chain.from_iterable(text.paths for text in texts):
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: is read twice, to learn and to align, so it must be a file, not a pipe")
    if minutes:
        need_torch()
    with learning_progress() as report:
        statistics = train_aligner(chain.from_iterable(texts), report)
        if not minutes:
            return statistics
        from softgaze.training.neural_aligner import train_network
        from softgaze.training.train import Interrupted

        directory = save.with_name(f"{save.name}.training") if save else None
        pairs = list(chain.from_iterable(texts))
        try:
            return train_network(
                pairs, statistics, minutes, directory=directory, device=pick_device(device), report=report
            )
        except Interrupted as interrupted:
            lost = "" if save else "; only --save FILE keeps it to resume"
            warn(f"softgaze: stopped at update {interrupted.step:,}{lost or '; run the same command to resume'}")
            raise typer.Exit(interrupted.exit_code) from None


@contextmanager
def learning_progress() -> Iterator[Callable[[str, float], None]]:
    """Show a bar on a terminal, and lines in a log."""
    if not sys.stderr.isatty():
        started = monotonic()
        yield rarely(lambda message, share: warn(f"{message}, {share:.0%}, {monotonic() - started:.0f} s"))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("reading", total=1.0)
        yield lambda message, share: bars.update(task, description=message, completed=share)


def rarely(report: Callable[[str, float], None]) -> Callable[[str, float], None]:
    """Report at most every `LOG_SECONDS`, and each new name of what is being done."""
    last, before = 0.0, ""

    def reported(message: str, share: float) -> None:
        nonlocal last, before
        name = message.partition(":")[0]
        if name != before or monotonic() - last > LOG_SECONDS:
            report(message, share)
            last, before = monotonic(), name

    return reported


# --- models -----------------------------------------------------------------------------------------------------


def load_aligner(
    model: Path,
    reverse: Path | None,
    by: opt.AlignBy | None,
    method: opt.Symmetrization | None,
    device: str,
    languages: opt.LanguagePair,
) -> "AnyAligner":
    """Load an aligner file, or one or two models with opposite directions, and their lexicon."""
    from softgaze.alignment import CombinedAligner, StatisticalAligner
    from softgaze.explain.map_selection import METHOD
    from softgaze.translator import load

    if model.is_file():
        if reverse or by:
            raise UsageError(f"{model} is an aligner, so {'--reverse' if reverse else '--by'} has no effect")
        return StatisticalAligner.load(model)
    forward = load(model, device, **languages._asdict(), explain_with_torch=False)
    backward = load(reverse, device, explain_with_torch=False) if reverse else None
    if backward and backward.languages is not None:
        backward = backward.with_languages(*reversed(languages))
    if backward:  # a model of the same direction would silently give wrong links
        (source, target), actual = opt.direction(forward), opt.direction(backward)
        if actual != (target, source) and all((source, target, *actual)):
            raise UsageError(
                f"--reverse must translate {target} → {source}; this model translates {' → '.join(actual)}"
            )
    statistics = forward.statistical_aligner
    if statistics is None and by not in (None, "attention"):
        raise UsageError(f"{model}: has no lexicon, so --by {by} is not possible")
    if statistics is not None and by == "lexicon":
        return statistics
    aligner = forward.aligner(backward, method=method or METHOD)
    for path, reader in ((model, aligner.forward), (reverse, aligner.reverse)):
        if reader and not reader.has_cross_attention:
            raise UsageError(f"{path}: this model has no attention to align with")
    return aligner if statistics is None or by == "attention" else CombinedAligner(aligner, statistics)


def with_selected_maps(
    aligner: "AnyAligner", sample: "Sequence[Pair]", stored_in: Sequence[Path | None]
) -> "AnyAligner":
    """Select attention maps on the first pairs, and store them in the models if wanted."""
    from softgaze.alignment import CombinedAligner, StatisticalAligner
    from softgaze.bundle import ATTENTION, add_facts

    if isinstance(aligner, StatisticalAligner):
        return aligner
    attention = aligner.attention if isinstance(aligner, CombinedAligner) else aligner
    selected = attention.with_selected_maps(sample)
    for path, reader in zip(stored_in, (selected.forward, selected.reverse), strict=False):
        if path is not None and reader is not None and reader.selected_map is not None:
            add_facts(path, {ATTENTION: reader.selected_map.to_dict()})
    return replace(aligner, attention=selected) if isinstance(aligner, CombinedAligner) else selected


def error_report(
    alignments: "list[Alignment]", gold: "list[Alignment]", aligner: "AnyAligner", *, as_json: bool
) -> str:
    """Return the alignment error rate, and the attention maps and statistics it belongs to."""
    from softgaze.alignment import CombinedAligner, StatisticalAligner
    from softgaze.explain.alignment import count_corpus

    counts = count_corpus(alignments, gold)
    attention = aligner.attention if isinstance(aligner, CombinedAligner) else aligner
    readers = () if isinstance(attention, StatisticalAligner) else (attention.forward, attention.reverse)
    selected = {
        name: reader
        for name, reader in zip(("map", "reverse map"), readers, strict=False)
        if reader and reader.selected_map
    }
    if as_json:
        values = {name: round(getattr(counts, name), 6) for name in ("aer", "precision", "recall")}
        maps = [reader.selected_map.to_dict() for reader in selected.values() if reader.selected_map]
        return json_line({**values, **counts._asdict(), "sentences": len(alignments), "maps": maps})
    rates = f"AER {counts.aer:.1%}  precision {counts.precision:.1%}  recall {counts.recall:.1%}"
    sizes = f"({counts.links:,} links, {counts.sure:,} sure gold links, {len(alignments):,} sentences)"
    statistics = [] if attention is aligner and readers else ["lexicon and positions, both directions"]
    combined = aligner.statistics if isinstance(aligner, CombinedAligner) else aligner
    if isinstance(combined, StatisticalAligner) and combined.network:
        statistics.append("network, both directions")
    maps_used = (f"{name}: {reader.describe()}" for name, reader in selected.items())
    return "\n".join([f"{rates}  {sizes}", *maps_used, *statistics])
