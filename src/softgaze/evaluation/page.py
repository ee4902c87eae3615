"""An evaluation as a page: tables, the chart, and what the words mean. One file, offline."""

import html
from collections.abc import Mapping

from softgaze.evaluation.chart import length_chart
from softgaze.evaluation.counts import TITLES
from softgaze.evaluation.report import Evaluation, tables
from softgaze.evaluation.tables import Table
from softgaze.gaze.lettering import clean
from softgaze.gaze.shell import document

STYLES = ("evaluation.css",)
MEANINGS = {
    "95 % band": "where the score lies in 95 of 100 test sets drawn from these sentences with replacement "
    "(bootstrap, 1,000 draws).",
    "bootstrap p": "how often luck in the choice of sentences alone would make a difference as large as the one found "
    "(paired bootstrap, Koehn 2004, with two sides and around the mean of the draws; 10,000 of them where luck is not "
    "once so large in 1,000). sacreBLEU's own p-values are smaller: of equally good systems, more than one pair in ten "
    "gets p < 0.05 by them.",
    "randomisation p": "how often swapping the two systems' translations at random makes a difference as large "
    "(approximate randomisation, Riezler & Maxwell 2005; 10,000 trials).",
    "words": "what stands between spaces in the source; characters in scripts without spaces.",
    "entropy": "of a row of the map in nats: 0 looks at one word, more at many.",
    "coverage": "the share of source words that the translation looked at.",
    "AER": "the alignment error rate of the references against gold links; 0 is right.",
}


def evaluation_page(evaluation: Evaluation, facts: Mapping[str, str]) -> str:
    """The page as one text; `facts` are told at its head: model, test set, how it was translated."""
    title = f"Evaluation of {evaluation.systems[0].name}"
    shown = list(tables(evaluation))
    first, *rest = (table.html() for table in shown)
    body = [f"<h1>{html.escape(clean(title))}</h1>", listed(facts), first, signatures(evaluation)]
    if evaluation.buckets:
        body.append(figure(evaluation))
    return document(title, "\n".join([*body, *rest, glossary(shown)]), styles=STYLES)


def figure(evaluation: Evaluation) -> str:
    """Quality against length, in the colours of the page."""
    chart = length_chart(evaluation.curves)
    return f'<h2>Quality against source length</h2>\n<figure class="chart">{chart}</figure>'


def listed(facts: Mapping[str, str]) -> str:
    """What was measured, on what."""
    parts = (f"{html.escape(name)} <code>{html.escape(clean(value))}</code>" for name, value in facts.items())
    return f'<p class="faint">{" · ".join(parts)}</p>'


def signatures(evaluation: Evaluation) -> str:
    """sacreBLEU's, without which nobody can compare."""
    parts = (f"{TITLES[name]} <code>{html.escape(own)}</code>" for name, own in evaluation.signatures.items())
    return f'<p class="faint">{"<br>".join(parts)}</p>'


def glossary(shown: list[Table]) -> str:
    """What the words of the tables mean, of those that stand in them."""
    used = {"95 % band", *(column for table in shown for column in table.header)}
    terms = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(meaning)}</dd>"
        for name, meaning in MEANINGS.items()
        if name in used
    )
    return f'<footer><h2>How to read this</h2><dl class="meanings">{terms}</dl></footer>'
