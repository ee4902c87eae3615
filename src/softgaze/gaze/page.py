"""The attention of one sentence as a page to play with: one HTML file that needs no network and no server.

The page holds the whole recording, packed, and computes every view of it in the browser (`assets/maps.js`, which tests
hold equal to `Attention`). All that a reader may ask of it is in the file: right links, influence, answers to what-ifs.
"""

import base64
import html
import json
import math
from collections.abc import Iterable
from string import Template
from typing import Any

import numpy

from softgaze.gaze.alignment import Alignment
from softgaze.gaze.answers import Answer
from softgaze.gaze.attention import Attention
from softgaze.gaze.recording import Matrix
from softgaze.gaze.shell import asset, document
from softgaze.gaze.stored import html_element, script_element, stored_recording
from softgaze.gaze.view import KINDS, MEASURES, ROWS, UNITS

ELEMENT = "softgaze-page"  # the id of what holds everything beside the recording
SCRIPTS = ("maps.js", "draw.js", "save.js", "page.js")
TITLE = "Where each word looked"
LONGEST_TITLE = 60  # characters of the two sentences in the title of a browser's window

NAMES = {"kind": KINDS, "rows": ROWS, "measure": MEASURES, "unit": UNITS}


def page(
    attention: Attention,
    *,
    gold: Alignment | None = None,
    influence: Matrix | None = None,
    answers: Iterable[Answer] = (),
    title: str | None = None,
) -> str:
    """The page as one text.

    `gold` are right links, to be outlined; `influence` is that of the translation, what really mattered: heads are
    sorted by it; `answers` are those of `gaze.answers`, for the what-if tab.
    """
    facts = {
        "names": NAMES,
        "choice": chosen(attention),
        "cores": {"source": attention.recording.source.core_of, "target": attention.recording.target.core_of},
        "gold": {"links": sorted(gold.links), "possible": sorted(gold.possible)} if gold else None,
        "influence": None if influence is None else packed_influence(attention, influence),
        "answers": [answered(each) for each in answers],
    }
    body = Template(asset("page.html")).substitute(title=html.escape(title or TITLE))
    data = html_element(attention), script_element(ELEMENT, json.dumps(facts, ensure_ascii=False, allow_nan=False))
    return document(title or named(attention), "\n".join((body, *data)), styles=("page.css",), scripts=SCRIPTS)


def named(attention: Attention) -> str:
    """The beginning of both sentences."""
    both = (" ".join(side.words) for side in (attention.recording.source, attention.recording.target))
    text = " → ".join(both)
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"


def chosen(attention: Attention) -> dict[str, Any] | None:
    """The map that a measurement chose, and how a figure says so."""
    choice = attention.choice
    return {"view": vars(choice.view), "text": choice.describe()} if choice else None


def packed_influence(attention: Attention, influence: Matrix) -> dict[str, Any]:
    """(target words, source words) as 32-bit floats; what is not known stays no number."""
    wanted = len(attention.recording.target.words), len(attention.recording.source.words)
    if influence.shape != wanted:
        raise ValueError(f"influences of {influence.shape} are of another sentence than a map of {wanted} words")
    values = base64.b64encode(numpy.ascontiguousarray(influence, dtype="<f4").tobytes()).decode()
    return {"height": wanted[0], "width": wanted[1], "values": values}


def answered(answer: Answer) -> dict[str, Any]:
    """One answer; of its attention only the map that is shown, in words, since there may be an answer for each word."""
    told = {name: getattr(answer, name) for name in ("kind", "question", "source_word", "text", "diff")}
    scores = {name: finite(getattr(answer, name)) for name in ("score", "before")}
    return {**told, **scores, "attention": shown(answer.attention)}


def finite(score: float) -> float | None:
    """A number that JSON has."""
    return score if math.isfinite(score) else None


def shown(attention: Attention | None) -> dict[str, Any] | None:
    """The shown map alone, as a recording."""
    if attention is None:
        return None
    words = attention.words()
    alone = Attention.of(words.source, words.target, words.weights)
    return {"shows": words.shows, **stored_recording(alone.recording)}
