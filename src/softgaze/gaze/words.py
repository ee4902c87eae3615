"""From the pieces a model reads to the words a person wrote: which piece belongs to which word.

Words are the whitespace tokens of the text as given, since whoever links words by number counts those. Text in a script
without spaces has no such words; there the pieces stand for themselves. Knows no weights and no models.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import prod
from string import punctuation
from typing import NamedTuple
from unicodedata import category

from softgaze.data.tokens import normalise

WORD_START = "▁"
QUOTES = "“”‘’«»„¿¡。，！？、" + punctuation  # marks around a word, which do not count when somebody names it
BEGIN_MARK, END_MARK = "⇥", "⏎"  # the begin and the end of a sentence, which are looked at like any word
NO_WORD = -1  # what a mark belongs to
ATTACHED = -2  # in `Side.core_of`: punctuation attached to a word

# Han, kana, Thai, Lao, Tibetan, Myanmar, Khmer and the further planes of Han.
UNSPACED = ((0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x30FF), (0x31F0, 0x9FFF), (0xF900, 0xFAFF))
UNSPACED_PLANES = (0x20000, 0x3FFFF)
LONG_WORD = 6  # characters: words of such scripts are shorter, so longer tokens are clauses


class Label(NamedTuple):
    """One row or column of a map."""

    text: str
    word: int | None  # its number in the sentence; None for a mark
    places: tuple[int, ...]  # of its pieces; none for a word that has no piece of its own


@dataclass(frozen=True)
class Side:
    """A sentence as a model has it, END marks among its pieces, and as its writer has it."""

    pieces: tuple[str, ...]
    word_of: tuple[int, ...]  # for each piece, the number of its word
    words: tuple[str, ...]
    grid: tuple[int, ...] = ()  # rows and columns of a picture whose cells, row by row, are the words

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.word_of):
            raise ValueError(f"{len(self.pieces)} pieces cannot belong to {len(self.word_of)} words")
        if any(not NO_WORD <= word < len(self.words) for word in self.word_of):
            raise ValueError(f"pieces belong to words from 0 to {len(self.words) - 1}")
        if self.grid and (len(self.grid) != 2 or prod(self.grid) != len(self.words)):
            raise ValueError(f"a grid of {'×'.join(map(str, self.grid))} does not have {len(self.words)} cells")

    @classmethod
    def of(cls, text: str, parts: Sequence[Sequence[str]]) -> "Side":
        """From a text and the pieces of each part that was read in one go; each part is closed by an END mark."""
        pieces = [piece for part in parts for piece in part]
        word_of, words = words_of(text, pieces)
        numbers, all_pieces, place = [], [], 0
        for part in parts:
            numbers += [*word_of[place : place + len(part)], NO_WORD]
            all_pieces += [*part, END_MARK]
            place += len(part)
        return cls(tuple(all_pieces), tuple(numbers), tuple(words))

    @classmethod
    def plain(cls, words: Sequence[str], grid: tuple[int, ...] = ()) -> "Side":
        """Words that are their own pieces; an END mark among them is known as one."""
        marks = [word in (BEGIN_MARK, END_MARK) for word in words]
        number = count()
        numbers = [NO_WORD if mark else next(number) for mark in marks]
        spoken = tuple(word for word, mark in zip(words, marks, strict=True) if not mark)
        return cls(tuple(words), tuple(numbers), spoken, grid)

    @property
    def text(self) -> str:
        """The sentence as one reads it."""
        if not any(WORD_START in piece for piece in self.pieces):
            return " ".join(self.words)
        pieces = zip(self.pieces, self.word_of, strict=True)
        spelled = b"".join(b" " if word == NO_WORD else piece_bytes(piece) for piece, word in pieces)
        return " ".join(spelled.decode(errors="replace").split())

    def subwords(self) -> list[Label]:
        """A label for each piece."""
        parts = enumerate(zip(self.pieces, self.word_of, strict=True))
        return [Label(piece, None if word == NO_WORD else word, (place,)) for place, (piece, word) in parts]

    def whole_words(self) -> list[Label]:
        """A label for each word, in order, with the marks where they stand."""
        labels, done, every = [], 0, self.places_of_words()
        last = max((place for place, word in enumerate(self.word_of) if word != NO_WORD), default=-1)
        for place, word in enumerate(self.word_of):
            ends = self.pieces[place] == END_MARK and place > last  # words without a piece stand before it, too
            upto = len(self.words) if ends else word + 1
            labels += every[done:upto]
            done = max(done, upto)
            if word == NO_WORD:
                labels.append(Label(self.pieces[place], None, (place,)))
        return labels + every[done:]

    def places_of_words(self) -> list[Label]:
        """Each word with all its pieces; a sound may have thousands."""
        places: list[list[int]] = [[] for _ in self.words]
        for place, word in enumerate(self.word_of):
            if word != NO_WORD:
                places[word].append(place)
        return [Label(text, word, tuple(places[word])) for word, text in enumerate(self.words)]

    @cached_property
    def core_of(self) -> tuple[int, ...]:
        """`word_of` without the punctuation attached to words: a full stop looks at a full stop, whatever it stands at.

        A word of punctuation alone keeps it.
        """
        pieces = [*zip(self.pieces, self.word_of, strict=True)]
        spoken = {word for piece, word in pieces if not is_punctuation(piece)} - {NO_WORD}
        return tuple(ATTACHED if word in spoken and is_punctuation(piece) else word for piece, word in pieces)

    def cores(self) -> list[Label]:
        """A label for each word with the pieces that say what it means; no marks."""
        places: list[list[int]] = [[] for _ in self.words]
        for place, word in enumerate(self.core_of):
            if word >= 0:
                places[word].append(place)
        return [Label(text, word, tuple(places[word])) for word, text in enumerate(self.words)]

    def as_read(self) -> "Side":
        """What a decoder reads while it writes this: each part begins with BEGIN and its END is never read."""
        pieces: list[str] = []
        numbers: list[int] = []
        start = 0
        for end, piece in enumerate(self.pieces):
            if piece == END_MARK and self.word_of[end] == NO_WORD:
                pieces += [BEGIN_MARK, *self.pieces[start:end]]
                numbers += [NO_WORD, *self.word_of[start:end]]
                start = end + 1
        return Side(tuple(pieces), tuple(numbers), self.words)


def words_of(text: str, pieces: Sequence[str]) -> tuple[list[int], list[str]]:
    """The word number of each piece, and the words."""
    tokens = normalise(text).split()
    if is_unspaced(tokens):
        return by_character(pieces)
    numbers = between_spaces(text, pieces)
    return by_space(pieces) if numbers is None else (numbers, text.split())


def named(word: str, texts: Sequence[str]) -> list[int]:
    """The numbers of the texts that are this word or, if none is, that are it but for the marks around it."""
    exact = [number for number, text in enumerate(texts) if text == word]
    return exact or [number for number, text in enumerate(texts) if text.strip(QUOTES) == word]


def most_words(text: str) -> int:
    """That a link may count: what stands between spaces or, in a script without spaces, as many as characters."""
    tokens = normalise(text).split()
    return len("".join(tokens)) if is_unspaced(tokens) else len(tokens)


def between_spaces(text: str, pieces: Sequence[str]) -> list[int] | None:
    """The number of each piece's whitespace token, whatever the script.

    None if the pieces do not spell the text: a model that has learnt little may write such.
    """
    tokens = normalise(text).split()
    spelled = [piece_bytes(piece).replace(b" ", b"") for piece in pieces]
    letters = [word for word, token in enumerate(tokens) for _ in token.replace(WORD_START, "").encode()]
    if not tokens or "".join(tokens).replace(WORD_START, "").encode() != b"".join(spelled):
        return None
    return [*numbered(spelled, letters)]


def numbered(spelled: Sequence[bytes], letters: Sequence[int]) -> Iterator[int]:
    """The word of each piece's first letter; a lone space belongs to the word it comes before."""
    place, last = 0, max(letters, default=0)
    for piece in spelled:
        yield letters[place] if place < len(letters) else last
        place += len(piece)


def by_space(pieces: Sequence[str]) -> tuple[list[int], list[str]]:
    """Words as the pieces themselves have them: a space begins a new one."""
    return grouped(pieces, lambda piece, before: piece.startswith(b" ") and bool(before.strip()))


def by_character(pieces: Sequence[str]) -> tuple[list[int], list[str]]:
    """Every piece is a word, except that bytes make a character together and a lone space joins what follows it."""
    return grouped(pieces, lambda piece, before: bool(before.strip()) and not is_continued(before))


def grouped(pieces: Sequence[str], begins: Callable[[bytes, bytes], bool]) -> tuple[list[int], list[str]]:
    """Pieces gathered until one `begins` a new word, given its bytes and those gathered so far."""
    numbers: list[int] = []
    words: list[bytes] = []
    for spelled in map(piece_bytes, pieces):
        if not words or begins(spelled, words[-1]):
            words.append(b"")
        words[-1] += spelled
        numbers.append(len(words) - 1)
    return numbers, [word.decode(errors="replace").strip() for word in words]


def is_continued(spelled: bytes) -> bool:
    """Whether a character has begun whose last byte is still to come."""
    for back, byte in enumerate(reversed(spelled[-3:]), 1):
        if byte >= 0xC0:
            return back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        if byte < 0x80:
            break
    return False


def piece_bytes(piece: str) -> bytes:
    """What a piece spells, spaces as spaces."""
    is_byte = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
    return bytes([int(piece[3:5], 16)]) if is_byte else piece.replace(WORD_START, " ").encode()


def is_punctuation(piece: str) -> bool:
    """Whether a piece has characters, and all are punctuation."""
    spelled = piece.removeprefix(WORD_START)
    return bool(spelled) and all(category(each).startswith("P") for each in spelled)


def is_unspaced(tokens: Sequence[str]) -> bool:
    """Mostly of a script without spaces, and without spaces: Chinese that somebody cut into words has words."""
    text = "".join(tokens)
    letters = [each for each in text if each.isalpha()]
    foreign = sum(map(is_unspaced_letter, letters))
    return 2 * foreign > len(letters) and (len(tokens) == 1 or len(text) > LONG_WORD * len(tokens))


def is_unspaced_letter(letter: str) -> bool:
    """Whether its script is written without spaces."""
    code = ord(letter)
    return any(low <= code <= high for low, high in (*UNSPACED, UNSPACED_PLANES))
