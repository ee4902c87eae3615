"""Text in figures and terminals: characters that can be drawn, estimated widths, writing direction.

Widths are generous estimates in em, because the fonts of the reader are unknown.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import regex

# Control characters, lone surrogates, line separators, characters that XML forbids, and bidi embeddings and overrides
# (U+202A to U+202E), which would reorder the text around a label.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
REPLACEMENT = "\ufffd"
LEFT_TO_RIGHT_MARK = "\u200e"
RIGHT_TO_LEFT_ISOLATE, POP_ISOLATE = "\u2067", "\u2069"
ISOLATES = ("\u2066", RIGHT_TO_LEFT_ISOLATE, "\u2068")
ELLIPSIS = "…"

CHAR_WIDTHS = dict.fromkeys("ijlI.,:;'|!`´·’‘", 0.32)
CHAR_WIDTHS |= dict.fromkeys('ftr()[]{}-"/\\ *°“”', 0.42)
CHAR_WIDTHS |= dict.fromkeys("mwMW@%&—…⏎⇥→←↓œæŒÆ<>=+~▁", 0.95)
LOWERCASE_WIDTH, UPPERCASE_WIDTH, OTHER_SCRIPT_WIDTH, FULL_WIDTH = 0.6, 0.7, 0.7, 1.0


def clean(text: str) -> str:
    """Replace unprintable characters and unbalanced directional isolates."""
    chars = list(UNPRINTABLE.sub(REPLACEMENT, text))
    open_isolates: list[int] = []
    for index, char in enumerate(chars):
        if char in ISOLATES:
            open_isolates.append(index)
        elif char == POP_ISOLATE and open_isolates:
            open_isolates.pop()
        elif char == POP_ISOLATE:
            chars[index] = REPLACEMENT
    for index in open_isolates:
        chars[index] = REPLACEMENT
    return "".join(chars)


def escape_unprintable(json_text: str) -> str:
    """Write unprintable characters of a JSON text as escapes, so that any file or terminal can hold it."""
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", json_text)


def is_right_to_left(text: str) -> bool:
    """Return whether the first character with a strong direction is right-to-left."""
    directions = (unicodedata.bidirectional(char) for char in text)
    return next((direction for direction in directions if direction in ("L", "R", "AL")), "L") != "L"


def isolate(text: str) -> str:
    """Wrap right-to-left text in a directional isolate, so that its neighbours keep their order."""
    return f"{RIGHT_TO_LEFT_ISOLATE}{clean(text)}{POP_ISOLATE}" if is_right_to_left(text) else text


@lru_cache(maxsize=4096)
def char_width(char: str) -> float:
    if char in CHAR_WIDTHS:
        return CHAR_WIDTHS[char]
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):  # combining and format characters
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return FULL_WIDTH
    if char.isascii() or "LATIN" in unicodedata.name(char, ""):
        return UPPERCASE_WIDTH if char.isupper() else LOWERCASE_WIDTH
    return OTHER_SCRIPT_WIDTH


def text_width(text: str, font_size: float = 1.0) -> float:
    return font_size * sum(map(char_width, text))


def graphemes(text: str) -> list[str]:
    """Split into grapheme clusters, for example a letter with its accents or a joined emoji."""
    clusters: list[str] = regex.findall(r"\X", text)
    return clusters


def truncate(text: str, max_width: float) -> str:
    """Cut the text at `max_width` em and append an ellipsis, if it is wider."""
    if text_width(text) <= max_width:
        return text
    prefix, width = "", text_width(ELLIPSIS)
    for grapheme in graphemes(text):
        width += text_width(grapheme)
        if width > max_width:
            break
        prefix += grapheme
    return prefix + ELLIPSIS


def wrap(text: str, max_width: float, width_of: Callable[[str], float] = text_width) -> list[str]:
    """Break into lines of at most `max_width` (em, by default) at spaces, and inside words wider than a line."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width_of(f"{lines[-1]} {word}") <= max_width:
            lines[-1] += f" {word}"
            continue
        lines.append("")
        for grapheme in graphemes(word):
            if lines[-1] and width_of(lines[-1] + grapheme) > max_width:
                lines.append("")
            lines[-1] += grapheme
    return [line for line in lines if line]
