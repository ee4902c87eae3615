"""`softgaze quickstart`: the whole thing, on the built-in corpus, in minutes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import scenes
from softgaze.cli.scenes import learn_scenes

if TYPE_CHECKING:
    from softgaze.translator import Translator

PAIRS, STEPS, SHOWN = 20_000, 2190, 3

# A model and a course that learn the phrasebook in minutes on two cores: few layers, no dropout in so few epochs,
# small batches, and a rate that falls to nothing at the last step.
MODEL = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
TRAINING = {
    "batch_tokens": 560,
    "learning_rate": 3e-3,
    "warmup": 150,
    "schedule": "cosine",
    "label_smoothing": 0.05,
    "average": 0,
}


def quickstart(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where data and model go; else runs/quickstart[-images].")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="Pictures and their captions instead of sentences.")] = False,
    steps: Annotated[int | None, typer.Option(help="Updates; fewer are quicker and worse.")] = None,
    pairs: Annotated[int | None, typer.Option(help="Sentence pairs, or pictures, to learn from.")] = None,
    seed: Annotated[int, typer.Option(help="Everything random follows from this number.")] = 1,
) -> None:
    """Write an English–Korean phrasebook, train on it, translate, and show where each word looked.

    With --images, draw pictures of coloured shapes and learn to say what they show.

    Either takes about three minutes on two processor cores. Run again, it shows the trained model.
    """
    if images:
        learn_scenes(out or Path("runs/quickstart-images"), steps or scenes.STEPS, pairs or scenes.PICTURES, seed)
    else:
        learn_phrases(out or Path("runs/quickstart"), steps or STEPS, pairs or PAIRS, seed)


def learn_phrases(out: Path, steps: int, pairs: int, seed: int) -> None:
    """The phrasebook."""
    from softgaze.cli.progress import listener_for
    from softgaze.config import validated
    from softgaze.data import phrasebook
    from softgaze.data.corpus import Corpus, read_lines
    from softgaze.metrics import score
    from softgaze.training import Interrupted, train
    from softgaze.translator import load

    data, model_path = out / "data", out / "model"
    if not (data / "train.en").exists():
        phrasebook.write(data, pairs=pairs, seed=seed)
    typer.echo(f"{pairs:,} English–Korean sentence pairs from a small grammar are in {data}\n")
    files = {part: (data / f"{part}.en", data / f"{part}.ko") for part in ("train", "dev", "test")}
    settings = validated(
        {
            "model": {"options": MODEL},
            "training": {**TRAINING, "seed": seed},
            "budget": {"steps": steps},
            "validation": {"every": max(1, steps // 3), "sentences": 100, "samples": 2},
        }
    )
    listener = listener_for(model_path)
    try:
        train(settings, Corpus.of([files["train"]]), Corpus.of([files["dev"]]), model_path, listener=listener)
    except Interrupted as stopped:
        typer.echo(f"softgaze: {stopped}", err=True)
        raise typer.Exit(stopped.exit_code) from None
    finally:
        listener.close()

    translator = load(model_path)
    sources, references = (list(read_lines(path)) for path in files["test"])
    translations = translator.translate(sources, beam=1)
    scores = score([each.text for each in translations], references, language="ko", ter=False)
    typer.echo(f"\n{len(sources)} held-out sentences, with combinations of words never seen in training:")
    typer.echo("\n".join(scores.lines()))
    show_attention(translator, sources)
    typer.echo(next_steps(model_path, data))


def show_attention(translator: "Translator", sources: list[str]) -> None:
    """A few translations, each with its heat map."""
    for source in pick_varied(sources):
        found = translator.translate(source)
        typer.echo(f"\n{source}\n{found.text}\n")
        if found.attention is not None:
            typer.echo(f"{found.attention}\n")


def pick_varied(sources: list[str]) -> list[str]:
    """Some sentences of different lengths, none so long that its picture wraps."""
    short = sorted((text for text in sources if 4 <= len(text.split()) <= 10), key=lambda text: len(text.split()))
    return [short[len(short) * place // SHOWN] for place in range(SHOWN)] if short else sources[:SHOWN]


def next_steps(model: Path, data: Path) -> str:
    """What to try now."""
    return f"""Try next:
  softgaze translate {model} "Minsu bought a red bag at the market."
  softgaze explain {model} "Minsu bought a red bag at the market." -o look.html   # where each word looked, to play with
  softgaze evaluate {model} --test {data}/test.en {data}/test.ko
  softgaze align {model} {data}/test.en {data}/test.ko --gold {data}/test.gold --gold-base 0
  softgaze info {model}
  softgaze check your.en your.de                                  # is your own text fit to train on?
  softgaze train --train your.en your.de --out runs/mine          # your own translator"""
