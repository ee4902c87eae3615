"""Files with captions as pairs to train on: what `Corpus` is for text. The source of a pair is the path of its file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from softgaze.data.captions import Captioned, Complain, survey
from softgaze.data.corpus import Languages, Pair, Part, is_language, sha256_of
from softgaze.data.features import ENDINGS
from softgaze.data.readers import Features, FileReader
from softgaze.errors import DataError


@dataclass(frozen=True)
class Album:
    """Pictures, or other files, each with one or more captions."""

    folder: Path
    captions: Path
    entries: tuple[Captioned, ...]
    reader: FileReader
    parts: ClassVar[tuple[Part, ...]] = ()  # of text

    @classmethod
    def of(cls, folder: Path, captions: Path, reader: FileReader, complain: Complain) -> "Album":
        """From a folder and a file of captions; `complain` is told of every row that cannot be used."""
        return cls(folder, captions, survey(folder, captions, complain), reader)

    @classmethod
    def of_features(cls, folder: Path, captions: Path, complain: Complain) -> "Album":
        """Of arrays and sounds, whose frames are as wide as those of the first that can be read."""
        entries = survey(folder, captions, complain)
        return cls(folder, captions, entries, first_reader(entries, complain))

    def beside(self, folder: Path, captions: Path, complain: Complain) -> "Album":
        """Another album whose files are read in the same way."""
        return Album.of(folder, captions, self.reader, complain)

    def __iter__(self) -> Iterator[Pair]:
        return (Pair(str(entry.image), text) for entry in self.entries for text in entry.captions)

    def count(self) -> int:
        """How many pairs."""
        return len(self.owners)

    @cached_property
    def owners(self) -> Sequence[int]:
        """Of each pair, the number of its file."""
        return [number for number, entry in enumerate(self.entries) for _ in entry.captions]

    def sources(self) -> int:
        """How many files."""
        return len(self.entries)

    def pairs_of(self, sources: frozenset[int]) -> frozenset[int]:
        """The numbers of all pairs of some files."""
        return frozenset(number for number, owner in enumerate(self.owners) if owner in sources)

    def sha256(self) -> dict[Path, str]:
        """Of the captions, and of the names and sizes of the files: hashing gigabytes of photos would take minutes."""
        names = [(str(entry.image.relative_to(self.folder)), entry.image.stat().st_size) for entry in self.entries]
        return {self.captions: sha256_of(self.captions), self.folder: sha256(repr(sorted(names)).encode()).hexdigest()}

    def languages(self) -> Languages:
        """What the files are, and the language of the captions if their name tells it: `train.en.csv`."""
        codes = [suffix[1:] for suffix in self.captions.suffixes[:-1] if is_language(suffix[1:])]
        return self.reader.kind, codes[-1] if codes else None


def first_reader(entries: Sequence[Captioned], complain: Complain) -> Features:
    """What reads all of them, if they are like the first that can be read at all."""
    for entry in entries:
        try:
            return Features.like(entry.image)
        except DataError as error:
            complain(error)
    raise DataError(f"none of the {len(entries):,} files can be read as features ({', '.join(ENDINGS)})")
