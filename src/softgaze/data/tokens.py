"""Text ↔ subword ids with SentencePiece, trained on the user's own text.

Round trip: text comes back as it went in, up to the stated normalisation (`normalise`: Unicode NFC, runs of white space
become one space, none at the ends) and one limit of SentencePiece: a literal "▁" (U+2581) comes back as a space.
Characters never seen in training are spelled in bytes. Typed text never becomes a special token.
"""

import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece

from softgaze.data.readers import Complain, Reader
from softgaze.errors import DataError
from softgaze.symbols import BEGIN, END, PAD, SPECIAL, UNKNOWN

SAMPLE = 200_000  # lines that decide the vocabulary, evenly spaced; more change little and cost memory
LARGEST = 32_000
WHOLE_WORDS = 4_000  # as many words as may be pieces of their own
BYTES = 256
THREADS = 4  # a constant, not the machine's cores: the same text gives the same vocabulary everywhere


def check_text(text: str) -> None:
    """Half a character, as Python can hold and UTF-8 cannot write, is no text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text cannot be written as UTF-8: character {error.start + 1} is half of a pair (a lone surrogate)"
        ) from error


def normalise(text: str) -> str:
    """NFC, so that Hangul typed as letters equals Hangul typed as syllables, and plain single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


class Tokenizer(Reader):
    """One SentencePiece model."""

    kind, file, spells = "text", "tokenizer.source.model", True

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.pieces_of = sentencepiece.SentencePieceProcessor(model_proto=model)
        special = (self.pieces_of.pad_id(), self.pieces_of.unk_id(), self.pieces_of.bos_id(), self.pieces_of.eos_id())
        if special != SPECIAL:
            raise DataError(f"the tokenizer numbers its special tokens {special}; softgaze needs {SPECIAL}")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """From a file that `model` was written to."""
        try:
            return cls(path.read_bytes())
        except (DataError, OSError, RuntimeError) as error:
            raise DataError(f"{path}: is no tokenizer that can be read: {' '.join(str(error).split())}") from error

    def __len__(self) -> int:
        return int(self.pieces_of.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without BEGIN and END. An empty text has none."""
        normal = [normalise(text) for text in texts]
        for text in normal:
            check_text(text)
        ids: list[list[int]] = self.pieces_of.encode(normal)
        return ids

    def survey(self, sources: Sequence[str], complain: Complain) -> list[list[int]]:
        """The ids of each text: all can be read."""
        return self.encode(sources)

    def closed(self, items: Any) -> Any:
        """As every model reads a source, in training and after: its subwords, then END."""
        return (*items, END)

    def opened(self, items: Any) -> Any:
        """Without its END."""
        return items[:-1]

    def most(self, trained: int) -> int:
        """As many as the model was trained for."""
        return trained

    def without(self, items: Sequence[int], places: Sequence[int]) -> list[int]:
        """The others."""
        return [token for place, token in enumerate(items) if place not in places]

    def describe(self) -> str:
        """How text is cut."""
        return f"{len(self):,} subwords"

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special ones have none."""
        text: str = self.pieces_of.decode([number for number in ids if number not in SPECIAL])
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """How each id is written; "▁" marks the start of a word."""
        names = self.names
        return [names[number] for number in ids]

    @cached_property
    def names(self) -> list[str]:
        """The piece of every id, asked for once: SentencePiece takes a microsecond for each."""
        return [self.pieces_of.id_to_piece(number) for number in range(len(self))]

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of every piece."""
        return {piece: number for number, piece in enumerate(self.names)}


def train_tokenizer(lines: Iterable[str], size: int | None = None) -> Tokenizer:
    """Learn subwords (unigram) from `lines`; the size follows from the text unless given."""
    sample = [text for text in map(normalise, islice(lines, SAMPLE)) if text]
    if not sample:
        raise DataError("there is no text to learn subwords from: every line is empty")
    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=visible(sample),
            model_writer=written,
            vocab_size=max(size or suggested_size(sample), smallest_size(sample)),
            hard_vocab_limit=False,  # a small text has fewer good pieces than asked for
            model_type="unigram",
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            character_coverage=0.9999,
            byte_fallback=True,
            max_sentence_length=1 << 16,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            num_threads=THREADS,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise DataError(f"SentencePiece could not learn subwords from this text: {error}") from error
    return Tokenizer(written.getvalue())


def visible(sample: Iterable[str]) -> Iterator[str]:
    """SentencePiece refuses its own space mark in training text, where it would be a space anyway."""
    return (text.replace("\u2581", " ") for text in sample)


def suggested_size(sample: Iterable[str]) -> int:
    """Every word seen at least twice, but beyond the first 4,000 only a quarter, and never more than 32,000.

    About 7,500 for Multi30k, where every piece costs time in the loss. A small text wants whole words: on the
    phrasebook, three times the pieces took a tiny Transformer from 42 to 77 per cent of held-out sentences exactly
    right in the same time.
    """
    counts: Counter[str] = Counter()
    for text in sample:
        counts.update(text.split())
    repeated = sum(1 for count in counts.values() if count > 1)
    return min(LARGEST, repeated - max(0, repeated - WHOLE_WORDS) * 3 // 4)


def smallest_size(sample: Iterable[str]) -> int:
    """Room for the special tokens, the bytes, every character, and a few pieces."""
    characters = set().union(*map(set, sample))
    return len(SPECIAL) + BYTES + len(characters) + 64
