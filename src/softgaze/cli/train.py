"""`softgaze train`: a translator from parallel text, or a captioner from files and captions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import choice, flag, option
from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.data.captions import CaptionCorpus

COMMAND = opt.PairCommand


def train(
    out: Annotated[Path, option("Run directory; run again to resume.", "--out", "-o", metavar="DIR")],
    train_files: opt.TrainFiles = None,
    pairs: opt.PairFiles = None,
    images: opt.Images = None,
    features: opt.Features = None,
    captions: opt.Captions = None,
    dev: opt.DevFiles = None,
    guided: Annotated[
        list[Path] | None,
        option(
            "Supervise one attention head: auto learns alignments from the text; or an alignment file (Pharaoh) per "
            "--train, then per --pairs.",
            metavar="auto|LINKS",
            panel=opt.DATA,
        ),
    ] = None,
    source_lang: opt.SourceLang = None,
    target_lang: opt.TargetLang = None,
    vocabulary: opt.Vocabulary = None,
    arch: Annotated[opt.ArchName | None, choice("Architecture.", default="transformer", panel=opt.MODEL_PANEL)] = None,
    size: opt.ModelSize = None,
    init: Annotated[
        Path | None, option("Fine-tune this trained model.", metavar="MODEL", panel=opt.MODEL_PANEL)
    ] = None,
    warm_start: Annotated[
        opt.WarmStart | None,
        choice("First weights.", default="statistics for transformer", panel=opt.MODEL_PANEL),
    ] = None,
    minutes: opt.Minutes = None,
    steps: opt.Steps = None,
    epochs: Annotated[int | None, option("Number of epochs.", panel=opt.LIMITS)] = None,
    seed: opt.Seed = None,
    config: opt.ConfigFile = None,
    assignments: opt.Assignments = None,
    device: opt.Device = "auto",
    fresh: Annotated[bool, flag("Delete the run in --out and start over.", "--fresh")] = False,
    attention_history: Annotated[
        bool | None, flag("Record one dev sentence's attention at each validation.", "--attention-history")
    ] = None,
    dry_run: Annotated[bool, flag("Estimate memory, time and disk space, then exit.", "--dry-run")] = False,
    tensorboard: Annotated[bool, flag("Also write TensorBoard events.", "--tensorboard")] = False,
) -> None:
    """Train a translator or an image captioner.

    softgaze train --train train.en train.de --dev val.en val.de -o runs/mine
    softgaze train --images photos --captions captions.csv -o runs/photos

    All settings have defaults for the --arch and --size. Ctrl-C saves; the
    same command resumes. The learning rate falls to zero at the end of
    --minutes or --steps. The run directory is a usable model at any time:
    softgaze translate runs/mine "Hello."
    """
    from softgaze.cli._progress import training_display
    from softgaze.config import parse_config
    from softgaze.data.corpus import Corpus
    from softgaze.training.dry_run import estimate
    from softgaze.training.train import train as run_training

    files = opt.CaptionFiles(images, features, captions)
    given = opt.read_settings(
        config,
        assignments,
        files.settings(),
        model={"arch": arch, "size": size},
        data={"source_language": source_lang, "target_language": target_lang, "vocabulary": vocabulary},
        training={"seed": seed, "warm_start": warm_start},
        budget={"minutes": minutes, "steps": steps, "epochs": epochs},
        validation={"attention_history": attention_history},
    )
    settings = parse_config(given)
    corpus: Corpus | CaptionCorpus
    held_out: Corpus | CaptionCorpus | None
    if files.is_given:
        if train_files or pairs:
            raise UsageError("give either text (--train, --pairs) or files (--images, --features) to train on")
        corpus, held_out = files.corpora(settings, opt.file_pairs("--dev", dev))
    else:
        corpus = Corpus.of(opt.file_pairs("--train", train_files), pairs or [])
        held_out = Corpus.of(opt.file_pairs("--dev", dev)) if dev else None
    if dry_run:
        typer.echo(estimate(settings, corpus, held_out, device, guided or ()))
        return
    with training_display(out, tensorboard) as callbacks:
        run_training(
            settings,
            corpus,
            held_out,
            out,
            device=device,
            init=init,
            fresh=fresh,
            guided=guided or (),
            callback=callbacks,
        )
