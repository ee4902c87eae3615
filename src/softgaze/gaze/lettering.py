"""How text stands in a picture or on a terminal: what can be written at all, how wide it is, which way it runs.

Widths are estimates in em, on the generous side: nobody knows which font a reader has. Knows no attention.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

# Controls (a terminal would act on them), halves of characters and what XML forbids; a line may not break in a label.
# Nor may a text turn around what stands beside it (U+202A to U+202E).
UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
REPLACEMENT = "\ufffd"
RIGHT_TO_LEFT, LEFT_TO_RIGHT, END_OF_DIRECTION = "\u2067", "\u200e", "\u2069"  # isolate, mark, end of isolate
ISOLATES = ("\u2066", RIGHT_TO_LEFT, "\u2068")
JOINER = "\u200d"
ELLIPSIS = "…"

LETTER_WIDTHS = dict.fromkeys("ijlI.,:;'|!`´·’‘", 0.32)
LETTER_WIDTHS |= dict.fromkeys('ftr()[]{}-"/\\ *°“”', 0.42)
LETTER_WIDTHS |= dict.fromkeys("mwMW@%&—…⏎⇥→←↓œæŒÆ<>=+~▁", 0.95)
SMALL, CAPITAL, FOREIGN, FULL = 0.6, 0.7, 0.7, 1.0


def clean(text: str) -> str:
    """The text with nothing in it that cannot be drawn, or that reaches beyond its end."""
    letters = list(UNWRITABLE.sub(REPLACEMENT, text))
    for place in stray_isolates(letters):
        letters[place] = REPLACEMENT
    return "".join(letters)


def stray_isolates(text: Sequence[str]) -> list[int]:
    """Where a direction is begun that does not end in the text, or ended that was not begun."""
    begun: list[int] = []
    stray: list[int] = []
    for place, letter in enumerate(text):
        if letter in ISOLATES:
            begun.append(place)
        elif letter == END_OF_DIRECTION and not begun:
            stray.append(place)
        elif letter == END_OF_DIRECTION:
            begun.pop()
    return stray + begun


def escaped(line: str) -> str:
    """JSON that can be stored and printed anywhere and means the same: what cannot be written is told by number."""
    return UNWRITABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", line)


def runs_right_to_left(text: str) -> bool:
    """Whether its first letter with a direction is Arabic, Hebrew or the like."""
    directions = (unicodedata.bidirectional(letter) for letter in text)
    return next((each for each in directions if each in ("L", "R", "AL")), "L") != "L"


def isolated(text: str) -> str:
    """Text that runs from right to left, its full stop included, without turning its neighbours around."""
    return f"{RIGHT_TO_LEFT}{clean(text)}{END_OF_DIRECTION}" if runs_right_to_left(text) else text


@lru_cache(maxsize=4096)
def letter_width(letter: str) -> float:
    """In em; what is put upon another letter has none."""
    if letter in LETTER_WIDTHS:
        return LETTER_WIDTHS[letter]
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return FULL
    if letter.isascii() or "LATIN" in unicodedata.name(letter, ""):
        return CAPITAL if letter.isupper() else SMALL
    return FOREIGN


def width_of(text: str, size: float = 1.0) -> float:
    """Of a text set in letters of `size`."""
    return size * sum(map(letter_width, text))


def clusters(text: str) -> Iterator[str]:
    """What may not be torn apart: a letter with its accents, an emoji with all it is joined to."""
    gathered = ""
    for letter in text:
        belongs = letter_width(letter) == 0 or gathered.endswith(JOINER)
        if gathered and not belongs:
            yield gathered
            gathered = ""
        gathered += letter
    if gathered:
        yield gathered


def cut(text: str, room: float) -> str:
    """The text, or as much of its beginning as fits into `room` em."""
    if width_of(text) <= room:
        return text
    kept, used = "", width_of(ELLIPSIS)
    for cluster in clusters(text):
        used += width_of(cluster)
        if used > room:
            break
        kept += cluster
    return kept + ELLIPSIS


def wrapped(text: str, room: float) -> list[str]:
    """Lines of at most `room` em, broken at spaces; a word that fits no line is broken where it must be."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width_of(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
            continue
        *full, rest = broken(word, room)
        lines += [*full, rest]
    return [line for line in lines if line]


def broken(word: str, room: float) -> list[str]:
    """Pieces of one word that each fit, at least a letter long."""
    pieces = [""]
    for cluster in clusters(word):
        if pieces[-1] and width_of(pieces[-1] + cluster) > room:
            pieces.append("")
        pieces[-1] += cluster
    return pieces
