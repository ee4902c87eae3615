"""All candidates of a beam search as a tree: the best result, other results, and pruned hypotheses."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from softgaze.explain.attention_map import Attention
from softgaze.explain.word_spans import BOS_MARK

LEGEND = "log-probability of each token and of all tokens so far; ✓ best, · finished, ✗ pruned"
STATUSES = {"won": "✓", "ended": "·", "kept": "", "pruned": "✗"}  # of a node, and its mark


@dataclass(frozen=True)
class BeamNode:
    """One token after those of its ancestors."""

    token: str  # of the root, BOS
    text: str  # the text up to here
    log_prob: float  # of this token
    total: float  # of all tokens up to here
    status: str  # "won": on the path to the best; "ended": another result; "kept": continued; "pruned"
    children: tuple["BeamNode", ...] = field(default=(), repr=False)  # best first

    def walk(self) -> Iterator["BeamNode"]:
        yield self
        for child in self.children:
            yield from child.walk()

    def to_dict(self) -> dict[str, Any]:
        record = {name: getattr(self, name) for name in ("token", "text", "log_prob", "total", "status")}
        return {**record, "children": [child.to_dict() for child in self.children]}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return one line of JSON; write it to `path` if given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def __str__(self) -> str:
        from softgaze.explain.render.terminal import pad_to

        def lines(node: BeamNode, indent: str) -> Iterator[tuple[str, BeamNode]]:
            for child in node.children:
                is_last = child is node.children[-1]
                yield f"{indent}{'└' if is_last else '├'} {child.token}", child
                yield from lines(child, indent + ("  " if is_last else "│ "))

        rows = [(self.token, self), *lines(self, "")]
        width = max(cell_len(line) for line, _ in rows)
        drawn = [
            f"{pad_to(line, width)}  {node.log_prob:7.2f} {node.total:8.2f}  {STATUSES[node.status]}"
            for line, node in rows
        ]
        return "\n".join([*(row.rstrip() for row in drawn), LEGEND])


@dataclass(frozen=True)
class BeamHypothesis:
    text: str
    tokens: tuple[str, ...]
    score: float  # log-probability / length^α, finished or not
    log_prob: float
    status: str  # "won", "ended" or "pruned"
    part: int  # of the text
    record: Callable[[], Attention | None] = field(repr=False, compare=False)

    @cached_property
    def attention(self) -> Attention | None:
        """Its attention map, recorded on first use."""
        return self.record()


@dataclass(frozen=True)
class BeamTrace:
    """One search: a tree for each part of the text, and all hypotheses."""

    roots: tuple[BeamNode, ...] = field(repr=False)
    hypotheses: tuple[BeamHypothesis, ...]  # by part, then best, finished and pruned, then by score

    def tree(self, part: int = 0) -> BeamNode:
        """Return the tree of one part; a text that was not split has one part."""
        if not self.roots:
            raise ValueError("there is no tree: the text is empty, so nothing was searched")
        if not 0 <= part < len(self.roots):
            raise ValueError(f"there is no part {part}: the text has parts 0 to {len(self.roots) - 1}")
        return self.roots[part]


Tokens = tuple[int, ...]


@dataclass(frozen=True)
class SearchLog:
    """All candidates of one sentence, best first at each step."""

    considered: dict[Tokens, tuple[float, bool]]  # tokens with EOS -> log-probability, whether it finished
    best: Tokens
    piece: Callable[[int], str]  # the text of a token
    spell: Callable[[Tokens], str]  # the text of all tokens

    @cached_property
    def continuations(self) -> dict[Tokens, list[Tokens]]:
        """Continuations of each hypothesis, best first."""
        continuations: dict[Tokens, list[Tokens]] = {}
        for tokens in self.considered:
            continuations.setdefault(tokens[:-1], []).append(tokens)
        return continuations

    def status(self, tokens: Tokens) -> str:
        if self.best[: len(tokens)] == tokens:
            return "won"
        if self.considered[tokens][1]:
            return "ended"
        return "kept" if tokens in self.continuations else "pruned"

    def root(self) -> BeamNode:
        def children(tokens: Tokens, total: float) -> tuple[BeamNode, ...]:
            return tuple(node(longer, total) for longer in self.continuations.get(tokens, ()))

        def node(tokens: Tokens, parent_total: float) -> BeamNode:
            total, _ = self.considered[tokens]
            piece, text, status = self.piece(tokens[-1]), self.spell(tokens), self.status(tokens)
            return BeamNode(piece, text, total - parent_total, total, status, children(tokens, total))

        return BeamNode(BOS_MARK, "", 0.0, 0.0, "won", children((), 0.0))

    def leaves(self) -> list[Tokens]:
        return [tokens for tokens in self.considered if tokens not in self.continuations]
