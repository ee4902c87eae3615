"""`softgaze bench`: how fast a model translates here, in each setting, and which to take."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from softgaze.bundle import Bundle
    from softgaze.evaluation.pace import Pace

SENTENCES = 200


class Contender(NamedTuple):
    """A model directory, and what runs it."""

    path: Path
    engine: str
    precision: str


def bench(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a model, trained or exported.")],
    text: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sentences to translate.  [those held out in training]")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="How many of them.")] = SENTENCES,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Measure how fast a model translates on this machine, and say which setting to take.

    softgaze bench runs/m30k --text test.en

    A trained model is also measured as it would be after `softgaze export`, in every precision its engine has. Each
    setting runs in a process of its own: 1 thread and all cores, greedy and a beam of 5, many sentences and one at a
    time. Figures are medians of three rounds, without loading.
    """
    import json

    from softgaze.bundle import Bundle
    from softgaze.cli.translate import progress
    from softgaze.evaluation.pace import measure, settings_of, thread_counts

    bundle = Bundle.open(model)
    texts = sentences_of(bundle, text)[:sentences]
    with contenders(bundle) as found:
        orders = [(each, setting) for each in found for setting in settings_of(*each[1:], thread_counts())]
        paces = []
        with progress(len(orders), noun="settings") as advance:
            for contender, setting in orders:
                paces.append(measure(contender.path, setting, texts))
                if advance:
                    advance(1)
    if as_json:
        typer.echo(json.dumps({"model": str(model), "settings": [each.to_dict() for each in paces]}, indent=2))
        return
    for line in [*table(paces), "", *advice(model, bundle.engine["name"], paces)]:
        typer.echo(line)


def sentences_of(bundle: "Bundle", text: Path | None) -> list[str]:
    """What is translated: given, or held out in training."""
    from softgaze.data.corpus import read_lines
    from softgaze.errors import DataError, UsageError

    if text is None and bundle.held_out is None:
        raise UsageError(f"{bundle.path}: holds no held-out text to translate; give some with --text FILE")
    lines = read_lines(text) if text else (source for source, _ in bundle.held_out or ())
    found = [line for line in lines if line.strip()]
    if not found:
        raise DataError(f"{text or bundle.path}: holds no sentence to translate")
    return found


@contextmanager
def contenders(bundle: "Bundle") -> Iterator[list[Contender]]:
    """The model itself and, for a trained one, what it can be exported to, for as long as it is measured."""
    from tempfile import TemporaryDirectory

    own = Contender(bundle.path, bundle.engine["name"], bundle.engine.get("precision", "float32"))
    if own.engine != "torch":
        yield [own]
        return
    with TemporaryDirectory(prefix="softgaze-bench-") as place:
        yield [own, *exports(bundle, Path(place))]


def exports(bundle: "Bundle", place: Path) -> Iterator[Contender]:
    """Everything the model can be exported to with what is installed here."""
    from importlib.util import find_spec

    from softgaze.engines import ENGINES
    from softgaze.engines.exporting import TARGETS, export
    from softgaze.errors import SoftgazeError

    model = bundle.model()
    for to, target in TARGETS.items():
        if not all(map(find_spec, (target.package, *ENGINES[to].packages))):
            continue
        for precision in target.precisions:
            directory = place / f"{to}-{precision}"
            directory.mkdir()
            try:
                export(bundle, model, directory, to, precision, None)
            except SoftgazeError as reason:  # this engine cannot run this model
                typer.echo(f"without {to}: {reason}", err=True)
                break
            yield Contender(directory, to, precision)


def table(paces: "Sequence[Pace]") -> list[str]:
    """A line for each setting."""
    head = f"{'engine':<12} {'precision':<13} {'threads':>7} {'beam':>4}  {'at a time':<9}"
    lines = [f"{head} {'sentences/s':>11} {'tokens/s':>9}"]
    for pace in paces:
        setting = pace.setting
        kind = "one" if setting.alone else "many"
        head = f"{setting.engine:<12} {setting.precision:<13} {setting.threads:>7} {setting.beam:>4}  {kind:<9}"
        lines.append(f"{head} {pace.sentences_per_second:>11,.1f} {pace.tokens_per_second:>9,.0f}")
    return lines


def advice(model: Path, present: str, paces: "Sequence[Pace]") -> list[str]:
    """The fastest for a file of text and for a person who waits, and how to have it."""
    from softgaze.evaluation.pace import fastest

    lines = []
    for what, alone in (("many lines", False), ("one sentence at a time", True)):
        best = fastest(paces, beam=5, alone=alone)
        setting = best.setting
        threads = f"{setting.threads} thread{'s' if setting.threads > 1 else ''}"
        lines.append(
            f"fastest for {what}: {setting.engine} {setting.precision}, {threads}, "
            f"{best.tokens_per_second:,.0f} tokens/s with a beam of 5"
        )
        if setting.engine != present:
            lines.append(f"  softgaze export {model} --to {setting.engine} --quantize {setting.precision} -o DIR")
    return list(dict.fromkeys(lines))
