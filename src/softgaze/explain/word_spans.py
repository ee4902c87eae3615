"""Group the tokens of a model into the words of a text.

Words are the whitespace tokens of the text as given, because alignment files count those. Text in a script without
spaces has no such words: there each token is a word.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count, islice
from math import prod
from string import punctuation
from typing import NamedTuple
from unicodedata import category

from softgaze.data.language_id import UNSPACED_RANGES
from softgaze.data.tokenizer import normalise

WORD_START = "▁"
EDGE_PUNCTUATION = "“”‘’«»„¿¡。，！？、" + punctuation  # ignored around a word that a user names
BOS_MARK, EOS_MARK = "⇥", "⏎"  # how BOS and EOS are shown
FIRST_UNSPACED = min(low for low, _ in UNSPACED_RANGES)
NO_WORD = -1  # in `word_of`: BOS or EOS
ATTACHED = -2  # in `core_of`: punctuation attached to a word

LONG_WORD = 6  # characters: words of unspaced scripts are shorter, so longer whitespace tokens are clauses


class Label(NamedTuple):
    """One row or column of a map."""

    text: str
    word: int | None  # index in the sentence; None for BOS and EOS
    positions: tuple[int, ...]  # of its tokens; empty for a word without a token


@dataclass(frozen=True)
class TokenizedText:
    """A text as the tokens of a model, BOS and EOS included, and as words."""

    tokens: tuple[str, ...]
    word_of: tuple[int, ...]  # the word index of each token
    words: tuple[str, ...]
    grid: tuple[int, ...] = ()  # (rows, columns) of an image whose cells, row by row, are the words

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.word_of):
            raise ValueError(f"{len(self.tokens)} tokens need as many word indices, got {len(self.word_of)}")
        if any(not NO_WORD <= word < len(self.words) for word in self.word_of):
            raise ValueError(f"a word index is outside of 0 to {len(self.words) - 1}")
        if self.grid and (len(self.grid) != 2 or prod(self.grid) != len(self.words)):
            raise ValueError(f"a grid of {'×'.join(map(str, self.grid))} does not have {len(self.words)} cells")

    @classmethod
    def of(
        cls,
        text: str,
        parts: Sequence[Sequence[str]],
        before: Sequence[str] = (),
        after: Sequence[str] = (EOS_MARK,),
    ) -> "TokenizedText":
        """Build from a text and the tokens of each of its parts; special tokens are added around each part."""
        word_of, words = assign_words(text, [token for part in parts for token in part])
        tokens: list[str] = []
        closed: list[int] = []  # `word_of` with EOS
        start = 0
        for part in parts:
            tokens += [*before, *part, *after]
            closed += [NO_WORD] * len(before) + word_of[start : start + len(part)] + [NO_WORD] * len(after)
            start += len(part)
        return cls(tuple(tokens), tuple(closed), tuple(words))

    @classmethod
    def from_words(cls, words: Sequence[str], grid: tuple[int, ...] = ()) -> "TokenizedText":
        """Build from words that are tokens themselves; BOS and EOS marks among them are recognised."""
        index, marks = count(), (BOS_MARK, EOS_MARK)
        word_of = [NO_WORD if word in marks else next(index) for word in words]
        text = tuple(word for word in words if word not in marks)
        return cls(tuple(words), tuple(word_of), text, grid)

    @property
    def text(self) -> str:
        """The text spelled by the tokens."""
        if not any(WORD_START in token for token in self.tokens):
            return " ".join(self.words)
        tokens = zip(self.tokens, self.word_of, strict=True)
        spelled = b"".join(b" " if word == NO_WORD else token_bytes(token) for token, word in tokens)
        return " ".join(spelled.decode(errors="replace").split())

    def token_labels(self) -> list[Label]:
        return [
            Label(token, None if word == NO_WORD else word, (position,))
            for position, (token, word) in enumerate(zip(self.tokens, self.word_of, strict=True))
        ]

    def word_labels(self) -> list[Label]:
        """Return a label for each word in order, with BOS and EOS at their positions."""
        words = self._group(self.word_of)
        labels: list[Label] = []
        done = 0
        last = max((position for position, word in enumerate(self.word_of) if word != NO_WORD), default=-1)
        for position, word in enumerate(self.word_of):
            is_final_eos = self.tokens[position] == EOS_MARK and position > last
            end = len(self.words) if is_final_eos else word + 1  # words without a token come before the final EOS
            labels += words[done:end]
            done = max(done, end)
            if word == NO_WORD:
                labels.append(Label(self.tokens[position], None, (position,)))
        return labels + words[done:]

    def split_parts(self, word_of: Sequence[int], sizes: Sequence[int] = ()) -> Iterator[list[int]]:
        """Yield `word_of`, or `core_of`, of each part without its EOS; NO_WORD for language tokens before the text.

        Parts end at EOS, with the language tokens after it. Those of a text without EOS have `sizes` tokens each.
        """
        if EOS_MARK not in self.tokens and sum(sizes) == len(self.tokens):
            rest = iter(word_of)
            yield from (list(islice(rest, size)) for size in sizes)
            return
        part: list[int] = []
        tags_first = bool(self.tokens) and self.tokens[0] != EOS_MARK and word_of[0] == NO_WORD
        for token, word in zip(self.tokens, word_of, strict=True):
            if word == NO_WORD and token == EOS_MARK:
                yield part
                part = []
            elif word != NO_WORD or tags_first:
                part.append(word)
        if any(word != NO_WORD for word in part):
            yield part

    def core_labels(self) -> list[Label]:
        """Return a label for each word without its attached punctuation; no BOS or EOS."""
        return self._group(self.core_of)

    def _group(self, word_of: Sequence[int]) -> list[Label]:
        """Collect the positions of each word; linear, since audio may have thousands of tokens."""
        positions: list[list[int]] = [[] for _ in self.words]
        for position, word in enumerate(word_of):
            if word >= 0:
                positions[word].append(position)
        return [Label(text, word, tuple(positions[word])) for word, text in enumerate(self.words)]

    @cached_property
    def core_of(self) -> tuple[int, ...]:
        """`word_of` with ATTACHED for punctuation attached to a word; a word of punctuation alone keeps it.

        The full stop of "home." attends to a full stop, which is no evidence about the word.
        """
        tokens = [*zip(self.tokens, self.word_of, strict=True)]
        with_letters = {word for token, word in tokens if not is_punctuation(token)} - {NO_WORD}
        return tuple(ATTACHED if word in with_letters and is_punctuation(token) else word for token, word in tokens)

    def decoder_input(self) -> "TokenizedText":
        """Return the text as the decoder reads it: BOS before each part, no EOS."""
        tokens: list[str] = []
        word_of: list[int] = []
        start = 0
        for end, token in enumerate(self.tokens):
            if token == EOS_MARK and self.word_of[end] == NO_WORD:
                tokens += [BOS_MARK, *self.tokens[start:end]]
                word_of += [NO_WORD, *self.word_of[start:end]]
                start = end + 1
        return TokenizedText(tuple(tokens), tuple(word_of), self.words)


# --- from tokens to words ---------------------------------------------------------------------------------------


def assign_words(text: str, tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    if is_unspaced_text(normalise(text).split()):
        return words_by_character(tokens)
    word_of = whitespace_word_of(text, tokens)
    return words_by_space(tokens) if word_of is None else (word_of, text.split())


def whitespace_word_of(text: str, tokens: Sequence[str]) -> list[int] | None:
    """Return the index of each token's whitespace token, in any script.

    None if the tokens do not spell the text, as in the output of a model that is hardly trained.
    """
    words = [word.replace(WORD_START, "").encode() for word in normalise(text).split()]
    spelled = [token_bytes(token).replace(b" ", b"") for token in tokens]
    if not words or b"".join(words) != b"".join(spelled):
        return None
    word_of_byte = [index for index, word in enumerate(words) for _ in word]
    last = max(word_of_byte, default=0)
    starts = accumulate((len(token) for token in spelled), initial=0)
    # A lone space has no bytes here, so it belongs to the word after it.
    return [
        word_of_byte[start] if start < len(word_of_byte) else last for start, _ in zip(starts, spelled, strict=False)
    ]


def words_by_space(tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    """Start a word at each token that begins with a space."""
    return _group_tokens(tokens, lambda token, word: token.startswith(b" ") and bool(word.strip()))


def words_by_character(tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    """Make each token a word, but join the bytes of one character, and a lone space with the next token."""
    return _group_tokens(tokens, lambda token, word: bool(word.strip()) and not _is_incomplete(word))


def _group_tokens(tokens: Sequence[str], starts_word: Callable[[bytes, bytes], bool]) -> tuple[list[int], list[str]]:
    """Collect tokens until `starts_word(bytes of the token, bytes of the current word)`."""
    word_of: list[int] = []
    words: list[bytes] = []
    for spelled in map(token_bytes, tokens):
        if not words or starts_word(spelled, words[-1]):
            words.append(b"")
        words[-1] += spelled
        word_of.append(len(words) - 1)
    return word_of, [word.decode(errors="replace").strip() for word in words]


def _is_incomplete(spelled: bytes) -> bool:
    """Whether the last UTF-8 character still lacks bytes."""
    for back, byte in enumerate(reversed(spelled[-3:]), 1):
        if byte >= 0xC0:
            return back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        if byte < 0x80:
            break
    return False


def token_bytes(token: str) -> bytes:
    """Return the UTF-8 bytes a token spells, with spaces for word starts."""
    is_byte = len(token) == 6 and token.startswith("<0x") and token.endswith(">")
    return bytes([int(token[3:5], 16)]) if is_byte else token.replace(WORD_START, " ").encode()


def find_word(word: str, texts: Sequence[str]) -> list[int]:
    """Return the indices of the texts equal to `word` or, if there is none, equal without edge punctuation."""
    exact = [index for index, text in enumerate(texts) if text == word]
    return exact or [index for index, text in enumerate(texts) if text.strip(EDGE_PUNCTUATION) == word]


def max_word_count(text: str) -> int:
    """Return the largest word count a gold link may refer to: whitespace tokens, or characters in unspaced scripts."""
    tokens = normalise(text).split()
    return len("".join(tokens)) if is_unspaced_text(tokens) else len(tokens)


def is_punctuation(token: str) -> bool:
    spelled = token.removeprefix(WORD_START)
    return bool(spelled) and all(category(character).startswith("P") for character in spelled)


def is_unspaced_text(tokens: Sequence[str]) -> bool:
    """Whether most letters are of a script without spaces and the text has none; segmented Chinese has words."""
    text = "".join(tokens)
    if ord(max(text, default="a")) < FIRST_UNSPACED:
        return False
    letters = [ord(character) for character in text if character.isalpha()]
    unspaced = sum(any(low <= code <= high for low, high in UNSPACED_RANGES) for code in letters)
    return 2 * unspaced > len(letters) and (len(tokens) == 1 or len(text) > LONG_WORD * len(tokens))
