"""The training loop. Update n depends only on the data, the settings, the seed, n and the weights before it.

Random numbers of an update are drawn from (seed, n), so a checkpoint stores no random state.
"""

import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import load_file, save

from softgaze.atomic_io import fingerprint, write_bytes
from softgaze.bundle import ATTENTION, Bundle, Description, add_facts, check_file, save_bundle
from softgaze.config import Config
from softgaze.data.batching import Batch, BatchSampler, hash_key
from softgaze.errors import DataError, DivergedError
from softgaze.explain.map_selection import AttentionReader, select_by_occlusion
from softgaze.explain.recording import View
from softgaze.models.base import Seq2Seq
from softgaze.training.attention_losses import GuidedHead
from softgaze.training.callbacks import Callback, CallbackList, MetricsLog, Update, Validation
from softgaze.training.checkpoint import (
    TrainingProgress,
    load_checkpoint,
    newest_checkpoint,
    parameters_of,
    restore_parameters,
    save_checkpoint,
)
from softgaze.training.collate import PaddedBatch, collate
from softgaze.training.distributed import Distributed
from softgaze.training.gradients import (
    GradientAccumulator,
    LossSums,
    TokenCounts,
    learning_rate,
    make_optimizer,
    rank_shares,
)
from softgaze.training.preprocess import PreprocessedData
from softgaze.training.run_directory import RunDirectory
from softgaze.training.signals import StopRequest
from softgaze.training.validation import (
    AttentionHistory,
    calibrate_confidence,
    calibrate_links,
    compare_measures,
    metric_value,
    validate,
)

MAX_BAD_UPDATES = 5  # non-finite updates in a row before a rollback
ROLLBACK_LR_SCALE = 0.5
FINE_TUNED_FROM = "fine_tuned_from"  # key of the facts about the model that training started from
PATIENCE_DECAY = 0.1  # length of the decay after the patience, as a share of the updates so far


class Trainer:
    """Trains one model in a run directory; on several ranks, one trainer each."""

    def __init__(
        self,
        run: RunDirectory,
        config: Config,
        data: PreprocessedData,
        model: Seq2Seq,
        description: Description,
        device: torch.device,
        callback: Callback,
        distributed: Distributed | None = None,
        inherited: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.inherited = inherited  # facts of the model that training started from
        self.run, self.config, self.data, self.description, self.device = run, config, data, description, device
        self.distributed = distributed or Distributed()
        settings = config.training
        self.model = model.to(device).train()
        self.optimizer = make_optimizer(self.model, settings)
        self.guided = GuidedHead.choose(settings, self.model) if data.facts["linked"] else None
        self.gradients = GradientAccumulator(self.model, settings, device, self.guided, self.distributed.rank)
        assert settings.batch_tokens is not None  # the settings are resolved
        mixed = data.facts.get("mixed", 0)
        mixed_per_epoch = max(1, round((settings.mix_ratio or 0) * data.facts["pairs"])) if mixed else 0
        self.batches = BatchSampler(
            data.train, settings.batch_tokens, settings.seed, mixed, mixed_per_epoch, data.segmentations
        )
        self.metrics_log = MetricsLog(run.metrics)
        self.callback = CallbackList(self.metrics_log, callback) if self.distributed.is_main else Callback()
        self.history: AttentionHistory | None = None
        if config.validation.attention_history and self.distributed.is_main:
            self.history = AttentionHistory.for_run(run.attention_history, data, device)
        self.progress = TrainingProgress()
        self.bad_updates = 0  # in a row
        self.clock = time.monotonic()
        first_pool = len(self.batches.pool_batches(0, 0))
        about_an_epoch = first_pool * self.batches.num_pools() // settings.accumulate
        self.validate_every = config.validation.every or min(2000, max(250, about_an_epoch))

    @cached_property
    def updates_per_epoch(self) -> float:
        """Counted pool by pool, because pools differ a little in their number of batches."""
        batches = sum(len(self.batches.pool_batches(0, pool)) for pool in range(self.batches.num_pools()))
        return batches / self.config.training.accumulate

    # --- the loop -------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Load the newest intact checkpoint; a new run writes one, so that a rollback always has a target."""
        path = self.find_checkpoint()
        if self.config.validation.attention_history and not self.history:
            self.callback.on_message("no held-out pair has words on both sides, so there is no attention history")
        if path is None:
            self.share_weights()
            self.save()
        else:
            self.progress = load_checkpoint(path, self.model, self.optimizer)
            self.begin_decay()
            minutes = self.progress.elapsed / 60
            self.callback.on_message(f"resuming at step {self.progress.step:,} ({minutes:.1f} min so far)")
        self.truncate_logs()
        self.clock = time.monotonic()

    def share_weights(self) -> None:
        """Give every rank the first weights of rank 0, which alone computes the warm start."""
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.mul_(self.distributed.is_main)
            self.distributed.all_reduce(list(self.model.parameters()))

    def find_checkpoint(self) -> Path | None:
        """Return the newest intact checkpoint, chosen by rank 0."""
        path, errors = newest_checkpoint(self.run.checkpoints) if self.distributed.is_main else (None, [])
        for error in errors:
            self.callback.on_message(f"{error}; using an older checkpoint")
        name = self.distributed.broadcast(str(path) if path else None)
        return Path(name) if name else None

    def truncate_logs(self) -> None:
        """Drop the metrics and attention snapshots after the checkpoint: the run writes them again."""
        if not self.distributed.is_main:
            return
        is_validated = self.progress.step > 0 or self.progress.best is not None
        self.metrics_log.truncate(self.progress.step if is_validated else -1, self.progress.elapsed)
        if self.history and not self.history.truncate(self.progress.validated_step) and self.progress.step == 0:
            self.history.append(self.model, 0, self.progress.elapsed, {})

    def train(self, stop: StopRequest) -> bool:
        """Train until the budget is used up (True) or a stop is requested (False); always leaves a checkpoint.

        A model to fine-tune is validated first: weights that score lower never replace it.
        """
        if FINE_TUNED_FROM in self.inherited and self.progress.step == 0 and self.progress.best is None:
            self.validate()
            self.save()
        while not self.is_finished():
            stopping = False
            for update in self.updates():
                self.callback.on_update(update, self.budget_used())
                if (self.is_checkpoint_due() or self.is_finished()) and not self.validate_and_save():
                    break
                stopping = self.distributed.any(bool(stop))
                if stopping or self.is_finished():
                    break
            if stopping and self.validate_and_save():
                if not stop:  # the signal went to another rank
                    stop.handle(signal.SIGTERM)
                return False
        return True

    def updates(self) -> Iterator[Update]:
        """Yield updates from the current step on, until a rollback."""
        size = self.config.training.accumulate
        stream = self.batches.batches_from(self.progress.step * size)
        while True:
            with self.waiting_for_data():
                batches = list(islice(stream, size))
            update = self.update(batches)
            if update is not None:
                self.bad_updates = 0
                yield update
                continue
            self.bad_updates += 1
            if self.bad_updates >= MAX_BAD_UPDATES:
                self.roll_back()
                return

    def update(self, batches: list[Batch]) -> Update | None:
        """Make one optimizer step; return None and leave the weights unchanged if a number is not finite."""
        step = self.progress.step + 1
        rate = learning_rate(self.config, step, self.budget_used(), self.decay_left()) * self.progress.lr_scale
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        losses, counts = self.compute_gradients(batches, step)
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.clip))
        self.progress.step = step
        if not all(map(math.isfinite, (*losses, norm))):
            self.progress.skipped += 1
            numbers = f"loss {losses.tokens:g}, gradient norm {norm:g}"
            self.callback.on_message(f"step {step:,}: skipped, a number is not finite ({numbers})")
            return None
        self.optimizer.step()
        self.progress.tokens += counts.tokens
        self.count_time()
        loss = losses.tokens / counts.tokens
        alignment_loss = losses.alignment / counts.aligned if counts.aligned else None
        return Update(step, batches[0].epoch, loss, counts.tokens, rate, self.progress.elapsed, alignment_loss)

    def compute_gradients(self, batches: list[Batch], step: int) -> tuple[LossSums, TokenCounts]:
        """Set the gradients of the mean loss over all ranks; return the summed losses and the token counts."""
        # Torch's generator is used by dropout on GPUs and in stacked RNNs.
        torch.manual_seed(hash_key(self.config.training.seed, step, *self.gradients.rank_key) % 2**63)
        with self.waiting_for_data():
            batch_parts = [self.load_parts(batch) for batch in batches]
        rank_counts = TokenCounts.of(part for parts in batch_parts for part in parts)
        counts = TokenCounts(*map(int, self.distributed.sum(*rank_counts)))
        self.optimizer.zero_grad(set_to_none=True)
        losses = LossSums.total(
            self.gradients.add(parts, counts, step, index) for index, parts in enumerate(batch_parts)
        )
        if self.distributed.world_size == 1:
            return losses, counts
        for parameter in self.gradients.parameters:
            if parameter.grad is None:  # the share of this rank was empty
                parameter.grad = torch.zeros_like(parameter)
        self.distributed.all_reduce([p.grad for p in self.gradients.parameters if p.grad is not None])
        return LossSums(*self.distributed.sum(*losses)), counts

    def load_parts(self, batch: Batch) -> list[PaddedBatch]:
        """Return the parts of this rank's share of a batch as tensors."""
        lengths = self.data.train.lengths(batch.pairs)
        if self.distributed.world_size > 1:
            rows = rank_shares(lengths, self.distributed.world_size)[self.distributed.rank]
            batch, lengths = Batch(batch.pairs[rows], batch.epoch), lengths[rows]
        parts = self.gradients.split(batch, lengths) if len(lengths) else []
        return [
            collate(self.data.train, part, self.device, part_lengths, self.data.tokenizers.frame)
            for part, part_lengths in parts
        ]

    def roll_back(self) -> None:
        """Return to the last checkpoint with a lower learning rate; the second time, fail."""
        if self.progress.rolled_back:
            raise DivergedError(
                f"training diverged again at step {self.progress.step:,} after one rollback; the last good weights "
                f"are in {self.run.path}; lower training.learning_rate or check the data"
            )
        path = self.find_checkpoint()
        assert path is not None
        skipped = self.progress.skipped
        self.progress = load_checkpoint(path, self.model, self.optimizer)
        self.progress.skipped, self.progress.rolled_back = skipped, True
        self.progress.lr_scale *= ROLLBACK_LR_SCALE
        self.bad_updates = 0
        self.save()
        self.truncate_logs()
        scale = self.progress.lr_scale
        self.callback.on_message(f"rolled back to step {self.progress.step:,} with {scale:g} × the learning rate")

    # --- time and budget ------------------------------------------------------------------------------------------

    @contextmanager
    def waiting_for_data(self) -> Iterator[None]:
        """Count the time of the block as waiting for data."""
        start = time.perf_counter()
        yield
        self.progress.data_wait += time.perf_counter() - start

    def count_time(self) -> None:
        """Add the time since the last call, on rank 0's clock; a clock that runs backwards adds nothing."""
        now = time.monotonic()
        passed = max(0.0, now - self.clock) if self.distributed.is_main else 0.0
        self.progress.elapsed += self.distributed.sum(passed)[0]
        self.clock = now

    def budget_used(self) -> float | None:
        """Return the used share of the budget, for the limit that comes first; None without a limit."""
        budget, progress = self.config.budget, self.progress
        shares = []
        if budget.steps:
            shares.append(progress.step / budget.steps)
        if budget.minutes:
            shares.append(progress.elapsed / 60 / budget.minutes)
        if budget.epochs:
            shares.append(progress.step / (budget.epochs * self.updates_per_epoch))
        return max(shares) if shares else None

    def decay_left(self) -> float:
        """Return the share that is left of the decay after the patience: 1 before it, 0 at its end."""
        start = self.progress.decay_start
        if start is None:
            return 1.0
        length = math.ceil(PATIENCE_DECAY * start) if self.config.training.decay else 0
        return max(0.0, 1 - (self.progress.step - start) / length) if length else 0.0

    def is_finished(self) -> bool:
        """Return whether the budget is used up, or the decay after the patience is over."""
        used = self.budget_used()
        return (used is not None and used >= 1) or self.decay_left() == 0

    def is_checkpoint_due(self) -> bool:
        """Return whether to save: with each validation, and every `validation.save_every` updates."""
        step, every = self.progress.step, self.config.validation.save_every
        return step % self.validate_every == 0 or bool(every and step % every == 0)

    # --- validation and saving ------------------------------------------------------------------------------------

    def validate_and_save(self) -> bool:
        """Validate if due, and save a checkpoint; if the weights are not finite, roll back and return False."""
        if not all(bool(parameter.isfinite().all()) for parameter in self.model.parameters()):
            self.callback.on_message(f"step {self.progress.step:,}: the weights are not finite; not saved")
            self.roll_back()
            return False
        if self.progress.step % self.validate_every == 0 and self.progress.step > self.progress.validated_step:
            self.validate()
        self.save()
        return True

    def validate(self) -> None:
        """Score the held-out pairs; the best weights so far become the bundle of the run."""
        scores, samples = (
            validate(self.model, self.data, self.config.validation, self.device)
            if self.distributed.is_main
            else ({}, ())
        )
        self.distributed.barrier()  # translation may take longer than the rank timeout
        scores = self.distributed.broadcast(scores)
        value = metric_value(scores, str(self.config.validation.metric))
        progress = self.progress
        is_best = progress.best is None or value > progress.best
        if is_best:
            progress.best, progress.best_step = value, progress.step
            self.publish(scores)
        if progress.decay_start is None:
            progress.bad_validations = 0 if is_best else progress.bad_validations + 1
            self.begin_decay()
        if progress.step:  # the weights to fine-tune are not part of the average
            self.save_snapshot()
        if self.history and progress.step:  # that of step 0 is the first of every run
            self.history.append(self.model, progress.step, progress.elapsed, scores)
        progress.validated_step = progress.step
        self.count_time()
        epoch = int(progress.step / self.updates_per_epoch)
        self.callback.on_validation(
            Validation(progress.step, epoch, progress.elapsed, samples=samples, is_best=is_best, **scores)
        )

    def begin_decay(self) -> None:
        """Begin the decay once the patience is exhausted; a patience that was raised since ends the decay."""
        progress, patience = self.progress, self.config.budget.patience
        is_exhausted = patience is not None and progress.bad_validations >= patience
        if is_exhausted and progress.decay_start is None:
            progress.decay_start = progress.step
        elif not is_exhausted:
            progress.decay_start = None

    def save_snapshot(self) -> None:
        """Keep the weights of the last `training.average` validations."""
        count = self.config.training.average
        if not count:
            return
        progress, name = self.progress, f"snapshot-{self.progress.step:08d}.safetensors"
        if self.distributed.is_main:
            path = self.run.checkpoints / name
            write_bytes(path, save(parameters_of(self.model)))
            progress.fingerprints[name] = fingerprint(path)
        progress.snapshots = [*progress.snapshots, name][-count:]
        entries = progress.fingerprints.items()
        progress.fingerprints = {name: entry for name, entry in entries if name in progress.snapshots}

    def save(self) -> None:
        """Write a checkpoint; remove the snapshots older than those it lists."""
        self.count_time()
        if not self.distributed.is_main:
            return
        save_checkpoint(self.run.checkpoints, self.model, self.optimizer, self.progress)
        for path in self.run.checkpoints.glob("snapshot-*"):
            if path.name < min(self.progress.snapshots, default=""):
                path.unlink()

    def publish(self, scores: dict[str, float], averaged: int = 0) -> None:
        """Write the current weights as the bundle of the run."""
        if not self.distributed.is_main:
            return
        facts = self.facts() | {"dev": {name: round(value, 4) for name, value in scores.items()}}
        if averaged:
            facts["averaged"] = averaged
        data = self.data
        save_bundle(self.run.path, self.model, self.description, data.tokenizers, data.detector, facts, data.aligner)

    def facts(self) -> dict[str, Any]:
        """Return how the current weights were trained."""
        data, progress = self.data.facts, self.progress
        return {
            "step": progress.step,
            "minutes": round(progress.elapsed / 60, 2),
            "waiting_for_data": round(progress.data_wait / max(progress.elapsed, 1e-9), 5),  # share of the time
            "target_tokens": progress.tokens,
            "pairs": data["pairs"],
            "dev_pairs": data["dev_pairs"],
            **({"mixed_per_epoch": self.batches.mixed_per_epoch} if self.batches.mixed else {}),
            "data_sha256": data["made_from"]["train"],
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "seed": self.config.training.seed,
            "precision": "bfloat16" if self.gradients.bfloat16 else "float32",
            **({"guided": self.guided_facts()} if self.guided else {}),
            **self.inherited,
        }

    def guided_facts(self) -> dict[str, Any]:
        """Return which head learned from which alignments."""
        assert self.guided is not None
        data = self.data.facts
        return {**self.guided._asdict(), "pairs": data["linked"], "links_sha256": data["made_from"]["guided"]}

    # --- the end --------------------------------------------------------------------------------------------------

    def finish(self) -> dict[str, Any]:
        """Validate the last weights and the average of the snapshots, publish the best, and return the result."""
        if self.progress.step > self.progress.validated_step:
            self.validate()
            self.save()
        facts: dict[str, Any] = {}
        if self.distributed.is_main:
            names = [name for name in self.progress.snapshots if self.is_intact(name)]
            best = self.try_average(names) if len(names) > 1 else self.progress.best
            select_attention_map(self.run.path, self.data, self.device, self.guided)
            calibrate_confidence(self.run.path, self.data, self.device)
            calibrate_links(self.run.path, self.data, self.device)
            compare_measures(self.run.path, self.data, self.device)
            metric, best_step = self.config.validation.metric, self.progress.best_step
            facts = self.facts() | {"best": best, "metric": metric, "best_step": best_step}
            self.run.write_result(facts)
            self.callback.on_end(facts)
        self.distributed.barrier()
        return dict(self.distributed.broadcast(facts))

    def is_intact(self, name: str) -> bool:
        """Check a snapshot; report a damaged one."""
        try:
            check_file(self.run.checkpoints / name, self.progress.fingerprints.get(name), "the checkpoint")
        except DataError as error:
            self.callback.on_message(f"{error}; left out of the average")
            return False
        return True

    def try_average(self, names: list[str]) -> float | None:
        """Publish the average of snapshots if it scores better; return the best value. The weights are restored."""
        original = parameters_of(self.model)
        total: dict[str, torch.Tensor] = {}
        for name in names:
            for key, weight in load_file(self.run.checkpoints / name).items():
                total[key] = total[key] + weight.double() if key in total else weight.double()
        restore_parameters(self.model, {key: (sums / len(names)).float() for key, sums in total.items()})
        scores, _ = validate(self.model, self.data, self.config.validation, self.device)
        value, best = metric_value(scores, str(self.config.validation.metric)), self.progress.best
        is_better = best is None or value > best
        if is_better:
            self.publish(scores, averaged=len(names))
        text = "loss {loss:.3f}, BLEU {bleu:.1f}, chrF {chrf:.1f}".format(**scores)
        text += f", CIDEr {scores['cider']:.1f}" if "cider" in scores else ""
        comparison = "is better" if is_better else "is not better"
        self.callback.on_message(f"the average of {len(names)} validations {comparison}: {text}")
        restore_parameters(self.model, original)
        return value if is_better else best


def select_attention_map(
    path: Path, data: PreprocessedData, device: torch.device, guided: GuidedHead | None = None
) -> None:
    """Select the attention map that agrees best with occlusion on held-out pairs; store it in the bundle at `path`.

    A guided head learned to align words, so only its maps are considered.
    """
    bundle = Bundle.open(path)  # the best weights, which may not be the last
    model = bundle.model(str(device))
    reader = AttentionReader(model, bundle.tokenizers, max_positions=model.max_positions)
    view = View(layer=guided.layer, head=guided.head, rows=guided.rows) if guided else None
    selected = select_by_occlusion(reader, data.dev_text, guided=view)
    if selected is not None:
        add_facts(path, {ATTENTION: selected.to_dict()})
