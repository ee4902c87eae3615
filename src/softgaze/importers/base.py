"""The result of every importer: an `ImportedModel`, whose tensors are read one at a time when they are written.

Rows of a foreign vocabulary are permuted, so that the first rows are PAD, UNK, BOS and EOS.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece
import torch
from torch import Tensor

from softgaze.bundle import Tokenizers
from softgaze.data.tokenizer import SPECIAL_PIECES, ImportedTokenizer
from softgaze.errors import DataError
from softgaze.special_tokens import BOS

NEVER = -1e9  # output bias of rows that are never generated: they add nothing to the softmax
NO_ROW = -1  # in `RowOrder.rows`: a new row of zeros
BLOCK_ROWS = 1 << 12  # rows of a vocabulary that are permuted at once
MAX_FILE_BYTES = 1 << 28  # of a tokenizer, vocabulary or configuration


class RowOrder(NamedTuple):
    """Our vocabulary as rows of a foreign one."""

    pieces: tuple[str, ...]  # ours, in order
    rows: tuple[int, ...]  # the foreign row of each, or NO_ROW
    hidden: tuple[int, ...]  # our rows that are never generated: new ones, and BOS if it is a copy of another
    size: int  # of the foreign vocabulary

    @classmethod
    def of(
        cls, pieces: Sequence[str], *, unk: int, eos: int, pad: int | None = None, start: int | None = None
    ) -> "RowOrder":
        """Order foreign `pieces`; `start` is the row that a decoder starts from, None for a row of zeros."""
        first = tuple(NO_ROW if row is None else row for row in (pad, unk, start, eos))
        if not all(NO_ROW <= row < len(pieces) for row in first):
            raise DataError(f"a special token has the id {max(first)}, but the vocabulary has {len(pieces):,} pieces")
        rest = [row for row in range(len(pieces)) if row not in first]
        names: dict[str, int] = dict.fromkeys(SPECIAL_PIECES, 0)
        for row in rest:  # names are unique, because engines find rows by them
            name = pieces[row]
            names[f"<unused {row}>" if name in names else name] = row
        hidden = [index for index, row in enumerate(first) if row == NO_ROW or (index == BOS and first.count(row) > 1)]
        return cls(tuple(names), (*first, *rest), tuple(hidden), len(pieces))

    def take(self, matrix: Tensor) -> Iterator[Tensor]:
        """Yield blocks of our rows of a foreign matrix."""
        if len(matrix) != self.size:
            raise DataError(f"has {len(matrix):,} rows, expected {self.size:,} from the vocabulary")
        rows = torch.tensor(self.rows)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS]
            taken = matrix[block.clamp(min=0)]
            taken[block == NO_ROW] = 0
            yield taken

    def bias(self, foreign: Tensor | None) -> Tensor:
        """Return our output bias."""
        bias = torch.zeros(len(self.rows)) if foreign is None else torch.cat([*self.take(foreign.float().flatten())])
        bias[list(self.hidden)] = NEVER
        return bias


class LazyTensor(NamedTuple):
    """A tensor of a foreign file that is read when it is written."""

    read: Callable[[], Tensor]
    order: RowOrder | None = None  # of its rows, if it is an embedding

    def blocks(self) -> Iterator[Tensor]:
        """Yield the tensor, or blocks of its rows."""
        tensor = self.read()
        if self.order is None:
            yield tensor
        else:
            yield from self.order.take(tensor)


class Reference(NamedTuple):
    """The original implementation of a model, to compare logits with."""

    name: str
    logits: Callable[[list[list[int]], list[list[int]]], Tensor]  # foreign source and decoder ids -> (B, T, V)


@dataclass(frozen=True)
class ImportedModel:
    """A foreign model in our terms."""

    family: str  # such as "Marian (Hugging Face)"
    options: dict[str, Any]  # of `models.Transformer`
    tensors: Mapping[str, LazyTensor]  # parameter name -> tensor; those of tied parameters may be left out or not
    tokenizers: Tokenizers
    source_order: RowOrder
    target_order: RowOrder
    files: tuple[Path, ...]  # that were read
    max_length: int  # source subwords the model was trained for
    source_language: str = ""  # of a model with one language pair
    target_language: str = ""
    search: dict[str, Any] = field(default_factory=dict)  # defaults of `SearchOptions`
    licence: str = ""
    alignment_head: tuple[int, int] | None = None  # layer and head that are usually trained on alignments
    reference: Callable[[], Reference] | None = None  # None: the original implementation is not installed


def make_tokenizers(
    models: Sequence[bytes], orders: tuple[RowOrder, RowOrder], special: Sequence[str] = ()
) -> Tokenizers:
    """Return the tokenizers of two SentencePiece models, source and target, with the rows of our vocabularies."""
    source = ImportedTokenizer(models[0], orders[0].pieces, special)
    if models[0] == models[1] and orders[0].pieces == orders[1].pieces:
        return Tokenizers(source, source)
    return Tokenizers(source, ImportedTokenizer(models[1], orders[1].pieces, special))


# --- files ------------------------------------------------------------------------------------------------------


def read_bytes(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Read a file of a foreign model that is never large."""
    try:
        size = path.stat().st_size
        if size > limit:
            raise DataError(f"{path}: has {size:,} bytes, expected at most {limit:,}")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        record = json.loads(read_bytes(path).decode())
    except (RecursionError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}: expected a JSON object")
    return record


def read_sentencepiece(path: Path) -> bytes:
    """Read a SentencePiece model, and check that it is one whose pieces are text."""
    content = read_bytes(path)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        if not [processor.id_to_piece(row) for row in range(processor.get_piece_size())]:
            raise RuntimeError("it has no pieces")
    except (RuntimeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not a SentencePiece model: {' '.join(str(error).split())[:200]}") from error
    return content
