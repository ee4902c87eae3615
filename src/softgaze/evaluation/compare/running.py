"""The comparison itself: the text is prepared once, then the models take their turns, one after the other."""

from collections.abc import Callable
from typing import Any

from softgaze.evaluation.compare.plan import FAILED, Plan
from softgaze.evaluation.compare.turns import TURNS, Turn, write_record
from softgaze.training.prepare import prepare

Launch = Callable[[Plan, str, str], int]  # takes one turn (plan, model, kind), in a process of its own: its exit code
Say = Callable[[str], None]
Failures = dict[str, dict[str, Any]]  # by model: which turn ended in an error, and with which exit code


def prepare_shared(plan: Plan) -> None:
    """One tokenizer and one encoding for all; refused when the directory was made from another text."""
    config = plan.config(plan.variants[0].name)
    prepare(plan.encoded, plan.corpus, plan.held_out, config.data, config.training.seed)


def take_turns(plan: Plan, launch: Launch, say: Say) -> Failures:
    """Every turn that is not done yet; what is done stays, and whoever fails does not stop the others."""
    failed: Failures = {}
    for number, variant in enumerate(plan.variants, start=1):
        turn = Turn(plan, variant.name)
        done = {"train": turn.is_trained, "translate": turn.is_translated}
        for kind in TURNS:
            told = f"[{number}/{len(plan.variants)}] {variant.name}: {kind}"
            if done[kind]():
                say(f"{told}: done before")
                continue
            say(told)
            if code := launch(plan, variant.name, kind):
                say(f"{told}: ended in an error")
                failed[variant.name] = {"turn": kind, "exit_code": code}
                break
    write_record(plan.out / FAILED, failed)
    return failed
