"""A surveyed corpus as a page: rankings, a table to sort and search, the map of each sentence. One file, offline."""

import html
import json
from collections.abc import Mapping
from string import Template
from typing import Any

from softgaze.gaze.corpus import HONEST, RANKINGS, Look, Survey
from softgaze.gaze.shell import asset, document
from softgaze.gaze.stored import script_element

ELEMENT = "softgaze-corpus"  # the id of what holds the numbers
SCRIPTS = ("maps.js", "draw.js", "corpus.js")
TITLE = "Where words are dropped or repeated"


def corpus_page(survey: Survey, facts: Mapping[str, Any]) -> str:
    """The page as one text; `facts` are told at its head: model, corpus, beam, and what the maps show."""
    record = {
        "facts": dict(facts),
        "summary": survey.summary(),
        "isWhole": survey.is_whole,
        "honest": HONEST,
        "rankings": {name: {"title": each.title, "explained": each.explained} for name, each in RANKINGS.items()},
        "looks": [as_row(each) for each in survey.kept()],
    }
    body = Template(asset("corpus.html")).substitute(title=html.escape(TITLE))
    data = script_element(ELEMENT, json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return document(
        f"{TITLE}: {facts['corpus']}", f"{body}\n{data}", styles=("page.css", "corpus.css"), scripts=SCRIPTS
    )


def as_row(each: Look) -> dict[str, Any]:
    """What the page needs of a sentence; what most sentences do not have is left out."""
    row = {name: getattr(each, name) for name in ("line", "source", "output", "coverage", "honesty", "sink", "weights")}
    optional = ("reference", "uncovered", "shortfall", "unsaid", "misfit", "repeated", "different", "aer", "scores")
    return row | {name: value for name in optional if (value := getattr(each, name)) or value == 0.0}
