"""Source processors, and that of text: SentencePiece, trained on the user's own text or that of an imported model.

A processor turns a source, given as a string, into the ids or vectors that a model reads. Batching, training, search
and attention use the interface of `Processor` only. `softgaze.data.processors` has those of files.

Decoding returns the encoded text up to `normalise` (Unicode NFC, white space as single spaces) and one limit of
SentencePiece: a literal "▁" (U+2581) becomes a space. Unknown characters are encoded as bytes. Text never becomes a
special token. An imported model normalises text in its own way and may have unknown characters.
"""

import copy
import io
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import sentencepiece

from softgaze.errors import DataError, OnError, UsageError, did_you_mean
from softgaze.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

if TYPE_CHECKING:
    from softgaze.data.images import Photo

PROCESSOR_FILE = "reader.json"  # in a bundle, for sources that are not text
SAMPLE = 200_000  # lines to train on, evenly spaced: more change little and cost memory
MAX_VOCABULARY = 32_000
WHOLE_WORDS = 4_000  # frequent words that may all become pieces
NUM_BYTES = 256
NUM_THREADS = 4  # not the number of cores: the same text gives the same vocabulary on every machine
SAMPLING_ALPHA = 0.2  # smoothing of sampled segmentations: 0 makes all equally likely, large values the best one
PARALLEL_TEXTS = 256  # fewer are encoded before threads have started


def normalise(text: str) -> str:
    """Return the text in NFC, so that both encodings of Hangul are equal, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


class Processor(ABC):
    """The interface of all source processors. Defaults are those of sources that are not text."""

    kind: ClassVar[str]  # "text", "image" or "features"
    file: ClassVar[str]  # file name in a bundle
    model: bytes  # content of that file
    is_text: ClassVar = False
    vector_dtype: ClassVar[str | None] = None  # None: items are ids
    backbone: str | None = None  # name of the frozen network whose features are the items
    batch_size: ClassVar = 4096  # sources encoded at once

    @abstractmethod
    def __len__(self) -> int:
        """Return the vocabulary size, or the width of the vectors."""

    @abstractmethod
    def encode(self, sources: Sequence[str]) -> list[Any]:
        """Return the items of each source; raise a `DataError` for the first that cannot be read."""

    @abstractmethod
    def try_encode(self, sources: Sequence[str], on_error: OnError) -> list[Any]:
        """Return the items of each source, None for one that cannot be read, whose error goes to `on_error`."""

    @abstractmethod
    def pieces(self, items: Sequence[Any]) -> list[str]:
        """Return the label of each item: its subword, or its position."""

    def decode(self, items: Sequence[Any]) -> str:
        """Return the text of items; empty unless the source is text."""
        return ""

    @abstractmethod
    def occlude(self, items: Sequence[Any], positions: Sequence[int]) -> Any:
        """Return the items with those at `positions` removed or replaced by the mean."""

    def add_eos(self, items: Any) -> Any:
        """Return the items as a model reads them."""
        return items

    def strip_eos(self, items: Any) -> Any:
        return items

    @property
    def without_backbone(self) -> "Processor":
        """Return the processor for a model that includes the backbone."""
        return self

    def max_items(self, trained: int) -> int:
        """Return the longest source that is not split, for a model trained on up to `trained` items."""
        return sys.maxsize

    def grid(self, items: Sequence[Any]) -> tuple[int, int] | None:
        """Return rows and columns of two-dimensional items."""
        return None

    def photo(self, source: str) -> "Photo | None":
        """Return the image to draw attention on."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Return a description for a user."""


class Frame(NamedTuple):
    """The special tokens around a source, and those a decoder starts from."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = (EOS,)
    start: tuple[int, ...] = (BOS,)


class Tokenizer(Processor):
    """A SentencePiece model."""

    kind, file, is_text = "text", "tokenizer.source.model", True
    start: tuple[int, ...] = (BOS,)  # the tokens a decoder starts from, when this is the tokenizer of the target

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
        return self._encode(normalised)

    def _encode(self, normalised: list[str]) -> list[list[int]]:
        ids: list[list[int]] = encode_texts(self.sentencepiece, normalised)
        return ids

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return the ids of a random segmentation of each text (Kudo 2018)."""
        return self._sample([normalise(text) for text in texts], seed)

    def _sample(self, normalised: list[str], seed: int) -> list[list[int]]:
        return sample_texts(self.sentencepiece, normalised, seed)

    def try_encode(self, sources: Sequence[str], on_error: OnError) -> list[list[int]]:
        return self.encode(sources)

    def add_eos(self, items: Any) -> Any:
        return (*items, EOS)

    def strip_eos(self, items: Any) -> Any:
        return items[:-1]

    def frame_pieces(self, eos: str) -> tuple[list[str], list[str]]:
        """Return the pieces that `add_eos` puts before and after a text, with `eos` for EOS."""
        return [], [eos]

    def max_items(self, trained: int) -> int:
        """Return the trained length: longer texts are split."""
        return trained

    def occlude(self, items: Sequence[int], positions: Sequence[int]) -> list[int]:
        return [token for position, token in enumerate(items) if position not in positions]

    def describe(self) -> str:
        return f"{len(self):,} {'words' if self.has_whole_words else 'subwords'}"

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

    @cached_property
    def has_whole_words(self) -> bool:
        """Whether every piece is a whole word; other words are unknown."""
        return all(piece.startswith("\u2581") for piece in self.vocabulary[len(SPECIAL_TOKENS) :])

    @cached_property
    def inside_word(self) -> list[bool]:
        """Whether each piece continues the word before it."""
        return [piece[:1].isalnum() or piece.startswith("<0x") for piece in self.vocabulary]


def encode_texts(sentencepiece: Any, texts: list[str], out_type: type = int) -> list[list[Any]]:
    """Return the ids or pieces of each text; few texts one by one, because a batch starts threads of its own."""
    if len(texts) >= PARALLEL_TEXTS:
        return list(sentencepiece.encode(texts, out_type=out_type))
    return [sentencepiece.encode(text, out_type=out_type) for text in texts]


def sample_texts(model: Any, texts: list[str], seed: int, out_type: type = int) -> list[list[Any]]:
    """Return the ids or pieces of a random segmentation of each text.

    A batch on one thread starts a new generator from the seed, so that the same seed gives the same segmentations.
    """
    sentencepiece.set_random_generator_seed(seed % 2**32)
    return list(
        model.encode(texts, out_type=out_type, enable_sampling=True, alpha=SAMPLING_ALPHA, nbest_size=-1, num_threads=1)
    )


# --- tokenizers of imported models ------------------------------------------------------------------------------

SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")  # pieces of the first rows
TEXT_MARK, EOS_FRAME, BOS_FRAME = "text", "eos", "bos"  # in the frames of `LanguageTokens`, with "source" and "target"


@dataclass(frozen=True)
class LanguageTokens:
    """The languages of a multilingual model, and where a model reads their tokens."""

    source: Mapping[str, str]  # language -> piece
    target: Mapping[str, str]
    source_frame: tuple[str, ...] = (TEXT_MARK, EOS_FRAME)  # of "source", "target", "text" and "eos"
    decoder_start: tuple[str, ...] = (BOS_FRAME,)  # of "bos" and "target"

    def __post_init__(self) -> None:
        if self.source_frame.count(TEXT_MARK) != 1 or not self.decoder_start:
            raise ValueError("a frame needs the text once, and a decoder needs a token to start from")
        if {*self.source_frame} - {"source", "target", TEXT_MARK, EOS_FRAME} or {*self.decoder_start} - {
            BOS_FRAME,
            "target",
        }:
            raise ValueError("a frame contains an unknown element")

    def match(self, side: str, language: str | None) -> str | None:
        """Return the code of a language; "en" matches en_XX if no other code starts so. `side` is source or target."""
        table: Mapping[str, str] = getattr(self, side)
        if language is None:
            if self.needs(side):
                raise UsageError(f"this model needs the {side} language; {did_you_mean('', table)}")
            return None
        if not table or language in table:
            return language
        longer = [code for code in table if code.split("_")[0] == language]
        if len(longer) != 1:
            raise UsageError(f"unknown {side} language {language!r}; {did_you_mean(language, longer or table)}")
        return longer[0]

    def needs(self, side: str) -> bool:
        """Whether the model reads the token of this side's language."""
        return side in (*self.source_frame, *self.decoder_start)


class ImportedTokenizer(Tokenizer):
    """The SentencePiece model of an imported model, whose pieces have rows of their own."""

    def __init__(self, model: bytes, vocabulary: Sequence[str], special: Iterable[str] = ()) -> None:
        self.model = model
        self.sentencepiece = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocabulary = list(vocabulary)
        self.special = frozenset((*SPECIAL_PIECES, *special))
        if tuple(self.vocabulary[: len(SPECIAL_PIECES)]) != SPECIAL_PIECES:
            raise DataError(f"expected the vocabulary to start with {' '.join(SPECIAL_PIECES)}")
        if len(self.piece_ids) != len(self.vocabulary):
            raise DataError("a piece is twice in the vocabulary")
        self.frame: tuple[tuple[int, ...], tuple[int, ...]] | None = (), (EOS,)  # None: no languages were chosen

    @cached_property
    def text_ids(self) -> dict[str, int]:
        """The row of each piece that text can become."""
        return {piece: row for piece, row in self.piece_ids.items() if piece not in self.special}

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Rows that text never becomes and that decoding leaves out."""
        return frozenset(self.piece_ids[piece] for piece in self.special if piece in self.piece_ids)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def _encode(self, normalised: list[str]) -> list[list[int]]:
        ids = self.text_ids
        return [
            [ids.get(piece, UNK) for piece in pieces] for pieces in encode_texts(self.sentencepiece, normalised, str)
        ]

    def _sample(self, normalised: list[str], seed: int) -> list[list[int]]:
        ids = self.text_ids
        sampled = sample_texts(self.sentencepiece, normalised, seed, str)
        return [[ids.get(piece, UNK) for piece in pieces] for pieces in sampled]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.sentencepiece.decode([self.vocabulary[row] for row in ids if row not in self.special_ids])
        return text.replace("\u2581", " ").strip()  # of pieces that only the other side's model has

    def add_eos(self, items: Any) -> Any:
        before, after = self._frame()
        return (*before, *items, *after)

    def strip_eos(self, items: Any) -> Any:
        before, after = self._frame()
        return items[len(before) : len(items) - len(after)]

    def frame_pieces(self, eos: str) -> tuple[list[str], list[str]]:
        before, after = ([eos if row == EOS else self.vocabulary[row] for row in part] for part in self._frame())
        return before, after

    def _frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.frame is None:
            raise UsageError(
                "this model translates between many languages; give --source-lang and --target-lang ("
                "softgaze info lists them; in Python source_lang and target_lang)"
            )
        return self.frame

    def with_languages(self, languages: LanguageTokens, source: str | None, target: str | None) -> Self:
        """Return this tokenizer with the special tokens of a language pair; a row may be missing on one side."""
        names = {"source": source, "target": target}
        pieces = {
            EOS_FRAME: SPECIAL_PIECES[EOS],
            BOS_FRAME: SPECIAL_PIECES[BOS],
            **{
                side: getattr(languages, side)[languages.match(side, name)]
                for side, name in names.items()
                if languages.needs(side)
            },
        }
        ids = {element: self.piece_ids[piece] for element, piece in pieces.items() if piece in self.piece_ids}
        text = languages.source_frame.index(TEXT_MARK)
        before, after = (
            tuple(ids[element] for element in part if element in ids)
            for part in (languages.source_frame[:text], languages.source_frame[text + 1 :])
        )
        framed = copy.copy(self)
        framed.frame = before, after
        framed.start = tuple(ids[element] for element in languages.decoder_start if element in ids)
        return framed


# --- training a tokenizer ---------------------------------------------------------------------------------------


def train_tokenizer(lines: Iterable[str], size: int | None = None) -> Tokenizer:
    """Train a unigram model; the text determines the vocabulary size unless `size` is given."""
    sample = sample_lines(lines)
    smallest = len(SPECIAL_TOKENS) + NUM_BYTES + len(set().union(*map(set, sample))) + 64
    return train_sentencepiece(
        sample,
        vocab_size=max(size or suggested_size(sample), smallest),
        hard_vocab_limit=False,  # a small text has fewer useful pieces
        model_type="unigram",
        character_coverage=0.9999,
        byte_fallback=True,
    )


def train_word_tokenizer(lines: Iterable[str], min_count: int) -> Tokenizer:
    """Return a tokenizer whose pieces are the words seen at least `min_count` times; other words are unknown."""
    sample = sample_lines(lines)
    counts = count_words(sample)
    frequent = sum(count >= min_count for count in counts.values())
    if not frequent:
        raise DataError(f"no word occurs {min_count} times; lower data.min_count, or set it to 0 for subwords")
    return train_sentencepiece(
        sample,
        vocab_size=len(SPECIAL_TOKENS) + frequent,
        hard_vocab_limit=False,
        model_type="word",
        character_coverage=1.0,  # otherwise words with rare characters are left out
    )


def sample_lines(lines: Iterable[str]) -> list[str]:
    """Return the normalised lines to train on; raise a `DataError` if there are none."""
    sample = [text for text in map(normalise, islice(lines, SAMPLE)) if text]
    if not sample:
        raise DataError("no text to train a tokenizer on: every line is empty")
    return sample


def train_sentencepiece(sample: Iterable[str], **options: Any) -> Tokenizer:
    """Train a SentencePiece model with the special tokens of this package."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            # SentencePiece rejects its own space mark in training text.
            sentence_iterator=(text.replace("\u2581", " ") for text in sample),
            model_writer=model,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=1 << 16,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=NUM_THREADS,
            minloglevel=2,
            **options,
        )
    except (RuntimeError, ValueError) as error:
        raise DataError(f"SentencePiece cannot train on this text: {error}") from error
    return Tokenizer(model.getvalue())


def count_words(sample: Iterable[str]) -> Counter[str]:
    """Count the words between spaces."""
    counts: Counter[str] = Counter()
    for text in sample:
        counts.update(text.split())
    return counts


def suggested_size(sample: Iterable[str]) -> int:
    """Return the number of words seen at least twice, beyond 4,000 only a quarter of them, at most 32,000.

    This gives about 7,500 for Multi30k, where every piece costs time in the loss. Small texts profit from whole words:
    on the phrasebook, three times the pieces raised a tiny Transformer from 42 % to 77 % exactly correct held-out
    sentences in the same training time.
    """
    repeated = sum(1 for count in count_words(sample).values() if count > 1)
    return min(MAX_VOCABULARY, repeated - max(0, repeated - WHOLE_WORDS) * 3 // 4)
