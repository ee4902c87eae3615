"""Small corpora of an invented language, and damage to plant in them."""

import random
from collections.abc import Sequence
from pathlib import Path

from softgaze.data.corpus import Corpus, Pair, read_pairs, write_lines
from softgaze.data.quality import Finding, FixResult, QualityReport, fix_corpus

WORDS = 400
HANGUL = [chr(code) for code in range(0xAC00, 0xD7A3, 7)]


def toy_pairs(count: int, seed: int = 0, hangul: bool = False) -> list[Pair]:
    """Sentences of an invented language and their translation, word for word with some order changed."""
    rng = random.Random(seed)
    spell = (lambda: "".join(rng.choices(HANGUL, k=3))) if hangul else (lambda: "".join(rng.choices("klmnouä", k=7)))
    dictionary = [("".join(rng.choices("abcdefgi", k=6)), spell()) for _ in range(WORDS)]
    pairs = []
    for _ in range(count):
        words = [dictionary[int(WORDS * rng.random() ** 2)] for _ in range(rng.randint(4, 12))]
        turned = [words[0], *reversed(words[1:])]
        pairs.append(Pair(" ".join(word for word, _ in words) + ".", " ".join(word for _, word in turned) + "."))
    return pairs


def save(folder: Path, pairs: Sequence[Pair], name: str = "t") -> Corpus:
    return save_sides(folder, *sides(pairs), name)


def save_sides(folder: Path, sources: Sequence[str], targets: Sequence[str], name: str = "t") -> Corpus:
    files = folder / f"{name}.en", folder / f"{name}.xx"
    for path, lines in zip(files, (sources, targets), strict=True):
        write_lines(path, lines)
    return Corpus.of([files])


def fix(folder: Path, corpus: Corpus, report: QualityReport | None = None) -> tuple[FixResult, list[Pair]]:
    files = folder / "f.en", folder / "f.xx"
    return fix_corpus(corpus, *files, report), list(read_pairs(*files))


def finding_of(report: QualityReport, code: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.code == code]
    return finding


def codes(report: QualityReport) -> set[str]:
    return {finding.code for finding in report.findings}


def sides(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def with_shift(pairs: Sequence[Pair], start: int, length: int, offset: int) -> list[Pair]:
    """Source lines from `start` on fit target lines `offset` further on, for `length` lines."""
    sources, targets = sides(pairs)
    lost, junk = abs(offset), [targets[row * 7 % len(targets)] for row in range(abs(offset))]
    if offset > 0:
        targets[start : start + length + lost] = junk + targets[start : start + length]
    else:
        targets[start - lost : start + length] = targets[start : start + length] + junk
    return [Pair(*texts) for texts in zip(sources, targets, strict=True)]
