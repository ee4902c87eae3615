"""From text files to a directory that training reads: tokenizers, encoded shards, the validation text, a detector.

Done once for a run. What it was made from is written beside it, so that a resumed run knows whether it still fits.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any

import numpy

from softgaze.bundle import DETECTOR, Tokenizers, check_file
from softgaze.config import DataSettings, differences
from softgaze.data.batches import hash_key, shuffled
from softgaze.data.corpus import Corpus, Pair
from softgaze.data.detector import Detector
from softgaze.data.shards import Ids, LinkedIds, Shards, write_shards
from softgaze.data.tokens import SAMPLE, train_tokenizer
from softgaze.errors import DataError, UsageError
from softgaze.files import fingerprint, new_directory
from softgaze.gaze.alignment import Links
from softgaze.gaze.words import between_spaces
from softgaze.training.links import Linked, LinkFiles, largest_number, piece_links

CHUNK = 4096  # pairs tokenised at once
FACTS = "facts.json"
MEND = "remove {}, and the same command encodes the text again"
LANGUAGE_LINES = 5000  # lines a language that teach the detector


@dataclass(frozen=True)
class Prepared:
    """Everything training reads, opened."""

    tokenizers: Tokenizers
    train: Shards
    dev: Shards
    dev_text: list[Pair]
    detector: Detector
    facts: dict[str, Any]

    @classmethod
    def open(cls, directory: Path) -> "Prepared":
        """From a directory that `prepare` finished."""
        facts = read_facts(directory)
        for name, entry in facts.get("files", {}).items():
            check_encoded(directory, name, entry)
        text = [Pair(*pair) for pair in json.loads((directory / "dev.json").read_text(encoding="utf-8"))]
        detector = Detector.from_json((directory / DETECTOR).read_text(encoding="utf-8"))
        shards = (Shards(directory / "train"), Shards(directory / "dev"))
        return cls(Tokenizers.load(directory), *shards, text, detector, facts)


def prepare(
    directory: Path,
    train: Corpus,
    dev: Corpus | None,
    settings: DataSettings,
    seed: int,
    tokenizers: Tokenizers | None = None,
    guided: LinkFiles | None = None,
) -> Prepared:
    """Fill `directory` unless it is there already; refuse when it was made from something else."""
    made_from = origin(train, dev, settings, seed, guided)
    if (directory / FACTS).exists():
        check_unchanged(read_facts(directory)["made_from"], made_from)
        return Prepared.open(directory)
    count = train.count()
    held_out = frozenset() if dev else choose_held_out(count, settings.held_out, seed)
    tokenizers = tokenizers or learn_tokenizers(train, count, settings)
    with new_directory(directory) as place:
        for name, content in tokenizers.files().items():
            (place / name).write_bytes(content)
        encoder = Encoder(tokenizers, settings.max_length)
        pairs = write_training(place / "train", train, guided, held_out, encoder)
        dropped = encoder.dropped
        dev_text = list(dev) if dev else [pair for number, pair in enumerate(train) if number in held_out]
        dev_pairs = write_shards(place / "dev", encoder.encode(dev_text), encoder.vocabulary)
        check_amount(pairs, dev_pairs, dropped)
        check_links(guided, encoder)
        (place / "dev.json").write_text(json.dumps(dev_text, ensure_ascii=False), encoding="utf-8")
        languages = language_pair(train, settings)
        (place / DETECTOR).write_text(learn_detector(train, languages).to_json(), encoding="utf-8")
        facts = {
            "made_from": made_from,
            "languages": languages,
            "pairs": pairs,
            "left_out": dropped,
            "linked": encoder.linked if guided else None,
            "dev_pairs": dev_pairs,
            "vocabulary": [len(tokenizers.source), len(tokenizers.target)],
            "files": {str(file.relative_to(place)): fingerprint(file) for file in sorted(files_in(place))},
        }
        (place / FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False), encoding="utf-8")
    return Prepared.open(directory)


def read_facts(directory: Path) -> dict[str, Any]:
    """What is known of the encoded text."""
    try:
        facts = json.loads((directory / FACTS).read_text(encoding="utf-8"))
        return {**facts, "made_from": dict(facts["made_from"])}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{directory / FACTS}: cannot be read ({error}); {MEND.format(directory)}") from error


def check_encoded(directory: Path, name: str, entry: dict[str, Any]) -> None:
    """A file of encoded text must be as it was written: training on another text would go unnoticed."""
    try:
        check_file(directory / name, entry, FACTS)
    except DataError as error:
        raise DataError(f"{error}; {MEND.format(directory)}") from error


def files_in(directory: Path) -> Iterator[Path]:
    """At any depth."""
    return (path for path in directory.rglob("*") if path.is_file())


def write_training(
    directory: Path, train: Corpus, guided: LinkFiles | None, held_out: frozenset[int], encoder: "Encoder"
) -> int:
    """Encode what is not held out, with its links if there are any; returns how many pairs."""
    if guided is None:
        kept = (pair for number, pair in enumerate(train) if number not in held_out)
        return write_shards(directory, encoder.encode(kept), encoder.vocabulary)
    linked = (row for number, row in enumerate(guided) if number not in held_out)
    largest = largest_number(encoder.max_length)
    return write_shards(directory, encoder.encode_linked(linked), encoder.vocabulary, largest)


def origin(
    train: Corpus, dev: Corpus | None, settings: DataSettings, seed: int, guided: LinkFiles | None
) -> dict[str, Any]:
    """What prepared data depend on: names may change (a moved run still resumes), contents may not."""
    return {
        "train": list(train.sha256().values()),
        "dev": list(dev.sha256().values()) if dev else None,
        "settings": settings.model_dump(),
        "seed": seed if dev is None else None,
        "guided": guided.sha256() if guided else None,
    }


def check_unchanged(before: dict[str, Any], now: dict[str, Any]) -> None:
    """A run goes on with the text it began with, cut as it was."""
    for side in ("train", "dev", "guided"):
        if before.get(side) != now[side]:
            raise DataError(
                f"the --{side} files are not those this run began with (their sha256 differ); "
                "give the same files, another --out, or --fresh to start over"
            )
    changed = differences(before, now)
    if changed:
        raise UsageError(f"the text was prepared with other settings ({'; '.join(changed)}); use the same ones")


def choose_held_out(count: int, wanted: int, seed: int) -> frozenset[int]:
    """Numbers of the pairs kept for validation: at most a tenth."""
    size = max(1, min(wanted, count // 10))
    return frozenset(shuffled(numpy.arange(size), count, hash_key(seed, 1)).tolist()) if count > 1 else frozenset()


def learn_tokenizers(train: Corpus, count: int, settings: DataSettings) -> Tokenizers:
    """From evenly spaced pairs, so that every part of the text has its say."""
    stride = max(1, 2 * count // SAMPLE)
    if settings.joint:
        both = train_tokenizer(chain.from_iterable(islice(train, 0, None, stride)), settings.vocabulary)
        return Tokenizers(both, both)
    sides = ((pair[side] for pair in islice(train, 0, None, stride)) for side in (0, 1))
    source, target = (train_tokenizer(lines, settings.vocabulary) for lines in sides)
    return Tokenizers(source, target)


def learn_detector(train: Corpus, languages: tuple[str, str]) -> Detector:
    """From the first lines of each side."""
    pairs = list(islice(train, LANGUAGE_LINES))
    return Detector.train({name: [pair[side] for pair in pairs] for side, name in enumerate(languages)})


def language_pair(train: Corpus, settings: DataSettings) -> tuple[str, str]:
    """From the settings, else from the files' endings."""
    source, target = train.languages()
    found = settings.source_language or source or "source", settings.target_language or target or "target"
    if found[0] == found[1]:
        raise UsageError(f"both sides are {found[0]!r}; say which is which with --source-lang and --target-lang")
    return found


def check_amount(pairs: int, dev_pairs: int, dropped: int) -> None:
    """Training needs something to learn from and something to check it on."""
    left_out = f" ({dropped:,} were empty on a side or longer than data.max_length)" if dropped else ""
    if not pairs:
        raise DataError(f"there are no pairs to train on{left_out}")
    if not dev_pairs:
        raise DataError(f"there are no pairs to validate on{left_out}; give --dev SRC TGT, or more text")


def check_links(guided: LinkFiles | None, encoder: "Encoder") -> None:
    """Files without a single link cannot guide."""
    if guided is not None and not encoder.linked:
        names = ", ".join(map(str, guided.paths))
        raise DataError(f"{names}: no pair to train on has a sure link (1-2), so there is nothing to learn from them")


class Encoder:
    """Pairs of text to pairs of ids, leaving out what training cannot use."""

    def __init__(self, tokenizers: Tokenizers, max_length: int) -> None:
        self.tokenizers, self.max_length, self.dropped, self.linked = tokenizers, max_length, 0, 0
        self.vocabulary = max(len(tokenizers.source), len(tokenizers.target))

    def encode(self, pairs: Iterable[Pair]) -> Iterator[Ids]:
        """In order; what is empty or too long on a side is counted and left out."""
        return (ids for ids in self.each(pairs) if ids is not None)

    def encode_linked(self, rows: Iterable[Linked]) -> Iterator[LinkedIds]:
        """The same with links between pieces; pairs that have some are counted."""
        first, second = tee(rows)  # the second is never more than a chunk behind
        for ids, (pair, links) in zip(self.each(pair for pair, _ in first), second, strict=True):
            if ids is not None:
                found = self.piece_links(pair, ids, links) if links else []
                self.linked += bool(found)
                yield *ids, found

    def piece_links(self, pair: Pair, ids: Ids, links: Links) -> list[int]:
        """Links of words as links of the pieces that spell them."""
        sides = zip(pair, ids, (self.tokenizers.source, self.tokenizers.target), strict=True)
        source, target = (between_spaces(text, tokenizer.pieces(own)) for text, own, tokenizer in sides)
        return piece_links(links, source, target) if source and target else []

    def each(self, pairs: Iterable[Pair]) -> Iterator[Ids | None]:
        """In order; None, and counted, where a side is empty or too long."""
        stream = iter(pairs)
        while block := list(islice(stream, CHUNK)):
            sources = self.tokenizers.source.encode([pair.source for pair in block])
            targets = self.tokenizers.target.encode([pair.target for pair in block])
            for source, target in zip(sources, targets, strict=True):
                if 0 < len(source) <= self.max_length and 0 < len(target) <= self.max_length:
                    yield source, target
                else:
                    self.dropped += 1
                    yield None
