"""One map of where each output looked: its tokens, its weights, and what exactly is shown.

Knows nothing of models: `record` makes these, `terminal` draws them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
import numpy.typing

Matrix = numpy.typing.NDArray[numpy.float64]

WORD_START = "▁"
END_MARK = "⏎"  # stands for the end of the sentence, which is looked at like any word


@dataclass(frozen=True)
class Attention:
    """Weights (T, S): row t is where the model looked while predicting output t. Rows sum to 1."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Matrix
    shows: str  # which attention this is, in words

    def __post_init__(self) -> None:
        wanted = (len(self.target), len(self.source))
        if self.weights.shape != wanted:
            raise ValueError(f"weights of {self.weights.shape} do not fit {wanted[0]} outputs × {wanted[1]} inputs")

    def words(self) -> "Attention":
        """Subwords joined to words: summed over source pieces, averaged over target pieces, so rows still sum to 1."""
        rows, columns = group_words(self.target), group_words(self.source)
        summed = numpy.stack([self.weights[:, group].sum(axis=1) for group in columns], axis=1)
        merged = numpy.stack([summed[group].mean(axis=0) for group in rows])
        source = tuple(join_pieces([self.source[place] for place in group]) for group in columns)
        target = tuple(join_pieces([self.target[place] for place in group]) for group in rows)
        return replace(self, source=source, target=target, weights=merged)

    def entropy(self) -> float:
        """Mean entropy of the rows in nats: 0 looks at one thing, log S at everything alike."""
        logs = numpy.log(numpy.where(self.weights > 0, self.weights, 1.0))
        return float(-(self.weights * logs).sum(axis=1).mean())

    def __str__(self) -> str:
        from softgaze.gaze.terminal import heat_map

        return heat_map(self.words())


def group_words(pieces: Sequence[str]) -> list[list[int]]:
    """Places of the pieces of each word; a piece with "▁", or the end mark, starts a new one."""
    groups: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if not groups or piece.startswith(WORD_START) or piece == END_MARK:
            groups.append([])
        groups[-1].append(place)
    return groups


def join_pieces(pieces: Sequence[str]) -> str:
    """The word they spell, bytes of characters outside the vocabulary included."""
    spelled = bytearray()
    for piece in pieces:
        is_byte = piece.startswith("<0x") and piece.endswith(">")
        spelled += bytes([int(piece[3:5], 16)]) if is_byte else piece.replace(WORD_START, "").encode()
    return spelled.decode(errors="replace")
