"""From pairs to a directory that training reads: tokenizers, encoded shards, the validation text, a detector.

Done once for a run. What it was made from is written beside it, so that a resumed run knows whether it still fits.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any

import numpy

from softgaze.bundle import DETECTOR, Tokenizers, check_file
from softgaze.config import DataSettings, differences
from softgaze.data.album import Album
from softgaze.data.batches import hash_key, shuffled
from softgaze.data.corpus import Corpus, Pair
from softgaze.data.detector import Detector
from softgaze.data.shards import Ids, LinkedIds, Shards, Vectors, write_shards
from softgaze.data.tokens import SAMPLE, train_tokenizer
from softgaze.errors import DataError, UsageError
from softgaze.files import fingerprint, new_directory
from softgaze.gaze.alignment import Links
from softgaze.gaze.words import between_spaces
from softgaze.training.links import Linked, LinkFiles, largest_number, piece_links

FACTS = "facts.json"
MEND = "remove {}, and the same command encodes the text again"
LANGUAGE_LINES = 5000  # lines a language that teach the detector

Pairs = Corpus | Album  # which of them is never asked: both tell the same things


@dataclass(frozen=True)
class Prepared:
    """Everything training reads, opened."""

    tokenizers: Tokenizers
    train: Shards
    dev: Shards
    dev_text: list[Pair]
    detector: Detector | None  # of languages, where both sides have one
    facts: dict[str, Any]

    @classmethod
    def open(cls, directory: Path) -> "Prepared":
        """From a directory that `prepare` finished."""
        facts = read_facts(directory)
        for name, entry in facts.get("files", {}).items():
            check_encoded(directory, name, entry)
        text = [Pair(*pair) for pair in json.loads((directory / "dev.json").read_text(encoding="utf-8"))]
        path = directory / DETECTOR
        detector = Detector.from_json(path.read_text(encoding="utf-8")) if path.exists() else None
        shards = (Shards(directory / "train"), Shards(directory / "dev"))
        return cls(Tokenizers.load(directory), *shards, text, detector, facts)


def prepare(
    directory: Path,
    train: Pairs,
    dev: Pairs | None,
    settings: DataSettings,
    seed: int,
    tokenizers: Tokenizers | None = None,
    guided: LinkFiles | None = None,
    complain: Callable[[DataError], None] = lambda error: None,
) -> Prepared:
    """Fill `directory` unless it is there already; refuse when it was made from something else.

    A source that cannot be read is left out, and `complain` is told why.
    """
    made_from = origin(train, dev, settings, seed, guided)
    if (directory / FACTS).exists():
        check_unchanged(read_facts(directory)["made_from"], made_from)
        return Prepared.open(directory)
    held_out = frozenset() if dev else train.pairs_of(choose_held_out(train.sources(), settings.held_out, seed))
    tokenizers = tokenizers or learn_tokenizers(train, train.count(), settings)
    with new_directory(directory) as place:
        for name, content in tokenizers.files().items():
            (place / name).write_bytes(content)
        encoder = Encoder(tokenizers, settings.max_length, complain)
        pairs = write_training(place / "train", train, guided, held_out, encoder)
        dropped = encoder.dropped
        dev_text = list(dev) if dev else [pair for number, pair in enumerate(train) if number in held_out]
        dev_pairs = encoder.write(place / "dev", encoder.encode(dev_text))
        dev_text = [pair for pair in dev_text if pair.source not in encoder.unreadable]
        check_amount(pairs, dev_pairs, dropped)
        check_links(guided, encoder)
        (place / "dev.json").write_text(json.dumps(dev_text, ensure_ascii=False), encoding="utf-8")
        languages = language_pair(train, settings)
        if train.reader is None:
            (place / DETECTOR).write_text(learn_detector(train, languages).to_json(), encoding="utf-8")
        facts = {
            "made_from": made_from,
            "languages": languages,
            "pairs": pairs,
            "left_out": dropped,
            "unreadable": len(encoder.unreadable),
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
    directory: Path, train: Pairs, guided: LinkFiles | None, held_out: frozenset[int], encoder: "Encoder"
) -> int:
    """Encode what is not held out, with its links if there are any; returns how many pairs."""
    if guided is None:
        kept = (pair for number, pair in enumerate(train) if number not in held_out)
        return encoder.write(directory, encoder.encode(kept))
    linked = (row for number, row in enumerate(guided) if number not in held_out)
    return encoder.write(directory, encoder.encode_linked(linked), largest_number(encoder.max_length))


def origin(
    train: Pairs, dev: Pairs | None, settings: DataSettings, seed: int, guided: LinkFiles | None
) -> dict[str, Any]:
    """What prepared data depend on: names may change (a moved run still resumes), contents may not."""
    read = {"reader": train.reader.model.decode()} if train.reader else {}
    return {
        **read,
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


def learn_tokenizers(train: Pairs, count: int, settings: DataSettings) -> Tokenizers:
    """From evenly spaced pairs, so that every part of the text has its say."""
    stride = max(1, 2 * count // SAMPLE)
    if train.reader is not None:
        captions = (pair.target for pair in islice(train, 0, None, stride))
        return Tokenizers(train.reader, train_tokenizer(captions, settings.vocabulary))
    if settings.joint:
        both = train_tokenizer(chain.from_iterable(islice(train, 0, None, stride)), settings.vocabulary)
        return Tokenizers(both, both)
    sides = ((pair[side] for pair in islice(train, 0, None, stride)) for side in (0, 1))
    source, target = (train_tokenizer(lines, settings.vocabulary) for lines in sides)
    return Tokenizers(source, target)


def learn_detector(train: Pairs, languages: tuple[str, str]) -> Detector:
    """From the first lines of each side."""
    pairs = list(islice(train, LANGUAGE_LINES))
    return Detector.train({name: [pair[side] for pair in pairs] for side, name in enumerate(languages)})


def language_pair(train: Pairs, settings: DataSettings) -> tuple[str, str]:
    """From the settings, else from the files' endings."""
    source, target = train.languages()
    found = settings.source_language or source or "source", settings.target_language or target or "target"
    if found[0] == found[1]:
        raise UsageError(f"both sides are {found[0]!r}; say which is which with --source-lang and --target-lang")
    return found


def check_amount(pairs: int, dev_pairs: int, dropped: int) -> None:
    """Training needs something to learn from and something to check it on."""
    why = "empty on a side, longer than data.max_length or could not be read"
    left_out = f" ({dropped:,} were {why})" if dropped else ""
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

    def __init__(self, tokenizers: Tokenizers, max_length: int, complain: Callable[[DataError], None]) -> None:
        self.tokenizers, self.max_length, self.dropped, self.linked = tokenizers, max_length, 0, 0
        self.complain, self.unreadable = complain, set[str]()

    def write(self, directory: Path, rows: Iterable[Ids | LinkedIds], largest_link: int | None = None) -> int:
        """Keep what was encoded; returns how many pairs."""
        source, target = self.tokenizers.source, self.tokenizers.target
        if source.vectors is None:
            return write_shards(directory, rows, max(len(source), len(target)), largest_link)
        return write_shards(directory, rows, len(target), largest_link, Vectors(source.vectors, len(source)))

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
        stream, reader = iter(pairs), self.tokenizers.source
        longest = reader.most(self.max_length)
        while block := list(islice(stream, reader.together)):
            sources = reader.survey([pair.source for pair in block], self.complain)
            targets = self.tokenizers.target.encode([pair.target for pair in block])
            for pair, source, target in zip(block, sources, targets, strict=True):
                if source is None:
                    self.unreadable.add(pair.source)
                if source is not None and 0 < len(source) <= longest and 0 < len(target) <= self.max_length:
                    yield source, target
                else:
                    self.dropped += 1
                    yield None
