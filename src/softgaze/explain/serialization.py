"""An `Attention` as JSON, alone or embedded in an HTML page or an SVG figure; and the attention history of a training.

The words and the shown weights are readable; all layers and heads are packed in base64: weights as little-endian 16-bit
fractions, value norms as 32-bit floats.
"""

import base64
import binascii
import html
import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softgaze.data.images import Photo
from softgaze.errors import DataError
from softgaze.explain.attention_map import Attention, LinkReliability, sharpest_layer
from softgaze.explain.recording import KINDS, Array, AttentionStack, PartAttention, Recording, SelectedMap, View
from softgaze.explain.word_spans import TokenizedText

FORMAT = "softgaze-attention 1"
ELEMENT = "softgaze-attention"  # the id of the element with the JSON
LEVELS = 65_535  # of a packed weight
DIGITS = 6
HISTORY_FILE = "film.jsonl"  # in a run directory

IN_HTML = re.compile(
    rf'<script\b(?=[^>]*\btype="application/json")(?=[^>]*\bid="{ELEMENT}")[^>]*>(.*?)</script>', re.DOTALL
)
IN_SVG = re.compile(rf'<metadata\b(?=[^>]*\bid="{ELEMENT}")[^>]*>(.*?)</metadata>', re.DOTALL)


# --- writing: the keys "shows", "choice", "pieces" and "chances" are part of the file format --------------------


def to_json(attention: Attention) -> str:
    """Return one line of JSON; characters that a file cannot hold, such as lone surrogates, are escaped."""
    from softgaze.explain.render.text_layout import escape_unprintable

    return escape_unprintable(json.dumps(to_record(attention), ensure_ascii=False, separators=(",", ":")))


def to_record(attention: Attention) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "shows": attention.description,
        "source": attention.source,
        "target": attention.target,
        "weights": [[round(weight, DIGITS) for weight in row] for row in attention.weights.tolist()],
        "view": asdict(attention.view),
        "choice": attention.selected_map.to_dict() if attention.selected_map else None,
        "reliability": attention.reliability and attention.reliability.to_dict(),
        "recording": recording_to_dict(attention.recording),
    }


def recording_to_dict(recording: Recording) -> dict[str, Any]:
    """Return all layers and heads, packed."""
    texts = {
        name: {"pieces": text.tokens, "word_of": text.word_of, "words": text.words, "grid": text.grid}
        for name, text in (("source", recording.source), ("target", recording.target))
    }
    return {
        **texts,
        "parts": [{kind: _pack(getattr(part, kind)) for kind in KINDS} for part in recording.parts],
        "note": recording.note,
        **({"attribution": recording.attribution} if recording.attribution else {}),
        "photo": recording.photo and recording.photo.to_dict(),
        "chances": [round(prob, DIGITS) for prob in recording.token_probs],
    }


def _pack(stack: AttentionStack | None) -> dict[str, Any] | None:
    if stack is None:
        return None
    levels = (stack.weights.clip(0, 1) * LEVELS).round().astype("<u2")
    return {
        "shape": list(stack.weights.shape),  # layers, heads, rows, columns
        "weights": base64.b64encode(levels.tobytes()).decode(),
        "norms": base64.b64encode(stack.norms.astype("<f4").tobytes()).decode(),
    }


def script_element(name: str, text: str) -> str:
    """Return JSON as a script element; no text can end the element."""
    safe = text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    return f'<script type="application/json" id="{name}">{safe}</script>'


def svg_element(attention: Attention) -> str:
    return f'<metadata id="{ELEMENT}">{html.escape(to_json(attention), quote=False)}</metadata>'


# --- reading ----------------------------------------------------------------------------------------------------


def load(path: Path) -> Attention:
    """Load a map from JSON, or from HTML or SVG that contains it."""
    try:
        return from_record(json.loads(find_json(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: is not a readable softgaze attention map: {error}") from error


def find_json(text: str) -> str:
    """Return the JSON embedded in a text, or the text itself."""
    if match := IN_HTML.search(text):
        return match.group(1)
    if match := IN_SVG.search(text):
        return html.unescape(match.group(1))
    if text.lstrip().startswith("<"):
        raise ValueError("this page or figure contains no single map, as a corpus report or a training history")
    return text


def from_record(record: dict[str, Any]) -> Attention:
    if record["format"] != FORMAT:
        raise DataError(f"its format is {record['format']!r}, and this version reads {FORMAT!r}")
    stored = record["recording"]
    source, target = (
        TokenizedText(tuple(text["pieces"]), tuple(text["word_of"]), tuple(text["words"]), tuple(text.get("grid", ())))
        for text in (stored["source"], stored["target"])
    )
    parts = tuple(PartAttention(**{kind: _unpack(part[kind]) for kind in KINDS}) for part in stored["parts"])
    photo = stored.get("photo")  # older files have neither note, photo nor probabilities
    recording = Recording(
        source,
        target,
        parts,
        note=str(stored.get("note", "")),
        attribution=str(stored.get("attribution", "")),
        photo=Photo.from_dict(photo) if photo else None,
        token_probs=tuple(map(float, stored.get("chances", ()))),
    )
    selected_map = SelectedMap.from_dict(record["choice"]) if record["choice"] else None
    links = (record.get("reliability") or {}).get("links")  # older files have none
    values = (None if value is None else float(value) for value in links or ())
    reliability = None if links is None else LinkReliability(tuple(values))
    return Attention(recording, View(**record["view"]), selected_map, reliability)


def _unpack(stored: dict[str, Any] | None) -> AttentionStack | None:
    if stored is None:
        return None

    def numbers(name: str, dtype: str) -> Array:
        try:
            return np.frombuffer(base64.b64decode(stored[name], validate=True), dtype=dtype).astype(np.float32)
        except binascii.Error as error:
            raise ValueError(f"its packed {name} are damaged ({error})") from error

    layers, heads, rows, columns = stored["shape"]
    weights = numbers("weights", "<u2").reshape(layers, heads, rows, columns) / np.float32(LEVELS)
    return AttentionStack(weights, numbers("norms", "<f4").reshape(layers, heads, columns))


# --- attention history: one fixed sentence pair during training, a JSON line for each validation ----------------


@dataclass(frozen=True, eq=False)
class Snapshot:
    step: int  # 0: before the first update
    minutes: float  # of training
    scores: dict[str, float]  # of the validation set; empty at step 0
    text: str  # the model's own translation of the source
    attention: Attention  # teacher-forced on the reference; all layers and heads of the cross-attention

    def to_line(self) -> str:
        """Return a JSON line without the line end."""
        record = {"step": self.step, "minutes": self.minutes, "scores": self.scores, "text": self.text}
        return json.dumps({**record, "attention": to_record(self.attention)}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_record(cls, stored: dict[str, Any]) -> "Snapshot":
        attention = from_record(stored["attention"])
        return cls(int(stored["step"]), float(stored["minutes"]), dict(stored["scores"]), stored["text"], attention)


def read_history(path: str | Path, selected_map: SelectedMap | None = None) -> list[Snapshot]:
    """Read the snapshots of a run directory or of its history file, all with the same view.

    The view is that of `selected_map`, else the sharpest layer of the last snapshot.
    """
    path = Path(path)
    file = path / HISTORY_FILE if path.is_dir() else path
    if not file.exists():
        raise DataError(f"{file}: does not exist; softgaze train --attention-history writes it")
    try:
        snapshots = [Snapshot.from_record(json.loads(line)) for line in history_lines(file)]
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: is not a readable attention history: {error}") from error
    if not snapshots:
        return []
    view = selected_map.view if selected_map else sharpest_layer(snapshots[-1].attention.recording)
    return [
        replace(snapshot, attention=Attention(snapshot.attention.recording, view, selected_map))
        for snapshot in snapshots
    ]


def history_lines(path: Path) -> list[bytes]:
    """Return the complete lines of a history file, none without a file; a crash may leave an incomplete last line."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []
