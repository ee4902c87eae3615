"""A comparison of two models that take seconds, and a way to run its jobs without new processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from corpora import SMALL, write_corpus
from softgaze.config import merge_settings
from softgaze.evaluation.compare.experiment import Experiment, parse_models, shared_settings
from softgaze.evaluation.compare.jobs import ModelJob, preprocess_shared, run_jobs
from softgaze.training.callbacks import Callback

QUICK = {"training": {"batch_tokens": 64, "average": 2, "warmup": 2}, "validation": {"every": 4, "sentences": 4}}


def archs(*names: str) -> str:
    """Small ones, as `--archs` takes them."""
    return ",".join(
        ":".join([name, *(f"{option}={value}" for option, value in SMALL.get(name, {"width": 16}).items())])
        for name in names
    )


def planned(directory: Path, *names: str, steps: int = 8, **settings: Any) -> Experiment:
    """On a few lines, with a longer test than training."""
    text = directory / "text"
    text.mkdir(exist_ok=True)
    shared = shared_settings(merge_settings(QUICK, {"budget": {"steps": steps}}, settings))
    train, test = write_corpus(text), write_corpus(text, name="test", pairs=40)
    variants = tuple(parse_models(archs(*names), shared))
    return Experiment(directory / "out", variants, shared, (train,), (), (), test, beam_size=1, device="cpu")


def beyond(plan: Experiment) -> Experiment:
    """The same with sentences that are to be longer than training."""
    source, target = write_corpus(plan.out.parent / "text", name="beyond", pairs=20)
    return replace(plan, edges=(3, 6), beyond=(source, target), beyond_edges=(4, 6))


def take(plan: Experiment, name: str, kind: str) -> int:
    """Run one job in this process."""
    job = ModelJob(plan, name)
    job.train(Callback()) if kind == "train" else job.translate()
    return 0


def compared(plan: Experiment) -> list[str]:
    """Run all jobs; return the log."""
    said: list[str] = []
    plan.write()
    preprocess_shared(plan)
    run_jobs(plan, take, said.append)
    return said
