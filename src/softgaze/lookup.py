"""A dictionary made soft: the idea of attention before any network.

A look-up compares a query with every key, turns the similarities into weights that sum to 1, and returns the weighted
sum of the values. With "equal or not" as the similarity that is a dictionary; with anything smoother it is attention.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from softgaze.attention import Attended, ScoreFunction, attend, cosine

Similarity = Callable[[Any, Any], Any]  # (query, key) -> a number ≥ 0


def same(query: Any, key: Any) -> float:
    """1 or 0: the similarity of an ordinary dictionary. It is flat, so no gradient ever passes through it."""
    if isinstance(query, Tensor) or isinstance(key, Tensor):
        return float(isinstance(query, Tensor) and isinstance(key, Tensor) and torch.equal(query, key))
    return float(query == key)


class SoftDict:
    """Look up by similarity instead of equality.

    >>> ages = SoftDict({"computer": 9, "dog": 2, "cat": 3})
    >>> ages["dog"]
    tensor(2.)
    >>> close = {"computer": 0.1, "dog": 0.9, "cat": 0.7}
    >>> SoftDict({"computer": 9, "dog": 2, "cat": 3}, similarity=lambda query, key: close[key])["puppy"]
    tensor(2.8235)

    With `similarity`, weights are proportional to it, which is a softmax of log-similarities. With `embed`, keys and
    query become vectors and the weights are softmax(score(query, keys)), the cosine unless another score is given.
    Entries are a mapping, (key, value) pairs, or bare keys that are their own values (these need `embed`).
    """

    def __init__(
        self,
        entries: Mapping[Any, Any] | Iterable[Any],
        *,
        similarity: Similarity = same,
        embed: Callable[[Any], Tensor] | None = None,
        score: ScoreFunction = cosine,
    ) -> None:
        items = entries.items() if isinstance(entries, Mapping) else entries
        pairs = [item if isinstance(item, tuple) else (item, item) for item in items]
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise ValueError("a SoftDict needs at least one entry, each a key or a (key, value) pair")
        if embed is not None and similarity is not same:
            raise ValueError("give `similarity` for things as they are, or `embed` and `score` for vectors, not both")
        self.names = [name for name, _ in pairs]
        self.similarity, self.embed, self.score = similarity, embed, score
        own = [embed(value) if embed and not isinstance(value, int | float | Tensor) else value for _, value in pairs]
        self.values = stack(own)  # (K, D), or (K,) for numbers

    def __getitem__(self, query: Any) -> Tensor:
        return self.look_up(query).context.reshape(self.values.shape[1:])

    def weights(self, query: Any) -> dict[Any, float]:
        """How much each key has to say about `query`; the weights sum to 1.

        Keys that are tensors, or not unique, go by number.
        """
        weights = self.look_up(query).weights
        assert weights is not None
        twice = len({name for name in self.names if not isinstance(name, Tensor)}) < len(self.names)
        names = list(range(len(self.names))) if twice else self.names
        return dict(zip(names, weights.flatten().tolist(), strict=True))

    def look_up(self, query: Any) -> Attended:
        """One call of `attend`, with one query."""
        values = self.values.reshape(len(self.names), -1)
        if self.embed is not None:
            keys = stack([self.embed(name) for name in self.names])
            return attend(stack([self.embed(query)]), keys, values, score=self.score, need_weights=True)

        similarities = stack([self.similarity(query, name) for name in self.names])[None]  # (1, K)
        if not bool(similarities.isfinite().all()) or bool((similarities < 0).any()):
            raise ValueError("a similarity is finite and not below zero; for scores that may be, give `embed`")
        if not bool(similarities.any()):
            raise KeyError(query)
        # softmax(log s) = s / Σ s, and a similarity of zero is a key that may not be seen.
        seen = similarities > 0
        logs = similarities.where(seen, 1.0).log()
        place = torch.ones(1, 1)
        return attend(place, place.expand(len(self.names), 1), values, seen, score=lambda *_: logs, need_weights=True)


def stack(items: list[Any]) -> Tensor:
    """Numbers or vectors as one float tensor, gradients kept."""
    try:
        return torch.stack([torch.as_tensor(item, dtype=torch.float32) for item in items])
    except (TypeError, RuntimeError):
        raise ValueError("a SoftDict holds numbers or vectors of one width; words need `embed`") from None
