"""`softgaze quickstart`: train, score and inspect a model on a built-in corpus, in minutes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgaze.cli._options import flag, option

if TYPE_CHECKING:
    from softgaze.config import Config
    from softgaze.data.corpora.scenes import Scene
    from softgaze.translation import Translation
    from softgaze.translator import Translator

EXAMPLES = 3  # shown at the end

# Settings that learn each corpus in minutes on two cores: few layers, small batches, no dropout in so few epochs, and
# a learning rate that falls to zero at the last step.
TEXT_PAIRS, TEXT_STEPS = 20_000, 1500
TEXT_MODEL = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
TEXT_TRAINING = {
    "batch_tokens": 560,
    "learning_rate": 3e-3,
    "warmup": 100,
    "label_smoothing": 0.05,
}

# 64 images of 8 x 8 patches per update. A Transformer decoder trains in two thirds of the time of an RNN, and more of
# its captions are right; label smoothing keeps combinations that never occur in training possible.
IMAGE_COUNT, IMAGE_STEPS = 10_000, 1500
IMAGE_MODEL = {
    "decoder": "transformer",
    "encoder": "cnn",
    "width": 128,
    "layers": 2,
    "encoder_layers": 1,
    "dropout": 0.0,
}
IMAGE_TRAINING = {
    "batch_tokens": 4096,
    "learning_rate": 2e-3,
    "warmup": 150,
    "schedule": "cosine",
    "weight_decay": 0.1,
    "label_smoothing": 0.1,
}


def quickstart(
    out: Annotated[
        Path | None,
        option("Directory of data and model.", "--out", "-o", metavar="DIR", default="runs/quickstart[-images]"),
    ] = None,
    images: Annotated[bool, flag("Caption images instead of translating text.", "--images")] = False,
    steps: Annotated[
        int | None, option("Number of updates.", default=f"{TEXT_STEPS}; images: {IMAGE_STEPS}", min=1)
    ] = None,
    pairs: Annotated[
        int | None, option("Training pairs or images.", default=f"{TEXT_PAIRS}; images: {IMAGE_COUNT}", min=1)
    ] = None,
    seed: Annotated[int, option("Random seed of the training.")] = 1,
) -> None:
    """Train and inspect a first model in minutes.

    softgaze quickstart
    softgaze quickstart --images

    Writes a built-in English-Korean corpus, trains a Transformer on it,
    scores it and prints attention maps. With --images: images of coloured
    shapes and a captioner. Run again, it shows the trained model.
    """
    if images:
        quickstart_images(out or Path("runs/quickstart-images"), steps or IMAGE_STEPS, pairs or IMAGE_COUNT, seed)
    else:
        quickstart_text(out or Path("runs/quickstart"), steps or TEXT_STEPS, pairs or TEXT_PAIRS, seed)


def make_config(
    model: dict[str, Any], training: dict[str, Any], steps: int, seed: int, **sections: dict[str, Any]
) -> "Config":
    """Return the configuration of a short run with three validations."""
    from softgaze.config import parse_config

    return parse_config(
        {
            "model": model,
            "training": {**training, "seed": seed},
            "budget": {"steps": steps},
            "validation": {"every": max(1, steps // 3), "sentences": 100, "samples": 2},
            **sections,
        }
    )


# --- text


def quickstart_text(out: Path, steps: int, pairs: int, seed: int) -> None:
    """Train a translator on the phrasebook and show its scores and attention."""
    from softgaze.cli._progress import training_display
    from softgaze.data.corpora import phrasebook
    from softgaze.data.corpus import Corpus, read_lines
    from softgaze.metrics import score
    from softgaze.training.train import train
    from softgaze.translator import load

    data, model = out / "data", out / "model"
    if not (data / "train.en").exists():
        phrasebook.write(data, pairs=pairs, seed=1)
    typer.echo(f"{pairs:,} English-Korean sentence pairs are in {data}\n")
    files = {split: (data / f"{split}.en", data / f"{split}.ko") for split in ("train", "dev", "test")}
    settings = make_config({"options": TEXT_MODEL}, TEXT_TRAINING, steps, seed)
    with training_display(model) as callbacks:
        train(settings, Corpus.of([files["train"]]), Corpus.of([files["dev"]]), model, callback=callbacks)

    translator = load(model)
    sources, references = (list(read_lines(path)) for path in files["test"])
    translations = translator.translate(sources, beam_size=1)
    scores = score([translation.text for translation in translations], references, language="ko", ter=False)
    typer.echo(f"\n{len(sources)} test sentences, with word combinations that are not in the training data:")
    typer.echo("\n".join(scores.lines()))
    show_attention(translator, sources)
    typer.echo(
        f"""Try next:
  softgaze translate {model} "Minsu bought a red bag at the market."
  softgaze explain {model} "Minsu bought a red bag at the market." -o attention.html   # interactive page
  softgaze evaluate {model} --test {data}/test.en {data}/test.ko
  softgaze align {model} {data}/test.en {data}/test.ko --gold {data}/test.gold --gold-base 0
  softgaze info {model}
  softgaze check your.en your.de                                  # check the quality of your own corpus
  softgaze train --train your.en your.de --out runs/mine          # train your own translator"""
    )


def show_attention(translator: "Translator", sources: list[str]) -> None:
    """Print a few translations of different lengths with their attention maps, none so wide that it wraps."""
    candidates = sorted((text for text in sources if 4 <= len(text.split()) <= 10), key=lambda text: len(text.split()))
    examples = [candidates[len(candidates) * index // EXAMPLES] for index in range(EXAMPLES)] if candidates else sources
    for source in examples[:EXAMPLES]:
        translation = translator.translate(source)
        typer.echo(f"\n{source}\n{translation.text}\n")
        if translation.attention is not None:
            typer.echo(f"{translation.attention}\n")


# --- images


def quickstart_images(out: Path, steps: int, count: int, seed: int) -> None:
    """Train a captioner on images of shapes and show whether each noun attends to its shape."""
    from softgaze.cli._progress import training_display
    from softgaze.data.captions import CaptionCorpus, read_captions
    from softgaze.data.corpora import scenes
    from softgaze.data.processors import ImageProcessor
    from softgaze.training.train import train
    from softgaze.translator import load

    data, model = out / "data", out / "model"
    if not (data / "README.txt").exists():
        scenes.write(data, count)
    typer.echo(f"{count:,} images of coloured shapes and their captions are in {data}\n")
    reader = ImageProcessor(scenes.SIDE, scenes.SIDE // 8)
    train_data, dev_data = (
        CaptionCorpus(data / "images", path, read_captions(data / "images", path), reader)
        for path in (data / f"{split}.en.csv" for split in ("train", "dev"))
    )
    model_settings = {"arch": "captioner", "options": IMAGE_MODEL}
    settings = make_config(model_settings, IMAGE_TRAINING, steps, seed, data={"image_size": scenes.SIDE})
    with training_display(model) as callbacks:
        train(settings, train_data, dev_data, model, callback=callbacks)
    test_scenes = scenes.load("test", count)
    entries = read_captions(data / "images", data / "test.en.csv")
    translator = load(model)
    captions = translator.translate([str(entry.path) for entry in entries], beam_size=1)
    typer.echo(caption_report(translator, captions, test_scenes))
    typer.echo(
        f"""
Try next:
  softgaze caption {model} {data}/images/test-000000.png -o attention.html     # interactive page
  softgaze evaluate {model} --images {data}/images --captions {data}/test.en.csv
  softgaze info {model}
  softgaze train --images your/photos --captions your.csv --out runs/photos     # train your own captioner"""
    )


def caption_report(translator: "Translator", captions: "Sequence[Translation]", scenes: "Sequence[Scene]") -> str:
    """Return the scores of the captions, the pointing game, and a few examples."""
    from softgaze.evaluation.attention_metrics import mean_pointing, pointing_score, scene_mentions
    from softgaze.metrics import score

    references = [scene.captions["en"] for scene in scenes]
    scores = score([translation.text for translation in captions], references, language="en", ter=False)
    title = f"\n{len(scenes)} test images, with colours and shapes that are not combined in training:"
    lines = [title, *scores.lines()]
    pointing = mean_pointing(  # over all nouns of the captions
        pointing_score(attention, word, boxes)
        for translation, attention, scene in zip(captions, translator.attentions(captions), scenes, strict=True)
        if attention is not None
        for word, boxes in scene_mentions(scene, translation.text)
    )
    lines += [f"pointing {pointing}"] if pointing else []
    for translation, reference in list(zip(captions, references, strict=True))[:EXAMPLES]:
        lines += ["", f"  {translation.source}", f"    caption    {translation.text}", f"    reference  {reference}"]
    return "\n".join(lines)
