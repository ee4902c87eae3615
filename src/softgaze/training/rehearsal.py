"""`--dry-run`: what a training would take, found by doing a little of it."""

import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy

from softgaze.config import Config, resolve
from softgaze.data.batches import Batch, padding_share
from softgaze.devices import pick_device
from softgaze.training.checkpoint import KEEP
from softgaze.training.launch import check_kind, guided_words, link_files, make_trainer
from softgaze.training.listeners import Listener
from softgaze.training.loop import Trainer
from softgaze.training.memory import peak_memory
from softgaze.training.prepare import Pairs, prepare
from softgaze.training.run import RunDirectory

WARM, TIMED = (2, 5.0), (8, 20.0)  # at most so many updates, and none begun after so many seconds


def rehearse(config: Config, corpus: Pairs, dev: Pairs | None, device: str, guided: Sequence[Path] = ()) -> str:
    """Parameters, peak memory of the largest batch, speed, and estimates of time and disk, in words."""
    config = resolve(config)
    check_kind(config.model.arch, corpus)
    links = link_files(config, corpus, guided)
    with tempfile.TemporaryDirectory(prefix="softgaze-") as place:
        run = RunDirectory(Path(place))
        prepared = prepare(run.encoded, corpus, dev, config.data, config.training.seed, guided=links)
        trainer = make_trainer(run, config, prepared, pick_device(device), Listener())
        speed = measure_speed(trainer)
        trainer.update([largest_batch(trainer)])
        encoded = sum(file.stat().st_size for file in run.encoded.rglob("*") if file.is_file())
        return describe(trainer, speed, peak_memory(), encoded)


def measure_speed(trainer: Trainer) -> float:
    """Target tokens a second over some typical updates."""
    stream = trainer.batches.starting(0)

    def work(updates: int, seconds: float) -> float:
        start = time.perf_counter()
        for _ in range(updates):
            trainer.update(list(islice(stream, trainer.config.training.accumulate)))
            if (took := time.perf_counter() - start) > seconds:
                break
        return took

    work(*WARM)
    before = trainer.progress.tokens
    took = work(*TIMED)
    return (trainer.progress.tokens - before) / took


def largest_batch(trainer: Trainer) -> Batch:
    """The batch with the longest sentences of the text: attention costs most there."""
    shards, tokens = trainer.prepared.train, trainer.batches.tokens
    longest = shards.lengths(numpy.arange(len(shards))).max(axis=1)
    order = longest.argsort()[::-1]
    rows = max(1, tokens // int(longest[order[0]]))
    return Batch(order[:rows].copy(), 0)


def describe(trainer: Trainer, speed: float, memory: int | None, encoded: int) -> str:
    """The findings, one to a line."""
    config, prepared = trainer.config, trainer.prepared
    parameters = sum(value.numel() for value in trainer.model.parameters())
    batches = [pairs for pool in range(min(2, trainer.batches.pools())) for pairs in trainer.batches.cut(0, pool)]
    epoch_tokens = sum(int(prepared.train.lengths(pairs)[:, 1].sum()) + len(pairs) for pairs in batches)
    updates = trainer.updates_in_an_epoch()
    seconds = epoch_tokens / len(batches) * updates * config.training.accumulate / speed
    # a checkpoint holds weights and two moments; beside them stand the bundle and the snapshots to average
    disk = encoded + 4 * parameters * (3 * (KEEP + 1) + 1 + config.training.average)
    lines = [
        f"model        {config.model.arch} {config.model.size}, {parameters:,} parameters, on {trainer.device}",
        f"data         {prepared.facts['pairs']:,} pairs, {prepared.facts['left_out']:,} left out, "
        f"{len(prepared.tokenizers.target):,} subwords, {padding_share(prepared.train, batches):.1%} padding",
        *([f"guided       {guided_words(trainer)}"] if trainer.guidance else []),
        f"speed        {speed:,.0f} target tokens/s",
        f"an epoch     {updates:,.0f} updates, {minutes(seconds)}",
        f"the budget   {budget(trainer, seconds / updates)}",
        *([f"peak memory  {memory / 2**20:,.0f} MiB, with the longest sentences of the text"] if memory else []),
        f"disk         {disk / 2**20:,.0f} MiB",
    ]
    return "\n".join(lines)


def budget(trainer: Trainer, seconds_an_update: float) -> str:
    """When the run would end."""
    limits = trainer.config.budget
    ends = [limits.minutes * 60] if limits.minutes else []
    if limits.steps:
        ends.append(limits.steps * seconds_an_update)
    if limits.epochs:
        ends.append(limits.epochs * trainer.updates_in_an_epoch() * seconds_an_update)
    if not ends:
        return f"open: ends after {limits.patience} validations without a better score"
    return f"{minutes(min(ends))}, about {min(ends) / seconds_an_update:,.0f} updates, validation not counted"


def minutes(seconds: float) -> str:
    """A duration for people."""
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
