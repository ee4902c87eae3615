"""Snapshots of the attention of one fixed sentence pair during training, one JSON line for each validation.

Every snapshot follows the same source and reference, so that snapshots can be compared; the output of the model at that
moment is stored with them.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softgaze.errors import DataError
from softgaze.explain.attention_map import Attention, sharpest_layer
from softgaze.explain.recording import SelectedMap
from softgaze.explain.serialization import from_record, to_record

HISTORY_FILE = "film.jsonl"  # in a run directory


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The attention at one validation."""

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
