"""Export a model directory to another engine: the same files, with the engine's own instead of the torch weights."""

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.bundle import MANIFEST, WEIGHTS, Bundle, read_manifest, seal
from softgaze.errors import UsageError, pick
from softgaze.explain.recording import SelectedMap, View
from softgaze.runtime import has_vnni, need

if TYPE_CHECKING:
    from softgaze.models import Seq2Seq

# Writes the engine's files of a model to a directory and returns the facts the engine needs.
Exporter = Callable[[Bundle, "Seq2Seq", Path, str, SelectedMap | None, int], dict[str, Any]]


class ExportTarget(NamedTuple):
    module: str  # has `export` and `check_model`
    precisions: tuple[str, ...]  # the first is the default
    package: str  # that the exporter needs
    install: str  # argument of pip install
    records: Callable[[View], bool]  # whether the engine can record an attention map


TARGETS = {
    "ctranslate2": ExportTarget(
        "softgaze.engines.export_ctranslate2",
        ("float32", "int8", "int8_float32"),
        "ctranslate2",
        "ctranslate2",
        # weights of one cross-attention layer: of one head, or the mean of all
        lambda view: view.kind == "cross" and view.layer is not None and view.measure == "weights",
    ),
    "onnx": ExportTarget(
        "softgaze.engines.export_onnx",
        ("float32",),
        "onnx",
        "softgaze[onnx]",
        # all cross-attention weights and the norms of the values
        lambda view: view.kind == "cross" and view.measure != "rollout",
    ),
}


def check_target(to: str, precision: str | None) -> str:
    """Return the precision to export to; reject unknown engines and precisions."""
    target = pick("engine", to, TARGETS)
    need(target.package, target.install)
    if precision is not None and precision not in target.precisions:
        raise UsageError(f"--quantize {precision} is not supported by {to}; choose from {', '.join(target.precisions)}")
    return precision or target.precisions[0]


def quantizations(to: str, precision: str) -> list[str]:
    """Return descriptions of the ways to store a model in a precision, from the smallest to the most exact."""
    if precision == "float32":
        return [precision]
    from softgaze.engines.export_ctranslate2 import QUANTIZATIONS

    return [each.description for each in QUANTIZATIONS if has_vnni() or not each.needs_vnni]


def check_exportable(bundle: Bundle) -> None:
    """Reject a model that was exported already."""
    if bundle.engine["name"] != "torch":
        raise UsageError(
            f"{bundle.path}: was exported already, to {bundle.engine['name']}; export the model it was made from"
        )


def check_output(path: Path, source: Path, force: bool) -> None:
    """Reject an output directory that is not empty, unless it is an exported model and `force` is set."""
    if path.resolve() == source.resolve():
        raise UsageError(f"{path}: is the model itself; name another directory")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is a file; --out names a directory")
    if not path.exists() or not any(path.iterdir()):
        return
    if not (path / MANIFEST).is_file() or "engine" not in read_manifest(path):
        raise UsageError(f"{path}: is neither empty nor an exported model, so it is not replaced; name another")
    if not force:
        raise UsageError(f"{path}: exists; add --force to replace it, or name another directory")


def check_model(to: str, bundle: Bundle, model: "Seq2Seq") -> None:
    """Reject a model that the engine cannot run."""
    arch = bundle.description.arch
    if to not in model.exports_to:
        others = f"; it can be exported to {', '.join(model.exports_to)}" if model.exports_to else ""
        raise UsageError(f"arch {arch} cannot be exported to {to}{others}")
    import_module(TARGETS[to].module).check_model(model)


def export(
    bundle: Bundle,
    model: "Seq2Seq",
    directory: Path,
    to: str,
    precision: str,
    attention: SelectedMap | None,
    *,
    with_weights: bool = False,
    attempt: int = 0,
) -> None:
    """Fill an empty `directory` with the bundle for another engine, which records the map `attention`.

    `attempt` is the index of one of the `quantizations`.
    """
    processor = bundle.tokenizers.source
    if with_weights and processor.backbone is not None:
        raise UsageError(
            f"--with-weights: the torch weights read features of {processor.backbone}, which is part of the exported "
            "model; leave it out"
        )
    (directory / to).mkdir()
    engine = write_files(bundle, model, directory / to, to, precision, attention, attempt)
    copied = [name for name in bundle.files if name != WEIGHTS or with_weights]
    for name in copied:
        shutil.copyfile(bundle.path / name, directory / name)
    without_backbone = processor.without_backbone
    if without_backbone is not processor:
        (directory / without_backbone.file).write_bytes(without_backbone.model)  # the backbone is in the graph
    exported = [f"{to}/{path.name}" for path in sorted((directory / to).iterdir())]
    seal(directory, [*copied, *exported], bundle.facts, engine=engine)


def write_files(
    bundle: Bundle,
    model: "Seq2Seq",
    directory: Path,
    to: str,
    precision: str = "float32",
    attention: SelectedMap | None = None,
    attempt: int = 0,
) -> dict[str, Any]:
    """Write the engine's own files, and return the facts it needs to open them."""
    check_model(to, bundle, model)
    write: Exporter = import_module(TARGETS[to].module).export
    facts = write(bundle, model, directory, precision, attention, attempt)
    return {"name": to, "precision": precision, "made_from": bundle.files[WEIGHTS]["sha256"], **facts}
