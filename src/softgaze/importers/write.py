"""Write an imported model as a bundle: tensors are streamed, so that memory is bounded, and then compared."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import torch
import yaml
from torch import Tensor

from softgaze.atomic_io import fingerprint, new_directory
from softgaze.bundle import ALIGNMENT_HEAD, CONFIG, IMPORTED, SEARCH, WEIGHTS, Bundle, Description, all_finite, seal
from softgaze.errors import DataError
from softgaze.importers import ImportCallback
from softgaze.importers.base import ImportedModel
from softgaze.models import MODELS

ARCH = "transformer"
STORED = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
ALIGNMENT = 64  # bytes; the weights are mapped into memory, where vector instructions prefer it


def write_bundle(
    model: ImportedModel,
    source: Path,
    output: Path,
    dtype: str,
    languages: tuple[str | None, str | None],
    verify: bool,
    callback: ImportCallback,
) -> dict[str, Any]:
    """Write the bundle, compare it with the original, and return the facts of the report."""
    from softgaze.importers.verify import compare

    description = describe(model, *languages)
    shapes = {name: value.shape for name, value in description.build_empty(model.tokenizers).named_parameters()}
    missing = sorted(shapes.keys() - model.tensors.keys())
    if missing:
        raise DataError(f"{source}: has no tensor for {missing[0]}, which its configuration needs")
    with new_directory(output) as directory:
        contents = {
            CONFIG: yaml.safe_dump(vars(description), allow_unicode=True, sort_keys=False).encode(),
            **model.tokenizers.files(),
        }
        for name, content in contents.items():
            (directory / name).write_bytes(content)
        with (directory / WEIGHTS).open("wb") as file:
            write_tensors(file, model, shapes, getattr(torch, dtype), source, callback)
        facts = bundle_facts(model, source, shapes)
        seal(directory, [*contents, WEIGHTS], facts)
        compared = compare(model, Bundle.open(directory), verify, callback)
    tables = model.tokenizers.languages
    return {
        "parameters": facts["parameters"],
        "languages": (len(tables.source), len(tables.target)) if tables else (0, 0),
        "pair": (description.source_language, description.target_language),
        **compared,
    }


def describe(model: ImportedModel, source_lang: str | None, target_lang: str | None) -> Description:
    """Return the configuration; the size is the nearest one, and every option is given."""
    languages = model.tokenizers.languages
    if languages is not None:  # a pair that is translated unless another one is chosen
        source_lang, target_lang = (
            languages.match(side, code) if code else None
            for side, code in (("source", source_lang), ("target", target_lang))
        )
    sizes = MODELS[ARCH].sizes
    size = min(sizes, key=lambda name: abs(sizes[name]["width"] - model.options["width"]))
    return Description(
        ARCH,
        size,
        model.options,
        source_lang or model.source_language,
        target_lang or model.target_language,
        model.max_length,
    )


def bundle_facts(model: ImportedModel, source: Path, shapes: dict[str, torch.Size]) -> dict[str, Any]:
    """Return the facts of the manifest: origin, licence, search defaults."""
    origin = {path.name: fingerprint(path) for path in model.files}
    return {
        "parameters": sum(shape.numel() for shape in shapes.values()),
        IMPORTED: {"family": model.family, "from": source.resolve().name, "files": origin, "licence": model.licence},
        SEARCH: model.search,
        **({} if model.alignment_head is None else {ALIGNMENT_HEAD: list(model.alignment_head)}),
    }


# --- safetensors, one tensor at a time --------------------------------------------------------------------------


def write_tensors(
    file: BinaryIO,
    model: ImportedModel,
    shapes: dict[str, torch.Size],
    dtype: torch.dtype,
    source: Path,
    callback: ImportCallback,
) -> None:
    """Write a safetensors file: matrices in `dtype`, vectors and position tables in float32."""
    header: dict[str, Any] = {}
    end = 0
    dtypes = {  # vectors are small, and positions are exact only in float32
        name: torch.float32 if len(shape) < 2 or "positions" in name else dtype for name, shape in shapes.items()
    }
    for name, shape in shapes.items():
        start, end = end, end + shape.numel() * dtypes[name].itemsize
        header[name] = {"dtype": STORED[dtypes[name]], "shape": list(shape), "data_offsets": [start, end]}
    callback.on_start(len(shapes), end)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    file.write(len(text).to_bytes(8, "little") + text)
    for name, shape in shapes.items():
        rows = 0
        for block in checked_blocks(model, name, shape, source):
            stored = block.to(dtypes[name]).contiguous()
            if not all_finite(stored):
                raise DataError(
                    f"{source}: {name} contains values that {dtypes[name]} cannot hold, NaN or infinite ones"
                )
            file.write(memoryview(stored.view(torch.uint8).numpy()))  # type: ignore[arg-type]
            rows += len(block)
            callback.on_write(stored.nbytes)
        if rows != shape[0]:
            raise DataError(f"{source}: {name} has {rows} rows, expected {shape[0]} from the configuration")


def checked_blocks(model: ImportedModel, name: str, shape: torch.Size, source: Path) -> Iterator[Tensor]:
    """Yield the blocks of a tensor whose shape is the expected one."""
    tensor = model.tensors[name]
    try:
        for block in tensor.blocks():
            if block.ndim != len(shape) or block.shape[1:] != shape[1:] or len(block) > shape[0]:
                raise DataError(f"has shape {list(block.shape)}, expected {list(shape)} from the configuration")
            yield block
    except DataError as error:
        raise DataError(f"{source}: {name}: {error}") from error
