"""What the numbers of a comparison say, in sentences: each follows from the record, none is known beforehand."""

from collections.abc import Iterable, Sequence
from typing import Any

from softgaze.evaluation.report import chance

LUCK = 0.05  # p-values from here on may be luck
LEAST = 1.0  # BLEU: below, nothing was learnt that could be compared
LITTLE = 5.0  # BLEU: whoever has less can hardly fall

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


# --- scores -----------------------------------------------------------------------------------------------------


def bleu(model: Record) -> float:
    """Of the whole test set."""
    return float(model["scores"]["bleu"]["score"])


def best(models: Sequence[Record], differences: Sequence[Record]) -> list[str]:
    """Who scored highest, and against whom that is more than luck; nothing to tell of one model alone."""
    if len(models) < 2:
        return []
    first = max(models, key=bleu)
    holm = against(first["name"], differences)
    sure = [name for name, p in holm.items() if p < LUCK]
    unsure = [f"{name} (p = {chance(p)})" for name, p in holm.items() if p >= LUCK]
    parts = [f"the difference is more than luck against {listed(sure)}"] if sure else []
    parts += [f"it may be luck against {listed(unsure)}"] if unsure else []
    return [f"{first['name']} has the highest BLEU, {banded(first['scores']['bleu'])}; {', and '.join(parts)}."]


def against(name: str, differences: Sequence[Record]) -> dict[str, float]:
    """Corrected p-values of one model's BLEU against each other's."""
    pairs = [(each, each["one"], each["other"]) for each in differences]
    return {other if one == name else one: each["bleu"]["holm"] for each, one, other in pairs if name in (one, other)}


# --- lengths ----------------------------------------------------------------------------------------------------


def lengths(models: Sequence[Record]) -> list[str]:
    """From the shortest to the longest sentences."""
    points = models[0]["by_length"]["bleu"]
    if len(points) < 2:
        return []
    ends = [(each["name"], *(each["by_length"]["bleu"][end] for end in (0, -1))) for each in models]
    told = [f"{name} {value(first)} → {value(last)}" for name, first, last in ends]
    return [f"With length, BLEU at {words(points[0])} → {words(points[-1])} words: {', '.join(told)}."]


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
    """Falls or rises if the bands on both sides of the edge are apart; who is near zero can do neither."""
    before, after = model["by_length"]["bleu"][-1]["estimate"], model["beyond"]["bleu"][0]["estimate"]
    if after["low"] > before["high"]:
        return "rises"
    if before["score"] < LITTLE:
        return "had little to lose"
    return "falls" if after["high"] < before["low"] else "no clear change"


def transformers(models: Sequence[Record]) -> list[str]:
    """A Transformer attends to everything, and yet may fall where its positions are new."""
    own = [each for each in models if each["arch"] == "transformer"]
    fallen = [f"{each['name']} ({each['options'].get('positions')} positions)" for each in own if falls(each)]
    if not fallen:
        return []
    return [f"Attention alone does not carry over to new lengths: {listed(fallen)} {verb('fall', fallen)} too."]


def falls(model: Record) -> bool:
    """At the edge of what was trained."""
    return course_of(model) == "falls"


# --- speed ------------------------------------------------------------------------------------------------------


def speeds(models: Sequence[Record]) -> list[str]:
    """Who is fastest, at learning and at translating."""
    told = []
    for turn, doing in (("training", "Training"), ("translating", "Translating")):
        rates = {each["name"]: each[turn]["tokens_per_second"] for each in models if each[turn]["tokens_per_second"]}
        fast, slow = (pick(rates, key=rates.__getitem__, default="") for pick in (max, min))
        if rates and rates[fast] > rates[slow]:
            told.append(
                f"{doing}, {fast} is fastest with {rates[fast]:,.0f} tokens a second, {rates[fast] / rates[slow]:.1f} "
                f"times as fast as {slow}."
            )
    return told


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
