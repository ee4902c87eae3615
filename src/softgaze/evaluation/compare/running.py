"""The comparison itself: the text is prepared once, then the models take their turns, one after the other."""

from collections.abc import Callable

from softgaze.evaluation.compare.plan import Plan
from softgaze.evaluation.compare.turns import TURNS, Turn
from softgaze.training.prepare import prepare

Launch = Callable[[Plan, str, str], None]  # takes one turn (plan, model, kind), in a process of its own
Say = Callable[[str], None]


def prepare_shared(plan: Plan) -> None:
    """One tokenizer and one encoding for all; refused when the directory was made from another text."""
    config = plan.config(plan.variants[0].name)
    prepare(plan.encoded, plan.corpus, plan.held_out, config.data, config.training.seed)


def take_turns(plan: Plan, launch: Launch, say: Say) -> None:
    """Every turn that is not done yet; what is done stays, whatever happens to the rest."""
    count = len(plan.variants)
    for number, variant in enumerate(plan.variants, start=1):
        turn = Turn(plan, variant.name)
        done = {"train": turn.is_trained, "translate": turn.is_translated}
        for kind in TURNS:
            if done[kind]():
                say(f"[{number}/{count}] {variant.name}: {kind}: done before")
            else:
                say(f"[{number}/{count}] {variant.name}: {kind}")
                launch(plan, variant.name, kind)
