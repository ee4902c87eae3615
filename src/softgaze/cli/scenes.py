"""`softgaze quickstart --images`: the built-in pictures from drawing to pointing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from softgaze.data.scenes import Scene
    from softgaze.evaluation.pointing import Pointed
    from softgaze.translator import Translation

PICTURES, STEPS, SHOWN = 10_000, 1500, 3

# 64 pictures an update, of 8 × 8 patches. A Transformer's decoder learns all words of a caption at once: two thirds of
# the time that a recurrent one takes, and more captions right. A second layer of it finds things sooner, and smoothed
# labels keep what was never said sayable (docs/log.md).
MODEL = {
    "decoder": "transformer",
    "encoder": "cnn",
    "width": 128,
    "layers": 2,
    "encoder_layers": 1,
    "dropout": 0.0,
}
TRAINING = {
    "batch_tokens": 4096,
    "learning_rate": 2e-3,
    "warmup": 150,
    "schedule": "cosine",
    "weight_decay": 0.1,
    "label_smoothing": 0.1,
    "average": 0,
}


def learn_scenes(out: Path, steps: int, pictures: int, seed: int) -> None:
    """Draw pictures of shapes, learn to say what they show, and see whether each noun looks at its shape."""
    from softgaze.cli.progress import listener_for
    from softgaze.config import validated
    from softgaze.data import scenes
    from softgaze.data.album import Album
    from softgaze.data.captions import read
    from softgaze.data.readers import Pictures
    from softgaze.training import Interrupted, train
    from softgaze.translator import load

    data, model = out / "data", out / "model"
    if not (data / "README.txt").exists():
        scenes.write(data, pictures, seed)
    typer.echo(f"{pictures:,} pictures of coloured shapes and their captions are in {data}\n")
    reader = Pictures(scenes.SIDE, scenes.SIDE // 8)
    learnt, dev = (
        Album(data / "images", path, read(data / "images", path), reader)
        for path in (data / f"{part}.en.csv" for part in ("train", "dev"))
    )
    settings = validated(
        {
            "model": {"arch": "captioner", "options": MODEL},
            "data": {"side": scenes.SIDE},
            "training": {**TRAINING, "seed": seed},
            "budget": {"steps": steps},
            "validation": {"every": max(1, steps // 3), "sentences": 100, "samples": 2},
        }
    )
    listener = listener_for(model)
    try:
        train(settings, learnt, dev, model, listener=listener)
    except Interrupted as stopped:
        typer.echo(f"softgaze: {stopped}", err=True)
        raise typer.Exit(stopped.exit_code) from None
    finally:
        listener.close()
    shown = scenes.generate(pictures, seed).test
    entries = read(data / "images", data / "test.en.csv")
    found = load(model).translate([str(entry.image) for entry in entries], beam=1)
    typer.echo(report(found, shown))
    typer.echo(next_steps(model, data))


def report(found: "Sequence[Translation]", shown: "Sequence[Scene]") -> str:
    """How many captions are exactly right, how well their nouns point, and a few of them."""
    from softgaze.data.scenes import caption
    from softgaze.metrics import score

    references = [caption(scene).text for scene in shown]
    scores = score([each.text for each in found], references, language="en", ter=False)
    lines = [
        f"\n{len(shown)} held-out pictures, of shapes in colours never seen together in training:",
        *scores.lines(),
    ]
    pointing = nouns_point(found, shown)
    lines += [f"pointing {pointing}"] if pointing else []
    for each, reference in list(zip(found, references, strict=True))[:SHOWN]:
        lines += ["", f"  {each.source}", f"    caption    {each.text}", f"    reference  {reference}"]
    return "\n".join(lines)


def nouns_point(found: "Sequence[Translation]", shown: "Sequence[Scene]") -> "Pointed | None":
    """The mean over all nouns that name what is there in their turn."""
    from softgaze.evaluation.pointing import average, pointed, scene_mentions

    looks = found[0].asked().attentions(found) if found else []
    return average(
        pointed(look, word, boxes)
        for each, look, scene in zip(found, looks, shown, strict=True)
        if look is not None
        for word, boxes in scene_mentions(scene, each.text)
    )


def next_steps(model: Path, data: Path) -> str:
    """What to try now."""
    return f"""
Try next:
  softgaze caption {model} {data}/images/test-000000.png -o look.html          # where each word looked, to play with
  softgaze evaluate {model} --images {data}/images --captions {data}/test.en.csv
  softgaze info {model}
  softgaze train --images your/photos --captions your.csv --out runs/photos     # your own captioner"""
