"""Everything a beam search considered, as a tree: what won, what ended and lost, what was given up. Needs no torch."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from softgaze.gaze.attention import Attention
from softgaze.gaze.terminal import pad_to
from softgaze.gaze.words import BEGIN_MARK

LEGEND = "log-probability of each token, and of all so far; ✓ won, · ended, ✗ given up"
STATUSES = {"won": "✓", "ended": "·", "kept": "", "pruned": "✗"}  # of a node, and how it is marked


@dataclass(frozen=True)
class Node:
    """One token after those above it."""

    token: str  # the piece; of the root, the begin mark
    text: str  # all that is written up to here
    log_probability: float  # of this token
    total: float  # of all tokens up to here
    status: str  # "won": on the way to the best; "ended": a result that lost; "kept": went on; "pruned": given up
    children: tuple["Node", ...] = field(default=(), repr=False)  # best first

    def walk(self) -> Iterator["Node"]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {name: getattr(self, name) for name in ("token", "text", "log_probability", "total", "status")}
        return {**own, "children": [child.to_dict() for child in self.children]}

    def to_json(self, path: str | Path | None = None) -> str:
        """One line; written to `path` if given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def __str__(self) -> str:
        lines = [(self.token, self), *drawn(self)]
        width = max(cell_len(line) for line, _ in lines)
        rows = (
            f"{pad_to(line, width)}  {node.log_probability:7.2f} {node.total:8.2f}  {STATUSES[node.status]}".rstrip()
            for line, node in lines
        )
        return "\n".join([*rows, LEGEND])


@dataclass(frozen=True)
class Tried:
    """A hypothesis where it stopped: a result, or given up."""

    text: str
    tokens: tuple[str, ...]
    score: float  # log-probability / length^α, whether it ended or not
    log_probability: float
    status: str  # "won", "ended" or "pruned"
    part: int  # of the text
    look: Callable[[], Attention | None] = field(repr=False, compare=False)

    @cached_property
    def attention(self) -> Attention | None:
        """Where it looked; recorded when first asked for."""
        return self.look()


@dataclass(frozen=True)
class Beam:
    """A search seen from above: one tree for each part of a text, and all hypotheses, the best first."""

    roots: tuple[Node, ...] = field(repr=False)
    hypotheses: tuple[Tried, ...]

    def tree(self, part: int = 0) -> Node:
        """Of one part; a text that was not split has only the first."""
        if not self.roots:
            raise ValueError("nothing was searched for an empty text, so there is no tree")
        if not 0 <= part < len(self.roots):
            raise ValueError(f"there are {len(self.roots)} trees, one for each part of the text, and none is {part}")
        return self.roots[part]


Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Log:
    """What a search considered for one sentence, best first at each step, as its witness was told."""

    considered: dict[Tokens, tuple[float, bool]]  # by its tokens, END among them: log-probability, whether it ended
    best: Tokens
    piece: Callable[[int], str]  # how a token is shown
    spell: Callable[[Tokens], str]  # the text of tokens

    @cached_property
    def following(self) -> dict[Tokens, list[Tokens]]:
        """What continues what; the order in which it was told is best first."""
        found: dict[Tokens, list[Tokens]] = {}
        for tokens in self.considered:
            found.setdefault(tokens[:-1], []).append(tokens)
        return found

    def status(self, tokens: Tokens) -> str:
        """Of a hypothesis that stands here."""
        if self.best[: len(tokens)] == tokens:
            return "won"
        if self.considered[tokens][1]:
            return "ended"
        return "kept" if tokens in self.following else "pruned"

    def root(self) -> Node:
        """The whole tree."""
        return Node(BEGIN_MARK, "", 0.0, 0.0, "won", self.children((), 0.0))

    def children(self, tokens: Tokens, total: float) -> tuple[Node, ...]:
        """Of one node."""
        return tuple(self.node(each, total) for each in self.following.get(tokens, ()))

    def node(self, tokens: Tokens, above: float) -> Node:
        """One node and all below it."""
        total, _ = self.considered[tokens]
        below = self.children(tokens, total)
        return Node(self.piece(tokens[-1]), self.spell(tokens), total - above, total, self.status(tokens), below)

    def stopped(self) -> list[Tokens]:
        """Where hypotheses stopped: results, and what was given up."""
        return [tokens for tokens in self.considered if tokens not in self.following]


def drawn(node: Node, lead: str = "") -> Iterator[tuple[str, Node]]:
    """Lines of what is below a node, with their nodes."""
    for child in node.children:
        last = child is node.children[-1]
        yield f"{lead}{'└' if last else '├'} {child.token}", child
        yield from drawn(child, lead + ("  " if last else "│ "))


def ranked(tried: Sequence[Tried]) -> tuple[Tried, ...]:
    """By part, then the winner, results by score, and what was given up by score."""
    order = list(STATUSES)
    return tuple(sorted(tried, key=lambda each: (each.part, order.index(each.status), -each.score)))
