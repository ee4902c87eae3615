"""`train(config, corpus)`: from text to a run directory; called again, it resumes. The command line is one caller."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from softgaze.bundle import WEIGHTS as BUNDLE_WEIGHTS
from softgaze.bundle import Bundle, Description, load_weights
from softgaze.config import Config, ModelSettings, resolve
from softgaze.data.batches import hash_key
from softgaze.devices import pick_device
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.files import write_text
from softgaze.gaze.film_page import page_of_run
from softgaze.models import MODELS, check_options, options
from softgaze.training.curve import write_curve
from softgaze.training.guided import check_looking
from softgaze.training.links import LinkFiles
from softgaze.training.listeners import Listener
from softgaze.training.loop import Trainer
from softgaze.training.precision import uses_bfloat16
from softgaze.training.prepare import Pairs, Prepared, prepare
from softgaze.training.ranks import Ranks, joined
from softgaze.training.run import RunDirectory
from softgaze.training.signals import stoppable

NAMED = 10  # files that are left out by name


class Interrupted(Exception):  # noqa: N818  not an error: everything is saved
    """Training was asked to stop, and saved."""

    def __init__(self, exit_code: int, step: int) -> None:
        super().__init__(f"stopped and saved at step {step:,}; the same command goes on from there")
        self.exit_code = exit_code


def train(
    config: Config,
    corpus: Pairs,
    dev: Pairs | None,
    out: Path,
    *,
    device: str = "auto",
    init: Path | None = None,
    fresh: bool = False,
    guided: Sequence[Path] = (),
    encoded: Path | None = None,
    listener: Listener = Listener(),
) -> dict[str, Any]:
    """Train until the budget is spent; returns the facts of the result. `Interrupted` when asked to stop.

    `guided` names files of links between words, one for each part of the corpus, from which one head also learns.
    `encoded` is where prepared text is kept or to be found, if not in the run: several runs may share it.
    """
    start = opened(init) if init else None
    config = resolve(like(config, start), trained=True) if start else resolve(config)
    check_options(config.model.arch, config.model.size, config.model.options)
    check_kind(config.model.arch, corpus)
    run = RunDirectory(out, encoded)
    with joined(config.training.rank_timeout) as ranks:
        chosen = ranks.device(pick_device(device))
        if not ranks.leads:
            ranks.wait()
            return complete(make_trainer(run, config, shared(run, ranks), chosen, Listener(), start, ranks))
        for pairs in [corpus, *([dev] if dev else [])]:
            pairs.count()  # missing or unequal files are found before --fresh deletes anything
        links = link_files(config, corpus, guided)
        run.check()
        with run.locked():
            with run.setting_up():
                run.prepare(config, fresh)
                tokenizers = start.tokenizers if start else None
                asked = (config.data, config.training.seed, tokenizers, links, Complaints(listener))
                prepared = prepare(run.encoded, corpus, dev, *asked)
                ranks.wait()
                trainer = make_trainer(run, config, prepared, chosen, listener, start, ranks)
            return complete(trainer)


def opened(path: Path) -> Bundle:
    """A model to start from, whose weights are what it describes."""
    bundle = Bundle.open(path)
    bundle.check_weights()
    return bundle


def shared(run: RunDirectory, ranks: Ranks) -> Prepared:
    """What the leader has prepared."""
    if not run.encoded.exists():
        raise ResourceError(
            f"{run.encoded}: rank {ranks.rank} cannot see what rank 0 wrote there; --out must lie on storage that all "
            "machines share"
        )
    return Prepared.open(run.encoded)


def complete(trainer: Trainer) -> dict[str, Any]:
    """From where the run stands to its end."""
    run, listener = trainer.run, trainer.listener
    with stoppable() as stop:
        trainer.resume()
        done = run.result()
        if done and trainer.spent():
            listener.said(f"this run ended at step {done['step']:,}; give a larger budget to go on, or --fresh")
            return done
        if trainer.ranks.leads:
            run.forget_result()
        listener.started(summary(trainer))
        completed = trainer.train(stop)
    facts = trainer.finish() if completed else None
    if trainer.ranks.leads:
        write_pictures(run)
    if facts is None:
        raise Interrupted(stop.exit_code, trainer.progress.step)
    return facts


class Complaints:
    """Tells a listener of sources that are left out: the first few by name, since there may be thousands."""

    def __init__(self, listener: Listener) -> None:
        self.listener, self.count = listener, 0

    def __call__(self, error: DataError) -> None:
        """Of one."""
        self.count += 1
        if self.count <= NAMED:
            self.listener.said(f"left out: {error}")
        if self.count == NAMED + 1:
            self.listener.said("left out: further files that cannot be read")


def check_kind(arch: str, corpus: Pairs) -> None:
    """Text is for models of text, pictures and features are for a captioner."""
    if MODELS[arch].reads_vectors and corpus.reader is None:
        raise UsageError(f"the arch {arch} reads pictures or features; give --images or --features, and --captions")
    if corpus.reader is not None and not MODELS[arch].reads_vectors:
        raise UsageError(f"the arch {arch} reads text; for pictures and features there is --arch captioner")


def link_files(config: Config, corpus: Pairs, guided: Sequence[Path]) -> LinkFiles | None:
    """Files that can guide the model that is asked for, or none."""
    if guided and corpus.reader is not None:
        raise UsageError("--guided links words to words, and these sources have no words")
    links = LinkFiles(corpus, tuple(guided)) if guided else None
    check_looking(config, links)
    if links is not None:
        links.check()
    return links


def write_pictures(run: RunDirectory) -> None:
    """The course of the run, and its film if there is one."""
    write_curve(run.journal, run.curve)
    if run.film.exists() and run.film.stat().st_size:
        write_text(run.film.with_suffix(".html"), page_of_run(run.path))


def like(config: Config, start: Bundle) -> Config:
    """Fine-tuning keeps the model it starts from; a different arch or size cannot be meant."""
    asked, given = config.model, start.description
    defaults = ModelSettings()
    for name in ("arch", "size"):
        wanted = getattr(asked, name)
        if wanted not in (getattr(defaults, name), getattr(given, name)):
            raise UsageError(
                f"--init starts from a model of {name} {getattr(given, name)!r}, which cannot become {wanted!r}"
            )
    model = ModelSettings(arch=given.arch, size=given.size, options={**given.options, **asked.options})
    return config.model_copy(update={"model": model})


def make_trainer(
    run: RunDirectory,
    config: Config,
    prepared: Prepared,
    device: torch.device,
    listener: Listener,
    start: Bundle | None = None,
    ranks: Ranks | None = None,
) -> Trainer:
    """A trainer whose first weights follow from the seed, or are those of `start`."""
    source_language, target_language = prepared.facts["languages"]
    chosen = dict(config.model.options)
    if not config.data.joint and "tie" in options(MODELS[config.model.arch]):
        chosen.setdefault("tie", "output")
    description = Description(
        arch=config.model.arch,
        size=config.model.size,
        options=chosen,
        source_language=source_language,
        target_language=target_language,
        max_length=config.data.max_length,
    )
    torch.manual_seed(hash_key(config.training.seed, 0) % 2**63)
    model = description.build(prepared.tokenizers)
    if start:
        load_weights(model, start.path / BUNDLE_WEIGHTS)
    return Trainer(run, config, prepared, model, description, device, listener, ranks)


def computes(trainer: Trainer) -> str:
    """In which numbers, on how many threads, and with which of the measures this machine allows."""
    device, settings = trainer.device, trainer.config.training
    numbers = "bfloat16" if uses_bfloat16(device, settings.precision) else "float32"
    count = torch.get_num_threads()
    threads = [f"{count} thread{'s' if count > 1 else ''}"] if device.type == "cpu" else []
    ranks = [] if trainer.ranks.alone else [f"{trainer.ranks.size} ranks"]
    halves = ["halves side by side"] if trainer.gradients.pool is not None and count > 1 else []
    return ", ".join([numbers, *ranks, *threads, *trainer.measures, *halves])


def guided_words(trainer: Trainer) -> str:
    """Which head learns from links, and from how many."""
    facts = trainer.guided_facts()
    return "layer {layer}, head {head}, weight {weight:g}, from the links of {pairs:,} pairs".format(**facts)


def summary(trainer: Trainer) -> dict[str, Any]:
    """What a person wants to know before the first update."""
    facts, config = trainer.prepared.facts, trainer.config
    return {
        "arch": f"{config.model.arch} {config.model.size}",
        "parameters": trainer.facts()["parameters"],
        "languages": " → ".join(facts["languages"]),
        "pairs": facts["pairs"],
        "left_out": facts["left_out"],
        "dev_pairs": facts["dev_pairs"],
        **({"guided": guided_words(trainer)} if trainer.guidance else {}),
        "sources": trainer.prepared.tokenizers.source.describe(),
        "vocabulary": facts["vocabulary"][1] if config.data.joint else facts["vocabulary"],
        "device": str(trainer.device),
        "computes": computes(trainer),
        "validate_every": trainer.validate_every,
        "out": str(trainer.run.path),
    }
