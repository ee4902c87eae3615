"""The report of a comparison in every form: JSON with all numbers, a page, Markdown, and the two charts."""

import json

from softgaze.evaluation.chart import length_chart
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
    record = collect(plan)
    charts = {"lengths": lengths_of(record), "learning": learning_of(record)}
    for name, drawn in charts.items():
        write_text(plan.report(f"{name}.svg"), f"{drawn}\n")
    write_text(plan.report("json"), json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    names = [(CHARTS[name], plan.report(f"{name}.svg").name) for name in charts]
    write_text(plan.report("md"), markdown(record, names))
    write_text(plan.report("html"), page(record, charts, looks(plan, record)))
    return [*record["findings"], *(str(plan.report(ending)) for ending in ("html", "md", "json"))]


def lengths_of(record: Record) -> str:
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
    return length_chart(scores)


def curve_of(model: Record, part: str, score: str) -> Curve:
    """A curve as it was before it was written down."""
    points = (Point(**{**point, "estimate": Estimate(**point["estimate"])}) for point in model[part][score])
    return Curve(model["name"], tuple(points), is_beyond=part == "beyond")


def learning_of(record: Record) -> str:
    """Learning curves, drawn from the record."""
    lines = [
        Learning(
            model["name"],
            [each["minutes"] for each in model["learning"]],
            {score: [each[score] for each in model["learning"]] for score in ("bleu", "loss")},
        )
        for model in record["models"]
    ]
    return learning_chart(lines)


def looks(plan: Plan, record: Record) -> list[list[Attention | None]]:
    """Where the words of each shown sentence looked, by each model."""
    return [
        [Attention.load(plan.out / said["attention"]) if said["attention"] else None for said in each["translations"]]
        for each in record["sentences"]["shown"]
    ]
