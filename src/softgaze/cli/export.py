"""`softgaze export`: a trained model for a fast engine. Knows files and printing; the proof is `evaluation`'s."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli.folders import Complaints, Folders

if TYPE_CHECKING:
    from softgaze.bundle import Bundle
    from softgaze.data.readers import Reader
    from softgaze.evaluation.proof import Proof
    from softgaze.gaze import Choice
    from softgaze.translator import Translator

Pairs = list[tuple[str, str]]
GIVEN = {"text": "--dev SRC TGT", "image": "--images DIR --captions FILE", "features": "--features DIR --captions FILE"}


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The directory of a trained model.")],
    to: Annotated[str, typer.Option(help="What shall run it: ctranslate2 (transformer) or onnx (rnn…, captioner).")],
    output: Annotated[Path, typer.Option("--out", "--output", "-o", metavar="DIR", help="The new model directory.")],
    quantize: Annotated[
        str | None,
        typer.Option(help="float32, int8 or int8_float32 (written as int8): precision of the weights.  [float32]"),
    ] = None,
    dev: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SRC TGT", help="Pairs to prove it on.  [those held out in training]"),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For a captioner: pictures to prove it on, with --captions.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For one of sounds or arrays: files to prove it on.")
    ] = None,
    captions: Annotated[Path | None, typer.Option(metavar="FILE", help="Their captions, as in training.")] = None,
    with_weights: Annotated[
        bool, typer.Option("--with-weights", help="Keep the torch weights beside it: explain shows everything.")
    ] = False,
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Write it even if it is not proven to be the same model.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an exported model that is there already.")] = False,
) -> None:
    """Make a trained model small and quick, to run without torch, and prove that it is still the same model.

    softgaze export runs/m30k --to ctranslate2 --quantize int8 -o m30k-int8

    softgaze translate m30k-int8 "A dog runs."

    softgaze export runs/photos --to onnx -o photos-onnx

    softgaze caption photos-onnx beach.jpg

    The result is a model directory like any other. The proof: in float32 every token is as likely as before (to 0.0001)
    and 200 greedy outputs are the same; in int8 the translations are as good (at most 0.3 BLEU less, and
    not significantly). Otherwise nothing is written, and it is said by how much the two differ.
    """
    from softgaze.bundle import Bundle, add_facts
    from softgaze.engines.exporting import check_exportable, check_place, check_runs, check_target
    from softgaze.engines.exporting import export as write
    from softgaze.files import new_directory
    from softgaze.translator import load

    precision = check_target(to, quantize)
    check_place(output, model, force)
    bundle = Bundle.open(model)
    check_exportable(bundle)
    pairs = pairs_of(bundle, dev, Folders(images, features, captions), allow_drift)
    trained = load(model, "cpu")
    check_runs(to, bundle, trained.model)
    chosen = map_to_tell(trained, pairs, to)
    with new_directory(output.resolve()) as place:
        write(bundle, trained.model, place, to, precision, chosen, with_weights=with_weights)
        proof = proven(trained, load(place, "cpu", full=False), pairs, precision, allow_drift)
        add_facts(place, {"proof": proof.to_dict() if proof else None}, section="engine")
    for line in told(bundle, Bundle.open(output), proof):
        typer.echo(line)


# --- what to prove it on ------------------------------------------------------------------------------------------


def pairs_of(bundle: "Bundle", dev: tuple[Path, Path] | None, folders: Folders, allow_drift: bool) -> Pairs:
    """What to prove it on: given, or held out in training; without either it cannot be proven."""
    from softgaze.errors import DataError, UsageError

    complaints, reader = Complaints(), bundle.tokenizers.source
    given = given_pairs(bundle, dev, folders, complaints)
    pairs = (bundle.held_out or []) if given is None else given
    found = readable(reader, pairs, complaints)
    complaints.conclude()
    if found or (allow_drift and given is None):
        return found
    instead = f"with {GIVEN[reader.kind]}, or --allow-drift to do without proof"
    if pairs:
        raise DataError(
            f"{bundle.path}: none of the {len(pairs):,} pairs to prove it on can be read; give others {instead}"
        )
    raise UsageError(f"{bundle.path}: holds no held-out pairs to prove the export on; give some {instead}")


def given_pairs(
    bundle: "Bundle", dev: tuple[Path, Path] | None, folders: Folders, complaints: Complaints
) -> Pairs | None:
    """Those of the command line, which must be of what the model reads."""
    from softgaze.data.captions import survey
    from softgaze.data.corpus import read_pairs
    from softgaze.errors import UsageError

    reader = bundle.tokenizers.source
    given = {"text": dev, "image": folders.images, "features": folders.features}
    if any(value is not None and kind != reader.kind for kind, value in given.items()):
        raise UsageError(f"{bundle.path}: is proven on what it reads; give {GIVEN[reader.kind]}")
    if folders.given:
        entries = survey(*folders.one(), complaints)
        return [(str(entry.image), caption) for entry in entries for caption in entry.captions]
    return None if dev is None else [(pair.source, pair.target) for pair in read_pairs(*dev)]


def readable(reader: "Reader", pairs: Pairs, complaints: Complaints) -> Pairs:
    """Those whose source can be read, as many as a proof needs; of every other a line says why not."""
    from softgaze.evaluation.proof import SENTENCES

    known, sources = set[str](), [*dict.fromkeys(source for source, _ in pairs)]
    for start in range(0, len(sources), reader.together):
        some = sources[start : start + reader.together]
        read = reader.survey(some, complaints)
        known.update(source for source, items in zip(some, read, strict=True) if items is not None)
        if len(known) >= SENTENCES:
            break
    return [pair for pair in pairs if pair[0] in known]


# --- the proof ----------------------------------------------------------------------------------------------------


def map_to_tell(trained: "Translator", pairs: Pairs, to: str) -> "Choice | None":
    """The attention map that the engine shall tell: the chosen one, or the best of those it can."""
    from softgaze.engines.exporting import TARGETS
    from softgaze.gaze.choice import by_influence

    tells = TARGETS[to].tells
    if trained.choice is not None and tells(trained.choice.view):
        return trained.choice
    return by_influence(trained.aligner().forward, pairs, tells) or trained.choice


def proven(
    trained: "Translator", exported: "Translator", pairs: Pairs, precision: str, allow_drift: bool
) -> "Proof | None":
    """The proof, if there are pairs; one that fails is an error, unless drift is allowed."""
    from softgaze.evaluation.proof import prove

    if not pairs:
        return None
    proof = prove(trained, exported, pairs, rounded=precision != "float32")
    if not allow_drift:
        proof.check()
    return proof


def told(before: "Bundle", after: "Bundle", proof: "Proof | None") -> list[str]:
    """What was made, how large it is, and how it was proven."""
    from softgaze.bundle import WEIGHTS

    sizes = (before.files[WEIGHTS]["bytes"], sum(after.files[name]["bytes"] for name in after.files if "/" in name))
    lines = [
        f"wrote {after.path}: {after.engine['name']}, {after.engine['precision']}, {sizes[1] / 1e6:,.1f} MB "
        f"(the weights of torch have {sizes[0] / 1e6:,.1f} MB)"
    ]
    if proof is None:
        return [*lines, "not proven: there were no pairs"]
    return [*lines, f"proof: {proof.tokens()}", *([f"proof: {proof.bleu()}"] if proof.quality else [])]
