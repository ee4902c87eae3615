"""The one training loop. What update n does follows from (data, settings, seed, n) and the weights before it.

Nothing random is carried along: the noise of an update is drawn from (seed, n), so a checkpoint needs no random state.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from softgaze.bundle import Description, save_bundle
from softgaze.config import Config
from softgaze.data.batches import Batch, Batches, hash_key
from softgaze.errors import DivergedError
from softgaze.files import TEMPORARY
from softgaze.models.base import Seq2Seq
from softgaze.speed import prepare_process
from softgaze.training.checkpoint import (
    Progress,
    load_checkpoint,
    newest_checkpoint,
    parameters_of,
    restore_parameters,
    save_checkpoint,
)
from softgaze.training.film import Camera
from softgaze.training.gradients import Amount, Gradients, total
from softgaze.training.guided import Guidance
from softgaze.training.journal import Journal
from softgaze.training.listeners import Listener, Listeners, Update, Validation
from softgaze.training.looking import choose_map
from softgaze.training.loss import Pairs, collate
from softgaze.training.prepare import Prepared
from softgaze.training.run import RunDirectory
from softgaze.training.schedule import learning_rate
from softgaze.training.signals import Stop
from softgaze.training.validate import better_when_higher, quality

PATIENCE = 5  # non-finite updates in a row before going back
SLOWER = 0.5  # the rate after going back


class Trainer:
    """A model on its way from one set of weights to the next."""

    def __init__(
        self,
        run: RunDirectory,
        config: Config,
        prepared: Prepared,
        model: Seq2Seq,
        description: Description,
        device: torch.device,
        listener: Listener,
    ) -> None:
        self.run, self.config, self.prepared, self.description, self.device = run, config, prepared, description, device
        self.measures = prepare_process(device) if config.training.fast else []
        self.model = model.to(device).train()
        self.optimiser = make_optimiser(self.model, config)
        self.guidance = Guidance.of(config.training, self.model) if prepared.train.has_links else None
        self.gradients = Gradients(self.model, config.training, device, self.guidance)
        assert config.training.batch_tokens is not None  # the settings are resolved
        self.batches = Batches(prepared.train, config.training.batch_tokens, config.training.seed)
        self.journal = Journal(run.journal)
        self.camera = Camera.of(run.film, prepared, device) if config.validation.film else None
        self.listener = Listeners(self.journal, listener)
        self.progress = Progress()
        self.bad_updates = 0  # in a row
        self.validate_every = config.validation.every or self.about_an_epoch()
        self.clock = time.monotonic()

    def about_an_epoch(self) -> int:
        """Updates between validations when nobody says: an epoch, within reason."""
        updates = len(self.batches.cut(0, 0)) * self.batches.pools() // self.config.training.accumulate
        return min(2000, max(250, updates))

    # --- the way -------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """From the newest whole checkpoint; a new run writes its first, so that there always is one to go back to."""
        path, complaints = newest_checkpoint(self.run.checkpoints)
        if self.config.validation.film and not self.camera:
            self.listener.said("no held-out pair has words on both sides, so there will be no film")
        for complaint in complaints:
            self.listener.said(f"{complaint}; using an older checkpoint")
        if path is None:
            self.save()
        else:
            self.progress = load_checkpoint(path, self.model, self.optimiser)
            self.listener.said(f"resuming at step {self.progress.step:,} ({self.progress.elapsed / 60:.1f} min so far)")
        self.rewind()
        self.clock = time.monotonic()

    def rewind(self) -> None:
        """Forget what was told and filmed after the checkpoint: it will happen again."""
        self.journal.rewind(self.progress.step, self.progress.elapsed)
        if self.camera and not self.camera.rewind(self.progress.validated_step) and self.progress.step == 0:
            self.camera.shoot(self.model, 0, self.progress.elapsed, {})

    def train(self, stop: Stop) -> bool:
        """Until the budget is spent (True) or somebody asks to stop (False). Always leaves a checkpoint."""
        while not self.spent():
            for update in self.updates():
                self.listener.updated(update, self.share())
                if (self.due() or self.spent()) and not self.look_and_save():
                    break
                if stop or self.spent():
                    break
            if stop and self.look_and_save():
                return False
        return True

    def look_and_save(self) -> bool:
        """Validate when it is time, and save; if the weights have gone bad, go back instead and say False."""
        if not all(bool(value.isfinite().all()) for value in self.model.parameters()):
            self.listener.said(f"step {self.progress.step:,}: the weights are not finite; not saved")
            self.go_back()
            return False
        if self.progress.step % self.validate_every == 0 and self.progress.step > self.progress.validated_step:
            self.validate()
        self.save()
        return True

    def updates(self) -> Iterator[Update]:
        """Updates from where training stands, until it has to go back and start again from a checkpoint."""
        size = self.config.training.accumulate
        stream = self.batches.starting(self.progress.step * size)
        while group := self.next_batches(stream, size):
            update = self.update(group)
            if update is not None:
                self.bad_updates = 0
                yield update
                continue
            self.bad_updates += 1
            if self.bad_updates >= PATIENCE:
                self.go_back()
                return

    def next_batches(self, stream: Iterator[Batch], size: int) -> list[Batch]:
        """Those of one update."""
        with self.waiting():
            return list(islice(stream, size))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time until data are there: nothing is learnt meanwhile."""
        start = time.perf_counter()
        yield
        self.progress.waited += time.perf_counter() - start

    def update(self, group: list[Batch]) -> Update | None:
        """One step of the optimiser over a group of batches; None if a number was not finite, and nothing changed."""
        settings, step = self.config.training, self.progress.step + 1
        torch.manual_seed(hash_key(settings.seed, step) % 2**63)
        with self.waiting():
            batches = [[self.collate(part) for part in self.divide(batch)] for batch in group]
        amount = Amount.of(part for parts in batches for part in parts)
        rate = self.set_rate(step)
        self.optimiser.zero_grad(set_to_none=True)
        found = total(self.gradients.add(parts, amount, step, number) for number, parts in enumerate(batches))
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip))
        self.progress.step = step
        if not all(map(math.isfinite, (*found, norm))):
            self.progress.skipped += 1
            numbers = f"loss {found.tokens:g}, gradient {norm:g}"
            self.listener.said(f"step {step:,}: a number was not finite ({numbers}); skipped")
            return None
        self.optimiser.step()
        self.progress.tokens += amount.tokens
        self.tick()
        loss, guided = found.tokens / amount.tokens, found.links / amount.pieces if amount.pieces else None
        return Update(step, group[0].epoch, loss, amount.tokens, rate, self.progress.elapsed, guided)

    def divide(self, batch: Batch) -> list[Batch]:
        """The parts of a batch that are computed apart."""
        return self.gradients.divide(batch, self.prepared.train.lengths(batch.pairs))

    def collate(self, batch: Batch) -> Pairs:
        """A batch of training pairs as tensors."""
        return collate(self.prepared.train, batch, self.device)

    def set_rate(self, step: int) -> float:
        """The schedule's rate, lower after having gone back."""
        rate = learning_rate(self.config, step) * self.progress.rate_scale
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        return rate

    def go_back(self) -> None:
        """To the last good checkpoint with a lower rate, once; the second time training has failed."""
        if self.progress.went_back:
            raise DivergedError(
                f"training diverged again at step {self.progress.step:,} after going back once; the last good weights "
                f"are in {self.run.path}; lower training.learning_rate or check the data"
            )
        path, _ = newest_checkpoint(self.run.checkpoints)
        assert path is not None
        skipped = self.progress.skipped
        self.progress = load_checkpoint(path, self.model, self.optimiser)
        self.progress.skipped, self.progress.went_back = skipped, True
        self.progress.rate_scale *= SLOWER
        self.bad_updates = 0
        self.save()
        self.rewind()
        self.listener.said(f"going back to step {self.progress.step:,} with {self.progress.rate_scale:g} × the rate")

    # --- the budget ----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Count the time since the last look at the clock; a clock that runs backwards counts nothing."""
        now = time.monotonic()
        self.progress.elapsed += max(0.0, now - self.clock)
        self.clock = now

    def share(self) -> float | None:
        """The part of the budget that is spent, by whichever limit comes first."""
        budget, progress = self.config.budget, self.progress
        shares = []
        if budget.steps:
            shares.append(progress.step / budget.steps)
        if budget.minutes:
            shares.append(progress.elapsed / 60 / budget.minutes)
        if budget.epochs:
            shares.append(progress.step / (budget.epochs * self.updates_in_an_epoch()))
        return max(shares) if shares else None

    def updates_in_an_epoch(self) -> float:
        """Counted once, pool by pool: their numbers of batches differ a little."""
        if not hasattr(self, "epoch_updates"):
            batches = sum(len(self.batches.cut(0, pool)) for pool in range(self.batches.pools()))
            self.epoch_updates = batches / self.config.training.accumulate
        return self.epoch_updates

    def spent(self) -> bool:
        """Nothing left, or no progress for too long."""
        share = self.share()
        return (share is not None and share >= 1) or self.progress.bad_validations >= self.config.budget.patience

    # --- looking and keeping -------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Score held-out text; keep these weights as the bundle when they are the best so far."""
        scores, samples = quality(self.model, self.prepared, self.config.validation, self.device)
        value = better_when_higher(scores, self.config.validation.metric)
        progress = self.progress
        better = progress.best is None or value > progress.best
        if better:
            progress.best, progress.best_step, progress.bad_validations = value, progress.step, 0
            self.publish(scores)
        else:
            progress.bad_validations += 1
        self.snapshot()
        if self.camera:
            self.camera.shoot(self.model, progress.step, progress.elapsed, scores)
        progress.validated_step = progress.step
        self.tick()
        epoch = int(progress.step / self.updates_in_an_epoch())
        self.listener.validated(
            Validation(progress.step, epoch, progress.elapsed, samples=samples, better=better, **scores)
        )

    def snapshot(self) -> None:
        """Keep these weights for the average, and forget the oldest."""
        keep = self.config.training.average
        if not keep:
            return
        name = f"snapshot-{self.progress.step:08d}.safetensors"
        temporary = self.run.checkpoints / f"{TEMPORARY}{name}"
        save_file(parameters_of(self.model), temporary)
        temporary.replace(self.run.checkpoints / name)
        self.progress.snapshots = [*self.progress.snapshots, name][-keep:]

    def due(self) -> bool:
        """Time for a checkpoint: with each validation, and as often as asked."""
        step, every = self.progress.step, self.config.validation.save_every
        return step % self.validate_every == 0 or bool(every and step % every == 0)

    def save(self) -> None:
        """Write a checkpoint, and forget snapshots that no checkpoint will ask for."""
        self.tick()
        save_checkpoint(self.run.checkpoints, self.model, self.optimiser, self.progress)
        for old in self.run.checkpoints.glob("snapshot-*"):
            if old.name < min(self.progress.snapshots, default=""):
                old.unlink()

    def publish(self, scores: dict[str, float], averaged: int = 0) -> None:
        """Make the present weights the bundle at the top of the run."""
        facts = self.facts() | {"dev": {name: round(value, 4) for name, value in scores.items()}}
        if averaged:
            facts["averaged"] = averaged
        parts = (self.description, self.prepared.tokenizers, self.prepared.detector)
        save_bundle(self.run.path, self.model, *parts, facts)

    def facts(self) -> dict[str, Any]:
        """How these weights were trained."""
        data = self.prepared.facts
        return {
            "step": self.progress.step,
            "minutes": round(self.progress.elapsed / 60, 2),
            "waiting_for_data": round(self.progress.waited / max(self.progress.elapsed, 1e-9), 5),  # share of the time
            "target_tokens": self.progress.tokens,
            "pairs": data["pairs"],
            "dev_pairs": data["dev_pairs"],
            "data_sha256": data["made_from"]["train"],
            "parameters": sum(value.numel() for value in self.model.parameters()),
            "seed": self.config.training.seed,
            **({"guided": self.guided_facts()} if self.guidance else {}),
        }

    def guided_facts(self) -> dict[str, Any]:
        """Which head learnt from which links."""
        assert self.guidance is not None
        data = self.prepared.facts
        return {**self.guidance._asdict(), "pairs": data["linked"], "links_sha256": data["made_from"]["guided"]}

    def finish(self) -> dict[str, Any]:
        """Validate the last weights and the average of the last few; the best of all is the bundle."""
        if self.progress.step > self.progress.validated_step:
            self.validate()
            self.save()
        names = [name for name in self.progress.snapshots if (self.run.checkpoints / name).exists()]
        best = self.progress.best
        if len(names) > 1:
            best = self.try_average(names)
        choose_map(self.run.path, self.prepared, self.device)
        facts = self.facts() | {
            "best": best,
            "metric": self.config.validation.metric,
            "best_step": self.progress.best_step,
        }
        self.run.write_result(facts)
        self.listener.finished(facts)
        return facts

    def try_average(self, names: list[str]) -> float | None:
        """Average the snapshots; publish them when better on held-out text. The trained weights stay as they are."""
        own = parameters_of(self.model)
        total: dict[str, torch.Tensor] = {}
        for name in names:
            for key, part in load_file(self.run.checkpoints / name).items():
                total[key] = total[key] + part.double() if key in total else part.double()
        restore_parameters(self.model, {key: (whole / len(names)).float() for key, whole in total.items()})
        scores, _ = quality(self.model, self.prepared, self.config.validation, self.device)
        value = better_when_higher(scores, self.config.validation.metric)
        best = self.progress.best
        if best is None or value > best:
            self.publish(scores, averaged=len(names))
            best = value
            self.listener.said(f"the average of {len(names)} validations is better: {describe(scores)}")
        else:
            self.listener.said(f"the average of {len(names)} validations is not better: {describe(scores)}")
        restore_parameters(self.model, own)
        return best


def describe(scores: dict[str, float]) -> str:
    """Scores in a few words."""
    return f"loss {scores['loss']:.3f}, BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f}"


def make_optimiser(model: Seq2Seq, config: Config) -> torch.optim.Optimizer:
    """AdamW; only matrices decay, since shrinking biases and norms regularises nothing."""
    matrices = [value for value in model.parameters() if value.ndim >= 2]
    others = [value for value in model.parameters() if value.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.training.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=1.0, betas=(0.9, config.training.beta2), eps=1e-9, fused=True)
