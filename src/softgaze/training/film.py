"""Filming a training: at each validation, where the model looks in one held-out sentence. Changes nothing in it."""

import json
from dataclasses import replace
from pathlib import Path

import torch

from softgaze.files import explained, write_bytes
from softgaze.gaze.attention import Attention
from softgaze.gaze.choice import Pairs, fitting
from softgaze.gaze.film import Frame, film_lines
from softgaze.gaze.passages import Passage, record
from softgaze.gaze.recording import Part, Recording
from softgaze.gaze.view import View
from softgaze.models.base import Seq2Seq
from softgaze.training.prepare import Prepared
from softgaze.training.validate import translations

WORDS = range(8, 15)  # of a source that is pleasant to watch


class Camera:
    """Adds frames of one sentence to a film; `rewind` takes back those a resumed run will make again."""

    def __init__(self, path: Path, prepared: Prepared, device: torch.device, pair: tuple[str, str]) -> None:
        self.path, self.tokenizers, self.device = path, prepared.tokenizers, device
        self.passage = Passage.of(*pair, self.tokenizers)

    @classmethod
    def of(cls, path: Path, prepared: Prepared, device: torch.device) -> "Camera | None":
        """On the best held-out pair; None where no pair has words on both sides, so that nothing can be seen."""
        pair = best_pair(prepared.dev_text)
        return cls(path, prepared, device, pair) if pair else None

    def rewind(self, step: int) -> int:
        """Drop frames after `step`, the checkpoint's last validation, and one cut by a crash; returns how many stay."""
        kept = [line for line in film_lines(self.path) if json.loads(line)["step"] <= step]
        write_bytes(self.path, b"".join(line + b"\n" for line in kept))
        return len(kept)

    def shoot(self, model: Seq2Seq, step: int, elapsed: float, scores: dict[str, float]) -> None:
        """Add a frame of the model as it is; training mode is put back."""
        training = model.training
        model.eval()
        [text] = translations(model, self.tokenizers, [self.passage.source], self.device)
        [recording] = record(model, self.tokenizers, [self.passage])
        model.train(training)
        attention = Attention(only_cross(recording), View())
        rounded = {name: round(value, 4) for name, value in scores.items()}
        frame = Frame(step, round(elapsed / 60, 3), rounded, text, attention)
        with explained(self.path), open(self.path, "a", encoding="utf-8") as film:
            film.write(frame.to_line() + "\n")


def best_pair(pairs: Pairs) -> tuple[str, str] | None:
    """The first with enough words to be worth watching and few enough for a screen; else the first that fits at all."""
    good = (pair for pair in pairs if len(pair[0].split()) in WORDS and pair[1].strip())
    return next(good, None) or next(iter(fitting(pairs, 1)), None)


def only_cross(recording: Recording) -> Recording:
    """Without the self-attentions, which would make each frame three times as large."""
    return replace(recording, parts=tuple(Part(part.cross) for part in recording.parts))
