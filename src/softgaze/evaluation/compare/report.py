"""The report of a comparison in every form: JSON with all numbers, a page, Markdown, and the two charts."""

import json
from collections.abc import Mapping

from softgaze.evaluation.chart import length_chart
from softgaze.evaluation.compare.built_in import trained_lengths
from softgaze.evaluation.compare.findings import rarity
from softgaze.evaluation.compare.learning import Learning, learning_chart
from softgaze.evaluation.compare.markdown import markdown
from softgaze.evaluation.compare.page import page
from softgaze.evaluation.compare.plan import Plan
from softgaze.evaluation.compare.record import Record, collect
from softgaze.evaluation.counts import TITLES
from softgaze.evaluation.lengths import Curve, Point
from softgaze.evaluation.significance import Estimate
from softgaze.files import write_text
from softgaze.gaze.attention import Attention

CHARTS = {"lengths": "Quality by length", "learning": "Learning curves"}


def write_report(plan: Plan) -> list[str]:
    """Write all files; returns what the comparison found, and where to read more."""
    record = with_rarity(plan, collect(plan))
    for name, drawn in charts_of(record, alone=True).items():
        write_text(plan.report(f"{name}.svg"), f"{drawn}\n")
    write_text(plan.report("json"), json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    names = [(title, plan.report(f"{name}.svg").name) for name, title in CHARTS.items()]
    write_text(plan.report("md"), markdown(record, names))
    write_text(plan.report("html"), page(record, charts_of(record), looks(plan, record)))
    return [*record["findings"], *(str(plan.report(ending)) for ending in ("html", "md", "json"))]


def with_rarity(plan: Plan, record: Record) -> Record:
    """How much of each length was trained on, where the text is ours and small: elsewhere nobody claims a slope."""
    if not plan.built_in:
        return record
    buckets = [point for part in ("by_length", "beyond") for point in record["models"][0][part]["bleu"]]
    trained = trained_lengths(plan, buckets)
    text = {**record["text"], "trained_lengths": trained}
    return record | {"text": text, "findings": [*record["findings"], rarity(trained)]}


def charts_of(record: Record, *, alone: bool = False) -> dict[str, str]:
    """Both charts; one that will stand alone tells its signatures, while the page tells them for all."""
    signatures = record["signatures"]
    return {
        "lengths": lengths_of(record, signatures["scores"] if alone else {}),
        "learning": learning_of(record, signatures["learning"]["bleu"] if alone else ""),
    }


def lengths_of(record: Record, signatures: Mapping[str, str]) -> str:
    """Quality against length, drawn from the record."""
    scores = {
        score: [
            curve_of(model, part, score)
            for part in ("by_length", "beyond")
            for model in record["models"]
            if model[part]
        ]
        for score in TITLES
    }
    return length_chart(scores, signatures=signatures)


def curve_of(model: Record, part: str, score: str) -> Curve:
    """A curve as it was before it was written down."""
    points = (Point(**{**point, "estimate": Estimate(**point["estimate"])}) for point in model[part][score])
    return Curve(model["name"], tuple(points), is_beyond=part == "beyond")


def learning_of(record: Record, signature: str) -> str:
    """Learning curves, drawn from the record."""
    lines = [
        Learning(
            model["name"],
            [each["minutes"] for each in model["learning"]],
            {score: [each[score] for each in model["learning"]] for score in ("bleu", "loss")},
        )
        for model in record["models"]
    ]
    return learning_chart(lines, signature=signature)


def looks(plan: Plan, record: Record) -> list[list[Attention | None]]:
    """Where the words of each shown sentence looked, by each model."""
    return [
        [Attention.load(plan.out / said["attention"]) if said["attention"] else None for said in each["translations"]]
        for each in record["sentences"]["shown"]
    ]
