"""The film of a training as a page: one sentence, scrubbed with a slider from the first look to the last. Offline."""

import html
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any

from softgaze.bundle import ATTENTION, Bundle
from softgaze.errors import DataError
from softgaze.gaze.film import Frame, read_film
from softgaze.gaze.page import NAMES, chosen
from softgaze.gaze.shell import asset, document
from softgaze.gaze.stored import script_element, stored_recording
from softgaze.gaze.view import Choice

ELEMENT = "softgaze-film"  # the id of what holds the frames
SCRIPTS = ("maps.js", "draw.js", "film.js")
TITLE = "How a sentence was learnt"


def page_of_run(run: Path) -> str:
    """The film of a run directory, seen the way that was measured to be best, once the training is over."""
    return film_page(read_film(run, stored_choice(run)))


def stored_choice(run: Path) -> Choice | None:
    """Which map to show; None while there is no model, or none that was measured."""
    try:
        stored = Bundle.open(run).facts.get(ATTENTION)
    except DataError:
        return None
    return Choice.from_dict(stored) if stored else None


def film_page(frames: Sequence[Frame]) -> str:
    """The page as one text; frames all show the same two sentences."""
    if not frames:
        raise DataError("the film has no frame yet; one is added at each validation")
    last = frames[-1].attention
    record = {
        "names": NAMES,
        "view": asdict(last.view),
        "choice": chosen(last),
        "frames": [as_record(frame) for frame in frames],
    }
    source = " ".join(last.recording.source.words)
    body = Template(asset("film.html")).substitute(title=html.escape(TITLE))
    data = script_element(ELEMENT, json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return document(f"{TITLE}: {source}", f"{body}\n{data}", styles=("page.css", "film.css"), scripts=SCRIPTS)


def as_record(frame: Frame) -> dict[str, Any]:
    """One frame, all its layers and heads packed."""
    told = {"step": frame.step, "minutes": frame.minutes, "scores": frame.scores, "text": frame.text}
    return {**told, "recording": stored_recording(frame.attention.recording)}
