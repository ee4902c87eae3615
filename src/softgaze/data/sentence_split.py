"""Split text into sentences, and sentences that are too long for a model into smaller parts."""

import re
from itertools import pairwise
from typing import Protocol

import regex

from softgaze.data.tokenizer import normalise

# A sentence ends at its mark before a space, closing quotes and brackets included; but not at the full stop of a number
# or of one or two letters that begin with a capital (Mr., U.S.), nor before a small letter. 。！？ need no space.
SENTENCE_END = re.compile(
    r"""(?: [!?…]+ | (?<!\d) (?<!\b[A-Z]) (?<!\b[A-Z]\w) \.+ ) ["'”’»)\]]* (?=\s)
        | [。！？｡]+ ["'”’」』）]*""",
    re.VERBOSE,
)
# Where to cut a sentence that is itself too long: near its middle at the first of these, else at any space.
CLAUSE_ENDS = (re.compile(r"[.!?…;:]+(?=\s)|[；：]"), re.compile(r",(?=\s)|[、，،]"))
SPACE = re.compile(r"(?=\s)")


class Encoder(Protocol):
    def encode(self, texts: list[str], /) -> list[list[int]]: ...


def split_text(text: str, tokenizer: Encoder, limit: int) -> list[str]:
    """Cut a text into sentences, and sentences of more than `limit` subwords into smaller parts."""
    return [part for sentence in split_sentences(normalise(text)) for part in _split_long(sentence, tokenizer, limit)]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a normalised text."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    cuts = [0, *(end for end in ends if not text[end : end + 2].lstrip()[:1].islower()), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(cuts))
    return [part for part in parts if part]


def _split_long(text: str, tokenizer: Encoder, limit: int) -> list[str]:
    """Halve a text until every part has at most `limit` subwords; a single character is never cut."""
    [ids] = tokenizer.encode([text])
    if len(ids) <= limit or len(text) < 2:
        return [text]
    cut = _middle(text)
    sides = (side for side in (text[:cut].strip(), text[cut:].strip()) if side)
    return [part for side in sides for part in _split_long(side, tokenizer, limit)]


def _middle(text: str) -> int:
    """Return where to cut: at a clause in the middle half of the text, else at a space, else between graphemes."""
    edge = max(1, len(text) // 4)
    for mark, first, last in (*((mark, edge, len(text) - edge) for mark in CLAUSE_ENDS), (SPACE, 1, len(text) - 1)):
        ends = [match.end() for match in mark.finditer(text) if first <= match.end() <= last]
        if ends:
            return min(ends, key=lambda end: abs(2 * end - len(text)))
    graphemes = regex.finditer(r"\X", text)
    return next((match.start() for match in graphemes if match.start() >= len(text) // 2), len(text) // 2)
