"""The one training loop. What update n does follows from (data, settings, seed, n) and the weights before it.

Nothing random is carried along: the noise of an update is drawn from (seed, n), so a checkpoint needs no random state.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from softgaze.bundle import Description, check_file, save_bundle
from softgaze.config import Config
from softgaze.data.batches import Batch, Batches, hash_key
from softgaze.errors import DataError, DivergedError
from softgaze.files import fingerprint, write_bytes
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
from softgaze.training.gradients import Amount, Gradients, Losses, shares, total
from softgaze.training.guided import Guidance
from softgaze.training.journal import Journal
from softgaze.training.listeners import Listener, Listeners, Update, Validation
from softgaze.training.looking import choose_map
from softgaze.training.loss import Pairs, collate
from softgaze.training.prepare import Prepared
from softgaze.training.ranks import Ranks
from softgaze.training.run import RunDirectory
from softgaze.training.schedule import learning_rate
from softgaze.training.signals import Stop
from softgaze.training.validate import Samples, better_when_higher, quality

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
        ranks: Ranks | None = None,
    ) -> None:
        self.run, self.config, self.prepared, self.description, self.device = run, config, prepared, description, device
        self.ranks = ranks or Ranks()
        self.measures = prepare_process(device) if config.training.fast else []
        self.model = model.to(device).train()
        self.optimiser = make_optimiser(self.model, config)
        self.guidance = Guidance.of(config.training, self.model) if prepared.train.has_links else None
        self.gradients = Gradients(self.model, config.training, device, self.guidance, self.ranks.rank)
        assert config.training.batch_tokens is not None  # the settings are resolved
        self.batches = Batches(prepared.train, config.training.batch_tokens, config.training.seed)
        self.journal = Journal(run.journal)
        films = config.validation.film and self.ranks.leads
        self.camera = Camera.of(run.film, prepared, device) if films else None
        self.listener = Listeners(self.journal, listener) if self.ranks.leads else Listener()
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
        path = self.newest_checkpoint()
        if self.config.validation.film and not self.camera:
            self.listener.said("no held-out pair has words on both sides, so there will be no film")
        if path is None:
            self.save()
        else:
            self.progress = load_checkpoint(path, self.model, self.optimiser)
            self.listener.said(f"resuming at step {self.progress.step:,} ({self.progress.elapsed / 60:.1f} min so far)")
        self.rewind()
        self.clock = time.monotonic()

    def newest_checkpoint(self) -> Path | None:
        """The leader's choice, for all ranks."""
        path, complaints = newest_checkpoint(self.run.checkpoints) if self.ranks.leads else (None, [])
        for complaint in complaints:
            self.listener.said(f"{complaint}; using an older checkpoint")
        told = self.ranks.tell(str(path) if path else None)
        return Path(told) if told else None

    def rewind(self) -> None:
        """Forget what was told and filmed after the checkpoint: it will happen again."""
        if not self.ranks.leads:
            return
        self.journal.rewind(self.progress.step, self.progress.elapsed)
        if self.camera and not self.camera.rewind(self.progress.validated_step) and self.progress.step == 0:
            self.camera.shoot(self.model, 0, self.progress.elapsed, {})

    def train(self, stop: Stop) -> bool:
        """Until the budget is spent (True) or somebody asks to stop (False). Always leaves a checkpoint."""
        while not self.spent():
            asked = False
            for update in self.updates():
                self.listener.updated(update, self.share())
                if (self.due() or self.spent()) and not self.look_and_save():
                    break
                asked = self.ranks.any(bool(stop))
                if asked or self.spent():
                    break
            if asked and self.look_and_save():
                stop.follow()
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
        torch.manual_seed(hash_key(settings.seed, step, *self.gradients.own_key) % 2**63)
        with self.waiting():
            batches = [[self.collate(part) for part in self.divide(batch)] for batch in group]
        amount = Amount(*map(int, self.ranks.total(*Amount.of(part for parts in batches for part in parts))))
        rate = self.set_rate(step)
        self.optimiser.zero_grad(set_to_none=True)
        own = total(self.gradients.add(parts, amount, step, number) for number, parts in enumerate(batches))
        found = self.add_up(own)
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

    def add_up(self, own: Losses) -> Losses:
        """Losses and gradients of all ranks; one whose share of the batch was empty has nothing to add."""
        if self.ranks.alone:
            return own
        for value in self.gradients.parameters:
            value.grad = torch.zeros_like(value) if value.grad is None else value.grad
        self.ranks.add_up([value.grad for value in self.gradients.parameters if value.grad is not None])
        return Losses(*self.ranks.total(*own))

    def divide(self, batch: Batch) -> list[Batch]:
        """The parts of a batch, or of this rank's share of it, that are computed apart."""
        lengths = self.prepared.train.lengths(batch.pairs)
        if self.ranks.alone:
            return self.gradients.divide(batch, lengths)
        places = shares(lengths, self.ranks.size)[self.ranks.rank]
        own = Batch(batch.pairs[places], batch.epoch)
        return self.gradients.divide(own, lengths[places]) if len(places) else []

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
        path = self.newest_checkpoint()
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
        """Count the time since the last look at the leader's clock; one that runs backwards counts nothing."""
        now = time.monotonic()
        passed = max(0.0, now - self.clock) if self.ranks.leads else 0.0
        self.progress.elapsed += self.ranks.total(passed)[0]
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
        scores, samples = self.quality()
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

    def quality(self) -> tuple[dict[str, float], Samples]:
        """The leader translates; its scores are told to all, since what happens next hangs on them."""
        scores, samples = (
            quality(self.model, self.prepared, self.config.validation, self.device) if self.ranks.leads else ({}, ())
        )
        self.ranks.wait()  # translating may take longer than a silence that means death
        return self.ranks.tell(scores), samples

    def snapshot(self) -> None:
        """Keep these weights for the average, and forget the oldest."""
        keep = self.config.training.average
        if not keep:
            return
        name = f"snapshot-{self.progress.step:08d}.safetensors"
        if self.ranks.leads:
            path = self.run.checkpoints / name
            write_bytes(path, save(parameters_of(self.model)))
            self.progress.fingerprints[name] = fingerprint(path)
        self.progress.snapshots = [*self.progress.snapshots, name][-keep:]
        kept = self.progress.fingerprints.items()
        self.progress.fingerprints = {each: entry for each, entry in kept if each in self.progress.snapshots}

    def due(self) -> bool:
        """Time for a checkpoint: with each validation, and as often as asked."""
        step, every = self.progress.step, self.config.validation.save_every
        return step % self.validate_every == 0 or bool(every and step % every == 0)

    def save(self) -> None:
        """Write a checkpoint, and forget snapshots that no checkpoint will ask for."""
        self.tick()
        if not self.ranks.leads:
            return
        save_checkpoint(self.run.checkpoints, self.model, self.optimiser, self.progress)
        for old in self.run.checkpoints.glob("snapshot-*"):
            if old.name < min(self.progress.snapshots, default=""):
                old.unlink()

    def publish(self, scores: dict[str, float], averaged: int = 0) -> None:
        """Make the present weights the bundle at the top of the run."""
        if not self.ranks.leads:
            return
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
        own = self.conclude() if self.ranks.leads else {}
        self.ranks.wait()
        facts: dict[str, Any] = self.ranks.tell(own)
        return facts

    def conclude(self) -> dict[str, Any]:
        """What the leader does at the end."""
        names = [name for name in self.progress.snapshots if self.whole(name)]
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

    def whole(self, name: str) -> bool:
        """Whether a snapshot is as it was written; else it is named and left out of the average."""
        try:
            check_file(self.run.checkpoints / name, self.progress.fingerprints.get(name), "the checkpoint")
        except DataError as error:
            self.listener.said(f"{error}; left out of the average")
            return False
        return True

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
