"""Split the words of a text into parts that can be counted, so that raw and tokenised text become equal.

Links are between words as an alignment file counts them: whitespace tokens, or characters in scripts without spaces.
Statistics are about parts: lower-cased letters and punctuation apart. The parts of `House.` and of `house .` are equal.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from softgaze.data.tokenizer import normalise
from softgaze.explain.alignment import Links
from softgaze.explain.word_spans import is_punctuation, is_unspaced_text

PART = re.compile(r"\w+['’]?|[^\w\s]+")  # an apostrophe ends its part: l' | homme, don' | t


class WordParts(NamedTuple):
    """The parts of a text, the word of each part, and whether links of the part count for its word."""

    parts: tuple[str, ...]
    word_of: tuple[int, ...]
    is_core: tuple[bool, ...]  # False for punctuation attached to a word with letters


def split_words(text: str) -> WordParts:
    words = normalise(text).split()
    if is_unspaced_text(words):
        words = list("".join(words))
    parts: list[str] = []
    word_of: list[int] = []
    is_core: list[bool] = []
    for index, word in enumerate(words):
        found = PART.findall(word.lower().replace("’", "'")) or [word]
        letters = [not is_punctuation(part) for part in found]
        parts += found
        word_of += [index] * len(found)
        is_core += letters if any(letters) else [True] * len(found)
    return WordParts(tuple(parts), tuple(word_of), tuple(is_core))


def whitespace_links(links: Links, source: str, target: str) -> Links:
    """Return links between whitespace tokens, also in scripts without spaces, where words are characters."""
    tokens = [whitespace_tokens(text) for text in (source, target)]
    return (
        links
        if not any(tokens)
        else frozenset(
            (tokens[0][one] if tokens[0] else one, tokens[1][other] if tokens[1] else other) for one, other in links
        )
    )


def whitespace_tokens(text: str) -> list[int]:
    """Return the whitespace token of each character-word; nothing if words are whitespace tokens."""
    words = normalise(text).split()
    return [index for index, word in enumerate(words) for _ in word] if is_unspaced_text(words) else []


def stem(part: str, size: int) -> str:
    """Return the first letters of a part; numbers and punctuation stay whole."""
    return part[:size] if part.isalpha() else part


Pairs = Sequence[tuple[WordParts, WordParts]]
