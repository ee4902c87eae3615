"""`softgaze train`: from two text files to a translator, from files and captions to a captioner."""

from pathlib import Path
from typing import Annotated, Any

import typer

from softgaze.cli.folders import Folders
from softgaze.cli.pairs import PairCommand, in_pairs

COMMAND = PairCommand

Files = Annotated[
    list[Path] | None,
    typer.Option("--train", metavar="SRC TGT", help="Two files, line by line translations of each other. Repeatable."),
]
DevFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--dev",
        metavar="SRC TGT",
        help="Held-out files (DIR CAPTIONS of pictures); else a part of the pairs is held out.",
    ),
]


def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="Run directory; the same command run again resumes it.")],
    files: Files = None,
    pairs: Annotated[
        list[Path] | None, typer.Option("--pairs", metavar="FILE", help="One TSV or JSONL file of pairs. Repeatable.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder of pictures, to learn their captions.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder of arrays (.npy, .npz) or sounds (.wav) instead.")
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Their captions: image,caption CSV, image#k<TAB>caption, or COCO's JSON."),
    ] = None,
    dev: DevFiles = None,
    guided: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LINKS",
            help="Pharaoh file for each --train, then for each --pairs: one head learns its links. Repeatable.",
        ),
    ] = None,
    arch: Annotated[
        str | None, typer.Option(help="transformer, rnn-luong, rnn-bahdanau, conv, rnn or captioner.")
    ] = None,
    size: Annotated[str | None, typer.Option(help="tiny, small, base or big.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this long, counted over all resumes.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many updates.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Stop after this many passes over the text.")] = None,
    source_lang: Annotated[str | None, typer.Option(help="Language code; else from the file ending.")] = None,
    target_lang: Annotated[str | None, typer.Option(help="Language code; else from the file ending.")] = None,
    vocabulary: Annotated[int | None, typer.Option(help="Number of subwords; else chosen from the text.")] = None,
    seed: Annotated[int | None, typer.Option(help="Everything random follows from this number.")] = None,
    init: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Start from a trained model (fine-tuning).")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file of settings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Any setting, such as training.clip=5.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, deleting the run in --out.")] = False,
    film: Annotated[
        bool | None, typer.Option("--film", help="Keep the attention of one held-out sentence at each validation.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take (memory, time, disk), then stop.")
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard events into the run.")
    ] = False,
) -> None:
    """Train a translator on your own text, or a captioner on your own pictures.

    softgaze train --train train.en train.de --dev val.en val.de --out runs/mine

    softgaze train --images photos --captions captions.csv --out runs/photos

    --arch and --size are all a beginner sets; everything else has defaults that fit them. Ctrl-C saves, and the same
    command goes on. The run directory is a model at any time: softgaze translate runs/mine "Hello."
    """
    from softgaze.cli.progress import listener_for
    from softgaze.config import merged, parse_assignments, read_config, validated
    from softgaze.data.album import Album
    from softgaze.data.corpus import Corpus
    from softgaze.training import Interrupted
    from softgaze.training import train as run_training
    from softgaze.training.rehearsal import rehearse

    flags: dict[str, dict[str, Any]] = {
        "model": {"arch": arch, "size": size},
        "data": {"source_language": source_lang, "target_language": target_lang, "vocabulary": vocabulary},
        "training": {"seed": seed},
        "budget": {"minutes": minutes, "steps": steps, "epochs": epochs},
        "validation": {"film": film},
    }
    given = {
        section: {key: value for key, value in settings.items() if value is not None}
        for section, settings in flags.items()
    }
    folders = Folders(images, features, captions)
    stored = read_config(config) if config else {}
    settings = validated(merged(folders.settings(), stored, given, parse_assignments(set_ or [])))
    corpus: Corpus | Album
    held_out: Corpus | Album | None
    if folders.given:
        folders.check([*(files or []), *(pairs or [])])
        corpus, held_out = folders.albums(settings, in_pairs("--dev", dev))
    else:
        corpus = Corpus.of(in_pairs("--train", files), pairs or [])
        held_out = Corpus.of(in_pairs("--dev", dev)) if dev else None
    if dry_run:
        typer.echo(rehearse(settings, corpus, held_out, device, guided or ()))
        return
    listener = listener_for(out, tensorboard)
    try:
        run_training(
            settings,
            corpus,
            held_out,
            out,
            device=device,
            init=init,
            fresh=fresh,
            guided=guided or (),
            listener=listener,
        )
    except Interrupted as stopped:
        typer.echo(f"softgaze: {stopped}", err=True)
        raise typer.Exit(stopped.exit_code) from None
    finally:
        listener.close()
