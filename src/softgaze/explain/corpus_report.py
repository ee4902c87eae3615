"""Find sentences where a model may drop or repeat words: numbers for each sentence, and the worst by each ranking.

Sentence reports wait in a temporary file until the expected coverage of each word is known. A `CorpusReport` then keeps
the worst sentences and counts the rest, so memory grows only with the vocabulary.
"""

import base64
import heapq
import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from softgaze.explain.alignment import Alignment, AlignmentCounts, count_links, sum_counts
from softgaze.explain.attention_map import MIN_RELIABILITY, UNUSED, Attention
from softgaze.explain.occlusion import UNSUPPORTED, faithfulness, unsupported_words, word_support
from softgaze.explain.recording import Matrix

OMITTED = 0.2  # nats, see `omitted_words`; chosen on planted omissions in development text, docs/lessons.md
CONTENT = 0.7  # a word with at least this expected coverage is translated, unlike an article
QUARTER = 0.25  # such a word is uncovered below this share of its expected coverage
PRIOR = 2  # pseudo-counts of an average word, so that a rare word has an expected coverage, too
MIN_FAITHFULNESS = 0.3
SURE = 0.5  # an output word with at least this weight on a source word is its translation
MAX_LOOP = 4  # words of a phrase that may be repeated immediately
MAX_KEPT = 1000  # sentences for each ranking
LEVELS = 255  # of a packed weight
DIGITS = 4

Indices = tuple[int, ...]


# --- one sentence -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SentenceReport:
    line: int  # in the corpus, from 1
    source: tuple[str, ...]  # words
    output: tuple[str, ...]
    reference: tuple[str, ...] | None
    covered: tuple[float, ...]  # coverage of each source word
    needed: tuple[float, ...]  # nats the translation loses without each source word
    repeated: Indices  # output words that repeat something
    different: Indices  # output words that differ from the reference
    faithfulness: float | None  # None if nothing can be ranked
    entropy: float
    sink: float
    scores: dict[str, float]  # against the reference
    links: AlignmentCounts | None  # of source and reference, against gold
    weights: str  # (output words, source words + 1), the last column for BOS and EOS; base64 of bytes
    uncovered: Indices = ()  # source words with far less than their expected coverage
    shortfall: float = 0.0  # expected minus actual coverage of these
    support: tuple[float, ...] = ()  # how far the source explains each output word, 0 to 1
    reliability: float | None = None  # expected share of right links of the map; None if it was not measured
    omitted: Indices = ()  # source words that the translation does not express

    @property
    def unsupported(self) -> Indices:
        """Output words that the source hardly explains."""
        return unsupported_words(self.output, np.array(self.support)) if self.support else ()

    @property
    def misfit(self) -> float:
        """How much more likely the translation is without the worst omitted word, in nats."""
        return max((-self.needed[index] for index in self.omitted), default=0.0)

    @property
    def coverage(self) -> float:
        """The share of source words that were used."""
        return share_covered(self.covered)

    @property
    def repetition(self) -> float:
        return _rounded(len(self.repeated) / len(self.output)) if self.output else 0.0

    @property
    def aer(self) -> float | None:
        return _rounded(self.links.aer) if self.links else None

    def to_dict(self) -> dict[str, Any]:
        derived = {name: getattr(self, name) for name in ("unsupported", "misfit", "coverage", "repetition", "aer")}
        return {**asdict(self), **derived}

    def to_line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> "SentenceReport":
        stored: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(line).items()
        }
        stored["links"] = AlignmentCounts(*stored["links"]) if stored["links"] else None
        return cls(**stored)


def report_sentence(
    line: int,
    attention: Attention,
    occlusion: Matrix,
    *,
    reference: str | None = None,
    log_probs: Matrix | None = None,
    scores: dict[str, float] | None = None,
    links: tuple[Alignment, Alignment] | None = None,
    linked: Collection[int] | None = None,
) -> SentenceReport:
    """Compute the numbers of one sentence.

    `occlusion` is (output words + EOS, source words), `log_probs` is (output words,); `links` of source and reference
    are (predicted, gold), `linked` is as in `omitted_words`.
    """
    words = attention.words()
    weights, recording = words.word_weights(), words.recording
    source, output = recording.source.words, recording.target.words
    expected = tuple(reference.split()) if reference is not None else None
    value = faithfulness(words, occlusion[:-1])
    rest = (1 - weights.sum(axis=1, keepdims=True)).clip(0, 1)  # on BOS and EOS
    levels = (np.hstack([weights, rest]).clip(0, 1) * LEVELS).round().astype(np.uint8)
    return SentenceReport(
        line=line,
        source=source,
        output=output,
        reference=expected,
        covered=tuple(map(_rounded, weights.sum(axis=0))),
        needed=tuple(map(_rounded, source_needs(occlusion))),
        repeated=repeated_words(output, weights, source, expected),
        different=different_words(output, expected) if expected is not None else (),
        faithfulness=None if math.isnan(value) else _rounded(value),
        entropy=mean_entropy(words),
        sink=_rounded(words.sink),
        scores=scores or {},
        links=count_links(links[0].all, links[1]) if links else None,
        weights=base64.b64encode(levels.tobytes()).decode(),
        reliability=None if words.reliability is None else _rounded(words.reliability.value),
        omitted=omitted_words(occlusion, linked),
        support=() if log_probs is None else tuple(map(_rounded, word_support(occlusion[:-1], log_probs))),
    )


def share_covered(covered: Sequence[float]) -> float:
    """Return the share of source words with at least the coverage of a used word."""
    return _rounded(sum(value >= UNUSED for value in covered) / len(covered)) if len(covered) else 1.0


def mean_entropy(words: Attention) -> float:
    """Return the mean entropy of the rows of a map, in nats."""
    entropy = words.entropy()
    return _rounded(entropy.mean()) if len(entropy) else 0.0


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)


def source_needs(occlusion: Matrix) -> list[float]:
    """Return the nats the whole translation loses without each source word; `occlusion` has a row for EOS."""
    lost: list[float] = np.nan_to_num(occlusion).sum(axis=0).tolist()
    return lost


def omitted_words(occlusion: Matrix, linked: Collection[int] | None = None) -> Indices:
    """Return the source words without which the translation becomes more likely (Vamvas & Sennrich 2022).

    A word that is expressed may still make the rest less likely. Words that a word aligner has `linked` are expressed;
    without an aligner, the output word that depends on the source word most counts twice.
    """
    scores = np.nan_to_num(occlusion)
    needed = scores.sum(axis=0)
    if linked is None:
        needed += scores[:-1].max(axis=0, initial=0.0)
    return tuple(index for index, nats in enumerate(needed) if nats < -OMITTED and index not in (linked or ()))


def different_words(output: Sequence[str], reference: Sequence[str]) -> Indices:
    blocks = SequenceMatcher(None, output, reference, autojunk=False).get_matching_blocks()
    matching = {block.a + offset for block in blocks for offset in range(block.size)}
    return tuple(index for index in range(len(output)) if index not in matching)


def repeated_words(
    output: Sequence[str], weights: Matrix, source: Sequence[str], reference: Sequence[str] | None = None
) -> Indices:
    """Return the output words that repeat a word or phrase that occurs once in the source.

    A word is repeated if it occurred before with its largest weight on the same source word, or if it belongs to a
    phrase that directly follows itself, unless the source has such a phrase. A word that the reference has as often is
    correct.
    """
    folded = [word.casefold() for word in output]
    repeated: set[int] = set()
    seen: set[tuple[str, int]] = set()
    for index, (word, row) in enumerate(zip(folded, weights, strict=True)):
        if row.size and row.max() >= SURE:
            pair = word, int(row.argmax())
            if pair in seen:
                repeated.add(index)
            seen.add(pair)
    if not any(_loops([word.casefold() for word in source])):
        repeated |= set(_loops(folded))
    count, allowed = Counter(folded), Counter(word.casefold() for word in reference or ())
    return tuple(index for index in sorted(repeated) if count[folded[index]] > allowed[folded[index]])


def _loops(words: Sequence[str]) -> Iterator[int]:
    """Yield the words of a phrase that directly follows itself: "very very", "on the on the"."""
    for size in range(1, MAX_LOOP + 1):
        for start in range(size, len(words) - size + 1):
            if words[start - size : start] == words[start : start + size]:
                yield from range(start, start + size)


# --- expected coverage ------------------------------------------------------------------------------------------


class ExpectedCoverage:
    """The usual coverage of each source word: articles get little attention everywhere, which is no error."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.counts: Counter[str] = Counter()

    def add(self, report: SentenceReport) -> None:
        for word, coverage in zip(report.source, report.covered, strict=True):
            name = word.casefold()
            self.sums[name] = self.sums.get(name, 0.0) + coverage
            self.counts[name] += 1

    def with_uncovered(self, report: SentenceReport) -> SentenceReport:
        """Return the report with the words whose coverage is far below their mean in the other sentences."""
        mean = sum(self.sums.values()) / max(self.counts.total(), 1)
        uncovered, shortfall = [], 0.0
        for index, (word, coverage) in enumerate(zip(report.source, report.covered, strict=True)):
            name = word.casefold()
            expected = (self.sums[name] - coverage + PRIOR * mean) / (self.counts[name] - 1 + PRIOR)
            if expected >= CONTENT and coverage < QUARTER * expected:
                uncovered.append(index)
                shortfall += expected - coverage
        return replace(report, uncovered=tuple(uncovered), shortfall=_rounded(shortfall))


# --- many sentences ---------------------------------------------------------------------------------------------


class Ranking(NamedTuple):
    """An order of sentences, worst first."""

    title: str
    badness: Callable[[SentenceReport], float | None]  # None: not ranked
    explained: str


RANKINGS = {
    "uncovered": Ranking(
        "Uncovered words",
        lambda report: len(report.uncovered) + report.shortfall / 1000 if report.uncovered else None,
        "source words with less than a quarter of their expected coverage: perhaps dropped",
    ),
    "omitted": Ranking(
        "Omitted words",
        lambda report: report.misfit if report.omitted else None,
        "source words without which the translation is more likely: perhaps dropped",
    ),
    "unsupported": Ranking(
        "Unsupported words",
        lambda report: len(report.unsupported) - min(report.support) if report.unsupported else None,
        f"output words that no source word explains (support below {UNSUPPORTED}): perhaps hallucinated",
    ),
    "repetition": Ranking(
        "Repeated words",
        lambda report: report.repetition or None,
        "output words repeated immediately, or with attention to the same source word",
    ),
    "faithfulness": Ranking(
        "Low faithfulness",
        lambda report: (
            None if report.faithfulness is None or report.faithfulness >= MIN_FAITHFULNESS else -report.faithfulness
        ),
        f"rank correlation of attention with occlusion below {MIN_FAITHFULNESS}: the map shows little of what mattered",
    ),
    "reliability": Ranking(
        "Unreliable maps",
        lambda report: (
            None if report.reliability is None or report.reliability >= MIN_RELIABILITY else -report.reliability
        ),
        f"expected share of right links below {MIN_RELIABILITY:.0%}: unlike the text that the model learned from",
    ),
    "aer": Ranking("Wrong links", lambda report: report.aer or None, "alignment error rate of source and reference"),
    "chrf": Ranking(
        "Unlike the reference",
        lambda report: -report.scores["chrf"] if report.scores.get("chrf", 100.0) < 100 else None,
        "chrF of the translation against the reference",
    ),
}

HISTOGRAMS: dict[str, tuple[Callable[[SentenceReport], float | None], list[float]]] = {
    "coverage": (lambda report: report.coverage, [step / 10 for step in range(11)]),
    "faithfulness": (lambda report: report.faithfulness, [step / 5 for step in range(-5, 6)]),
    "length": (lambda report: float(len(report.source)), [0.0, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100]),
}


def report_corpus(reports: Iterable[SentenceReport | None], limit: int = MAX_KEPT) -> "CorpusReport":
    """Rank all sentences; None stands for an empty one."""
    expected, corpus = ExpectedCoverage(), CorpusReport(limit)
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as file:
        for report in reports:
            if report is None:
                corpus.empty += 1
            else:
                expected.add(report)
                file.write(report.to_line() + "\n")
        file.seek(0)
        for line in file:
            corpus.add(expected.with_uncovered(SentenceReport.from_line(line)))
    return corpus


class CorpusReport:
    """Counts over a corpus, and the worst sentences by each ranking."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self.limit, self.sentences, self.empty = limit, 0, 0
        self.heaps: dict[str, list[tuple[float, int, SentenceReport]]] = {name: [] for name in RANKINGS}
        self.first: list[SentenceReport] = []
        self.ranked: Counter[str] = Counter()  # sentences in each ranking
        self.words: Counter[str] = Counter()
        self.links = AlignmentCounts(0, 0, 0, 0)
        self.histograms = {name: [0] * (len(edges) - 1) for name, (_, edges) in HISTOGRAMS.items()}

    def add(self, report: SentenceReport) -> None:
        self.sentences += 1
        if len(self.first) < self.limit:
            self.first.append(report)
        for name, ranking in RANKINGS.items():
            badness = ranking.badness(report)
            if badness is not None:
                self.ranked[name] += 1
                entry, heap = (badness, -report.line, report), self.heaps[name]
                if len(heap) < self.limit:
                    heapq.heappush(heap, entry)
                elif entry[:2] > heap[0][:2]:
                    heapq.heapreplace(heap, entry)
        self.words["all"] += len(report.source)
        for name in ("uncovered", "omitted", "unsupported", "repeated"):
            self.words[name] += len(getattr(report, name))
        if report.links:
            self.links = sum_counts([self.links, report.links])
        for name, (value_of, edges) in HISTOGRAMS.items():
            value = value_of(report)
            if value is not None:
                self.histograms[name][min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)] += 1

    def worst(self, name: str, count: int | None = None) -> list[SentenceReport]:
        """Return the worst sentences of a ranking; of equals the first in the corpus."""
        entries = sorted(self.heaps[name], key=lambda entry: entry[:2], reverse=True)
        return [report for _, _, report in entries[:count]]

    @property
    def is_complete(self) -> bool:
        return self.sentences <= self.limit

    def kept(self) -> list[SentenceReport]:
        """Return the sentences of all rankings in the order of the corpus; of a small corpus, all sentences."""
        by_line = {report.line: report for report in self.first} if self.is_complete else {}
        by_line |= {report.line: report for heap in self.heaps.values() for _, _, report in heap}
        return [by_line[line] for line in sorted(by_line)]

    def summary(self) -> dict[str, Any]:
        return {
            "sentences": self.sentences,
            "empty": self.empty,
            "rankings": {name: self.ranked[name] for name in RANKINGS},
            "words": {name: self.words[name] for name in ("all", "uncovered", "omitted", "unsupported", "repeated")},
            "aer": _rounded(self.links.aer) if self.links.sure else None,
            "histograms": {
                name: {"edges": edges, "counts": self.histograms[name]} for name, (_, edges) in HISTOGRAMS.items()
            },
        }
