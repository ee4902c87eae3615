"""`softgaze export`: convert a trained model for a faster engine and verify the result."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import choice, flag, option
from softgaze.cli._output import warn
from softgaze.errors import DataError, UsageError

if TYPE_CHECKING:
    from softgaze.bundle import Bundle
    from softgaze.data.tokenizer import Processor
    from softgaze.evaluation.export_parity import ParityReport
    from softgaze.explain import SelectedMap
    from softgaze.translator import Translator

Pairs = list[tuple[str, str]]
PAIR_OPTIONS = {
    "text": "--dev SRC TGT",
    "image": "--images DIR --captions FILE",
    "features": "--features DIR --captions FILE",
}


def export(
    model: opt.Model,
    to: Annotated[opt.ExportEngine, choice("Engine: ctranslate2 for transformer, onnx for the RNNs and captioner.")],
    out: Annotated[Path, option("New model directory.", "--out", "--output", "-o", metavar="DIR")],
    quantize: Annotated[
        opt.WeightPrecision | None, choice("Precision of the weights.", of=opt.WeightPrecision, default="float32")
    ] = None,
    dev: Annotated[
        tuple[Path, Path] | None,
        option("Pairs to verify on.", metavar="SRC TGT", default="validation data of the model"),
    ] = None,
    source_lang: opt.ModelSource = None,
    target_lang: opt.ModelTarget = None,
    images: opt.Images = None,
    features: opt.Features = None,
    captions: opt.Captions = None,
    with_weights: Annotated[
        bool, flag("Keep the torch weights too, for all attention maps and what-ifs.", "--with-weights")
    ] = False,
    allow_drift: Annotated[bool, flag("Write the export even if it is not verified.", "--allow-drift")] = False,
    force: Annotated[bool, flag("Replace an existing exported model.", "--force")] = False,
) -> None:
    """Export a model to run without torch.

    softgaze export runs/m30k --to ctranslate2 --quantize int8 -o m30k-int8
    softgaze translate m30k-int8 "A dog runs."
    softgaze export runs/photos --to onnx -o photos-onnx

    The export is verified on held-out pairs. float32: every token's
    log-probability differs by at most 0.0001 and 200 greedy outputs are
    equal. int8: BLEU falls by at most 0.3, and not significantly; else finer
    quantizations are tried, and the loss and size of each are printed. If
    all differ more, nothing is written (code 5).
    """
    from softgaze.atomic_io import new_directory, remove
    from softgaze.bundle import Bundle, add_facts
    from softgaze.engines.export import check_exportable, check_model, check_output, check_target, quantizations
    from softgaze.engines.export import export as write_export
    from softgaze.evaluation.export_parity import measure_parity
    from softgaze.translator import load

    precision = check_target(to, quantize)
    check_output(out, model, force)
    bundle = Bundle.open(model)
    check_exportable(bundle)
    pairs = verification_pairs(bundle, dev, opt.CaptionFiles(images, features, captions), allow_drift)
    languages = opt.LanguagePair(source_lang, target_lang)  # of the pairs to verify on
    trained = load(model, "cpu", engine="torch", **languages._asdict())
    check_model(to, bundle, trained.model)
    attention_map = exported_map(trained, pairs, to)
    attempts = quantizations(to, precision)
    with new_directory(out.resolve()) as directory:
        for attempt, description in enumerate(attempts):
            for path in directory.iterdir():  # of an earlier attempt
                remove(path)
            write_export(
                bundle,
                trained.model,
                directory,
                to,
                precision,
                attention_map,
                with_weights=with_weights,
                attempt=attempt,
            )
            exported = load(directory, "cpu", **languages._asdict(), explain_with_torch=False)
            proof = measure_parity(trained, exported, pairs, quantized=precision != "float32") if pairs else None
            if proof is None or allow_drift or proof.is_acceptable:
                break
            warn(f"{description}: {exported_size(exported.bundle):,.1f} MB, {proof.loss()}")
            if attempt == len(attempts) - 1:
                proof.check()
        add_facts(directory, {"proof": proof.to_dict() if proof else None}, section="engine")
    typer.echo("\n".join(result_lines(bundle, Bundle.open(out), proof)))


def exported_size(bundle: "Bundle") -> float:
    """Return the size of the engine's own files in MB."""
    return float(sum(file["bytes"] for name, file in bundle.files.items() if "/" in name)) / 1e6


def verification_pairs(
    bundle: "Bundle", dev: tuple[Path, Path] | None, files: opt.CaptionFiles, allow_drift: bool
) -> Pairs:
    """Return readable pairs to verify on: given, of the model's input type, or held out in training."""
    from softgaze.data.captions import scan_captions
    from softgaze.data.corpus import read_pairs

    skip, processor = opt.SkipReporter(), bundle.tokenizers.source
    inputs = {"text": dev, "image": files.images, "features": files.features}
    if any(value is not None and kind != processor.kind for kind, value in inputs.items()):
        raise UsageError(f"{bundle.path}: give pairs of the model's input type: {PAIR_OPTIONS[processor.kind]}")
    if files.is_given:
        entries = scan_captions(*files.directory_and_captions(), skip)
        pairs = [(str(entry.path), caption) for entry in entries for caption in entry.captions]
    else:
        pairs = [(pair.source, pair.target) for pair in read_pairs(*dev)] if dev else bundle.held_out or []
    readable = readable_pairs(processor, pairs, skip)
    skip.summarize()
    if readable or (allow_drift and not files.is_given and dev is None):
        return readable
    remedy = f"with {PAIR_OPTIONS[processor.kind]}, or --allow-drift to skip the verification"
    if pairs:
        raise DataError(
            f"{bundle.path}: none of the {len(pairs):,} pairs to verify on is readable; give others {remedy}"
        )
    raise UsageError(f"{bundle.path}: contains no held-out pairs to verify on; give some {remedy}")


def readable_pairs(processor: "Processor", pairs: Pairs, skip: opt.SkipReporter) -> Pairs:
    """Return the pairs whose source is readable, as many as the verification needs."""
    from softgaze.evaluation.export_parity import MAX_SENTENCES

    readable, sources = set[str](), [*dict.fromkeys(source for source, _ in pairs)]
    for batch in opt.blocks(sources, processor.batch_size):
        readable.update(opt.readable(processor, batch, skip))
        if len(readable) >= MAX_SENTENCES:
            break
    return [pair for pair in pairs if pair[0] in readable]


def exported_map(trained: "Translator", pairs: Pairs, engine: str) -> "SelectedMap | None":
    """Return the attention map the engine should record: the selected one, or the best it can record."""
    from softgaze.engines.export import TARGETS
    from softgaze.explain.map_selection import select_by_occlusion

    can_record = TARGETS[engine].records
    if trained.selected_map is not None and can_record(trained.selected_map.view):
        return trained.selected_map
    return select_by_occlusion(trained.aligner().forward, pairs, can_record) or trained.selected_map


def result_lines(before: "Bundle", after: "Bundle", proof: "ParityReport | None") -> list[str]:
    """Describe the export, its size and its verification."""
    from softgaze.bundle import WEIGHTS

    torch_size = before.files[WEIGHTS]["bytes"]
    lines = [
        f"wrote {after.path}: {after.engine['name']}, {after.engine['precision']}, {exported_size(after):,.1f} MB "
        f"(torch weights: {torch_size / 1e6:,.1f} MB)"
    ]
    if proof is None:
        return [*lines, "not verified: there were no pairs"]
    return [*lines, f"verified: {proof.tokens()}", *([f"verified: {proof.quality}"] if proof.quality else [])]
