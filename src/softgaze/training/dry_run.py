"""`--dry-run`: estimate time, memory and disk space of a training run from a few updates."""

import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from softgaze.config import Config
from softgaze.data.batching import Batch, padding_share
from softgaze.data.corpus import Corpus
from softgaze.runtime import peak_memory, pick_device
from softgaze.training.callbacks import Callback
from softgaze.training.checkpoint import KEEP
from softgaze.training.fine_tuning import open_start, with_model_of
from softgaze.training.preprocess import AnyCorpus, preprocess
from softgaze.training.run_directory import RunDirectory
from softgaze.training.train import (
    alignment_files,
    check_corpus_type,
    complete_settings,
    describe_guided,
    make_trainer,
    preserve_rng,
)
from softgaze.training.trainer import Trainer

WARMUP, TIMED = (2, 5.0), (8, 20.0)  # at most so many updates, and none started after so many seconds


def estimate(
    config: Config,
    corpus: AnyCorpus,
    dev: AnyCorpus | None,
    device: str,
    guided: Sequence[Path] = (),
    init: Path | None = None,
    mix: Corpus | None = None,
) -> str:
    """Return a report on parameters, peak memory of the largest batch, speed, time and disk space."""
    start = open_start(init, config, corpus, mix)
    config = with_model_of(start, config, corpus) if start else config
    check_corpus_type(config.model.arch, corpus)
    with tempfile.TemporaryDirectory(prefix="softgaze-") as directory, preserve_rng():
        run = RunDirectory(Path(directory))
        config, _ = complete_settings(config, corpus, run, pick_device(device), start=start, mix=mix, guided=guided)
        alignments = alignment_files(config, corpus, guided)
        tokenizers, seed = start.tokenizers if start else None, config.training.seed
        data = preprocess(run.encoded, corpus, dev, config.data, seed, tokenizers, alignments, mix=mix)
        trainer = make_trainer(run, config, data, pick_device(device), Callback(), start)
        speed = measure_speed(trainer)
        trainer.update([longest_batch(trainer)])
        encoded_bytes = sum(path.stat().st_size for path in run.encoded.rglob("*") if path.is_file())
        return report(trainer, speed, peak_memory(), encoded_bytes)


def measure_speed(trainer: Trainer) -> float:
    """Return target tokens per second over some typical updates."""
    stream = trainer.batches.batches_from(0)

    def run(updates: int, seconds: float) -> float:
        start = time.perf_counter()
        for _ in range(updates):
            trainer.update(list(islice(stream, trainer.config.training.accumulate)))
            if (elapsed := time.perf_counter() - start) > seconds:
                break
        return elapsed

    run(*WARMUP)
    before = trainer.progress.tokens
    elapsed = run(*TIMED)
    return (trainer.progress.tokens - before) / elapsed


def longest_batch(trainer: Trainer) -> Batch:
    """Return the batch of the longest pairs, whose attention needs the most memory."""
    shards, tokens = trainer.data.train, trainer.batches.tokens
    longest = shards.lengths(np.arange(len(shards))).max(axis=1)
    order = longest.argsort()[::-1]
    rows = max(1, tokens // int(longest[order[0]]))
    return Batch(order[:rows].copy(), 0)


def report(trainer: Trainer, speed: float, memory: int | None, encoded_bytes: int) -> str:
    """Return the estimates, one per line."""
    config, data = trainer.config, trainer.data
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    batches = [
        pairs for pool in range(min(2, trainer.batches.num_pools())) for pairs in trainer.batches.pool_batches(0, pool)
    ]
    tokens = sum(int(data.train.lengths(pairs)[:, 1].sum()) + len(pairs) for pairs in batches)
    updates = trainer.updates_per_epoch
    epoch_seconds = tokens / len(batches) * updates * config.training.accumulate / speed
    # A checkpoint holds weights and two moments; there are also the bundle and the snapshots to average.
    disk = encoded_bytes + 4 * parameters * (3 * (KEEP + 1) + 1 + (config.training.average or 0))
    rows = {
        "model": f"{config.model.arch} {config.model.size}, {parameters:,} parameters, on {trainer.device}",
        "data": f"{data.facts['pairs']:,} pairs, {data.facts['left_out']:,} left out, "
        f"{len(data.tokenizers.target):,} subwords, {padding_share(data.train, batches):.1%} padding",
        "guided": describe_guided(trainer),
        "speed": f"{speed:,.0f} target tokens/s",
        "epoch": f"{updates:,.0f} updates, {duration(epoch_seconds)}",
        "budget": describe_budget(trainer, epoch_seconds / updates),
        "peak memory": f"{memory / 2**20:,.0f} MiB, with the longest pairs of the text" if memory else None,
        "disk": f"{disk / 2**20:,.0f} MiB",
    }
    return "\n".join(f"{name:<12} {text}" for name, text in rows.items() if text)


def describe_budget(trainer: Trainer, seconds_per_update: float) -> str:
    """Return when the run would end."""
    budget = trainer.config.budget
    limits = [budget.minutes * 60] if budget.minutes else []
    if budget.steps:
        limits.append(budget.steps * seconds_per_update)
    if budget.epochs:
        limits.append(budget.epochs * trainer.updates_per_epoch * seconds_per_update)
    if not limits:
        return f"no limit; ends after {budget.patience} validations without improvement"
    seconds = min(limits)
    return f"{duration(seconds)}, about {seconds / seconds_per_update:,.0f} updates, without validation"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
