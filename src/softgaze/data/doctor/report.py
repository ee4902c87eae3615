"""What an examination found: `Report` and its parts, as text for people and as JSON for programs.

Knows counts, places and words; nothing about how any of it was found, nor about colours and terminals.
"""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from softgaze.data.doctor.diagnosis import Diagnosis

Level = Literal["fatal", "warning", "note"]


@dataclass(frozen=True)
class Example:
    """One place in the corpus: file (empty where there is but one part), line from 1, byte where known, the text."""

    file: str
    line: int
    byte: int | None
    text: str

    @property
    def place(self) -> str:
        """Say where it is, in words."""
        byte = "" if self.byte is None else f", byte {self.byte:,}"
        return f"{self.file}, line {self.line:,}{byte}" if self.file else f"line {self.line:,}{byte}"


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing: `fatal` would stop training, `warning` may spoil it, `note` is good to know."""

    code: str
    level: Level
    count: int
    message: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Lengths:
    """How long the lines of one side are; `histogram` is (from, to, lines), the last `to` None for "and more"."""

    minimum: int
    median: int
    mean: float
    p95: int
    p99: int
    maximum: int
    histogram: tuple[tuple[int, int | None, int], ...]


@dataclass(frozen=True)
class Side:
    """One side of the corpus in numbers; `scripts` gives the share of lines that each script dominates."""

    language: str | None
    words: Lengths
    characters: Lengths
    scripts: dict[str, float]


@dataclass(frozen=True)
class Report:
    """What `examine` found. `usable` pairs are readable and have text on both sides."""

    files: tuple[str, ...]
    pairs: int
    usable: int
    source: Side | None
    target: Side | None
    findings: tuple[Finding, ...]
    diagnosis: "Diagnosis | None" = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """3 if something here would stop training, else 0."""
        return 3 if any(finding.level == "fatal" for finding in self.findings) else 0

    def to_json(self) -> str:
        """Everything as a JSON object, for programs."""
        record = {name: getattr(self, name) for name in ("files", "pairs", "usable", "source", "target", "findings")}
        record["exit_code"] = self.exit_code
        return json.dumps(record, default=lambda value: vars(value), ensure_ascii=False, indent=2)

    def lines(self) -> Iterator[str]:
        """Everything as plain text, for people."""
        if self.pairs:
            yield f"{self.pairs:,} pairs, {self.usable:,} of them readable with text on both sides"
        for name, side in (("source", self.source), ("target", self.target)):
            if side is not None:
                yield from _side_lines(name, side)
        for finding in self.findings:
            yield f"{finding.level}: {finding.message}"
            yield from (f"    {example.place}: {example.text}" for example in finding.examples)
        if not self.findings:
            yield "nothing to complain about"


def _side_lines(name: str, side: Side) -> Iterator[str]:
    scripts = ", ".join(f"{script} {share:.1%}" for script, share in side.scripts.items())
    yield f"{name}{f' ({side.language})' if side.language else ''}: {scripts or 'no letters'}"
    for unit, lengths in (("words", side.words), ("characters", side.characters)):
        spread = f"median {lengths.median:,}, mean {lengths.mean:,.1f}, 95 % {lengths.p95:,}, 99 % {lengths.p99:,}"
        yield f"    {unit}: {lengths.minimum:,} to {lengths.maximum:,}, {spread}"


def printable(text: str, width: int = 70) -> str:
    """Text safe to print: cut, and with everything a terminal would act on or hide spelled out."""
    cut = text if len(text) <= width else text[: width - 1] + "…"
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in cut)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in spaced)
