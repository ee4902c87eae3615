"""A comparison of two models that take seconds, and a way to take its turns without new processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from corpora import SMALL, write_corpus
from softgaze.config import merged
from softgaze.evaluation.compare.plan import Plan, shared_settings
from softgaze.evaluation.compare.running import prepare_shared, take_turns
from softgaze.evaluation.compare.turns import Turn
from softgaze.evaluation.compare.variants import parse_variants
from softgaze.training.listeners import Listener

QUICK = {"training": {"batch_tokens": 64, "average": 2, "warmup": 2}, "validation": {"every": 4, "sentences": 4}}


def archs(*names: str) -> str:
    """Small ones, as `--archs` takes them."""
    return ",".join(
        ":".join([name, *(f"{option}={value}" for option, value in SMALL.get(name, {"width": 16}).items())])
        for name in names
    )


def planned(directory: Path, *names: str, steps: int = 8, **settings: Any) -> Plan:
    """On a few lines, with a longer test than training."""
    text = directory / "text"
    text.mkdir(exist_ok=True)
    shared = shared_settings(merged(QUICK, {"budget": {"steps": steps}}, settings))
    train, test = write_corpus(text), write_corpus(text, name="test", pairs=40)
    variants = tuple(parse_variants(archs(*names), shared))
    return Plan(directory / "out", variants, shared, (train,), (), (), test, beam=1, device="cpu")


def beyond(plan: Plan) -> Plan:
    """The same with sentences that are to be longer than training."""
    source, target = write_corpus(plan.out.parent / "text", name="beyond", pairs=20)
    return replace(plan, edges=(3, 6), beyond=(source, target), beyond_edges=(4, 6))


def take(plan: Plan, name: str, kind: str) -> int:
    """One turn, here and now."""
    turn = Turn(plan, name)
    turn.train(Listener()) if kind == "train" else turn.translate()
    return 0


def compared(plan: Plan) -> list[str]:
    """All turns; returns what was said."""
    said: list[str] = []
    plan.write()
    prepare_shared(plan)
    take_turns(plan, take, said.append)
    return said
