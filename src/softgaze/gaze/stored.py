"""An `Attention` as JSON, alone or inside a picture: whoever has the figure has the numbers.

For a person there are the words and the weights that are shown; for a program, all layers and heads, packed: little-
endian 16-bit steps from 0 to 1 for weights, 32-bit floats for the lengths of values, both in base64.
"""

import base64
import binascii
import html
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy

from softgaze.data.photo import Photo
from softgaze.errors import DataError
from softgaze.gaze.attention import Attention
from softgaze.gaze.lettering import escaped
from softgaze.gaze.recording import Array, Part, Recording, Stack
from softgaze.gaze.view import KINDS, Choice, View
from softgaze.gaze.words import Side

FORMAT = "softgaze-attention 1"
ELEMENT = "softgaze-attention"  # the id of what holds the JSON in a picture
STEPS = 65_535  # of a packed weight
DIGITS = 6

IN_HTML = re.compile(
    rf'<script\b(?=[^>]*\btype="application/json")(?=[^>]*\bid="{ELEMENT}")[^>]*>(.*?)</script>', re.DOTALL
)
IN_SVG = re.compile(rf'<metadata\b(?=[^>]*\bid="{ELEMENT}")[^>]*>(.*?)</metadata>', re.DOTALL)


def to_json(attention: Attention) -> str:
    """One line; what no file or drawing may hold, such as half a character, is written as an escape."""
    return escaped(json.dumps(to_record(attention), ensure_ascii=False, separators=(",", ":")))


def to_record(attention: Attention) -> dict[str, Any]:
    """What `to_json` writes."""
    return {
        "format": FORMAT,
        "shows": attention.shows,
        "source": attention.source,
        "target": attention.target,
        "weights": [[round(weight, DIGITS) for weight in row] for row in attention.weights.tolist()],
        "view": asdict(attention.view),
        "choice": attention.choice.to_dict() if attention.choice else None,
        "recording": stored_recording(attention.recording),
    }


def stored_recording(recording: Recording) -> dict[str, Any]:
    """All layers and heads, packed."""
    return {
        "source": asdict(recording.source),
        "target": asdict(recording.target),
        "parts": [{kind: packed(getattr(part, kind)) for kind in KINDS} for part in recording.parts],
        "note": recording.note,
        "photo": recording.photo and recording.photo.to_dict(),
        "chances": [round(chance, DIGITS) for chance in recording.chances],
    }


def html_element(attention: Attention) -> str:
    """The JSON as a page holds it."""
    return script_element(ELEMENT, to_json(attention))


def script_element(name: str, text: str) -> str:
    """Any JSON as a page holds it: nothing in it can end the element, whatever the words are."""
    safe = text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    return f'<script type="application/json" id="{name}">{safe}</script>'


def svg_element(attention: Attention) -> str:
    """The JSON as a drawing holds it."""
    return f'<metadata id="{ELEMENT}">{html.escape(to_json(attention), quote=False)}</metadata>'


# --- reading ----------------------------------------------------------------------------------------------------


def load(path: Path) -> Attention:
    """From a JSON file, or from the HTML or SVG that holds the JSON."""
    try:
        return from_record(json.loads(find_json(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: holds no attention of softgaze that can be read: {error}") from error


def find_json(text: str) -> str:
    """The JSON in a text, or the text itself."""
    if found := IN_HTML.search(text):
        return found.group(1)
    if found := IN_SVG.search(text):
        return html.unescape(found.group(1))
    if text.lstrip().startswith("<"):
        raise ValueError("it is another page or drawing, such as that of a corpus or a film")
    return text


def from_record(record: dict[str, Any]) -> Attention:
    """What `to_record` wrote."""
    if record["format"] != FORMAT:
        raise DataError(f"its format is {record['format']!r}, and this version reads {FORMAT!r}")
    stored = record["recording"]
    source, target = (Side(**{name: tuple(own) for name, own in stored[side].items()}) for side in ("source", "target"))
    parts = tuple(Part(*(unpacked(part[kind]) for kind in ("cross", "encoder", "decoder"))) for part in stored["parts"])
    choice = Choice.from_dict(record["choice"]) if record["choice"] else None
    recording = Recording(source, target, parts, **extras(stored))
    return Attention(recording, View(**record["view"]), choice)


def extras(stored: dict[str, Any]) -> dict[str, Any]:
    """What comes along with a recording; older files have none of it."""
    photo, chances = stored.get("photo"), stored.get("chances", ())
    note = str(stored.get("note", ""))
    return {"note": note, "photo": Photo.from_dict(photo) if photo else None, "chances": tuple(map(float, chances))}


def packed(stack: Stack | None) -> dict[str, Any] | None:
    """Numbers as text."""
    if stack is None:
        return None
    steps = (stack.weights.clip(0, 1) * STEPS).round().astype("<u2")
    return {
        "shape": list(stack.weights.shape),  # layers, heads, rows, columns
        "weights": base64.b64encode(steps.tobytes()).decode(),
        "norms": base64.b64encode(stack.norms.astype("<f4").tobytes()).decode(),
    }


def unpacked(stored: dict[str, Any] | None) -> Stack | None:
    """Text as numbers."""
    if stored is None:
        return None
    layers, heads, rows, columns = stored["shape"]
    weights = numbers(stored["weights"], "<u2").reshape(layers, heads, rows, columns) / numpy.float32(STEPS)
    return Stack(weights, numbers(stored["norms"], "<f4").reshape(layers, heads, columns))


def numbers(text: str, kind: str) -> Array:
    """Packed numbers as float32."""
    try:
        return numpy.frombuffer(base64.b64decode(text, validate=True), dtype=kind).astype(numpy.float32)
    except binascii.Error as error:
        raise ValueError(f"its packed numbers are damaged ({error})") from error
