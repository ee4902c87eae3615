"""What the numbers of a comparison say, in sentences: each follows from the record, none is known beforehand."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from softgaze.evaluation.report import chance

LUCK = 0.05  # p-values from here on may be luck
LEAST = 1.0  # BLEU: below, nothing was learnt that could be compared
LITTLE = 5.0  # BLEU: whoever has less can hardly fall
CLEAR = 1.05  # times as fast: below, the machine may have been less busy
SAME = 1e-9  # BLEU: scores that differ by less do so through rounding

Record = dict[str, Any]


def findings(record: Record) -> list[str]:
    """Scores, lengths, what lies beyond them, speed; each only where it was measured."""
    models: list[Record] = record["models"]
    first = max(models, key=bleu)
    if bleu(first) < LEAST:
        told = [f"No model has learnt enough to compare: the highest BLEU is {bleu(first):.1f}; give a larger budget."]
    else:
        told = [*best(models, record["differences"]), *lengths(models), *beyond(models)]
    return told + speeds(models)


# --- who is compared -------------------------------------------------------------------------------------


def missing(failed: Sequence[Record]) -> list[str]:
    """Who was asked for and is not in the report; told before anything else."""
    doing = {"train": "training", "translate": "translating"}
    return [
        f"{each['name']} is not compared: its {doing[each['turn']]} ended in an error (exit code {each['exit_code']})."
        for each in failed
    ]


def overspent(record: Record) -> list[str]:
    """Who was trained longer before the budget was made smaller: it is not undone, and must not go unnoticed."""
    budget = record["budget"].get("steps", math.inf)
    return [
        f"{each['name']} was trained for {each['training']['step']:,} updates, more than the budget of {budget:,}."
        for each in record["models"]
        if each["training"]["step"] > budget
    ]


# --- scores -----------------------------------------------------------------------------------------------------


def bleu(model: Record) -> float:
    """Of the whole test set."""
    return float(model["scores"]["bleu"]["score"])


def best(models: Sequence[Record], differences: Sequence[Record]) -> list[str]:
    """Who scored highest, and against whom that is more than luck; nothing to tell of one model alone."""
    if len(models) < 2:
        return []
    first = max(models, key=bleu)
    tied = [each["name"] for each in models if bleu(first) - bleu(each) < SAME]
    holm = against(tied, differences)
    sure = [name for name, p in holm.items() if p < LUCK]
    unsure = [f"{name} (p = {chance(p)})" for name, p in holm.items() if p >= LUCK]
    parts = [f"the difference is more than luck against {listed(sure)}"] if sure else []
    parts += [f"it may be luck against {listed(unsure)}"] if unsure else []
    if len(tied) == 1:
        lead = f"{first['name']} has the highest BLEU, {banded(first['scores']['bleu'])}"
    else:
        lead = f"{listed(tied)} tie for the highest BLEU, {bleu(first):.1f}"
    return [f"{'; '.join([lead, *filter(None, [', and '.join(parts)])])}."]


def against(best: Sequence[str], differences: Sequence[Record]) -> dict[str, float]:
    """Corrected p-values of the best BLEU against each other model's; of several that are best, the largest."""
    found: dict[str, float] = {}
    for each in differences:
        others = [each[end] for end in ("one", "other") if each[end] not in best]
        if len(others) == 1:
            found[others[0]] = max(each["bleu"]["holm"], found.get(others[0], 0.0))
    return found


# --- lengths ----------------------------------------------------------------------------------------------------


def lengths(models: Sequence[Record]) -> list[str]:
    """From the shortest to the longest sentences."""
    points = models[0]["by_length"]["bleu"]
    if len(points) < 2:
        return []
    ends = [(each["name"], *(each["by_length"]["bleu"][end] for end in (0, -1))) for each in models]
    told = [f"{name} {value(first)} → {value(last)}" for name, first, last in ends]
    return [f"With length, BLEU at {words(points[0])} → {words(points[-1])} words: {', '.join(told)}."]


def rarity(trained: Sequence[Record]) -> str:
    """That length inside the trained range is not length alone; `trained` are pairs by bucket."""
    pairs = ", ".join(f"{each['pairs']:,} of {words(each)} words" for each in trained if each["pairs"])
    return f"Length goes with rarity: training had {pairs}."


def beyond(models: Sequence[Record]) -> list[str]:
    """From the longest sentences of the trained range to those beyond it; another matter, and told apart."""
    measured = [each for each in models if each["beyond"]]
    if not measured:
        return []
    spans = " → ".join(words(point) for point in edge(measured[0]))
    told = [f"{each['name']} {' → '.join(map(value, edge(each)))} ({course_of(each)})" for each in measured]
    return [f"Beyond the trained lengths, BLEU at {spans} words: {', '.join(told)}.", *transformers(measured)]


def edge(model: Record) -> list[Record]:
    """The last bucket of the trained lengths, the first beyond, and the last."""
    inside, outside = model["by_length"]["bleu"], model["beyond"]["bleu"]
    return [inside[-1], outside[0], *outside[1:][-1:]]


def course_of(model: Record) -> str:
    """Falls or rises at the first bucket beyond whose band is apart from the last before; near zero, none can fall."""
    before, outside = model["by_length"]["bleu"][-1]["estimate"], model["beyond"]["bleu"]
    below = [point for point in outside if point["estimate"]["high"] < before["low"]]
    above = [point for point in outside if point["estimate"]["low"] > before["high"]]
    if below and before["score"] >= LITTLE:
        return f"falls at {words(below[0])}"
    if above:
        return f"rises at {words(above[0])}"
    return "had little to lose" if before["score"] < LITTLE else "no clear change"


def transformers(models: Sequence[Record]) -> list[str]:
    """A Transformer attends to everything, and yet may fall where its positions are new; perhaps as others do."""
    down = [each for each in models if falls(each)]
    own = [each for each in down if each["arch"] == "transformer"]
    if not own:
        return []
    fallen = [f"{each['name']} ({each['options'].get('positions')} positions)" for each in own]
    too = " too" if len(own) < len(down) else ""
    return [f"Attention alone does not carry over to new lengths: {listed(fallen)} {verb('fall', fallen)}{too}."]


def falls(model: Record) -> bool:
    """Somewhere beyond what was trained."""
    return course_of(model).startswith("falls")


# --- speed ------------------------------------------------------------------------------------------------------


def speeds(models: Sequence[Record]) -> list[str]:
    """Who is fastest, at learning and at translating; nothing where another may be as fast."""
    told = []
    for turn, faster in (("training", learns_faster), ("translating", translates_faster)):
        found = {each["name"]: each[turn] for each in models if each[turn]["tokens_per_second"]}
        names = sorted(found, key=lambda name: rate(found[name]), reverse=True)
        if len(names) > 1 and all(faster(found[names[0]], found[other]) for other in names[1:]):
            fast, slow = rate(found[names[0]]), rate(found[names[-1]])
            told.append(
                f"{turn.capitalize()}, {names[0]} is fastest with {fast:,.0f} tokens a second, {fast / slow:.1f} "
                f"times as fast as {names[-1]}."
            )
    return told


def rate(turn: Record) -> float:
    """Tokens a second."""
    return float(turn["tokens_per_second"])


def learns_faster(one: Record, other: Record) -> bool:
    """By more than a machine's moods."""
    return rate(one) >= CLEAR * rate(other)


def translates_faster(one: Record, other: Record) -> bool:
    """In its slowest pass than the other in its fastest; what was timed once tells nothing."""
    least, most = one.get("spread", [0.0])[0], other.get("spread", [math.inf])[-1]
    return learns_faster(one, other) and bool(least > most)


# --- words ------------------------------------------------------------------------------------------------------


def banded(score: Record) -> str:
    """31.2 (29.0–33.5)."""
    return f"{score['score']:.1f} ({score['low']:.1f}–{score['high']:.1f})"


def value(point: Record) -> str:
    """The score of a bucket."""
    return f"{point['estimate']['score']:.1f}"


def words(point: Record) -> str:
    """The lengths of a bucket."""
    return f"{point['low']}–{point['high']}" if point["high"] > point["low"] else f"{point['low']}"


def listed(names: Iterable[str]) -> str:
    """A, b and c."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def verb(word: str, names: Sequence[str]) -> str:
    """With an s after one name."""
    return word if len(names) > 1 else f"{word}s"
