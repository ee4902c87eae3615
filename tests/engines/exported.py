"""Tiny models that have something to say, and their exports: what the tests of every engine need."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch

from bundles import SMALL, lines, make_bundle
from softgaze.bundle import Bundle, save_bundle
from softgaze.engines.export import export
from softgaze.explain import SelectedMap, View
from softgaze.models import Source
from softgaze.special_tokens import BOS, EOS, PAD

OPTIONS = {**SMALL, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}
TOLD = SelectedMap(View(layer=1, head=2, rows="reading"), 0.5, "a coin", 3)  # no default anywhere
TOLD_BY_RNN = SelectedMap(View(layer=0, head=0, rows="reading"), 0.5, "a coin", 3)
STEPS = 150


def lively_bundle(path: Path, **changes) -> Path:
    """An untrained model whose tokens differ in likelihood."""
    make_bundle(path, **{"options": OPTIONS, **changes})

    def stir(model, tokenizers):
        for each in model.parameters():
            each.data.add_(torch.randn_like(each) * (0.25 if each.ndim > 1 else 0.1))

    return changed(path, stir)


@cache
def trained_bundle(arch: str = "transformer") -> Path:
    """A model that has begun to learn to copy, so that it ends its sentences and writes no special token.

    For all tests to read, not to be changed; removed when they are done.
    """
    directory = Path(tempfile.mkdtemp(prefix="softgaze-engines-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    options = {"width": 32, "feed_forward_width": 32, "positions": "rotary"} if arch == "transformer" else {"width": 32}
    base = OPTIONS if arch == "transformer" else {}
    told = TOLD if arch == "transformer" else TOLD_BY_RNN
    return changed(make_bundle(directory / arch, arch=arch, options={**base, **options}), learn_to_copy, told)


def learn_to_copy(model, tokenizers):
    """A few seconds of training."""
    texts = tokenizers.source.encode(lines("en", 300))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for step in range(STEPS):
        batch = texts[step * 16 % len(texts) :][:16]
        longest = max(map(len, batch)) + 1
        target = torch.tensor([[BOS, *ids, EOS] + [PAD] * (longest - len(ids)) for ids in batch])
        logits = model(Source.of([[*ids, EOS] for ids in batch]), target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()


def changed(path: Path, change, told: SelectedMap = TOLD) -> Path:
    """The bundle with other weights, and with a map to tell."""
    bundle = Bundle.open(path)
    model = bundle.model()
    torch.manual_seed(2)
    change(model, bundle.tokenizers)
    save_bundle(path, model, bundle.description, bundle.tokenizers, bundle.detector, {"attention": told.to_dict()})
    return path


def exported(
    source: Path, path: Path, to: str, precision: str = "float32", told: SelectedMap | None = TOLD, **more
) -> Path:
    """The same model for another engine, without a proof."""
    bundle = Bundle.open(source)
    path.mkdir()
    export(bundle, bundle.model(), path, to, precision, told, **more)
    return path
