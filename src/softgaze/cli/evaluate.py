"""`softgaze evaluate`: translate a test set and score it. Knows files and printing, not scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from softgaze.metrics import Scores
    from softgaze.translator import Translation


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    test: Annotated[
        tuple[Path, Path], typer.Option(metavar="SRC TGT", help="Sentences and their right translations (.gz too).")
    ],
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at each step; 1 is fastest.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the translations to FILE too.")
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Padded tokens × beam at once: memory against speed.")
    ] = 4096,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
) -> None:
    """Translate a test set and compare: BLEU, chrF and TER by sacreBLEU, exact matches, and speed.

    softgaze evaluate runs/m30k --test test.en test.de

    Every score comes with its sacreBLEU signature, without which two scores cannot be compared. Both sides are first
    brought to Unicode NFC and single spaces. Speed counts translating alone, not loading the model.
    """
    from time import perf_counter

    from softgaze.cli.translate import progress
    from softgaze.data.corpus import read_pairs
    from softgaze.metrics import score
    from softgaze.translator import load

    sources, references = zip(*read_pairs(*test), strict=True)
    translator = load(model, device)
    began = perf_counter()
    with progress(len(sources)) as advance:
        rows = translator.translate_lines(sources, progress=advance, beam=beam, batch_tokens=batch_tokens)
        found = list(rows)
    seconds = perf_counter() - began
    write(found, output)
    language = translator.bundle.description.target_language
    scores = score([each.text for each in found], references, language=language)
    speed = speed_of(found, seconds)
    setting = {
        "model": str(model),
        "test": [str(path) for path in test],
        "beam": beam,
        "device": str(translator.device),
    }
    show(scores, speed, setting, as_json)


def write(found: "list[Translation]", output: Path | None) -> None:
    """The translations, a line each."""
    from softgaze.cli.translate import text_line, write_all, writer

    if output is not None:
        with writer(output) as file:
            write_all(found, text_line, file, len(found))


def speed_of(found: "list[Translation]", seconds: float) -> dict[str, float]:
    """Sentences and predicted subwords (END among them) a second."""
    tokens = sum(part.length for each in found for part in each.parts)
    return {
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(found) / seconds, 2),
        "tokens_per_second": round(tokens / seconds, 2),
    }


def show(scores: "Scores", speed: dict[str, float], setting: dict[str, Any], as_json: bool) -> None:
    """Print the result."""
    import json

    if as_json:
        typer.echo(json.dumps({**setting, **scores.to_dict(), "speed": speed}, ensure_ascii=False, indent=2))
        return
    for line in scores.lines():
        typer.echo(line)
    rates = f"{speed['sentences_per_second']:,.1f} sentences/s, {speed['tokens_per_second']:,.0f} tokens/s"
    typer.echo(f"speed         {rates} ({setting['device']}, beam {setting['beam']})")
