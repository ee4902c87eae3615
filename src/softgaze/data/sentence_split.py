"""Split text into sentences, and sentences that are too long for a model into smaller parts."""

import re
from itertools import pairwise
from typing import Protocol

import regex

from softgaze.data.tokenizer import normalise

# A sentence ends at its mark before a space, closing quotes and brackets included. 。！？ need no space, and neither do
# the marks of Korean, which are often written without one.
SENTENCE_END = re.compile(
    r"""(?P<mark> [!?…]+ | \.+ ) ["'”’»)\]]* (?=\s)
        | [。！？｡]+ ["'”’」』）]* (?! ["'”’」』）]* (?:と|って) )
        | (?<=[가-힣]) [.!?]+ (?=[가-힣])""",
    re.VERBOSE,
)
LAST_WORD = re.compile(r"([^\s(\[\"'“‘„«]+)\Z")
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J. R., e.g., z. B., U.S.
ORDINAL = re.compile(r"\d{1,2}|[ivxIVX]+")  # 3. Mai, 1. Open the file
# Words before a name or within a sentence, and words before a number; not etc. and usw., which often end a sentence.
ABBREVIATION = re.compile(
    """mrs?|ms|mx|dr|prof|st|[js]r|gen|col|lt|sgt|capt|rev|hon|gov|sen|rep|pres|messrs|vs|cf|ca|approx|incl|esp
    |inc|ltd|corp|co|bros|dept|univ|mt|ft|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec
    |bzw|evtl|ggf|inkl|exkl|vgl|sog|bspw|hrn?|fr|dipl|ing|mag|nr|str|tel|zzgl|abzgl
    |mme|mlle|mgr|env|ej|sra|srta|uds?|dña|pág""",
    re.VERBOSE | re.IGNORECASE,
)
BEFORE_NUMBER = re.compile("nos?|figs?|eqs?|sec|ch|vol|pp?|art|abs|ref|tab|bd|kap|s|n|n[úu]m", re.IGNORECASE)
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
    cuts = [0, *(match.end() for match in SENTENCE_END.finditer(text) if is_sentence_end(match)), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(cuts))
    return [part for part in parts if part]


def is_sentence_end(found: re.Match[str]) -> bool:
    """Return whether a mark ends a sentence: not that of an abbreviation or ordinal, nor one before a small letter."""
    text, mark = found.string, found["mark"]
    following = text[found.end() : found.end() + 2].lstrip()[:1]
    if following.islower():
        return False
    before = LAST_WORD.search(text[max(0, found.start() - 40) : found.start()])
    if mark != "." or before is None:
        return True
    word = before[1]
    is_number = ORDINAL.fullmatch(word) is not None
    is_short = INITIALS.fullmatch(word) is not None and word.lower() != word.upper() and word not in "IOo"
    is_reference = following.isdigit() and BEFORE_NUMBER.fullmatch(word) is not None
    return not (is_number or is_short or is_reference or ABBREVIATION.fullmatch(word))


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
