"""`softgaze train`: a translator from parallel text, or a captioner from files and captions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import choice, flag, option
from softgaze.cli._output import progress, report_written, warn
from softgaze.errors import UsageError

if TYPE_CHECKING:
    from softgaze.data.captions import CaptionCorpus
    from softgaze.data.corpus import Corpus, Pair

COMMAND = opt.PairCommand
FINE_TUNING = "Fine-tuning"  # panel of the help


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
            "Supervise one attention head: auto learns alignments from the text; none; or an alignment file (Pharaoh) "
            "per --train, then per --pairs.",
            metavar="auto|none|LINKS",
            default="auto for transformer",
            panel=opt.DATA,
        ),
    ] = None,
    mix: Annotated[
        list[Path] | None,
        option("General-domain text to sample alongside --train.", "--mix", metavar="SRC TGT", panel=FINE_TUNING),
    ] = None,
    mix_ratio: Annotated[
        float | None, option("Pairs of --mix per training pair.", default="1", metavar="RATIO", panel=FINE_TUNING)
    ] = None,
    test: Annotated[
        tuple[Path, Path] | None,
        option(
            "Compare the model before and after on these sentences.", "--test", metavar="SRC TGT", panel=FINE_TUNING
        ),
    ] = None,
    source_lang: opt.SourceLang = None,
    target_lang: opt.TargetLang = None,
    vocabulary: opt.Vocabulary = None,
    arch: Annotated[
        opt.ArchName | None, choice("Architecture.", of=opt.ArchName, default="transformer", panel=opt.MODEL_PANEL)
    ] = None,
    size: opt.ModelSize = None,
    init: Annotated[
        Path | None, option("Model to fine-tune: trained or imported.", metavar="MODEL", panel=FINE_TUNING)
    ] = None,
    warm_start: Annotated[
        opt.WarmStart | None,
        choice(
            "First weights.",
            default="statistics for transformer, rnn-luong and rnn-bahdanau, up to 20 epochs",
            panel=opt.MODEL_PANEL,
        ),
    ] = None,
    minutes: opt.Minutes = None,
    steps: opt.Steps = None,
    epochs: Annotated[int | None, option("Number of epochs.", default="no limit", panel=opt.LIMITS)] = None,
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
    softgaze train --train own.en own.de --init en-de -o runs/own

    All settings have defaults for the --arch and --size. Ctrl-C saves; the
    same command resumes. The learning rate falls to zero at the end of
    --minutes or --steps. From the first validation on, the run directory is
    a model: softgaze translate runs/mine "Hello."
    """
    from softgaze.cli._progress import training_display
    from softgaze.config import parse_config
    from softgaze.data.corpus import Corpus
    from softgaze.training.distributed import rank_info
    from softgaze.training.dry_run import estimate
    from softgaze.training.train import train as run_training

    files = opt.CaptionFiles(images, features, captions)
    links, alignments = split_guided(guided or [])
    given = opt.read_settings(
        config,
        assignments,
        files.settings(),
        model={"arch": arch, "size": size},
        data={"source_language": source_lang, "target_language": target_lang, "vocabulary": vocabulary},
        training={"seed": seed, "warm_start": warm_start, "guided": alignments, "mix_ratio": mix_ratio},
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
    general = Corpus.of(opt.file_pairs("--mix", mix)) if mix else None
    pairs_to_test = read_test_set(test, init) if test else None
    if dry_run:
        typer.echo(estimate(settings, corpus, held_out, device, links, init, general))
        return
    if files.is_given and (fresh or not (out / "encoded").exists()) and rank_info(os.environ).rank == 0:
        store_features([each for each in (corpus, held_out) if each is not None])
    with training_display(out, tensorboard) as callbacks:
        run_training(
            settings,
            corpus,
            held_out,
            out,
            device=device,
            init=init,
            mix=general,
            fresh=fresh,
            guided=links,
            callback=callbacks,
        )
    if test and init and pairs_to_test and rank_info(os.environ).rank == 0:
        report_before_after(init, out, test, pairs_to_test, device)


def split_guided(values: list[Path]) -> tuple[list[Path], str | None]:
    """Return the alignment files of `--guided`, or the word that stands instead of files."""
    words = [str(value) for value in values if str(value) in ("auto", "none")]
    if words and len(values) > 1:
        raise UsageError(f"--guided {words[0]} stands alone; give no files with it")
    return ([], words[0]) if words else (values, None)


def store_features(corpora: "Sequence[Corpus | CaptionCorpus]") -> None:
    """Compute the features of a frozen backbone for all images, with progress; a cache keeps them."""
    from softgaze.data.feature_cache import extract_features
    from softgaze.data.processors import BACKBONE_BATCH, BackboneProcessor

    processor = corpora[0].processor
    if not isinstance(processor, BackboneProcessor):
        return
    images = list(dict.fromkeys(Path(pair.source) for corpus in corpora for pair in corpus))
    warn(f"features of {processor.backbone} for {len(images):,} images")
    with progress(len(images), "images") as advance:
        extraction = extract_features(processor, images, BACKBONE_BATCH, advance)
    warn(str(extraction))


def read_test_set(test: tuple[Path, Path], init: Path | None) -> "list[Pair]":
    """Read the test set before training, so that a missing file is found now."""
    from softgaze.data.corpus import read_pairs

    if init is None:
        raise UsageError("--test compares with the model of --init; without it, use softgaze evaluate after training")
    return list(read_pairs(*test))


def report_before_after(init: Path, out: Path, test: tuple[Path, Path], pairs: "list[Pair]", device: str) -> None:
    """Translate the test set with both models; print and write the comparison."""
    from softgaze.bundle import Bundle
    from softgaze.evaluation.before_after import (
        AFTER,
        BEFORE,
        before_after_text,
        compare_translations,
        write_before_after,
    )
    from softgaze.translator import load

    search = opt.search_options(init)
    tuned = Bundle.open(out).description
    outputs = []
    for name, path in ((BEFORE, init), (AFTER, out)):
        warn(f"translating {len(pairs):,} test sentences with the model {name} fine-tuning")
        translator = load(path, device)
        if translator.languages is not None:
            translator = translator.with_languages(tuned.source_language, tuned.target_language)
        with progress(len(pairs)) as advance:
            lines = translator.translate_lines([pair.source for pair in pairs], search, progress=advance)
            outputs.append([translation.text for translation in lines])
    facts = {"before": str(init), "after": str(out), "test": " ".join(map(str, test)), "beam_size": search.beam_size}
    result = compare_translations(pairs, *outputs, language=tuned.target_language, facts=facts)
    typer.echo(before_after_text(result))
    for path in write_before_after(out, result):
        report_written(path)
