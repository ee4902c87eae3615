"""The report as Markdown: the tables and sentences of the page, its charts as files beside it."""

from collections.abc import Iterable
from typing import Any

from softgaze.evaluation.compare import tables
from softgaze.evaluation.tables import Table

Record = dict[str, Any]
TITLE = "The same text, the same budget"


def markdown(record: Record, charts: Iterable[tuple[str, str]]) -> str:
    """One text; `charts` are (title, file name)."""
    blocks = [f"# {TITLE}", "\n".join(f"- {each}" for each in record["findings"])]
    blocks += table_blocks(tables.scores(record))
    if len(record["models"]) > 2:
        blocks += table_blocks(tables.every_pair(record))
    blocks += table_blocks(tables.costs(record))
    for title, name in charts:
        blocks += [f"## {title}", f"![{title}]({name})"]
    for each in tables.by_length(record):
        blocks += table_blocks(each, level=3)
    blocks += sentences(record)
    blocks += ["## How, where and when", "\n".join(f"- {name}: {value}" for name, value in tables.surroundings(record))]
    return "\n\n".join(filter(None, blocks)) + "\n"


def table_blocks(table: Table, level: int = 2) -> list[str]:
    """Heading, table and note."""
    head = f"| {' | '.join(map(safe, table.header))} |"
    rule = "|---|" + "--:|" * (len(table.header) - 1)
    rows = [f"| {' | '.join(map(safe, row))} |" for row in table.rows]
    return [f"{'#' * level} {table.title}", "\n".join([head, rule, *rows]), table.note]


def sentences(record: Record) -> list[str]:
    """The same sentences by every model; their maps are in the page."""
    blocks = ["## The same sentences", f"{len(record['sentences']['shown'])} sentences, {record['sentences']['rule']}."]
    for each in record["sentences"]["shown"]:
        lines = [("source", each["source"]), ("reference", each["reference"])]
        lines += [(said["model"], said["text"]) for said in each["translations"]]
        blocks.append("\n".join(["| | |", "|---|---|", *(f"| {safe(name)} | {safe(text)} |" for name, text in lines)]))
    return blocks


def safe(text: str) -> str:
    """As a cell of a table may hold it."""
    for mark in "\\|*_`<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text
