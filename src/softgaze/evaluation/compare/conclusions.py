"""Sentences that follow from the record of a comparison: best model, effect of length, speed."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from softgaze.evaluation.by_length import range_label
from softgaze.evaluation.report import p_cell

SIGNIFICANCE = 0.05
MIN_BLEU = 1.0  # of the best model; below, nothing is compared
MIN_FALL = 5.0  # BLEU: a model with less can hardly fall
MIN_SPEED_RATIO = 1.05  # below, the load of the machine may be the reason
ROUNDING = 1e-9

Record = dict[str, Any]


def draw_conclusions(record: Record) -> list[str]:
    """Return all conclusions; each is left out where it was not measured."""
    models: Sequence[Record] = record["models"]
    best = max(map(bleu, models))
    budget = record.get("budget", {}).get("steps", math.inf)
    sentences = [
        f"{failure['name']} is not compared: its {failure['job']} job failed (exit code {failure['exit_code']})."
        for failure in record.get("failed", ())
    ]
    sentences += [
        f"{model['name']} was trained for {model['training']['step']:,} updates; the budget is {budget:,}."
        for model in models
        if model["training"].get("step", 0) > budget
    ]
    if best < MIN_BLEU:
        sentences.append(f"The highest BLEU is {best:.1f}, too low to compare models; increase the budget.")
    else:
        sentences += [*_best_model(models, record["differences"]), *_by_length(models), *_beyond(models)]
    sentences += [_fastest(models, "training", "training"), _fastest(models, "translating", "translation")]
    if "trained_lengths" in record.get("text", {}):
        sentences.append(length_distribution(record["text"]["trained_lengths"]))
    return [sentence for sentence in sentences if sentence]


def bleu(model: Record) -> float:
    """Return BLEU of the whole test set."""
    return float(model["scores"]["bleu"]["score"])


def estimate_cell(score: Record) -> str:
    """Return `31.2 (29.0–33.5)`."""
    return f"{score['score']:.1f} ({score['low']:.1f}–{score['high']:.1f})"


def length_distribution(trained: Iterable[Record]) -> str:
    """Describe the training pairs by length: longer sentences are also rarer."""
    counts = ", ".join(f"{part['pairs']:,} of {_words(part)} words" for part in trained if part["pairs"])
    return f"Longer sentences are rarer in training: {counts}."


def _best_model(models: Sequence[Record], differences: Sequence[Record]) -> list[str]:
    """Name the model with the highest BLEU, and the others by whether the difference is significant."""
    if len(models) < 2:
        return []
    first = max(models, key=bleu)
    tied = [model["name"] for model in models if bleu(first) - bleu(model) < ROUNDING]
    p_values: dict[str, float] = {}  # of several best models, the largest
    for pair in differences:
        others = [pair[end] for end in ("one", "other") if pair[end] not in tied]
        if len(others) == 1:
            p_values[others[0]] = max(pair["bleu"]["holm"], p_values.get(others[0], 0.0))
    sure = [name for name, p in p_values.items() if p < SIGNIFICANCE]
    unsure = [f"{name} (p = {p_cell(p)})" for name, p in p_values.items() if p >= SIGNIFICANCE]
    parts = [f"Highest BLEU: {', '.join(tied)}, {estimate_cell(first['scores']['bleu'])}"]
    parts += [f"significantly better than {', '.join(sure)}"] if sure else []
    parts += [f"not significantly better than {', '.join(unsure)}"] if unsure else []
    return ["; ".join(parts) + "."]


def _by_length(models: Sequence[Record]) -> list[str]:
    points = models[0]["by_length"]["bleu"]
    if len(points) < 2:
        return []
    scores = [f"{model['name']} {_scores(model['by_length']['bleu'][:: len(points) - 1])}" for model in models]
    return [f"BLEU at {_words(points[0])} → {_words(points[-1])} words: {', '.join(scores)}."]


def _beyond(models: Sequence[Record]) -> list[str]:
    """Follow BLEU from the longest trained lengths to longer ones, and name the Transformers that fall."""
    models = [model for model in models if model["beyond"]]
    if not models:
        return []

    def points(model: Record) -> list[Record]:
        outside = model["beyond"]["bleu"]
        return [model["by_length"]["bleu"][-1], outside[0], *outside[1:][-1:]]

    ranges = " → ".join(map(_words, points(models[0])))
    changes = [f"{model['name']} {_scores(points(model))} ({_change(model)})" for model in models]
    sentences = [f"Beyond the trained lengths, BLEU at {ranges} words: {', '.join(changes)}."]
    transformers = [model for model in models if model["arch"] == "transformer" and _change(model).startswith("falls")]
    if transformers:
        names = [f"{model['name']} ({model['options'].get('positions')} positions)" for model in transformers]
        sentences.append(
            f"Attention alone does not extrapolate to new lengths; these Transformers fall: {', '.join(names)}."
        )
    return sentences


def _change(model: Record) -> str:
    """Compare the confidence intervals beyond the trained lengths with that of the longest trained ones."""
    inside, outside = model["by_length"]["bleu"][-1]["estimate"], model["beyond"]["bleu"]
    below = [point for point in outside if point["estimate"]["high"] < inside["low"]]
    above = [point for point in outside if point["estimate"]["low"] > inside["high"]]
    if below and inside["score"] >= MIN_FALL:
        return f"falls at {_words(below[0])}"
    if above:
        return f"rises at {_words(above[0])}"
    return "too low to fall" if inside["score"] < MIN_FALL else "no clear change"


def _fastest(models: Sequence[Record], job: str, name: str) -> str:
    """Name the fastest model, unless another one may be as fast."""
    speeds = {model["name"]: model[job] for model in models if model[job]["tokens_per_second"]}
    names = sorted(speeds, key=lambda name: float(speeds[name]["tokens_per_second"]), reverse=True)
    if len(names) < 2:
        return ""
    fastest, *others = (speeds[name] for name in names)
    for other in others:
        if fastest["tokens_per_second"] < MIN_SPEED_RATIO * other["tokens_per_second"]:
            return ""
        # Its slowest round must beat the other's fastest one; a single measurement shows nothing.
        if job == "translating" and fastest.get("spread", [0.0])[0] <= other.get("spread", [math.inf])[-1]:
            return ""
    speed, ratio = fastest["tokens_per_second"], fastest["tokens_per_second"] / others[-1]["tokens_per_second"]
    return f"Fastest {name}: {names[0]}, {speed:,.0f} tokens/s, {ratio:.1f} times the speed of {names[-1]}."


def _scores(points: Sequence[Record]) -> str:
    return " → ".join(f"{point['estimate']['score']:.1f}" for point in points)


def _words(point: Record) -> str:
    return range_label(point["low"], point["high"])
