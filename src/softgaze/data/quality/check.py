"""Check a parallel corpus: two passes over its files, and all findings in one `QualityReport`."""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softgaze.data.corpus import Corpus, CorpusPart, LineError, OnLineError
from softgaze.data.quality.misalignment import (
    MAX_OFFSET,
    MIN_POWER,
    NO_MATCH,
    SCALE,
    PairScorer,
    SampleBlock,
    Shift,
    find_shifts,
)
from softgaze.data.quality.rules import (
    RULES,
    Array,
    Baseline,
    CorpusStatistics,
    Level,
    RuleChecker,
    SideStatistics,
    Window,
    measure,
    windows,
)
from softgaze.errors import DataError

EXAMPLES = 5  # per finding
SAMPLE = 200_000  # pairs to learn word vectors from
MAX_DIFFERENCE = 1_000  # lines: beyond, the position of the missing lines is not searched
EDGE = 4  # rows: uncertainty of the ends of a shifted range
_MIN_PAIRS, _ENOUGH_PAIRS = 200, 2_000  # to learn word vectors; to conclude that there is nothing to learn
_SHIFTS_SHOWN = 20  # per part

# --- the report -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A pair of the corpus; `file` is empty if there is only one part, `line` counts from 1."""

    file: str
    line: int
    byte: int | None
    text: str

    @property
    def location(self) -> str:
        """Return "FILE, line N, byte N" as far as known."""
        byte = "" if self.byte is None else f", byte {self.byte:,}"
        return f"{self.file}, line {self.line:,}{byte}" if self.file else f"line {self.line:,}{byte}"


@dataclass(frozen=True)
class Finding:
    """A property of the corpus: `fatal` would stop training, `warning` may harm it, `note` is informative."""

    code: str
    level: Level
    count: int
    message: str
    examples: tuple[Example, ...] = ()


class PartAlignment(NamedTuple):
    """Line counts and shifted ranges of a part; `end_is_aligned`: its last lines are known to fit."""

    part: CorpusPart
    counts: tuple[int, int]
    shifts: list[Shift]
    end_is_aligned: bool


class Details(NamedTuple):
    """The results of a check that `fix_corpus` uses."""

    baseline: Baseline
    parts: list[PartAlignment]


@dataclass(frozen=True)
class QualityReport:
    """The result of `check_corpus`; `usable` pairs are readable and have text on both sides."""

    files: tuple[str, ...]
    pairs: int
    usable: int
    source: SideStatistics | None
    target: SideStatistics | None
    findings: tuple[Finding, ...]
    details: Details | None = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """Return 3 if there is a fatal finding, else 0."""
        return 3 if any(finding.level == "fatal" for finding in self.findings) else 0

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        record = {name: getattr(self, name) for name in ("files", "pairs", "usable", "source", "target", "findings")}
        record["exit_code"] = self.exit_code
        return json.dumps(record, default=vars, ensure_ascii=False, indent=2)

    def lines(self) -> Iterator[str]:
        """Yield the report as plain text."""
        if self.pairs:
            yield f"{self.pairs:,} pairs, {self.usable:,} of them readable with text on both sides"
        for name, side in (("source", self.source), ("target", self.target)):
            if side is None:
                continue
            scripts = ", ".join(f"{script} {share:.1%}" for script, share in side.scripts.items())
            yield f"{name}{f' ({side.language})' if side.language else ''}: {scripts or 'no letters'}"
            for unit, lengths in (("words", side.words), ("characters", side.characters)):
                middle = f"median {lengths.median:,}, mean {lengths.mean:,.1f}"
                tail = f"95 % {lengths.p95:,}, 99 % {lengths.p99:,}"
                yield f"    {unit}: {lengths.minimum:,} to {lengths.maximum:,}, {middle}, {tail}"
        for finding in self.findings:
            yield f"{finding.level}: {finding.message}"
            yield from (f"    {example.location}: {example.text}" for example in finding.examples)
        if not self.findings:
            yield "no findings"


def printable(text: str, width: int = 70) -> str:
    """Truncate text and escape everything that a terminal would interpret or hide."""
    cut = text if len(text) <= width else text[: width - 1] + "…"
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in cut)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in spaced)


def line_count_finding(alignment: PartAlignment) -> Finding | None:
    """Report different line counts, and where the missing or additional lines probably are."""
    source, target = alignment.counts
    if source == target:
        return None
    paths, shifts = alignment.part.paths, alignment.shifts
    small = [shift for shift in shifts if abs(shift.offset) <= abs(target - source)]
    if alignment.end_is_aligned and small and small[-1].stop == min(source, target):
        start = shifts[-1].start  # of the contiguous shifts that lead to the end of the file
        for shift in reversed(shifts):
            start = shift.start if abs(shift.stop - start) <= EDGE or shift is shifts[-1] else start
        where = f"the first line that does not fit is near line {start + 1:,}"
    elif alignment.end_is_aligned:
        where = "all lines fit up to the end of the shorter file; the longer one has additional lines at its end"
    else:
        where = "the position was not found: search for a line that was lost or split"
    message = f"{paths[0]} has {source:,} lines, {paths[1]} {target:,}; {where}"
    return Finding("line_counts", "fatal", abs(target - source), message)


# --- the check --------------------------------------------------------------------------------------------------


def check_corpus(corpus: Corpus, progress: Callable[[int, int], None] | None = None) -> QualityReport:
    """Read a corpus twice and report everything unusual; bad data are findings, never errors.

    `progress(done, total)` is called after each window.
    """
    check = _Check(corpus, progress or (lambda done, total: None))
    check.first_pass()
    baseline = check.statistics.baseline()
    details = Details(baseline, check.second_pass(baseline))
    try:
        languages = corpus.languages()
    except DataError:  # among the findings already
        languages = (None, None)
    usable = check.statistics.usable
    source, target = (check.statistics.side(side, languages[side]) if usable else None for side in (0, 1))
    findings = tuple(check.findings(details))
    return QualityReport(tuple(map(str, corpus.paths)), check.total, usable, source, target, findings, details)


class _Check:
    """The state of one `check_corpus`."""

    def __init__(self, corpus: Corpus, progress: Callable[[int, int], None]) -> None:
        self.progress = progress
        self.has_parts = len(corpus.parts) > 1
        self.failures: dict[str, Finding] = {}
        self.counts: dict[CorpusPart, tuple[int, int]] = {}
        for part in corpus.parts:
            try:
                self.counts[part] = part.counts()
            except DataError as error:
                self.add_failure(error)
        self.total = sum(map(max, self.counts.values()))
        self.window_size = min(2048, max(32, self.total // 32))
        self.rows_read = 0
        self.statistics = CorpusStatistics()
        self.sample: list[SampleBlock] = []
        self.scorer: PairScorer | None = None
        self.rule_counts: Counter[str] = Counter()
        self.rule_examples: dict[str, list[Example]] = {}
        self.line_errors: dict[tuple[Path, str], list[LineError]] = {}  # the first of each kind
        self.line_error_counts: Counter[tuple[Path, str]] = Counter()

    def add_failure(self, error: DataError) -> None:
        self.failures[str(error)] = Finding("file", "fatal", 1, str(error))

    def add_line_error(self, error: LineError) -> None:
        key = (error.path, error.remedy)
        self.line_error_counts[key] += 1
        errors = self.line_errors.setdefault(key, [])
        if len(errors) < EXAMPLES:
            errors.append(error)

    def read(self, part: CorpusPart, offsets: Array, on_error: OnLineError) -> Iterator[Window]:
        context = int(np.abs(offsets[:-1]).max())
        try:
            for window in windows(iter(part.scan(on_error)), self.window_size, context):
                yield window
                self.rows_read += len(window.rows)
                self.progress(self.rows_read, 2 * self.total)
        except DataError as error:
            self.add_failure(error)

    def offsets(self, part: CorpusPart) -> Array:
        """Return the offsets to compare: near ones, and the one at which files of different length must end."""
        source, target = self.counts[part]
        difference = target - source if abs(target - source) <= MAX_DIFFERENCE else 0
        return np.unique([*range(-MAX_OFFSET, MAX_OFFSET + 1), difference, NO_MATCH])

    def first_pass(self) -> None:
        """Collect statistics, and a sample to learn word vectors from."""
        step = -(-self.total // SAMPLE) or 1
        index = 0
        for part in self.counts:
            offsets = self.offsets(part)
            for window in self.read(part, offsets, lambda error: None):
                source, targets = window.measure()
                aligned = targets.select(slice(window.left, window.left + len(window.rows)))
                self.statistics.add(window, source, aligned)
                if index // 2 % step == 0 and len(window.rows) > 2 * MAX_OFFSET:
                    sides = [
                        lines._replace(class_counts=lines.class_counts[:, :0].copy()) for lines in (source, targets)
                    ]
                    self.sample.append(SampleBlock(index % 2, sides[0], sides[1], window.left, offsets[:-1], 0))
                index += 1

    def second_pass(self, baseline: Baseline) -> list[PartAlignment]:
        """Apply the rules to each pair, and find shifted ranges."""
        if self.statistics.usable >= _MIN_PAIRS:
            self.scorer = PairScorer.learn(self.sample, baseline.ratio, baseline.spread)
        self.sample = []
        rules, index, alignments = RuleChecker(baseline), 0, []
        for part, counts in self.counts.items():
            offsets = self.offsets(part)
            evidence = np.zeros((min(counts), len(offsets)), np.int8)
            for window in self.read(part, offsets, self.add_line_error):
                if self.scorer is None:
                    source, target = measure(window.sources), measure(window.targets)
                else:
                    scores, source, target = self.scorer.evidence(window, index % 2, offsets)
                    rows = evidence[window.start : window.start + len(scores)]
                    rows[:] = scores[: len(rows)]
                readable = np.array([None not in row for row in window.rows])
                masks = rules.check(window.sources, window.targets, source, target)
                self.add_examples(part, window, {code: mask & readable for code, mask in masks.items()})
                index += 1
            difference = counts[1] - counts[0]
            shifts = find_shifts(evidence, offsets, difference)
            last = shifts[-1] if shifts and shifts[-1].stop == len(evidence) else Shift(0, len(evidence), 0, True)
            end = evidence[max(last.start, len(evidence) - 200) :, offsets == last.offset]
            fits = len(evidence) > 0 and end.mean() > 0.5 * SCALE
            aligned = difference == 0 or bool(fits and last.offset in (0, difference))
            alignments.append(PartAlignment(part, counts, shifts, aligned))
        return alignments

    def add_examples(self, part: CorpusPart, window: Window, masks: dict[str, Array]) -> None:
        name = part.paths[0].name if self.has_parts else ""
        for code, mask in masks.items():
            rows = np.flatnonzero(mask)
            self.rule_counts[code] += len(rows)
            examples = self.rule_examples.setdefault(code, [])
            for row in rows[: EXAMPLES - len(examples)].tolist():
                source, target = (printable(text or "") for text in window.rows[row])
                examples.append(Example(name, window.start + row + 1, None, f"{source} | {target}"))

    def findings(self, details: Details) -> Iterator[Finding]:
        """Yield all findings, the worst first."""
        yield from self.failures.values()
        yield from filter(None, map(line_count_finding, details.parts))
        for key, errors in self.line_errors.items():
            count, first = self.line_error_counts[key], errors[0]
            more = f" ({count:,} such lines in this file)" if count > 1 else ""
            examples = tuple(Example(first.path.name, error.line, error.byte, error.why) for error in errors)
            yield Finding("unreadable", "fatal", count, f"{first}{more}", examples)
        usable = self.statistics.usable
        if not usable and not self.failures:
            yield Finding("nothing", "fatal", 1, "there is no pair with text on both sides")
        if self.scorer and self.scorer.power < MIN_POWER and usable >= _ENOUGH_PAIRS:
            message = "the two sides seem unrelated: no words correspond; check files and order of lines"
            yield Finding("unrelated", "warning", usable, message)
        elif usable and (self.scorer is None or self.scorer.power < MIN_POWER):
            yield Finding("too_small", "note", usable, f"too few pairs to find shifted lines: {usable:,}")
        for part in details.parts:
            yield from self.shift_findings(part)
        for level in ("warning", "note"):
            for code, rule in RULES.items():
                count = self.rule_counts[code]
                if count and rule.level == level:
                    message = f"{count:,} {'pair' if count == 1 else 'pairs'}: {rule.message}"
                    yield Finding(code, rule.level, count, message, tuple(self.rule_examples[code]))

    def shift_findings(self, alignment: PartAlignment) -> Iterator[Finding]:
        name = f"{alignment.part.paths[0].name}: " if self.has_parts else ""
        for start, stop, offset, _ in alignment.shifts[:_SHIFTS_SHOWN]:
            if offset == NO_MATCH:
                code, what = "no_match", "seem unrelated: no close target line fits the source line"
            else:
                code = "shifted"
                what = f"seem shifted by {abs(offset):,} (source line n fits target line n{offset:+,})"
            yield Finding(code, "warning", stop - start, f"{name}pairs {start + 1:,}–{stop:,} {what}")
        if more := alignment.shifts[_SHIFTS_SHOWN:]:
            rows = sum(shift.stop - shift.start for shift in more)
            message = f"{name}{len(more):,} more ranges seem shifted ({rows:,} pairs)"
            yield Finding("shifted", "warning", rows, message)
