"""Preprocessing of a corpus: tokenizers, encoded shards, the validation text and a language detector.

Done once per run. The result stores checksums of its inputs, so that a resumed run detects changed files.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, tee
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softgaze.atomic_io import fingerprint, new_directory
from softgaze.bundle import ALIGNER, DETECTOR, HELD_OUT, Tokenizers, check_file
from softgaze.config import DataSettings, current_names, differences
from softgaze.data.batching import hash_key, permute
from softgaze.data.captions import CaptionCorpus
from softgaze.data.corpus import Corpus, Pair
from softgaze.data.language_id import LanguageDetector
from softgaze.data.shards import EncodedAlignedPair, EncodedPair, Shards, VectorSpec, write_shards
from softgaze.data.tokenizer import SAMPLE, Tokenizer, count_words, normalise, train_tokenizer, train_word_tokenizer
from softgaze.errors import DataError, UsageError
from softgaze.explain.alignment import Links
from softgaze.explain.word_spans import whitespace_word_of
from softgaze.training.alignment_data import AlignmentFiles, Alignments, LearnedAlignments, max_link_value, token_links

FACTS = "facts.json"
FIX = "remove {} and run the same command to encode the text again"
DETECTOR_LINES = 5000  # per language
MAX_MIN_COUNT, MAX_UNKNOWN = 5, 0.05  # highest frequency threshold of words, share of unknown words in the captions
PUNCTUATION, MAX_PUNCTUATED = ".,;:!?", 0.01  # share of words with punctuation: "dog." would be another word than "dog"

AnyCorpus = Corpus | CaptionCorpus


@dataclass(frozen=True)
class PreprocessedData:
    """The inputs of a training run."""

    tokenizers: Tokenizers
    train: Shards
    dev: Shards
    dev_text: list[Pair]
    detector: LanguageDetector | None  # of languages; None if the source is not text
    facts: dict[str, Any]
    aligner: bytes | None = None  # content of the aligner that learned the links, for the bundle

    @property
    def segmentations(self) -> int:
        """The consecutive rows of `train` that are one pair, the most probable segmentation first."""
        return int(self.facts["made_from"]["settings"]["segmentations"])

    @classmethod
    def open(cls, directory: Path) -> "PreprocessedData":
        """Open a directory that `preprocess` wrote; raise a `DataError` if a file has changed."""
        facts = read_facts(directory)
        for name, entry in facts.get("files", {}).items():
            try:
                check_file(directory / name, entry, FACTS)
            except DataError as error:
                raise DataError(f"{error}; {FIX.format(directory)}") from error
        dev_text = [Pair(*pair) for pair in json.loads((directory / HELD_OUT.name).read_text(encoding="utf-8"))]
        path = directory / DETECTOR
        detector = LanguageDetector.from_json(path.read_text(encoding="utf-8")) if path.exists() else None
        train, dev = Shards(directory / "train"), Shards(directory / "dev")
        aligner = (directory / ALIGNER).read_bytes() if (directory / ALIGNER).exists() else None
        tokenizers = Tokenizers.load(directory)
        if tokenizers.languages is not None:
            tokenizers = tokenizers.with_languages(*facts["languages"])
        return cls(tokenizers, train, dev, dev_text, detector, facts, aligner)


def preprocess(
    directory: Path,
    train: AnyCorpus,
    dev: AnyCorpus | None,
    settings: DataSettings,
    seed: int,
    tokenizers: Tokenizers | None = None,
    guided: Alignments | None = None,
    on_unreadable: Callable[[DataError], None] = lambda error: None,
    mix: Corpus | None = None,
    init: str | None = None,
) -> PreprocessedData:
    """Fill `directory`, or open it if it was made from the same inputs.

    A source file that cannot be read is left out and reported to `on_unreadable`. `init` is the SHA-256 of the weights
    that training starts from. The pairs of `mix` follow the training pairs in the same shards.
    """
    inputs = inputs_of(train, dev, settings, seed, guided, mix, init)
    if (directory / FACTS).exists():
        check_unchanged(read_facts(directory)["made_from"], inputs)
        return PreprocessedData.open(directory)
    if settings.segmentations > 1 and train.processor is not None:
        raise UsageError("data.segmentations samples subwords of both sides; images and features have none")
    held_out = (
        frozenset() if dev else train.pairs_with_sources(choose_held_out(train.num_sources(), settings.held_out, seed))
    )
    tokenizers = tokenizers or train_tokenizers(train, settings)
    languages = language_pair(train, settings)
    if (known := tokenizers.languages) is not None:  # "en" may stand for en_XX
        languages = (
            known.match("source", languages[0]) or languages[0],
            known.match("target", languages[1]) or languages[1],
        )
    with new_directory(directory) as temporary:
        for name, content in tokenizers.files().items():
            (temporary / name).write_bytes(content)
        encoder = PairEncoder(tokenizers, settings.max_length, on_unreadable)
        sampling = Sampling(settings.segmentations - 1, seed)
        rows: Iterator[EncodedPair | EncodedAlignedPair]
        if guided is None:
            rows = encoder.encode((pair for index, pair in enumerate(train) if index not in held_out), sampling)
        else:
            linked = (row for index, row in enumerate(guided) if index not in held_out)
            rows = encoder.encode_linked(linked, sampling)
        general = encoder.encode_mixed(mix or (), with_links=guided is not None)
        max_value = max_link_value(settings.max_length) if guided is not None else None
        written = encoder.write(temporary / "train", chain(rows, general), max_value)
        train_pairs = (written - encoder.mixed) // settings.segmentations
        dropped = encoder.dropped
        dev_text = list(dev) if dev else [pair for index, pair in enumerate(train) if index in held_out]
        dev_pairs = encoder.write(temporary / "dev", encoder.encode(dev_text))
        dev_text = [pair for pair in dev_text if pair.source not in encoder.unreadable]
        check_not_empty(train_pairs, dev_pairs, dropped)
        if mix is not None and not encoder.mixed:
            raise DataError(f"{mix.paths[0]}: --mix has no pairs of usable length")
        if isinstance(guided, AlignmentFiles) and not encoder.linked:
            names = ", ".join(map(str, guided.paths))
            raise DataError(f"{names}: no training pair has a sure link (1-2), so there is nothing to learn")
        (temporary / HELD_OUT.name).write_text(json.dumps(dev_text, ensure_ascii=False), encoding="utf-8")
        if isinstance(guided, LearnedAlignments) and encoder.linked:
            (temporary / ALIGNER).write_bytes(guided.aligner.to_bytes())
        if train.processor is None:
            (temporary / DETECTOR).write_text(train_detector(train, languages).to_json(), encoding="utf-8")
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        facts = {
            "made_from": inputs,
            "languages": languages,
            "pairs": train_pairs,
            "mixed": encoder.mixed,
            "left_out": dropped,
            "unreadable": len(encoder.unreadable),
            "linked": encoder.linked if guided else None,
            "dev_pairs": dev_pairs,
            "vocabulary": [len(tokenizers.source), len(tokenizers.target)],
            "files": {str(path.relative_to(temporary)): fingerprint(path) for path in files},
        }
        (temporary / FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False), encoding="utf-8")
    return PreprocessedData.open(directory)


def read_facts(directory: Path) -> dict[str, Any]:
    try:
        facts = json.loads((directory / FACTS).read_text(encoding="utf-8"))
        inputs = dict(facts["made_from"])
        settings = current_names({"data": inputs["settings"]})["data"]
        # An earlier version may have had fewer settings, and did what their defaults do.
        return {**facts, "made_from": inputs | {"settings": DataSettings().model_dump() | settings}}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{directory / FACTS}: cannot be read ({error}); {FIX.format(directory)}") from error


def inputs_of(
    train: AnyCorpus,
    dev: AnyCorpus | None,
    settings: DataSettings,
    seed: int,
    guided: Alignments | None,
    mix: Corpus | None,
    init: str | None,
) -> dict[str, Any]:
    """Return everything the result depends on. File names are not included, so that a moved run can resume."""
    return {
        **({"reader": train.processor.model.decode()} if train.processor else {}),
        "train": list(train.sha256().values()),
        "dev": list(dev.sha256().values()) if dev else None,
        "settings": settings.model_dump(),
        "seed": seed if dev is None or settings.segmentations > 1 else None,
        "guided": guided.sha256() if guided else None,
        "mix": list(mix.sha256().values()) if mix else None,
        "init": init,
    }


def check_unchanged(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise an error if a run would resume with other text or data settings."""
    for name in ("train", "dev", "guided", "mix", "init"):
        if before.get(name) != now[name]:
            raise DataError(
                f"the --{name} files are not those this run started with (their sha256 differ); "
                "give the same files, another --out, or --fresh to start over"
            )
    changed = differences(before, now)
    if changed:
        raise UsageError(f"the text was encoded with other settings ({'; '.join(changed)}); use the same ones")


def choose_held_out(count: int, wanted: int, seed: int) -> frozenset[int]:
    """Return the indices of the pairs held out for validation, at most a tenth of all."""
    size = max(1, min(wanted, count // 10))
    return frozenset(permute(np.arange(size), count, hash_key(seed, 1)).tolist()) if count > 1 else frozenset()


def train_tokenizers(train: AnyCorpus, settings: DataSettings) -> Tokenizers:
    """Train SentencePiece on evenly spaced pairs, so that every part of the text is represented."""
    stride = max(1, 2 * train.count() // SAMPLE)
    if train.processor is not None:
        captions = [pair.target for pair in islice(train, 0, None, stride)]
        has_photos = train.processor.backbone is not None
        return Tokenizers(train.processor, train_caption_tokenizer(captions, settings, has_photos=has_photos))
    if settings.joint:
        joint = train_tokenizer(chain.from_iterable(islice(train, 0, None, stride)), settings.vocabulary)
        return Tokenizers(joint, joint)
    sides = ((pair[side] for pair in islice(train, 0, None, stride)) for side in (0, 1))
    source, target = (train_tokenizer(lines, settings.vocabulary) for lines in sides)
    return Tokenizers(source, target)


def train_caption_tokenizer(captions: list[str], settings: DataSettings, *, has_photos: bool) -> Tokenizer:
    """Train a tokenizer of whole words or of subwords; open settings choose frequent words for photos."""
    min_count = settings.min_count
    if min_count is None:
        min_count = choose_min_count(captions) if has_photos and settings.vocabulary is None else 0
    return train_word_tokenizer(captions, min_count) if min_count else train_tokenizer(captions, settings.vocabulary)


def choose_min_count(captions: Iterable[str]) -> int:
    """Return the highest count up to 5 that leaves few words unknown; 0, for subwords, if words end in punctuation.

    Subwords of a few hundred captions are single letters, from which a captioner composes words that do not exist.
    """
    counts = count_words(map(normalise, captions))
    total = sum(counts.values())
    if sum(count for word, count in counts.items() if word[-1] in PUNCTUATION) > MAX_PUNCTUATED * total:
        return 0
    rare = {limit: sum(count for count in counts.values() if count < limit) for limit in range(1, MAX_MIN_COUNT + 1)}
    return max(limit for limit, unknown in rare.items() if unknown <= MAX_UNKNOWN * total)


def train_detector(train: AnyCorpus, languages: tuple[str, str]) -> LanguageDetector:
    """Train a language detector on the first lines of each side."""
    pairs = list(islice(train, DETECTOR_LINES))
    return LanguageDetector.train({name: [pair[side] for pair in pairs] for side, name in enumerate(languages)})


def language_pair(train: AnyCorpus, settings: DataSettings) -> tuple[str, str]:
    """Return the language codes of the settings, else of the file endings."""
    source, target = train.languages()
    pair = settings.source_language or source or "source", settings.target_language or target or "target"
    if pair[0] == pair[1]:
        raise UsageError(f"both sides have the language {pair[0]!r}; set --source-lang and --target-lang")
    return pair


def check_not_empty(train_pairs: int, dev_pairs: int, dropped: int) -> None:
    """Raise a `DataError` if there is nothing to train or validate on."""
    why = "an empty side, more tokens than data.max_length or a file that cannot be read"
    left_out = f" ({dropped:,} were left out: {why})" if dropped else ""
    if not train_pairs:
        raise DataError(f"there are no pairs to train on{left_out}")
    if not dev_pairs:
        raise DataError(f"there are no pairs to validate on{left_out}; give --dev SRC TGT, or more text")


class Sampling(NamedTuple):
    """How many segmentations of each pair are sampled, and the seed."""

    draws: int = 0
    seed: int = 0


class PairEncoder:
    """Encodes pairs of text as token ids, and counts the pairs it leaves out."""

    def __init__(self, tokenizers: Tokenizers, max_length: int, on_unreadable: Callable[[DataError], None]) -> None:
        self.tokenizers, self.max_length, self.on_unreadable = tokenizers, max_length, on_unreadable
        self.dropped, self.linked, self.mixed = 0, 0, 0
        self.unreadable: set[str] = set()

    def write(
        self, directory: Path, rows: Iterable[EncodedPair | EncodedAlignedPair], max_link_value: int | None = None
    ) -> int:
        """Write encoded pairs as shards; return their number."""
        source, target = self.tokenizers.source, self.tokenizers.target
        if source.vector_dtype is None:
            return write_shards(directory, rows, max(len(source), len(target)), max_link_value)
        return write_shards(directory, rows, len(target), max_link_value, VectorSpec(source.vector_dtype, len(source)))

    def encode(self, pairs: Iterable[Pair], sampling: Sampling = Sampling()) -> Iterator[EncodedPair]:
        """Yield the token ids of the usable pairs, in order, with all segmentations of a pair in a row."""
        return chain.from_iterable(self._encode_all(pairs, sampling))

    def encode_linked(
        self, rows: Iterable[tuple[Pair, Links]], sampling: Sampling = Sampling()
    ) -> Iterator[EncodedAlignedPair]:
        """Yield the token ids and token links of the usable pairs as `encode` does; count the pairs with links."""
        first, second = tee(rows)  # the second is at most a block behind
        encoded = self._encode_all((pair for pair, _ in first), sampling)
        for segmentations, (pair, links) in zip(encoded, second, strict=True):
            with_links = [(*ids, self._token_links(pair, ids, links) if links else []) for ids in segmentations]
            self.linked += any(triples for *_, triples in with_links)
            yield from with_links

    def _token_links(self, pair: Pair, ids: EncodedPair, links: Links) -> list[int]:
        """Convert the links of a pair for one segmentation; none if its tokens do not spell the words."""
        sides = zip(pair, ids, (self.tokenizers.source, self.tokenizers.target), strict=True)
        source, target = (whitespace_word_of(text, tokenizer.pieces(side)) for text, side, tokenizer in sides)
        return token_links(links, source, target) if source and target else []

    def encode_mixed(self, pairs: Iterable[Pair], *, with_links: bool) -> Iterator[EncodedPair | EncodedAlignedPair]:
        """Yield the usable general-domain pairs, which have no links, and count them."""
        for ids in self.encode(pairs):
            self.mixed += 1
            yield (*ids, []) if with_links else ids

    def _encode_all(self, pairs: Iterable[Pair], sampling: Sampling = Sampling()) -> Iterator[list[EncodedPair]]:
        """Yield the segmentations of each pair, in order; none of a pair with an unreadable, empty or too long side."""
        stream, reader = iter(pairs), self.tokenizers.source
        max_items = reader.max_items(self.max_length)

        def fits(source: Sequence[Any], target: Sequence[int]) -> bool:
            return 0 < len(source) <= max_items and 0 < len(target) <= self.max_length

        for number in count():
            block = list(islice(stream, reader.batch_size))
            if not block:
                return
            sources = reader.try_encode([pair.source for pair in block], self.on_unreadable)
            targets = self.tokenizers.target.encode([pair.target for pair in block])
            sampled = [self._sample(block, hash_key(sampling.seed, number, draw)) for draw in range(sampling.draws)]
            for row, (pair, source, target) in enumerate(zip(block, sources, targets, strict=True)):
                if source is None:
                    self.unreadable.add(pair.source)
                if source is not None and fits(source, target):
                    others = (draw[row] for draw in sampled)
                    yield [(source, target), *(ids if fits(*ids) else (source, target) for ids in others)]
                else:
                    self.dropped += 1
                    yield []

    def _sample(self, block: list[Pair], seed: int) -> list[EncodedPair]:
        """Return a random segmentation of both sides of each pair."""
        reader = self.tokenizers.source
        assert isinstance(reader, Tokenizer)  # `preprocess` checked
        sources = reader.sample([pair.source for pair in block], hash_key(seed, 0))
        return list(
            zip(sources, self.tokenizers.target.sample([pair.target for pair in block], hash_key(seed, 1)), strict=True)
        )
