"""A soft dictionary: the idea of attention before any network.

A look-up compares a query with every key, turns the similarities into weights that sum to 1, and returns the weighted
sum of the values. With equality as the similarity it is a dictionary; with anything smoother it is attention.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from softgaze.attention import Attended, ScoreFunction, attend
from softgaze.scores import cosine

Similarity = Callable[[Any, Any], Any]  # (query, key) -> a number ≥ 0


def same(query: Any, key: Any) -> float:
    """1 or 0: the similarity of an ordinary dictionary. It is flat, so no gradient passes through it."""
    if isinstance(query, Tensor) or isinstance(key, Tensor):
        return float(isinstance(query, Tensor) and isinstance(key, Tensor) and torch.equal(query, key))
    return float(query == key)


class SoftDict:
    """A dictionary that looks up by similarity instead of equality.

    >>> ages = SoftDict({"computer": 9, "dog": 2, "cat": 3})
    >>> ages["dog"]
    tensor(2.)
    >>> close = {"computer": 0.1, "dog": 0.9, "cat": 0.7}
    >>> SoftDict({"computer": 9, "dog": 2, "cat": 3}, similarity=lambda query, key: close[key])["puppy"]
    tensor(2.8235)

    With `similarity`, weights are proportional to it, which is a softmax of log-similarities. With `embed`, keys and
    query become vectors and the weights are softmax(score(query, keys)), by default of the cosine.
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
            raise ValueError("give either `similarity`, or `embed` and `score` for vectors, not both")
        self.keys = [key for key, _ in pairs]
        self.similarity, self.embed, self.score = similarity, embed, score
        self.values = stack(  # (K, D), or (K,) for numbers
            [embed(value) if embed and not isinstance(value, int | float | Tensor) else value for _, value in pairs]
        )

    def __getitem__(self, query: Any) -> Tensor:
        return self.look_up(query).context.reshape(self.values.shape[1:])

    def weights(self, query: Any) -> dict[Any, float]:
        """Return the weight of each key for `query`; the weights sum to 1.

        Keys that are tensors, or not unique, are replaced by their index.
        """
        weights = self.look_up(query).weights
        assert weights is not None
        unique = len({key for key in self.keys if not isinstance(key, Tensor)}) == len(self.keys)
        keys = self.keys if unique else range(len(self.keys))
        return dict(zip(keys, weights.flatten().tolist(), strict=True))

    def look_up(self, query: Any) -> Attended:
        """Call `attend` with one query."""
        values = self.values.reshape(len(self.keys), -1)
        if self.embed is not None:
            keys = stack([self.embed(key) for key in self.keys])
            return attend(stack([self.embed(query)]), keys, values, score=self.score, need_weights=True)

        similarities = stack([self.similarity(query, key) for key in self.keys])[None]  # (1, K)
        if not bool(similarities.isfinite().all()) or bool((similarities < 0).any()):
            raise ValueError("a similarity must be finite and not negative; for scores that may be, give `embed`")
        if not bool(similarities.any()):
            raise KeyError(query)
        # softmax(log s) = s / Σ s, and a similarity of zero is a masked key.
        mask = similarities > 0
        logs = similarities.where(mask, 1.0).log()
        dummy = torch.ones(1, 1)
        return attend(dummy, dummy.expand(len(self.keys), 1), values, mask, score=lambda *_: logs, need_weights=True)


def stack(items: list[Any]) -> Tensor:
    """Stack numbers or vectors to one float tensor, keeping gradients."""
    try:
        return torch.stack([torch.as_tensor(item, dtype=torch.float32) for item in items])
    except (TypeError, RuntimeError):
        raise ValueError("a SoftDict holds numbers or vectors of one width; words need `embed`") from None
