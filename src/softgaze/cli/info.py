"""`softgaze info`: what a model directory holds. Reads it without torch; every file is checked on the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from softgaze.bundle import Bundle


def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Show what a model is: languages, architecture, parameters, how it was trained, scores, files and their sha256.

    softgaze info runs/m30k

    Every file is compared with its sha256 on the way; a file that was cut or changed is named, with exit code 3.
    """
    import json

    from softgaze.bundle import Bundle

    bundle = Bundle.open(model)
    if as_json:
        typer.echo(json.dumps(as_record(bundle), ensure_ascii=False, indent=2))
        return
    typer.echo("\n".join(lines(bundle)))  # all of it, or the one line that says why not


def as_record(bundle: "Bundle") -> dict[str, Any]:
    """Everything that is known, for JSON."""
    return {
        "path": str(bundle.path),
        **vars(bundle.description),
        "parameters": parameters(bundle),
        "vocabulary": vocabulary(bundle),
        "engine": bundle.engine,
        "facts": bundle.facts,
        "files": bundle.files,
    }


def lines(bundle: "Bundle") -> Iterator[str]:
    """Everything that is known, for people."""
    about = bundle.description
    yield str(bundle.path)
    yield from table(
        {
            "languages": f"{about.source_language} → {about.target_language}",
            "architecture": f"{about.arch}, {about.size}",
            "options": about.options,
            "parameters": parameters(bundle),
            **reading(bundle),
        }
    )
    if bundle.engine["name"] != "torch":
        yield from ("", "Exported")
        yield from table(bundle.engine)
    if bundle.facts:
        yield from ("", "Training")
        yield from table(bundle.facts)
    yield from ("", "Files")
    width = max(map(len, bundle.files))
    for name, entry in bundle.files.items():
        yield f"  {name:<{width}}  {entry['bytes']:>13,} bytes  sha256 {entry['sha256']}"


def reading(bundle: "Bundle") -> dict[str, str]:
    """How sources are read, and how text is cut."""
    sizes, read = vocabulary(bundle), bundle.tokenizers.source
    if not read.spells:
        return {"sources": read.describe(), "vocabulary": f"{sizes['target']:,} subwords"}
    joint = "for both languages" if bundle.tokenizers.joint else f"source, {sizes['target']:,} target"
    return {
        "vocabulary": f"{sizes['source']:,} subwords {joint}",
        "longest source": f"{bundle.description.max_length:,} subwords; longer text is split",
    }


def parameters(bundle: "Bundle") -> int | None:
    """Learned numbers, from the shapes in the weights' header; without torch's weights, what training counted."""
    from math import prod

    from softgaze.bundle import WEIGHTS
    from softgaze.manifest import shapes

    if not bundle.has_weights:
        trained: int | None = bundle.facts.get("parameters")
        return trained
    return sum(map(prod, shapes(bundle.path / WEIGHTS).values()))


def vocabulary(bundle: "Bundle") -> dict[str, int]:
    """Subwords of each side."""
    return {"source": len(bundle.tokenizers.source), "target": len(bundle.tokenizers.target)}


def table(facts: dict[str, Any], indent: str = "  ") -> Iterator[str]:
    """A line for each fact, whatever they are; facts within facts are indented."""
    shown = {name.replace("_", " "): value for name, value in facts.items() if value not in (None, {}, [], "")}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        if isinstance(value, dict):
            yield f"{indent}{name}"
            yield from table(value, f"{indent}  ")
        else:
            yield f"{indent}{name:<{width}}  {readable(value)}"


def readable(value: Any) -> str:
    """One fact: thousands apart, four significant digits, lists in one line."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(readable, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {readable(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"
    return str(value)
