"""Photos and what was written of them, as a page to play with: one HTML file that needs no network and no server.

A word shows where it looked; a region shows which words looked there. `Attention.load` reads the first photo of a page.
"""

import html
import json
from collections.abc import Sequence
from dataclasses import replace
from string import Template

from softgaze.gaze.attention import Attention
from softgaze.gaze.lettering import clean
from softgaze.gaze.page import NAMES, TITLE, chosen
from softgaze.gaze.recording import Part
from softgaze.gaze.shell import asset, document
from softgaze.gaze.stored import ELEMENT, script_element, to_json
from softgaze.gaze.tiles import caption_of

FACTS = "softgaze-photos"  # the id of what holds everything beside the recordings
SCRIPTS = ("maps.js", "draw.js", "photo.js")
HOW = "Each photo is brightest where its word looked most, and dimmed where it looked less; nothing is painted over it."
UNSEEN = "Outside the white frame the model saw nothing."


def photo_page(attentions: Sequence[Attention], names: Sequence[str] = (), *, title: str | None = None) -> str:
    """The page as one text; `names` are those of the photos."""
    if not attentions or any(each.grid is None for each in attentions):
        raise ValueError("a page of photos is made of at least one attention, and all lie on grids")
    facts = {
        "names": [clean(name) for name in names] or [""] * len(attentions),
        "tables": NAMES,
        "choices": [chosen(each) for each in attentions],
        "how": HOW,
        "unseen": UNSEEN,
    }
    body = Template(asset("photo.html")).substitute(title=html.escape(title or TITLE))
    elements = [ELEMENT, *(f"{ELEMENT}-{number}" for number in range(2, len(attentions) + 1))]
    kept = attentions if len(attentions) == 1 else map(lighter, attentions)
    data = [script_element(name, to_json(each)) for name, each in zip(elements, kept, strict=True)]
    data.append(script_element(FACTS, json.dumps(facts, ensure_ascii=False, allow_nan=False)))
    heading = title or caption_of(attentions[0])
    return document(heading, "\n".join((body, *data)), styles=("page.css", "photo.css"), scripts=SCRIPTS)


def lighter(attention: Attention) -> Attention:
    """Without what cells and words looked at among themselves: it is much, and a page of many shows nothing of it."""
    if attention.view.measure == "rollout":  # is made of all of it
        return attention
    parts = tuple(Part(part.cross) for part in attention.recording.parts)
    return replace(attention, recording=replace(attention.recording, parts=parts))
