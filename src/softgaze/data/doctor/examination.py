"""Examining a corpus: two readings over every readable part, and the findings of all of them in one report.

Knows the order of things; what is odd, and why, is for `judge`, `shifts` and `diagnosis` to say.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from softgaze.data.corpus import Corpus, LineError, Part
from softgaze.data.doctor.characters import Array
from softgaze.data.doctor.diagnosis import Diagnosis, PartDiagnosis, diagnose, direction, mismatch
from softgaze.data.doctor.evidence import REACH, UNRELATED, Scorer, gather, learn_scorer
from softgaze.data.doctor.judge import RULES, Judge
from softgaze.data.doctor.likeness import Piece
from softgaze.data.doctor.lines import Window, measure, windows
from softgaze.data.doctor.report import Example, Finding, Report, printable
from softgaze.data.doctor.shifts import NOWHERE
from softgaze.data.doctor.survey import Normal, Survey
from softgaze.errors import DataError

Progress = Callable[[int, int], None]

EXAMPLES = 5  # shown for each finding
SAMPLE = 200_000  # pairs from which the lexicon is learned
FAR = 1_000  # files that differ by more lines than this are not searched for the place
_LEAST_PAIRS, _ENOUGH_PAIRS = 200, 2_000  # to try to learn a lexicon; to be sure that there is none to learn
_SHIFTS_SHOWN = 20  # ranges of one part, each in a line of its own


def examine(corpus: Corpus, progress: Progress | None = None) -> Report:
    """Read a corpus twice and report what is odd about it. Never fails on bad data: that is what it reports.

    `progress(done, total)` is called now and then.
    """
    examination = _Examination(corpus, progress)
    examination.first_reading()
    return examination.report(examination.second_reading())


class _Tally:
    """Counts what the second reading finds, with the first few places of each kind."""

    def __init__(self, corpus: Corpus) -> None:
        self.counts: Counter[str] = Counter()
        self.places: dict[str, list[Example]] = {}
        self.errors: dict[tuple[Path, str], list[LineError]] = {}
        self.error_counts: Counter[tuple[Path, str]] = Counter()
        self.several = len(corpus.parts) > 1

    def complain(self, error: LineError) -> None:
        """Note a line that cannot be read."""
        key = (error.path, error.remedy)
        self.error_counts[key] += 1
        if len(kept := self.errors.setdefault(key, [])) < EXAMPLES:
            kept.append(error)

    def add(self, part: Part, window: Window, masks: dict[str, Array]) -> None:
        """Note the odd pairs of a window."""
        for code, mask in masks.items():
            rows = np.flatnonzero(mask)
            self.counts[code] += len(rows)
            kept = self.places.setdefault(code, [])
            kept += [self.example(part, window, row) for row in rows[: EXAMPLES - len(kept)].tolist()]

    def example(self, part: Part, window: Window, row: int) -> Example:
        """Quote one pair."""
        source, target = (printable(text or "") for text in window.rows[row])
        return Example(part.paths[0].name if self.several else "", window.start + row + 1, None, f"{source} | {target}")

    def findings(self) -> Iterator[Finding]:
        """Turn what was noted into findings, in the order of the rules."""
        for key, kept in self.errors.items():
            count, first = self.error_counts[key], kept[0]
            more = f" ({count:,} such lines in this file)" if count > 1 else ""
            examples = tuple(Example(first.path.name, error.line, error.byte, error.why) for error in kept)
            yield Finding("unreadable", "fatal", count, f"{first}{more}", examples)
        for code, rule in RULES.items():
            if self.counts[code]:
                count = self.counts[code]
                message = f"{count:,} {'pair' if count == 1 else 'pairs'}: {rule.message}"
                yield Finding(code, rule.level, count, message, tuple(self.places[code]))


class _Examination:
    """One run of `examine`: two readings over every readable part."""

    def __init__(self, corpus: Corpus, progress: Progress | None) -> None:
        self.corpus, self.progress = corpus, progress or (lambda done, total: None)
        self.failures: dict[str, Finding] = {}
        self.counts = {part: counts for part in corpus.parts if (counts := self._count(part))}
        self.total = sum(map(max, self.counts.values()))
        self.size = min(2048, max(32, self.total // 32))
        self.done = 0
        self.windows = 0
        self.survey, self.tally = Survey(), _Tally(corpus)
        self.scorer: Scorer | None = None

    def _count(self, part: Part) -> tuple[int, int] | None:
        try:
            return part.counts()
        except DataError as error:
            self._fail(error)
            return None

    def _fail(self, error: DataError) -> None:
        self.failures[str(error)] = Finding("file", "fatal", 1, str(error))

    def _read(self, part: Part, reach: int, complain: Callable[[LineError], None]) -> Iterator[Window]:
        try:
            for window in windows(iter(part.survey(complain)), self.size, reach):
                yield window
                self.done += len(window.rows)
                self.progress(self.done, 2 * self.total)
        except DataError as error:
            self._fail(error)

    def _offsets(self, part: Part) -> Array:
        """All offsets worth comparing: the near ones, and the one at which files of different length must end."""
        source, target = self.counts[part]
        difference = target - source if abs(target - source) <= FAR else 0
        return np.unique([*range(-REACH, REACH + 1), difference, NOWHERE])

    def first_reading(self) -> None:
        """Measure the corpus, and sample it for the lexicon."""
        step = -(-self.total // SAMPLE) or 1
        number = 0
        for part in self.counts:
            offsets = self._offsets(part)
            for window in self._read(part, int(np.abs(offsets[:-1]).max()), lambda error: None):
                source, reached = measure(window.sources), measure([target or "" for target in window.reached])
                self.survey.add(window, source, reached.cut(slice(window.left, window.left + len(window.rows))))
                if number // 2 % step == 0 and len(window.rows) > 2 * REACH:
                    sides = [lines._replace(kinds=lines.kinds[:, :0].copy()) for lines in (source, reached)]
                    self.survey.sample.append(Piece(number % 2, sides[0], sides[1], window.left, offsets[:-1], 0))
                number += 1

    def second_reading(self) -> Diagnosis:
        """Judge each pair, and look for shifted ranges."""
        ratio, spread = self.survey.ratio()
        home = self.survey.home_scripts(0), self.survey.home_scripts(1)
        normal = Normal(ratio, spread, home, *self.survey.hashes.repeats())
        if self.survey.usable >= _LEAST_PAIRS:
            self.scorer = learn_scorer(self.survey.sample, ratio, spread)
        self.survey.sample = []
        judge = Judge(normal)
        return Diagnosis(normal, [self._judge_part(part, judge) for part in self.counts])

    def _judge_part(self, part: Part, judge: Judge) -> PartDiagnosis:
        offsets = self._offsets(part)
        evidence = np.zeros((min(self.counts[part]), len(offsets)), np.int8)
        for window in self._read(part, int(np.abs(offsets[:-1]).max()), self.tally.complain):
            if self.scorer is None:
                source, target = measure(window.sources), measure(window.targets)
            else:
                scores, source, target = gather(self.scorer, window, self.windows % 2, offsets)
                rows = evidence[window.start : window.start + len(scores)]
                rows[:] = scores[: len(rows)]
            readable = np.array([None not in row for row in window.rows])
            masks = judge(window.sources, window.targets, source, target)
            self.tally.add(part, window, {code: mask & readable for code, mask in masks.items()})
            self.windows += 1
        return diagnose(part, self.counts[part], evidence, offsets)

    def findings(self, diagnosis: Diagnosis) -> Iterator[Finding]:
        """Everything found, the worst first."""
        yield from self.failures.values()
        for part in diagnosis.parts:
            yield from mismatch(part)
        found = list(self.tally.findings())
        yield from (finding for finding in found if finding.level == "fatal")
        if not self.survey.usable and not self.failures:
            yield Finding("nothing", "fatal", 1, "there is no pair with text on both sides")
        yield from self._unrelated()
        yield from self._shifts(diagnosis)
        yield from (finding for finding in found if finding.level == "warning")
        yield from (finding for finding in found if finding.level == "note")

    def _unrelated(self) -> Iterator[Finding]:
        """Say when shifted lines could not be looked for, and when nothing at all goes together."""
        usable = self.survey.usable
        if self.scorer and self.scorer.power < UNRELATED and usable >= _ENOUGH_PAIRS:
            message = (
                "the two sides look unrelated: no words go together; are these the right files, in the same order?"
            )
            yield Finding("unrelated", "warning", usable, message)
        elif usable and (self.scorer is None or self.scorer.power < UNRELATED):
            yield Finding(
                "too_small", "note", usable, f"{usable:,} pairs are too little text to look for shifted lines"
            )

    def _shifts(self, diagnosis: Diagnosis) -> Iterator[Finding]:
        for part in diagnosis.parts:
            name = f"{part.part.paths[0].name}: " if self.tally.several else ""
            shown = part.shifts[:_SHIFTS_SHOWN]
            for shift in shown:
                code = "nowhere" if shift.offset == NOWHERE else "shifted"
                message = f"{name}pairs {shift.start + 1:,}–{shift.stop:,} {direction(shift.offset)}"
                yield Finding(code, "warning", shift.stop - shift.start, message)
            if more := part.shifts[_SHIFTS_SHOWN:]:
                rows = sum(shift.stop - shift.start for shift in more)
                message = f"{name}{len(more):,} more ranges look shifted ({rows:,} pairs)"
                yield Finding("shifted", "warning", rows, message)

    def report(self, diagnosis: Diagnosis) -> Report:
        """Put everything together."""
        try:
            languages = self.corpus.languages()
        except DataError:  # already among the findings
            languages = (None, None)
        sides = [self.survey.side(side, languages[side]) if self.survey.usable else None for side in (0, 1)]
        files, findings = tuple(map(str, self.corpus.paths)), tuple(self.findings(diagnosis))
        return Report(files, self.total, self.survey.usable, sides[0], sides[1], findings, diagnosis)
