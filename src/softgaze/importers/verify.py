"""Compare an imported bundle with its original: logits if the original implementation runs here, else all tensors."""

import gc
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from softgaze.bundle import WEIGHTS, Bundle, Tokenizers, tensor_shapes
from softgaze.engines.torch_engine import TorchEngine
from softgaze.errors import DataError, DivergedError
from softgaze.importers import ImportCallback
from softgaze.importers.base import ImportedModel, RowOrder
from softgaze.models import Seq2Seq, Source
from softgaze.translator import Translator

LENGTHS = (3, 9, 17)  # tokens of the compared sentences
TOLERANCE = 1e-3  # of float32 logits: a wrong layer differs by more than 1, rounding by less than 1e-4
ROUNDING = {"F32": 0.0, "F16": 2**-10, "BF16": 2**-7}  # relative error of a stored value
SLICE = 1 << 20  # values compared at once: the memory of larger slices would stay with the process
SAMPLE = "Hello, world!"
MAX_REFERENCE_BYTES = 1 << 30  # of a model that the original library loads: it needs twice the size in memory


def compare(model: ImportedModel, bundle: Bundle, verify: bool, callback: ImportCallback) -> dict[str, Any]:
    """Compare a written bundle with the original; return the kind of comparison and the largest difference."""
    if not verify:
        return {"compared_with": "nothing, as requested", "largest_difference": float("nan"), "sample": ""}
    chosen = first_languages(bundle)
    is_large = sum(path.stat().st_size for path in model.files) > MAX_REFERENCE_BYTES
    load_reference = None if is_large else model.reference
    callback.on_verify("tensors" if load_reference is None else "logits")
    reference = load_reference() if load_reference else None
    compared = "the tensors of the file, read again" if reference is None else f"logits of {reference.name}"
    if reference is None:
        difference = compare_tensors(model, bundle)
    else:
        sources, targets = sample_ids(chosen.tokenizers)
        expected = reference.logits(foreign_ids(model.source_order, sources), foreign_ids(model.target_order, targets))
        del reference
        gc.collect()  # never both models in memory
    translator = Translator(chosen, TorchEngine.open(chosen, "cpu"))
    if "logits" in compared:
        difference = compare_logits(translator.model, model.target_order, sources, targets, expected, bundle)
    sample = translator.translate(SAMPLE, beam_size=1, max_length=32).text
    return {"compared_with": compared, "largest_difference": difference, "sample": sample}


def first_languages(bundle: Bundle) -> Bundle:
    """Return the bundle with the first language pair of a multilingual model."""
    languages = bundle.tokenizers.languages
    if languages is None:
        return bundle
    return bundle.with_languages(next(iter(languages.source), None), next(iter(languages.target), None))


def sample_ids(tokenizers: Tokenizers) -> tuple[list[list[int]], list[list[int]]]:
    """Return random source and decoder ids of our vocabulary, framed as in a translation."""
    draw = torch.Generator().manual_seed(0)

    def sentence(tokenizer: Any, length: int) -> list[int]:
        rows = [*tokenizer.text_ids.values()]
        return [rows[index] for index in torch.randint(len(rows), (length,), generator=draw).tolist()]

    source, target = tokenizers.source, tokenizers.target
    sources = [list(source.add_eos(sentence(source, length))) for length in LENGTHS]
    return sources, [[*target.start, *sentence(target, max(LENGTHS))] for _ in LENGTHS]


def foreign_ids(order: RowOrder, sentences: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[order.rows[token] for token in sentence] for sentence in sentences]


@torch.inference_mode()
def compare_logits(
    model: Seq2Seq,
    order: RowOrder,
    sources: list[list[int]],
    targets: list[list[int]],
    expected: Tensor,
    bundle: Bundle,
) -> float:
    """Return the largest difference of the logits of all foreign rows."""
    logits = model(Source.of(sources), torch.tensor(targets))
    shown = [row for row in range(len(order.rows)) if row not in order.hidden]
    difference = float((logits[..., shown] - expected[..., [order.rows[row] for row in shown]].float()).abs().max())
    tolerance = TOLERANCE if stored_types(bundle) == {"F32"} else float("inf")  # rounded weights give other logits
    if not difference <= tolerance:
        raise DivergedError(f"the imported model differs from the original: its logits differ by {difference:.3g}")
    return difference


def compare_tensors(model: ImportedModel, bundle: Bundle) -> float:
    """Read every tensor of the original again; return the largest difference, which is that of rounding."""
    from safetensors import safe_open

    largest, path = 0.0, bundle.path / WEIGHTS
    for name in tensor_shapes(path):
        with safe_open(path, framework="pt") as file:  # opened for each, so that read pages leave the memory
            stored, kind, start = file.get_tensor(name), file.get_slice(name).get_dtype(), 0
        for block in model.tensors[name].blocks():
            written = stored[start : start + len(block)]
            start += len(block)
            for one, other in zip(*(torch.split(each.flatten(), SLICE) for each in (written, block)), strict=True):
                difference = (one.float() - other.float()).abs_()
                errors = difference - ROUNDING[kind] * other.float().abs()
                if errors.numel() and float(errors.max()) > 2**-24:  # below it float16 rounds to zero
                    raise DataError(f"{path}: {name} differs from the original")
                largest = max(largest, float(difference.max()) if other.numel() else 0.0)
    return largest


def stored_types(bundle: Bundle) -> set[str]:
    """Return the types of the stored tensors."""
    from safetensors import safe_open

    with safe_open(bundle.path / WEIGHTS, framework="np") as file:
        return {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118  not a dict
