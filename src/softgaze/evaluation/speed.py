"""How fast a model translates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softgaze.translator import Translation


def speed_of(found: "Sequence[Translation]", seconds: float) -> dict[str, float]:
    """Sentences and predicted subwords (END among them) a second."""
    tokens = sum(part.length for each in found for part in each.parts)
    return {
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(found) / seconds, 2),
        "tokens_per_second": round(tokens / seconds, 2),
    }
