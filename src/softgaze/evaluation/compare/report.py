"""The report of a comparison: JSON, charts, tables, Markdown and an offline HTML page, all from one record."""

import json
from collections.abc import Callable, Sequence

from softgaze.atomic_io import write_text
from softgaze.evaluation.by_length import BucketScore, LengthCurve, length_chart, range_label
from softgaze.evaluation.compare.experiment import Experiment
from softgaze.evaluation.compare.results import Record, collect_results
from softgaze.evaluation.report import p_cell
from softgaze.evaluation.significance import TITLES, Estimate
from softgaze.evaluation.tables import Table, escape, escape_markdown
from softgaze.explain.attention_map import Attention
from softgaze.explain.render.charts import Axis, ChartPoint, Panel, Series, line_chart, marker
from softgaze.explain.render.heatmap_svg import draw_bare_heatmap
from softgaze.explain.render.pages import document
from softgaze.explain.render.svg import element
from softgaze.explain.render.text_layout import truncate
from softgaze.explain.what_if import word_diff

TITLE = "The same text, the same budget"
CHARTS = {"lengths": "Quality by length", "learning": "Learning curves"}
LEARNING_TITLES = {"bleu": "BLEU on held-out text", "loss": "loss per token on held-out text"}
NONE = "—"
SIGNIFICANCE = 0.05
LONG_SENTENCE = 10  # source words; a longer one gets more room for its map
NO_ATTENTION = "No attention: this model encodes the whole sentence as one vector, so there is no map."
MAPS_NOTE = (
    "In a map, each row is a word of the translation and each column a word of the source; darker is more attention, "
    "with a ring around the maximum. Layer and head were selected for each model on held-out text. A map shows where a "
    "model attends, not why it writes a word. Words that are not in the reference are underlined."
)
BEYOND_NOTE = (
    "Within the trained lengths (left, solid) a score shows how well a model represents long sentences and learns rare "
    "ones, since longer sentences are rarer in training. Beyond them (right, dashed, shaded) it shows whether the "
    "model extrapolates to lengths it was not trained on."
)
CHANGE_NOTE = "↓ and ↑: the confidence interval lies below or above that of the longest trained lengths."
HELD_OUT_NOTE = "All test sentences contain a combination of words that was held out of training."


def write_report(experiment: Experiment) -> list[str]:
    """Write all files; return the warnings, the main tables and the paths of the report."""
    record = collect_results(experiment)
    for name, svg in comparison_charts(record, with_signatures=True).items():
        write_text(experiment.report(f"{name}.svg"), f"{svg}\n")
    write_text(experiment.report("json"), json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(experiment.report("md"), comparison_markdown(record))
    maps = [
        [
            Attention.load(experiment.out / translation["attention"]) if translation["attention"] else None
            for translation in sentence["translations"]
        ]
        for sentence in record["sentences"]["shown"]
    ]
    write_text(experiment.report("html"), comparison_page(record, maps))
    tables = (score_table(record), *length_tables(record, metrics=("bleu",)), cost_table(record))
    paths = (str(experiment.report(ending)) for ending in ("html", "md", "json"))
    return [*record["warnings"], *(f"{table.text()}\n" for table in tables), *paths]


# --- charts -----------------------------------------------------------------------------------------------------


def comparison_charts(record: Record, *, with_signatures: bool = False) -> dict[str, str]:
    """Draw quality by length and the learning curves; charts outside of the page show their signatures."""

    def curve(model: Record, part: str, metric: str) -> LengthCurve:
        points = (BucketScore(**{**point, "estimate": Estimate(**point["estimate"])}) for point in model[part][metric])
        return LengthCurve(model["name"], tuple(points), is_beyond=part == "beyond")

    curves = {
        metric: [
            curve(model, part, metric) for part in ("by_length", "beyond") for model in record["models"] if model[part]
        ]
        for metric in TITLES
    }
    signatures = record["signatures"]
    return {
        "lengths": length_chart(curves, signatures=signatures["scores"] if with_signatures else {}),
        "learning": learning_chart(record["models"], signatures["learning"]["bleu"] if with_signatures else ""),
    }


def learning_chart(models: Sequence[Record], signature: str = "") -> str:
    """Draw BLEU and loss of each validation against minutes of training."""
    x_axis = Axis.from_zero_to(max(entry["minutes"] for model in models for entry in model["learning"]))
    panels = []
    for metric, title in LEARNING_TITLES.items():
        series = []
        for style, model in enumerate(models):
            points = [
                ChartPoint(
                    entry["minutes"],
                    entry[metric],
                    tooltip=f"{model['name']}, {entry['minutes']:.1f} min: {entry[metric]:.3g}",
                )
                for entry in model["learning"]
            ]
            series.append(Series(truncate(model["name"], 22), points, style))
        y_axis = Axis.linear([point.y for line in series for point in line.points], min_span=0.01)
        panels.append(Panel(title, series, x_axis, y_axis, "minutes of training"))
    description = "; ".join(
        f"{model['name']}: BLEU "
        + ", ".join(f"{entry['bleu']:.1f} after {entry['minutes']:.1f} min" for entry in model["learning"])
        for model in models
    )
    notes = [f"BLEU {signature}"] if signature else []
    return line_chart(panels, title=CHARTS["learning"], description=description, notes=notes)


# --- tables -----------------------------------------------------------------------------------------------------


def score_table(record: Record) -> Table:
    """Scores of each model, and its difference from the best one."""
    best = max(record["models"], key=lambda model: float(model["scores"]["bleu"]["score"]))["name"]

    def cells(model: Record) -> list[str]:
        scores = [estimate_cell(model["scores"][metric]) for metric in TITLES]
        if model["name"] == best:
            return [*scores, "best", NONE]
        return [*scores, *_difference(record, model["name"], best)]

    pairs = len(record["differences"])
    corrected = f", corrected for {pairs} pairs of models (Holm)" if pairs > 1 else ""
    note = (
        "In brackets, the 95 % bootstrap confidence interval. p is the larger one of paired bootstrap and approximate "
        f"randomisation{corrected}; below {SIGNIFICANCE} the difference is significant for these test sentences. "
        "Another training seed may still change it."
    )
    rows = [(model["name"], *cells(model)) for model in record["models"]]
    return Table("Scores", ("model", *TITLES.values(), "BLEU minus the best", "p"), rows, note)


def estimate_cell(score: Record) -> str:
    """Return `31.2 (29.0–33.5)`."""
    return f"{score['score']:.1f} ({score['low']:.1f}–{score['high']:.1f})"


def pair_table(record: Record) -> Table:
    """BLEU of the row minus that of the column."""
    names = [model["name"] for model in record["models"]]

    def cell(name: str, other: str) -> str:
        if name == other:
            return NONE
        score, p = _difference(record, name, other)
        return f"{score} (p {p})"

    rows = [(name, *(cell(name, other) for other in names)) for name in names]
    return Table("All pairs: BLEU of the row minus BLEU of the column", ("", *names), rows)


def _difference(record: Record, name: str, other: str) -> tuple[str, str]:
    """Return the BLEU of one model minus that of another, and its corrected p-value."""
    pair = next(pair for pair in record["differences"] if {pair["one"], pair["other"]} == {name, other})
    score = round(pair["bleu"]["score"] * (1 if pair["one"] == name else -1), 1)
    return f"{score:+.1f}".replace("-", "−") if score else "0.0", p_cell(pair["bleu"]["holm"])


def cost_table(record: Record) -> Table:
    def mebibytes(size: int | None) -> str:
        return NONE if size is None else f"{size / 2**20:,.0f} MiB"

    def speed(job: Record) -> str:
        if job["tokens_per_second"] is None:
            return NONE
        spread = f" ({job['spread'][0]:,.0f}–{job['spread'][1]:,.0f})" if job.get("spread") else ""
        return f"{job['tokens_per_second']:,.0f}{spread}"

    def memory(job: Record) -> str:
        gpu = f", GPU {mebibytes(job['device_memory'])}" if job.get("device_memory") else ""
        return mebibytes(job["memory"]) + gpu

    jobs = ("training", "translating")
    header = ["model", "parameters", "updates", "minutes", "training tokens/s", "translation tokens/s"]
    header += ["peak memory, training", "peak memory, translation"]
    rows = [
        (
            model["name"],
            f"{model['parameters']:,}",
            f"{model['training']['step']:,}",
            f"{model['training']['minutes']:.2f}",
            *(speed(model[job]) for job in jobs),
            *(memory(model[job]) for job in jobs),
        )
        for model in record["models"]
    ]
    rounds = [model["translating"].get("rounds") or 0 for model in record["models"]]
    before = [model["training"]["memory_before"] for model in record["models"]]
    has_gpu = any(model[job].get("device_memory") for model in record["models"] for job in jobs)
    sentences = [
        "Training tokens are target tokens, without the time of validations; minutes include validations.",
        f"Translation uses beam size {record['beam_size']} and batches"
        + (f"; median of {max(rounds)} rounds, slowest and fastest in brackets." if any(rounds) else "."),
        "Memory is the peak of the model's own process"
        + (", then that of its tensors on the GPU." if has_gpu else "."),
        f"About {mebibytes(max(before))} of it is Python and torch." if all(before) else "",
        "Speeds depend on the machine and its load.",
    ]
    return Table("Size, speed and memory", header, rows, " ".join(filter(None, sentences)))


def length_tables(record: Record, metrics: Sequence[str] = tuple(TITLES)) -> list[Table]:
    """A table per metric: models down, lengths across; those beyond the trained lengths apart."""
    trained = {(part["low"], part["high"]): part["pairs"] for part in record["text"].get("trained_lengths", ())}
    tables = []
    for part, title, note in (("by_length", "by length", ""), ("beyond", "beyond the trained lengths", CHANGE_NOTE)):
        for metric in metrics if record["models"][0][part] else ():
            points = record["models"][0][part][metric]
            ranges = [(point["low"], point["high"]) for point in points]
            header = ["words of the source", *(range_label(*edges) for edges in ranges)]
            rows = [["sentences", *(f"{point['sentences']:,}" for point in points)]]
            if trained:
                rows.append(["training pairs", *(f"{trained[edges]:,}" for edges in ranges)])
            for model in record["models"]:
                longest_trained = model["by_length"][metric][-1]["estimate"]
                estimates = [point["estimate"] for point in model[part][metric]]
                marks = [_change(longest_trained, estimate) if note else "" for estimate in estimates]
                cells = (estimate_cell(estimate) + mark for estimate, mark in zip(estimates, marks, strict=True))
                rows.append([model["name"], *cells])
            tables.append(Table(f"{TITLES[metric]} {title}", header, rows, note))
    return tables


def _change(before: Record, after: Record) -> str:
    """Mark a confidence interval that lies below or above another one."""
    return " ↓" if after["high"] < before["low"] else " ↑" if after["low"] > before["high"] else ""


def conditions(record: Record) -> list[tuple[str, str]]:
    """Budget, text, machine, software, search and signatures."""
    text = record["text"]
    source, target = text["languages"]
    corpus = "the built-in phrasebook" if text["built_in"] else ", ".join(text["train"])
    vocabulary = " and ".join(f"{size:,}" for size in sorted(set(text["vocabulary"])))
    beyond = f", and {text['sentences']['beyond']:,} longer ones" if "beyond" in text["sentences"] else ""
    threads = f"{', '.join(map(str, record['threads']))} thread{'' if record['threads'] == [1] else 's'}"
    return [
        ("budget", f"{budget_text(record)} for each model; the checkpoint with the best validation score is used"),
        (
            "text",
            f"{source} → {target}: {text['pairs']:,} pairs of {corpus}, one vocabulary of {vocabulary} subwords for "
            f"all models; {text['dev_pairs']:,} validation pairs, {text['sentences']['test']:,} test sentences{beyond}",
        ),
        ("machine", f"{_environments(record, _machine)}; {', '.join(record['device'])}, {threads}"),
        ("software", _environments(record, _software)),
        ("date", _environments(record, lambda environment: str(environment["date"]))),
        ("search", f"beam size {record['beam_size']}"),
        ("seed", str(record["seed"])),
        *((TITLES[metric], value) for metric, value in record["signatures"]["scores"].items()),
        *((f"{TITLES[metric]} differences", value) for metric, value in record["signatures"]["differences"].items()),
    ]


def budget_text(record: Record) -> str:
    """Return `5 minutes`, or `400 updates`."""
    units = {"minutes": "minute", "steps": "update", "epochs": "epoch"}
    return ", at most ".join(
        f"{value:,g} {units[name]}{'' if value == 1 else 's'}" for name, value in record["budget"].items()
    )


def _environments(record: Record, describe: Callable[[Record], str]) -> str:
    """Describe where the jobs ran; and where the report was written, if that differs or the former is unknown."""
    measured_on = [model[job].get("measured_on") for model in record["models"] for job in ("training", "translating")]
    measured = list(dict.fromkeys(describe(environment) for environment in measured_on if environment))
    reported = describe(record["reported_on"])
    if measured == [reported]:
        return reported
    return " / ".join([*([f"measured: {'; '.join(measured)}"] if measured else []), f"report: {reported}"])


def _machine(environment: Record) -> str:
    memory = f", {environment['memory_bytes'] / 2**30:.0f} GiB" if environment["memory_bytes"] else ""
    return f"{environment['processor']}, {environment['cores']} cores{memory}"


def _software(environment: Record) -> str:
    commit = f", commit {environment['commit']}" if environment["commit"] else ""
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    return f"softgaze {environment['softgaze']}{commit}, Python {environment['python']}, {packages}"


# --- Markdown ---------------------------------------------------------------------------------------------------


def comparison_markdown(record: Record) -> str:
    """Return the warnings, tables and translations; the charts are files in the same directory."""
    shown = record["sentences"]["shown"]
    blocks = [f"# {TITLE}", "\n".join(f"- {warning}" for warning in record["warnings"])]
    tables = [score_table(record), *([pair_table(record)] if len(record["models"]) > 2 else []), cost_table(record)]
    blocks += [table.markdown() for table in tables]
    for name, title in CHARTS.items():
        blocks += [f"## {title}", f"![{title}](report.{name}.svg)"]
    blocks += [table.markdown(level=3) for table in length_tables(record)]
    blocks += ["## Translations of the same sentences", f"{len(shown)} sentences, {record['sentences']['rule']}."]
    for sentence in shown:
        rows = [("source", sentence["source"]), ("reference", sentence["reference"])]
        rows += [(translation["model"], translation["text"]) for translation in sentence["translations"]]
        cells = (f"| {escape_markdown(name)} | {escape_markdown(text)} |" for name, text in rows)
        blocks.append("\n".join(["| | |", "|---|---|", *cells]))
    blocks += ["## Conditions", "\n".join(f"- {name}: {value}" for name, value in conditions(record))]
    return "\n\n".join(filter(None, blocks)) + "\n"


# --- HTML -------------------------------------------------------------------------------------------------------


def comparison_page(record: Record, maps: Sequence[Sequence[Attention | None]]) -> str:
    """Return the page; `maps` has a row for each shown sentence, with a map or None for each model."""
    names = [model["name"] for model in record["models"]]
    charts = comparison_charts(record)
    source, target = record["text"]["languages"]
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in record["warnings"])
    lead = f"{len(names)} models, {source} → {target}, {budget_text(record)} each"

    def row_name(name: str) -> str:
        return (_legend_marker(names.index(name)) if name in names else "") + escape(name)

    def chart(name: str, note: str) -> str:
        caption = f'<figcaption class="faint">{escape(note)}</figcaption>' if note else ""
        figure = f'<figure class="chart"><div class="scroll">{charts[name]}</div>{caption}</figure>'
        return f"<h2>{escape(CHARTS[name])}</h2>\n{figure}"

    notes = [BEYOND_NOTE] if record["models"][0]["beyond"] else []
    lengths_note = " ".join([*notes, HELD_OUT_NOTE] if record["text"]["built_in"] else notes)
    shown = record["sentences"]["shown"]
    sentences_note = f"{len(shown)} sentences, {record['sentences']['rule']}. {MAPS_NOTE}"
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in conditions(record))
    parts = [
        f'<h1>{escape(TITLE)}</h1>\n<p class="faint">{escape(lead)}</p>',
        f'<ul class="findings">{warnings}</ul>' if warnings else "",
        score_table(record).html(row_name=row_name),
        pair_table(record).html(folded=True, row_name=row_name) if len(names) > 2 else "",
        chart("lengths", lengths_note),
        *(table.html(folded=True, row_name=row_name) for table in length_tables(record)),
        cost_table(record).html(row_name=row_name),
        chart("learning", "Minutes of training, validations included."),
        f'<h2>Translations of the same sentences</h2>\n<p class="faint">{escape(sentences_note)}</p>',
        *(_sentence(index, *sentence) for index, sentence in enumerate(zip(shown, maps, strict=True), start=1)),
        f'<h2>Conditions</h2>\n<dl class="facts">{facts}</dl>',
    ]
    return document(f"{TITLE}: {lead}", "\n".join(filter(None, parts)), styles=("evaluation.css", "compare.css"))


def _legend_marker(style: int) -> str:
    return element("svg", marker(style, 6, 6), viewBox="0 0 12 12", class_="chart sign", aria_hidden="true")


def _sentence(index: int, sentence: Record, maps: Sequence[Attention | None]) -> str:
    """Show source, reference, and a card for each model: its map, and its translation, marked where it differs."""
    cards = []
    for style, (translation, attention) in enumerate(zip(sentence["translations"], maps, strict=True)):
        figure = f'<figure class="map">{draw_bare_heatmap(attention)}</figure>' if attention else ""
        figure = figure or f'<p class="faint none">{escape(NO_ATTENTION)}</p>'
        text = translation["text"]
        runs = [(kind, run) for kind, run in word_diff(sentence["reference"], text) if kind != "removed"]
        words = (f"<u>{escape(run)}</u>" if kind == "added" else escape(run) for kind, run in runs)
        marked = (" " if " " in text else "").join(words) if text else '<span class="faint">(empty)</span>'
        cards.append(
            f"<article><h4><span>{_legend_marker(style)}{escape(translation['model'])}</span>"
            f'<span class="faint">chrF {translation["chrf"]:.0f}</span></h4>'
            f'<p class="said"><bdi>{marked}</bdi></p>{figure}</article>'
        )
    width = " long" if len(sentence["source"].split()) > LONG_SENTENCE else ""
    return (
        f'<section class="sentence{width}">'
        f'<h3><span class="faint">{index}</span> <bdi>{escape(sentence["source"])}</bdi></h3>'
        f'<p><span class="faint">reference</span> <bdi>{escape(sentence["reference"])}</bdi></p>\n'
        f'<div class="cards">{"".join(cards)}</div></section>'
    )
