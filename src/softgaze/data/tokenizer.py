"""SentencePiece tokenizer, trained on the user's own text.

Decoding returns the encoded text up to `normalise` (Unicode NFC, white space as single spaces) and one limit of
SentencePiece: a literal "▁" (U+2581) becomes a space. Unknown characters are encoded as bytes. Text never becomes a
special token.
"""

import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece

from softgaze.data.processors import Processor
from softgaze.errors import DataError, OnError
from softgaze.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

SAMPLE = 200_000  # lines to train on, evenly spaced: more change little and cost memory
MAX_VOCABULARY = 32_000
WHOLE_WORDS = 4_000  # frequent words that may all become pieces
NUM_BYTES = 256
NUM_THREADS = 4  # not the number of cores: the same text gives the same vocabulary on every machine


def normalise(text: str) -> str:
    """Return the text in NFC, so that both encodings of Hangul are equal, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


class Tokenizer(Processor):
    """A SentencePiece model."""

    kind, file, is_text = "text", "tokenizer.source.model", True

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.sentencepiece = sentencepiece.SentencePieceProcessor(model_proto=model)
        special = tuple(getattr(self.sentencepiece, f"{name}_id")() for name in ("pad", "unk", "bos", "eos"))
        if special != SPECIAL_TOKENS:
            raise DataError(f"expected special tokens {SPECIAL_TOKENS} (pad, unk, bos, eos), got {special}")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Load a SentencePiece model file."""
        try:
            return cls(path.read_bytes())
        except (DataError, OSError, RuntimeError) as error:
            raise DataError(f"{path}: not a readable tokenizer: {' '.join(str(error).split())}") from error

    def __len__(self) -> int:
        return int(self.sentencepiece.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without BOS and EOS."""
        normalised = [normalise(text) for text in texts]
        for text in normalised:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                why = f"character {error.start + 1} is a lone surrogate"
                raise DataError(f"the text is not valid Unicode: {why}") from error
        ids: list[list[int]] = self.sentencepiece.encode(normalised)
        return ids

    def try_encode(self, sources: Sequence[str], on_error: OnError) -> list[list[int]]:
        return self.encode(sources)

    def add_eos(self, items: Any) -> Any:
        return (*items, EOS)

    def strip_eos(self, items: Any) -> Any:
        return items[:-1]

    def max_items(self, trained: int) -> int:
        """Return the trained length: longer texts are split."""
        return trained

    def occlude(self, items: Sequence[int], positions: Sequence[int]) -> list[int]:
        return [token for position, token in enumerate(items) if position not in positions]

    def describe(self) -> str:
        return f"{len(self):,} subwords"

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        text: str = self.sentencepiece.decode([token for token in ids if token not in SPECIAL_TOKENS])
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id; "▁" marks the start of a word."""
        vocabulary = self.vocabulary
        return [vocabulary[token] for token in ids]

    @cached_property
    def vocabulary(self) -> list[str]:
        """Return the piece of every id; a SentencePiece call per id would take a microsecond."""
        return [self.sentencepiece.id_to_piece(token) for token in range(len(self))]

    @cached_property
    def piece_ids(self) -> dict[str, int]:
        return {piece: token for token, piece in enumerate(self.vocabulary)}


def train_tokenizer(lines: Iterable[str], size: int | None = None) -> Tokenizer:
    """Train a unigram model; the text determines the vocabulary size unless `size` is given."""
    sample = [text for text in map(normalise, islice(lines, SAMPLE)) if text]
    if not sample:
        raise DataError("no text to train a tokenizer on: every line is empty")
    smallest = len(SPECIAL_TOKENS) + NUM_BYTES + len(set().union(*map(set, sample))) + 64
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            # SentencePiece rejects its own space mark in training text.
            sentence_iterator=(text.replace("\u2581", " ") for text in sample),
            model_writer=model,
            vocab_size=max(size or suggested_size(sample), smallest),
            hard_vocab_limit=False,  # a small text has fewer useful pieces
            model_type="unigram",
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            character_coverage=0.9999,
            byte_fallback=True,
            max_sentence_length=1 << 16,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=NUM_THREADS,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise DataError(f"SentencePiece cannot train on this text: {error}") from error
    return Tokenizer(model.getvalue())


def suggested_size(sample: Iterable[str]) -> int:
    """Return the number of words seen at least twice, beyond 4,000 only a quarter of them, at most 32,000.

    This gives about 7,500 for Multi30k, where every piece costs time in the loss. Small texts profit from whole words:
    on the phrasebook, three times the pieces raised a tiny Transformer from 42 % to 77 % exactly correct held-out
    sentences in the same training time.
    """
    counts: Counter[str] = Counter()
    for text in sample:
        counts.update(text.split())
    repeated = sum(1 for count in counts.values() if count > 1)
    return min(MAX_VOCABULARY, repeated - max(0, repeated - WHOLE_WORDS) * 3 // 4)
