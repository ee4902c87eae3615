"""The report as a page: one file that opens offline, without any script."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from softgaze.evaluation.chart import marker
from softgaze.evaluation.compare import tables
from softgaze.evaluation.compare.findings import rarity
from softgaze.evaluation.compare.markdown import TITLE
from softgaze.evaluation.tables import Table
from softgaze.gaze.attention import Attention
from softgaze.gaze.difference import difference
from softgaze.gaze.drawing import element
from softgaze.gaze.shell import document
from softgaze.gaze.svg import bare

STYLES = ("evaluation.css", "compare.css")
MANY = 10  # words of a source whose map needs more room
WITHOUT = "No attention: this model reads the whole sentence into one vector, so there is nothing to show."
MAPS = (
    "In a map, each row is a word of the translation, each column a word of the source: the darker, the more of the "
    "look, with a ring around the most. Which layer and head is shown was measured for each model on held-out text; a "
    "map shows where a model looked, not why it wrote. Words that are not in the reference are underlined."
)
BEYOND = (
    "Within the trained lengths (left, solid) the question is how well a model holds much in mind, and how well it "
    "learns what is rare, since longer sentences are rarer in training; beyond them (right, dashed, on shaded ground) "
    "it is another: whether it carries on at lengths it has never seen."
)
HELD_OUT = "Sentences of every length, on both sides, hold a combination of words that training never had."

Record = dict[str, Any]


def page(record: Record, charts: Mapping[str, str], looks: Sequence[Sequence[Attention | None]]) -> str:
    """The page as one text; `looks` has a row for each sentence, with a map or None for each model."""
    source, target = record["text"]["languages"]
    lead = f"{len(record['models'])} models, {source} → {target}, {tables.budget(record)} each"
    parts = [
        f"<h1>{escape(TITLE)}</h1>\n<p class='faint'>{escape(lead)}</p>",
        bullets(record["findings"]),
        section(tables.scores(record), record),
        section(tables.every_pair(record), record, folded=True) if len(record["models"]) > 2 else "",
        chart("Quality by length", charts["lengths"], lengths_note(record)),
        *(section(each, record, folded=True) for each in tables.by_length(record)),
        section(tables.costs(record), record),
        chart("Learning curves", charts["learning"], "Minutes of training, validations among them."),
        sentences(record, looks),
        facts(tables.surroundings(record)),
    ]
    return document(f"{TITLE}: {lead}", "\n".join(filter(None, parts)), styles=STYLES)


def escape(text: str) -> str:
    """Text as a page holds it."""
    return html.escape(text)


def bullets(lines: Sequence[str]) -> str:
    """What was found."""
    return "<ul class='findings'>\n" + "\n".join(f"<li>{escape(line)}</li>" for line in lines) + "\n</ul>"


# --- tables and charts ------------------------------------------------------------------------------------------


def section(table: Table, record: Record, *, folded: bool = False) -> str:
    """A table under its heading, or folded away under it."""
    note = f"<p class='faint'>{escape(table.note)}</p>" if table.note else ""
    if folded:
        return f"<details><summary>{escape(table.title)}</summary>{grid(table, record)}{note}</details>"
    return f"<h2>{escape(table.title)}</h2>\n{grid(table, record)}{note}"


def grid(table: Table, record: Record) -> str:
    """The table itself; names of models stand with their sign in the charts."""
    names = [each["name"] for each in record["models"]]
    head = "".join(f"<th scope='col'>{escape(each)}</th>" for each in table.header)
    rows = "\n".join(
        f"<tr><th scope='row'>{named(first, names)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in table.rows
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"


def named(name: str, names: Sequence[str]) -> str:
    """A model's name, with the marker of its lines."""
    if name not in names:
        return escape(name)
    return f"{sign(names.index(name))}{escape(name)}"


def sign(number: int) -> str:
    """The marker of a model's lines, as small as a letter."""
    return element("svg", marker(number, 6, 6), viewBox="0 0 12 12", class_="chart sign", aria_hidden="true")


def chart(title: str, drawn: str, note: str) -> str:
    """A chart under its heading."""
    caption = f"<figcaption class='faint'>{escape(note)}</figcaption>" if note else ""
    return f"<h2>{escape(title)}</h2>\n<figure class='chart'><div class='scroll'>{drawn}</div>{caption}</figure>"


def lengths_note(record: Record) -> str:
    """What a slope may come from, where there is something beyond; of the built-in text, how rare each length was."""
    if not record["models"][0]["beyond"]:
        return ""
    trained = record["text"].get("trained_lengths")
    return " ".join([BEYOND, rarity(trained), HELD_OUT] if trained else [BEYOND])


def facts(lines: Sequence[tuple[str, str]]) -> str:
    """How, where and when."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in lines)
    return f"<h2>How, where and when</h2>\n<dl class='facts'>{rows}</dl>"


# --- sentences --------------------------------------------------------------------------------------------------


def sentences(record: Record, looks: Sequence[Sequence[Attention | None]]) -> str:
    """The same sentences, by every model, side by side."""
    shown = record["sentences"]["shown"]
    lead = f"{len(shown)} sentences, {record['sentences']['rule']}. {MAPS}"
    parts = [sentence(number, *each) for number, each in enumerate(zip(shown, looks, strict=True), start=1)]
    return f"<h2>The same sentences</h2>\n<p class='faint'>{escape(lead)}</p>\n" + "\n".join(parts)


def sentence(number: int, shown: Record, looks: Sequence[Attention | None]) -> str:
    """One sentence: source, reference, and a card for each model."""
    width = " long" if len(shown["source"].split()) > MANY else ""
    cards = "\n".join(
        card(place, said, shown["reference"], look)
        for place, (said, look) in enumerate(zip(shown["translations"], looks, strict=True))
    )
    head = f"<h3><span class='faint'>{number}</span> <bdi>{escape(shown['source'])}</bdi></h3>"
    reference = f"<p><span class='faint'>reference</span> <bdi>{escape(shown['reference'])}</bdi></p>"
    return f"<section class='sentence{width}'>{head}{reference}\n<div class='cards'>{cards}</div></section>"


def card(place: int, said: Record, reference: str, look: Attention | None) -> str:
    """What one model wrote, how near it is, and where its words looked."""
    scores = f"<span class='faint'>chrF {said['chrf']:.0f}</span>"
    figure = f"<figure class='map'>{bare(look)}</figure>" if look else f"<p class='faint none'>{escape(WITHOUT)}</p>"
    return (
        f"<article><h4><span>{sign(place)}{escape(said['model'])}</span>{scores}</h4>"
        f"<p class='said'><bdi>{compared(reference, said['text'])}</bdi></p>{figure}</article>"
    )


def compared(reference: str, text: str) -> str:
    """The translation, with what is not in the reference marked."""
    if not text:
        return "<span class='faint'>(nothing)</span>"
    runs = [(kind, run) for kind, run in difference(reference, text) if kind != "removed"]
    space = " " if " " in text else ""
    return space.join(f"<u>{escape(run)}</u>" if kind == "added" else escape(run) for kind, run in runs)
