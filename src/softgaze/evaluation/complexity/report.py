"""Tables and charts of the complexity study and of the dependence of trained models."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import fill, wrap

from softgaze.evaluation.by_length import range_label
from softgaze.evaluation.complexity.dependence import MEASURES, Dependence
from softgaze.evaluation.complexity.layers import HEADS, KERNEL, WINDOW, Layer, RecurrentLayer, SelfAttentionLayer
from softgaze.evaluation.complexity.study import QUANTITIES, Quantity, Study, find_crossing
from softgaze.evaluation.significance import Estimate
from softgaze.evaluation.tables import Table
from softgaze.explain.render.charts import Axis, ChartPoint, Panel, Series, line_chart, short_number
from softgaze.explain.render.text_layout import clean, truncate

DIFFERS = "≠"
TEXT_WIDTH = 110  # of sentences
MAX_NAME = 30  # em of a model's name
PLOT_WIDTH, PLOT_HEIGHT = 300, 200
MAX_TIMING_SPREAD = 1.5  # slowest over fastest round that is normal
FAR, RELATIVE = "far ÷ near", "÷ first model"
DEPENDENCE_NOTES = {
    **MEASURES,
    "distance": "words from a source word to its output word, with the output after the source",
    "output word": "the one that depends most on the source word and on no other more, over all models and by the "
    "other measure, so that no statistic selects where it is measured; the same for every model",
    FAR: "mean of the farthest over that of the nearest bucket, with its 95 % confidence interval; important words are "
    "not spread evenly, so 1 is not expected even where distance has no effect: compare models",
}
RELATIVE_NOTE = (
    "far ÷ near over that of the first model, with its 95 % confidence interval from the same resampled sentences; "
    "below 1, distance hurts this model more"
)


# --- the study --------------------------------------------------------------------------------------------------


def study_crossings(study: Study) -> dict[str, float | None]:
    """Return the length from which self-attention costs more than recurrence, in operations and in seconds."""
    return {
        quantity.key: find_crossing(
            study.lengths,
            *(
                [quantity.value(measured) for measured in study.along(layer, "n")]
                for layer in (SelfAttentionLayer, RecurrentLayer)
            ),
        )
        for quantity in QUANTITIES
        if quantity.key in ("operations", "seconds")
    }


def timing_warning(study: Study) -> list[str]:
    """Warn if the load of the machine disturbed the times."""
    if study.timing_spread <= MAX_TIMING_SPREAD:
        return []
    return [
        f"the same layer took up to {study.timing_spread:.1f} times as long in one round as in another: the machine "
        "was busy and times are rough; repeat the study on an idle machine"
    ]


def study_text(study: Study) -> str:
    """Return Vaswani's table with fitted exponents, all numbers, and the kinds of products behind the operations."""
    threads = f"{study.threads} thread{'' if study.threads == 1 else 's'}"
    heading = (
        f"One layer of each type: n positions of width d; {HEADS} heads (h), kernel {KERNEL} (k), window {WINDOW} (r)\n"
        f"{threads}, {study.rounds} rounds; left of │ d = {study.width:,}, right of it n = {max(study.lengths):,}\n"
        f"exponents are fitted to the largest sizes; {DIFFERS} marks those that differ from the theory"
    )
    summary = []
    for layer in study.layers:
        summary.append([layer.name, *(_powers(study, layer, quantity) for quantity in QUANTITIES)])
        summary.append(["  theory", *(quantity.law(layer).formula for quantity in QUANTITIES)])
    blocks = [heading, Table("growth", ["", *(quantity.name for quantity in QUANTITIES)], summary).text()]
    for quantity in QUANTITIES:
        header = ["", *(f"n={length:,}" for length in study.lengths)]
        header += ["│", *(f"d={width:,}" for width in study.widths)] if "d" in quantity.variables else []
        rows = []
        for layer in study.layers:
            first, *others = (
                [short_number(quantity.value(measured) * quantity.scale) for measured in study.along(layer, variable)]
                for variable in quantity.variables
            )
            rows.append([layer.name, *first, *(cell for column in others for cell in ("│", *column))])
        blocks.append(Table(quantity.titled(), header, rows).text())
    blocks.append(_product_table(study).text())
    blocks.append(_definitions({quantity.name: quantity.meaning for quantity in QUANTITIES}))
    lines = [
        f"self-attention has fewer {key} than recurrence up to n ≈ {length:,.0f} (d = {study.width:,})"
        for key, length in study_crossings(study).items()
        if length is not None
    ]
    return "\n\n".join(filter(None, [*blocks, "\n".join([*lines, *timing_warning(study)])]))


def _product_table(study: Study) -> Table:
    """Return the share of each kind of product in the operations: the theory counts only one kind of each layer."""
    largest = [study.along(layer, "n")[-1] for layer in study.layers]
    kinds = list(dict.fromkeys(kind for measured in largest for kind in measured.flops))
    rows = [
        [measured.layer.name, *(f"{100 * measured.flops.get(kind, 0) / measured.operations:.0f} %" for kind in kinds)]
        for measured in largest
    ]
    return Table(f"operations at n = {max(study.lengths):,}, d = {study.width:,}", ["", *kinds], rows)


def _powers(study: Study, layer: type[Layer], quantity: Quantity) -> str:
    """Return `n^1.66≠ d^1.21≠`."""
    growths = (study.growth(layer, quantity, variable) for variable in quantity.variables)
    # Adding 0 turns −0.0 into 0.0.
    return " ".join(
        f"{growth.variable}^{growth.exponent + 0.0:.2f}{DIFFERS if growth.differs else ''}" for growth in growths
    )


def study_chart(study: Study) -> str:
    """Return an SVG of every quantity against the length."""
    panels = []
    x_axis = Axis(min(study.lengths), max(study.lengths), study.lengths, is_log=True)
    for quantity in QUANTITIES:
        lines = [
            [ChartPoint(item.length, quantity.value(item) * quantity.scale) for item in study.along(layer, "n")]
            for layer in study.layers
        ]
        y_axis = Axis.logarithmic([point.y for points in lines for point in points])
        series = []
        for style, (layer, points) in enumerate(zip(study.layers, lines, strict=True)):
            growth, guide = study.growth(layer, quantity, "n"), []
            if growth.differs:  # draw the slope of the theory through the last point
                x, y = points[-1][:2]
                start = float(min(study.lengths))
                if growth.theory > 0:  # start where the line enters the panel
                    start = max(start, x * (y_axis.low / y) ** (1 / growth.theory))
                guide = [(start, y * (start / x) ** growth.theory), (x, y)]
            series.append(Series(f"{layer.name}  {_powers(study, layer, quantity)}", points, style, guide=guide))
        panels.append(
            Panel(quantity.titled(), series, x_axis, y_axis, "length n", width=PLOT_WIDTH, height=PLOT_HEIGHT)
        )
    low, *_, high = study.widths
    notes = [
        f"one layer of each type: width d = {study.width:,}, {HEADS} heads, kernel {KERNEL}, window {WINDOW}",
        "both axes are logarithmic: a power of n is a straight line with its exponent as slope",
        f"n^… is fitted to the longest lengths, d^… to widths {low:,} to {high:,} at n = {max(study.lengths):,}",
        f"dashed lines and {DIFFERS}: the slope of the theory differs",
        *(f"{quantity.name}: {quantity.meaning}" for quantity in QUANTITIES),
        f"measured with {study.threads} thread{'' if study.threads == 1 else 's'} in {study.rounds} rounds",
        *timing_warning(study),
    ]
    title = "Cost of a layer, and path length of information in it"
    return line_chart(panels, title=title, heading=title, description=" ".join(notes), notes=notes, columns=2) + "\n"


# --- dependence -------------------------------------------------------------------------------------------------


def dependence_text(results: Sequence[Dependence], sentences: int, left_out: int = 0) -> str:
    """Return a table per measure: models down, distances across."""
    title = f"Dependence of output words on source words by distance ({_pairs(sentences, left_out)})"
    edges = results[0].edges  # the same for all
    ranges = [*(range_label(before + 1, edge) for before, edge in pairwise([0, *edges])), f"{edges[-1] + 1}+"]
    has_baseline = _has_baseline(results)
    header = ["distance", *ranges, FAR, *([RELATIVE] if has_baseline else [])]
    blocks = wrap(title, TEXT_WIDTH)
    for measure in MEASURES:
        rows = []
        for result in (result for result in results if result.measure == measure):
            strengths = [""] * len(ranges)  # a model may have no word in a bucket
            for bucket in result.buckets:
                strengths[bisect_left(edges, bucket.low)] = f"{bucket.strength.score:z.2f}"
            row = [_model_name(result), *strengths, _estimate_cell(result.far_to_near, result.missing_ratio)]
            if has_baseline:
                relative = _estimate_cell(result.relative_to_baseline, result.missing_comparison)
                row.append(relative if result.baseline else "")
            rows.append(row)
        blocks.append(Table(measure, header, rows).text())
    return "\n\n".join([*blocks, _definitions(_notes(results))])


def dependence_chart(results: Sequence[Dependence], sentences: int, left_out: int = 0) -> str:
    """Return an SVG of both measures against the distance."""
    panels = []
    for measure in MEASURES:
        series = [
            Series(
                _series_name(result),
                [
                    ChartPoint(bucket.distance, bucket.strength.score, bucket.strength.low, bucket.strength.high)
                    for bucket in result.buckets
                ],
                style,
            )
            for style, result in enumerate(result for result in results if result.measure == measure)
        ]
        points = [point for line in series for point in line.points]
        x_axis = Axis.from_zero_to(max(point.x for point in points), min_step=1.0)
        y_axis = Axis.linear([bound for point in points for bound in (point.low or 0.0, point.high or 0.0)])
        panels.append(Panel(measure, series, x_axis, y_axis, "distance, words", width=PLOT_WIDTH, height=PLOT_HEIGHT))
    relative = f", then {RELATIVE}" if _has_baseline(results) else ""
    notes = [
        f"{_pairs(sentences, left_out)}; shaded areas are 95 % confidence intervals over resampled sentences",
        f"next to each name: {FAR}{relative}",
        *(f"{name}: {meaning}" for name, meaning in _notes(results).items()),
    ]
    title = "Dependence of output words on source words by distance"
    # One column, since the names are long.
    return line_chart(panels, title=title, heading=title, description=" ".join(notes), notes=notes) + "\n"


def _series_name(result: Dependence) -> str:
    if result.far_to_near is None:
        return f"{_model_name(result)}  {_estimate_cell(None, result.missing_ratio)}"
    name = f"{_model_name(result)}  {result.far_to_near.score:z.2f}"
    relative = _estimate_cell(result.relative_to_baseline, result.missing_comparison)
    return f"{name}; {RELATIVE} {relative}" if result.baseline else name


def _model_name(result: Dependence) -> str:
    name = clean(truncate(result.model, MAX_NAME))
    return name if name == result.arch else f"{name} ({result.arch})"


def _estimate_cell(estimate: Estimate | None, missing: str) -> str:
    if estimate is None:
        return f"– ({missing})"
    return f"{estimate.score:z.2f} ({estimate.low:z.2f}–{estimate.high:z.2f})"


def _pairs(sentences: int, left_out: int) -> str:
    count = f"{sentences:,} sentence pair{'' if sentences == 1 else 's'}"
    return f"{count}; {left_out:,} left out, which the models split into different words" if left_out else count


def _has_baseline(results: Sequence[Dependence]) -> bool:
    return any(result.baseline for result in results)


def _notes(results: Sequence[Dependence]) -> dict[str, str]:
    return {**DEPENDENCE_NOTES, RELATIVE: RELATIVE_NOTE} if _has_baseline(results) else DEPENDENCE_NOTES


def _definitions(meanings: Mapping[str, str]) -> str:
    sentences = (f"{name}: {meaning}" for name, meaning in meanings.items())
    return "\n".join(
        fill(sentence, TEXT_WIDTH, initial_indent="  ", subsequent_indent="    ") for sentence in sentences
    )
