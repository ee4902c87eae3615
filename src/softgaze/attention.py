"""Attention: weights = softmax(score(query, keys)), context = weights · values (Bahdanau, Luong 2015; Vaswani 2017).

Every model of the package looks through `attend`. This file knows nothing of words, layers, training or search.

Letters: B batch, H heads, Q queries, K keys, D width. Batch first.
A mask is boolean, **True = may look**, broadcastable to (B, H, Q, K). A query that may look nowhere has weights of 0.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgaze.dropout import dropout as drop
from softgaze.remembered import KeysValues
from softgaze.speed import is_fast

ScoreFunction = Callable[[Tensor, Tensor], Tensor]  # query (…, Q, D), keys (…, K, D) -> scores (…, Q, K)
Look = Callable[[Tensor, Tensor], Tensor]  # weights (…, Q, K), values (…, K, D) -> the weights to use instead


class Attended(NamedTuple):
    """What one attention gave; `weights` is None where nobody asked: a fused kernel never has them."""

    context: Tensor  # (…, Q, D)
    weights: Tensor | None  # (…, Q, K)


def dot(query: Tensor, keys: Tensor) -> Tensor:
    """q · k (Luong 2015, §3.1, `dot`)."""
    check_width(query, keys.shape[-1])
    return query @ keys.transpose(-2, -1)


def scaled_dot(query: Tensor, keys: Tensor) -> Tensor:
    """q · k / √D (Vaswani 2017, eq. 1): without the root, wide vectors saturate the softmax."""
    return dot(query / math.sqrt(query.shape[-1]), keys)


def cosine(query: Tensor, keys: Tensor) -> Tensor:
    """cos(q, k): the angle alone, between −1 and 1, so its softmax is never sharp."""
    return dot(F.normalize(query, dim=-1), F.normalize(keys, dim=-1))


SHORT = 128  # keys up to which plain products beat the fused kernel on a CPU,
FEW = 16  # and queries up to which they do not
FUSED_SCALES: dict[ScoreFunction, float | None] = {dot: 1.0, scaled_dot: None}  # None is the kernel's own 1/√D


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    *,
    score: ScoreFunction = scaled_dot,
    weighting: Tensor | None = None,
    dropout: float = 0.0,
    need_weights: bool = False,
    look: Look | None = None,
) -> Attended:
    """Look at `keys` with `query` and bring back the weighted sum of `values`.

    Queries (R, H, Q, D) may share keys and values of fewer rows N: each of these then serves R / N that stand together.

    `weighting` multiplies the weights after the softmax (Luong's local-p). `look` is shown the weights and returns
    those to use. When nobody asks for weights, the fastest kernel runs; a test holds the two paths equal.
    """
    if query.ndim == keys.ndim == 4 and query.shape[0] > keys.shape[0] and query.shape[0] % keys.shape[0] == 0:
        few = Shared(query, keys, values, mask, weighting)
        options: dict[str, Any] = {"score": score, "dropout": dropout, "need_weights": need_weights}
        return few.attend_apart(look, **options) if look else few.attend_together(**options)
    check_shapes(query, keys, values, mask, weighting)
    if not 0 <= dropout < 1:
        raise ValueError(f"a dropout of {dropout} is not a share from 0 up to 1")
    unseen = score in FUSED_SCALES and weighting is None and look is None and not need_weights
    if unseen and fused_is_faster(query, keys):
        check_width(query, keys.shape[-1])
        scale = FUSED_SCALES[score]
        context = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, dropout_p=dropout, scale=scale)
        return Attended(context, None)

    weights = masked_softmax(score(query, keys), mask)  # (…, Q, K)
    if weighting is not None:
        weights = weights * weighting
    if look is not None:
        weights = check_looked(look(weights, values), weights)
    kept = drop(weights, dropout) if dropout else weights
    return Attended(kept @ values, None if unseen else weights)


def fused_is_faster(query: Tensor, keys: Tensor) -> bool:
    """On a CPU the fused kernel only wins for long sentences and the few queries of a beam; elsewhere it always does.

    It is made for thousands of keys. At 24, forward and backward of a batch take four times those of plain products.
    """
    if query.device.type != "cpu" or torch.compiler.is_compiling() or not is_fast():
        return True
    few = 1 if torch.is_grad_enabled() else FEW
    return query.shape[-2] <= few or keys.shape[-2] > SHORT


class Shared(NamedTuple):
    """Rows of queries that share keys and values: R rows of one, N of the other."""

    query: Tensor  # (R, H, Q, D)
    keys: Tensor  # (N, H, K, D)
    values: Tensor
    mask: Tensor | None  # of N or R rows
    weighting: Tensor | None

    def attend_together(self, **options: Any) -> Attended:
        """The queries of all rows of a group at once, without a copy of what they share."""
        query, mask, weighting = (self.fold(part) for part in (self.query, self.mask, self.weighting))
        context, weights = attend(query, self.keys, self.values, mask, weighting=weighting, **options)
        return Attended(self.unfold(context), weights if weights is None else self.unfold(weights))

    def attend_apart(self, look: Look, **options: Any) -> Attended:
        """Each row by itself: a look is shown rows, and may treat them differently."""
        rows = self.query.shape[0]
        keys, values = (for_each_row(part, rows) for part in (self.keys, self.values))
        mask, weighting = (part if part is None else for_each_row(part, rows) for part in (self.mask, self.weighting))
        return attend(self.query, keys, values, mask, weighting=weighting, look=look, **options)

    def fold(self, part: Any) -> Any:
        """(R, H, Q, D) -> (N, H, R/N · Q, D); what says the same for every query of a group stays as it is."""
        groups, (rows, _, queries, _) = self.keys.shape[0], self.query.shape
        if part is None or (part.shape[0] in (1, groups) and part.shape[2] == 1):
            return part
        whole = for_each_row(part, rows).expand(-1, -1, queries, -1)
        return whole.reshape(groups, -1, *whole.shape[1:]).transpose(1, 2).flatten(2, 3)

    def unfold(self, part: Tensor) -> Tensor:
        """(N, H, R/N · Q, D) -> (R, H, Q, D)."""
        groups, heads, _, width = part.shape
        return part.reshape(groups, heads, -1, self.query.shape[2], width).transpose(1, 2).flatten(0, 1)


def for_each_row(part: Tensor, rows: int) -> Tensor:
    """(N, …) -> (R, …): each one again for every row that shares it."""
    return part if part.shape[0] == rows else part.repeat_interleave(rows // part.shape[0], 0)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the keys that may be seen; a row without any is zero, and so is its gradient."""
    if mask is None:
        return scores.softmax(-1)
    # Low but finite, not −inf: a softmax over a row of −inf is NaN, and so would be its gradient. Added to the scores
    # (half the lowest number, so that the sum is finite too), since an addition costs nothing on the way back.
    low = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    weights = (scores + low.masked_fill(~mask, torch.finfo(scores.dtype).min / 2)).softmax(-1)
    seeing = mask.any(-1, keepdim=True)
    if torch.compiler.is_compiling() or not bool(seeing.all()):
        weights = weights.masked_fill(~seeing, 0.0)
    return weights


def check_looked(returned: Tensor, shown: Tensor) -> Tensor:
    """What a look hands back must be able to stand for what it was shown."""
    if not isinstance(returned, Tensor) or returned.shape != shown.shape:
        found = tuple(returned.shape) if isinstance(returned, Tensor) else returned
        raise ValueError(f"a look returns weights of the shape it was shown, {tuple(shown.shape)}, not {found}")
    return returned


def check_shapes(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, weighting: Tensor | None = None
) -> None:
    """Say in one sentence what does not fit, before torch says it in forty lines."""
    if min(query.ndim, keys.ndim, values.ndim) < 2:
        raise ValueError("query, keys and values need at least two dimensions: (…, Q, D), (…, K, D), (…, K, D)")
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"every key needs a value: {keys.shape[-2]} keys, {values.shape[-2]} values")
    depth = max(query.ndim, keys.ndim, values.ndim) - 2
    leading = [(1,) * (depth - part.ndim + 2) + tuple(part.shape[:-2]) for part in (query, keys, values)]
    batch = tuple(max(sizes) for sizes in zip(*leading, strict=True))
    if any(own not in (1, size) for sizes in leading for own, size in zip(sizes, batch, strict=True)):
        shapes = ", ".join(str(tuple(part.shape)) for part in (query, keys, values))
        raise ValueError(f"query, keys and values must share batch and heads, not be {shapes}")
    if not all(part.is_floating_point() for part in (query, keys, values)):
        raise ValueError(f"attention takes floating-point vectors, not {query.dtype}, {keys.dtype}, {values.dtype}")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"a mask is boolean, True = may look; this one is {mask.dtype}")
    full = (*batch, query.shape[-2], keys.shape[-2])
    for name, part in (("mask", mask), ("weighting", weighting)):
        if part is not None:
            check_fit(name, tuple(part.shape), full)


def check_fit(name: str, shape: tuple[int, ...], full: tuple[int, ...]) -> None:
    """A mask or weighting must broadcast to the weights without enlarging them."""
    padded = (1,) * (len(full) - len(shape)) + shape
    if not 2 <= len(shape) <= len(full) or any(own not in (1, size) for own, size in zip(padded, full, strict=True)):
        raise ValueError(f"the {name} is {shape} but must fit (…, queries, keys) = {full}")


def check_width(vectors: Tensor, width: int) -> None:
    """What is multiplied must be of one width."""
    if vectors.shape[-1] != width:
        raise ValueError(f"vectors of width {vectors.shape[-1]} met what needs a width of {width}")


# --- masks: the only builders -----------------------------------------------------------------------------------


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """(B,) lengths -> (B, 1, 1, K): look at the real items of each sequence, not at what fills it up."""
    places = torch.arange(size, device=lengths.device)
    return (places < lengths[:, None])[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """(1, 1, Q, K): never look ahead. The last query sees every key, so a cache of earlier keys fits too."""
    keys = queries if keys is None else keys
    allowed = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return allowed.tril(keys - queries)[None, None]


def window_mask(centers: Tensor, size: int, reach: int) -> Tensor:
    """(B, Q) centres -> (B, 1, Q, K): look at most `reach` places to either side of each query's centre."""
    return (distances(centers, size).abs() <= reach)[:, None]


def distances(centers: Tensor, size: int) -> Tensor:
    """How far each of `size` places lies from each centre: (B, Q) -> (B, Q, K)."""
    return torch.arange(size, device=centers.device) - centers[..., None]


# --- learned scores ---------------------------------------------------------------------------------------------


class Score(nn.Module):
    """A score in two parts: `keys` depends on the memory alone and is computed once; `compare` runs per query."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()

    def keys(self, memory: Tensor) -> Tensor:
        """What is compared with the queries: (…, K, D) -> (…, K, D')."""
        return memory

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """(…, Q, D) and prepared keys -> scores (…, Q, K)."""
        raise NotImplementedError

    def forward(self, query: Tensor, memory: Tensor) -> Tensor:
        """Both parts at once: what `attend` calls when it is given the module itself."""
        return self.compare(query, self.keys(memory))


class SameWidth(Score):
    """A score without parameters, which can only compare vectors of one width."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        if query_width != key_width:
            name = type(self).__name__
            raise ValueError(f"the {name} score needs one width, not queries of {query_width} and keys of {key_width}")


class Dot(SameWidth):
    """q · k."""

    compare = staticmethod(dot)


class ScaledDot(SameWidth):
    """q · k / √D."""

    compare = staticmethod(scaled_dot)


class Cosine(SameWidth):
    """cos(q, k)."""

    compare = staticmethod(cosine)


class General(Score):
    """qᵀ W k (Luong 2015, §3.1, `general`): W learns what to ask for. Folded into the keys, it is a dot product."""

    compare = staticmethod(dot)

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.bilinear = nn.Linear(key_width, query_width, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """W k."""
        check_width(memory, self.bilinear.in_features)
        projected: Tensor = self.bilinear(memory)
        return projected


class Additive(Score):
    """vᵀ tanh(W q + U k) (Bahdanau 2015, A.1.2)."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.query_part = nn.Linear(query_width, query_width, bias=False)
        self.key_part = nn.Linear(key_width, query_width, bias=False)
        self.vector = nn.Linear(query_width, 1, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """U k."""
        check_width(memory, self.key_part.in_features)
        projected: Tensor = self.key_part(memory)
        return projected

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """The sum has every query meet every key: (…, Q, K, D) for a moment."""
        check_width(query, self.query_part.in_features)
        met = torch.tanh(self.query_part(query).unsqueeze(-2) + keys.unsqueeze(-3))
        scores: Tensor = self.vector(met).squeeze(-1)
        return scores


class Concat(Additive):
    """vᵀ tanh(W [q; k]) (Luong 2015, §3.1, `concat`): the additive score, its two matrices written as halves of W."""


class Location(Score):
    """W q (Luong 2015, eq. 8): where to look, said by the query alone; the keys only say how many places there are.

    Keys past the last place are refused, where the paper ignores them.
    """

    def __init__(self, query_width: int, key_width: int, places: int = 1024) -> None:
        super().__init__(query_width, key_width)
        self.places = nn.Linear(query_width, places, bias=False)

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores of the first K places."""
        check_width(query, self.places.in_features)
        size, limit = keys.shape[-2], self.places.out_features
        if size > limit:
            raise ValueError(f"the location score knows {limit} places and was shown {size}")
        return F.linear(query, self.places.weight[:size])


SCORES: dict[str, type[Score]] = {
    "dot": Dot,
    "scaled-dot": ScaledDot,
    "cosine": Cosine,
    "general": General,
    "additive": Additive,
    "concat": Concat,
    "location": Location,
}


# --- windows: where a query may look at all (Luong 2015, §3.2) --------------------------------------------------


class Windowed(NamedTuple):
    """A mask, and what to multiply the weights by after the softmax."""

    mask: Tensor  # (B, 1, Q, K)
    weighting: Tensor | None  # (B, 1, Q, K)


class Everywhere(nn.Module):
    """Global attention: every real key."""

    def __init__(self, query_width: int, reach: int) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor) -> Windowed:
        """query (B, 1, Q, D) at target `positions` (B, Q), over keys with the padding `mask` (B, 1, 1, K)."""
        return Windowed(mask, None)


class LocalMonotonic(Everywhere):
    """local-m: the centre of word t is place t, as if both sentences ran in step.

    A target that outruns its source by more than `reach` finds nothing to look at: weights and context of zero.
    """

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor) -> Windowed:
        """Only a mask."""
        mask = for_each_row(mask, positions.shape[0])
        return Windowed(mask & window_mask(positions, mask.shape[-1], self.reach), None)


class LocalPredictive(Everywhere):
    """local-p: the centre is S · sigmoid(vᵀ tanh(W q)), and a Gaussian around it lowers what lies far (eq. 9, 10).

    The Gaussian comes after the softmax, so these weights sum to less than 1. Through it, the centre learns.
    """

    def __init__(self, query_width: int, reach: int) -> None:
        super().__init__(query_width, reach)
        self.predict = nn.Sequential(
            nn.Linear(query_width, query_width, bias=False), nn.Tanh(), nn.Linear(query_width, 1, bias=False)
        )

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor) -> Windowed:
        """Both a mask and a weighting."""
        mask = for_each_row(mask, positions.shape[0])
        length = mask.sum(-1)  # (B, 1, 1): of the real source, whatever it was padded to
        centers = (length * self.predict(query).squeeze(-1).sigmoid()).squeeze(1)  # (B, Q)
        size, deviation = mask.shape[-1], self.reach / 2
        bell = torch.exp(-0.5 * (distances(centers, size) / deviation) ** 2)
        return Windowed(mask & window_mask(centers, size, self.reach), bell[:, None])


WINDOWS: dict[str, type[Everywhere]] = {"global": Everywhere, "local-m": LocalMonotonic, "local-p": LocalPredictive}


# --- many heads -------------------------------------------------------------------------------------------------


Places = Any  # (N,) numbers, or what a rotation made of them before
Rotate = Callable[[Tensor, Places], Tensor]  # vectors (B, H, N, D/H), their places -> the vectors turned


def as_is(vectors: Tensor, places: Places) -> Tensor:
    """The rotation of a model that does not rotate."""
    return vectors


class MultiHead(nn.Module):
    """MultiHead(Q, K, V) = [head₁; …; head_H] W, each head attending in a width of D/H (Vaswani 2017, §3.2.2).

    `rotate(vectors, places)` turns queries and keys by their place (rotary positions). Fewer `key_heads` than `heads`
    is grouped-query attention: smaller caches, and one key head is multi-query.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        key_heads: int | None = None,
        dropout: float = 0.0,
        rotate: Rotate = as_is,
    ) -> None:
        super().__init__()
        key_heads = heads if key_heads is None else key_heads
        if min(width, heads, key_heads) < 1:
            raise ValueError(f"width, heads and key heads start at 1, not {width}, {heads} and {key_heads}")
        if width % heads:
            raise ValueError(f"a width of {width} cannot be divided among {heads} heads")
        if heads % key_heads:
            raise ValueError(f"{heads} heads cannot share {key_heads} key heads evenly")
        self.heads, self.key_heads, self.dropout, self.rotate = heads, key_heads, dropout, rotate
        shared_width = width // heads * key_heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, shared_width)
        self.value = nn.Linear(width, shared_width)
        self.output = nn.Linear(width, width)

    def remember(self, memory: Tensor, places: Places = None) -> KeysValues:
        """Keys and values of `memory` (B, K, D), whose items stand at `places` (K,)."""
        check_width(memory, self.key.in_features)
        keys, values = (split_heads(part, self.key_heads) for part in project(memory, self.key, self.value))
        return KeysValues(self.rotate(keys, places), values)

    def ask(self, query: Tensor, places: Places = None) -> Tensor:
        """What the heads ask for `query` (B, Q, D): (B, H, Q, D/H)."""
        check_width(query, self.query.in_features)
        return self.rotate(split_heads(self.query(query), self.heads), places)

    def ask_and_remember(self, vectors: Tensor, places: Places = None) -> tuple[Tensor, KeysValues]:
        """Both of the same `vectors` (B, N, D), which look at themselves."""
        check_width(vectors, self.query.in_features)
        asked, keys, values = project(vectors, self.query, self.key, self.value)
        own = KeysValues(self.rotate(split_heads(keys, self.key_heads), places), split_heads(values, self.key_heads))
        return self.rotate(split_heads(asked, self.heads), places), own

    def forward(
        self,
        query: Tensor,
        memory: KeysValues,
        mask: Tensor | None = None,
        *,
        places: Places = None,
        need_weights: bool = False,
        look: Look | None = None,
    ) -> Attended:
        """Context (B, Q, D) for `query` (B, Q, D), whose items stand at `places` (Q,); weights (B, H, Q, K)."""
        return self.answer(self.ask(query, places), memory, mask, need_weights=need_weights, look=look)

    def answer(
        self,
        asked: Tensor,
        memory: KeysValues,
        mask: Tensor | None,
        *,
        need_weights: bool = False,
        look: Look | None = None,
    ) -> Attended:
        """Context (B, Q, D) for what the heads asked, (B, H, Q, D/H)."""
        keys, values = (self.for_each_head(part) for part in memory)
        context, weights = self.attend(asked, keys, values, mask, need_weights, look)
        return Attended(self.output(join_heads(context)), weights)

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, need_weights: bool, look: Look | None
    ) -> Attended:
        """All heads at once."""
        dropout = self.dropout if self.training else 0.0
        return attend(query, keys, values, mask, dropout=dropout, need_weights=need_weights, look=look)

    def past(self, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """The mask of a decoder that reads on: never look ahead; a single query may see all there is."""
        return causal_mask(queries, keys, device) if queries > 1 else None

    def for_each_head(self, shared: Tensor) -> Tensor:
        """(B, G, K, D/H) -> (B, H, K, D/H)."""
        group = self.heads // self.key_heads
        return shared if group == 1 else shared.repeat_interleave(group, dim=1)


def project(vectors: Tensor, *layers: nn.Linear) -> Sequence[Tensor]:
    """What each of the layers makes of the same vectors: while learning by one product, 3 % of a whole update.

    Otherwise by one for each, since joining the matrices would cost more than a single token's product.
    """
    if not (layers[0].training and is_fast()):
        return [layer(vectors) for layer in layers]
    weight, bias = (torch.cat([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))
    return torch.split_with_sizes(F.linear(vectors, weight, bias), [layer.out_features for layer in layers], dim=-1)


def split_heads(vectors: Tensor, heads: int) -> Tensor:
    """(B, N, D) -> (B, H, N, D/H)."""
    if vectors.ndim != 3:
        raise ValueError(f"heads are split from vectors (B, N, D), not {tuple(vectors.shape)}")
    batch, size, width = vectors.shape
    return vectors.view(batch, size, heads, width // heads).transpose(1, 2)


def join_heads(vectors: Tensor) -> Tensor:
    """(B, H, N, D/H) -> (B, N, D)."""
    return vectors.transpose(1, 2).flatten(2)
