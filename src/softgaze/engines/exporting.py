"""Writing a bundle for another engine: everything a model directory holds, with the engine's files for its weights."""

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.bundle import WEIGHTS, Bundle, read_manifest, seal
from softgaze.devices import need
from softgaze.errors import UsageError, pick
from softgaze.gaze.view import Choice, View
from softgaze.manifest import MANIFEST

if TYPE_CHECKING:
    from softgaze.models import Seq2Seq

# Writes the engine's files of a model into a directory, and returns what the engine must know of them.
Write = Callable[[Bundle, "Seq2Seq", Path, str, Choice | None], dict[str, Any]]


class Target(NamedTuple):
    """What can be exported to."""

    writer: str  # module:function
    precisions: tuple[str, ...]  # the first is taken unless another is asked for
    package: str  # that writes it
    install: str  # what pip is asked for
    tells: Callable[[View], bool]  # whether the engine can tell an attention map


def one_map(view: View) -> bool:
    """What CTranslate2 can tell: weights of one layer, of one head or the mean of all."""
    return view.kind == "cross" and view.layer is not None and view.measure == "weights"


def any_look(view: View) -> bool:
    """What a step of ONNX tells: all looks at the source, and the lengths of what is looked at."""
    return view.kind == "cross" and view.measure != "rollout"


TARGETS = {
    "ctranslate2": Target(
        "softgaze.engines.to_ctranslate2:export",
        ("float32", "int8", "int8_float32"),
        "ctranslate2",
        "ctranslate2",
        one_map,
    ),
    "onnx": Target("softgaze.engines.to_onnx:export", ("float32",), "onnx", "softgaze[onnx]", any_look),
}


def check_target(to: str, precision: str | None) -> str:
    """The precision to export to; what does not exist is refused by name."""
    target = pick("engine", to, TARGETS)
    need(target.package, target.install)
    precisions = target.precisions
    if precision is not None and precision not in precisions:
        raise UsageError(f"--quantize {precision} is nothing that {to} has; it has {', '.join(precisions)}")
    return precision or precisions[0]


def check_runs(to: str, bundle: Bundle, model: "Seq2Seq") -> None:
    """Refuse by name what an engine cannot run, before anything takes time."""
    import_module(TARGETS[to].writer.partition(":")[0]).runnable(bundle.description.arch, model)


def export(
    bundle: Bundle,
    model: "Seq2Seq",
    directory: Path,
    to: str,
    precision: str,
    attention: Choice | None,
    *,
    with_weights: bool = False,
) -> None:
    """Fill an empty `directory` with the bundle for another engine; `attention` is the map it should tell."""
    check_reader(bundle, with_weights)
    module, _, name = TARGETS[to].writer.partition(":")
    write: Write = getattr(import_module(module), name)
    (directory / to).mkdir()
    facts = write(bundle, model, directory / to, precision, attention)
    kept = [name for name in bundle.files if name != WEIGHTS or with_weights]
    for name in kept:
        shutil.copyfile(bundle.path / name, directory / name)
    bare = bundle.tokenizers.source.bare
    if bare is not bundle.tokenizers.source:
        (directory / bare.file).write_bytes(bare.model)  # the network that saw its sources before is now part of it
    made = [f"{to}/{path.name}" for path in sorted((directory / to).iterdir())]
    engine = {"name": to, "precision": precision, "made_from": bundle.files[WEIGHTS]["sha256"], **facts}
    seal(directory, [*kept, *made], bundle.facts, engine=engine)


def check_reader(bundle: Bundle, with_weights: bool) -> None:
    """The weights of torch read what a frozen network saw; what is exported sees for itself."""
    network = bundle.tokenizers.source.network
    if with_weights and network is not None:
        raise UsageError(
            f"--with-weights: what torch's weights read is what {network} saw, which the exported model sees for "
            "itself, so they cannot stand beside it; leave it out"
        )


def check_exportable(bundle: Bundle) -> None:
    """Only what was trained is exported."""
    if bundle.engine["name"] != "torch":
        raise UsageError(
            f"{bundle.path}: was exported already, to {bundle.engine['name']}; export what it was made from"
        )


def check_place(path: Path, source: Path, force: bool) -> None:
    """An export replaces only what is another model, and only if asked to."""
    if path.resolve() == source.resolve():
        raise UsageError(f"{path}: is the model itself; name another directory")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is a file; --out names a directory")
    if not path.exists() or not any(path.iterdir()):
        return
    if not (path / MANIFEST).is_file() or "engine" not in read_manifest(path):
        raise UsageError(f"{path}: is not empty and is no exported model, so it is never replaced; name another")
    if not force:
        raise UsageError(f"{path}: is there already; add --force to replace it, or name another directory")
