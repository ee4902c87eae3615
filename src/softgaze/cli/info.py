"""`softgaze info`: the contents of a model directory, read without torch."""

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import typer

from softgaze.cli import _options as opt
from softgaze.cli._output import print_json, table_text

if TYPE_CHECKING:
    from softgaze.bundle import Bundle


def info(
    model: opt.Model,
    as_json: opt.Json = False,
) -> None:
    """Show what a model directory contains.

    softgaze info runs/m30k

    Languages, architecture, parameters, the engine that will run it and why,
    training, scores and files. Every file is checked against its sha256; a
    damaged file is an error with exit code 3.
    """
    from softgaze.bundle import Bundle
    from softgaze.engines import choose_engine

    bundle = Bundle.open(model)
    choice = choose_engine(bundle)
    if as_json:
        print_json(
            {
                "path": str(bundle.path),
                **vars(bundle.description),
                "parameters": parameter_count(bundle),
                "vocabulary": vocabulary_sizes(bundle),
                "engine": bundle.engine,
                "runs_on": {"engine": choice.name, "reason": choice.reason},
                "facts": bundle.facts,
                "files": bundle.files,
            }
        )
        return
    facts = {**model_facts(bundle), "runs on": f"{choice.name}: {choice.reason}"}
    parts = [f"{bundle.path}\n{table_text(fact_rows(facts))}"]
    if bundle.engine["name"] != "torch":
        parts.append(f"Exported\n{table_text(fact_rows(bundle.engine))}")
    if bundle.facts:
        parts.append(f"Training\n{table_text(fact_rows(bundle.facts))}")
    files = [(f"  {name}", f"{file['bytes']:,}", file["sha256"][:12]) for name, file in bundle.files.items()]
    parts.append(f"Files\n{table_text(files, header=('', 'bytes', 'sha256'), numbers_from=1)}")
    typer.echo("\n\n".join(parts))


def model_facts(bundle: "Bundle") -> dict[str, Any]:
    about, sizes, processor = bundle.description, vocabulary_sizes(bundle), bundle.tokenizers.source
    if not processor.is_text:
        inputs = {"inputs": processor.describe(), "vocabulary": bundle.tokenizers.target.describe()}
    else:
        shared = "shared by both languages" if bundle.tokenizers.joint else f"source, {sizes['target']:,} target"
        inputs = {
            "vocabulary": f"{sizes['source']:,} subwords {shared}",
            "maximum length": f"{about.max_length:,} subwords; longer text is split",
        }
    languages = bundle.tokenizers.languages
    sides = [[about.source_language], [about.target_language]]
    if languages is not None:
        sides = [[*languages.source] or [about.source_language or "any"], [*languages.target]]
    return {
        "languages": " → ".join(" ".join(side) for side in sides),
        "architecture": f"{about.arch}, {about.size}",
        "options": about.options,
        "parameters": parameter_count(bundle),
        **inputs,
    }


def parameter_count(bundle: "Bundle") -> int | None:
    """Return the number of parameters: from the header of the weights, or as counted in training."""
    from importlib.util import find_spec

    from softgaze.bundle import WEIGHTS, tensor_shapes

    if not bundle.has_weights or find_spec("safetensors") is None:
        counted: int | None = bundle.facts.get("parameters")
        return counted
    return sum(map(prod, tensor_shapes(bundle.path / WEIGHTS).values()))


def vocabulary_sizes(bundle: "Bundle") -> dict[str, int]:
    return {"source": len(bundle.tokenizers.source), "target": len(bundle.tokenizers.target)}


def fact_rows(facts: dict[str, Any], indent: str = "  ") -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each fact that is not empty; nested facts are indented."""
    for name, value in facts.items():
        label = indent + name.replace("_", " ")
        if isinstance(value, dict) and value:
            yield label, ""
            yield from fact_rows(value, f"{indent}  ")
        elif value not in (None, {}, [], ""):
            yield label, value_text(value)


def value_text(value: Any) -> str:
    """Return a fact as text, with thousands separators and four significant digits."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {value_text(item)}" for name, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"
    return str(value)
