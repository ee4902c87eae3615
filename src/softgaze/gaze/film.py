"""The film of a training: where a model looked in one fixed sentence, each time it was validated.

One JSON line a frame. Every frame follows the same two texts, so that frames compare; what the model itself would have
written at that moment stands beside them. Knows nothing of training, and needs no torch.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softgaze.errors import DataError
from softgaze.gaze.attention import Attention, sharpest
from softgaze.gaze.stored import from_record, to_record
from softgaze.gaze.view import Choice

NAME = "film.jsonl"  # in a run directory


@dataclass(frozen=True, eq=False)
class Frame:
    """One look at the sentence."""

    step: int  # 0: before the first update
    minutes: float  # of training
    scores: dict[str, float]  # of all held-out text at this moment, by name; empty at step 0
    text: str  # what the model itself makes of the source
    attention: Attention  # on the way through the reference; all layers × heads of the cross-attention

    def to_line(self) -> str:
        """As it stands in a film, without the line end."""
        record = {"step": self.step, "minutes": self.minutes, "scores": self.scores, "text": self.text}
        return json.dumps({**record, "attention": to_record(self.attention)}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_record(cls, stored: dict[str, Any]) -> "Frame":
        """What `to_line` wrote."""
        attention = from_record(stored["attention"])
        return cls(int(stored["step"]), float(stored["minutes"]), dict(stored["scores"]), stored["text"], attention)


def read_film(path: str | Path, choice: Choice | None = None) -> list[Frame]:
    """Every frame of a run directory or of its film, in order, all seen the same way.

    That is the way of `choice` (the map a training found best, in the facts of its bundle), else the layer which is
    sharpest in the last frame.
    """
    path = Path(path)
    file = path / NAME if path.is_dir() else path
    if not file.exists():
        raise DataError(f"{file}: does not exist; softgaze train --film makes one")
    try:
        frames = [Frame.from_record(json.loads(line)) for line in film_lines(file)]
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: holds no film of softgaze that can be read: {error}") from error
    return alike(frames, choice)


def film_lines(path: Path) -> list[bytes]:
    """Of each frame; a last line without its end was cut by a crash, or is being written. No file has no frames."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def alike(frames: list[Frame], choice: Choice | None) -> list[Frame]:
    """The same view of each."""
    if not frames:
        return []
    view = choice.view if choice else sharpest(frames[-1].attention.recording)
    return [replace(each, attention=Attention(each.attention.recording, view, choice)) for each in frames]
