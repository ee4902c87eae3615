"""Which of a server's languages is this text? From what each bundle knows about its own two."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from softgaze.bundle import Bundle
from softgaze.data.detector import Detector
from softgaze.data.readers import Reader
from softgaze.serve.languages import primary

ENOUGH = 1000  # characters that tell a language: more only take time
SCRIPTS = {
    "ar": ("ARABIC",),
    "be": ("CYRILLIC",),
    "bg": ("CYRILLIC",),
    "bn": ("BENGALI",),
    "el": ("GREEK",),
    "fa": ("ARABIC",),
    "he": ("HEBREW",),
    "hi": ("DEVANAGARI",),
    "hy": ("ARMENIAN",),
    "ja": ("HIRAGANA", "KATAKANA", "CJK"),
    "ka": ("GEORGIAN",),
    "kk": ("CYRILLIC",),
    "ko": ("HANGUL",),
    "mk": ("CYRILLIC",),
    "ne": ("DEVANAGARI",),
    "ru": ("CYRILLIC",),
    "sr": ("CYRILLIC", "LATIN"),
    "ta": ("TAMIL",),
    "te": ("TELUGU",),
    "th": ("THAI",),
    "uk": ("CYRILLIC",),
    "ur": ("ARABIC",),
    "zh": ("CJK",),
}  # of all others, Latin


class Detected(NamedTuple):
    """A language, and how sure it is, from 0 to 100."""

    language: str
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """As LibreTranslate tells it."""
        return {"language": self.language, "confidence": self.confidence}


class Detection:
    """A detector of all languages, made of those of the bundles."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.scripts = {language: scripts_in("".join(table)) for language, table in detector.languages.items()}

    @classmethod
    def of(cls, bundles: Iterable[Bundle]) -> "Detection":
        """What the first bundle with a language knows of it."""
        languages: dict[str, dict[str, float]] = {}
        floors: dict[str, float] = {}
        every = list(bundles)
        for detector in [*(each.detector for each in every if each.detector), *map(from_tokenizers, every)]:
            for language, table in detector.languages.items():
                languages.setdefault(language, table)
                floors.setdefault(language, detector.floors[language])
        return cls(Detector(languages, floors))

    def detect(self, text: str) -> list[Detected]:
        """All languages, likeliest first. Sure only as far as the text is in letters that the language has."""
        beginning = text[:ENOUGH]
        letters = [script for script in map(script_of, beginning) if script]
        shares = self.detector.detect(beginning)
        known = {
            name: sum(each in self.scripts[name] for each in letters) / len(letters) if letters else 0.0
            for name in shares
        }
        found = [Detected(name, round(100 * share * known[name], 1)) for name, share in shares.items()]
        return sorted(found, key=lambda each: -each.confidence)

    def detect_together(self, texts: Sequence[str]) -> Detected:
        """One language for all texts of a request."""
        return self.detect("\n".join(text[: max(1, ENOUGH // max(len(texts), 1))] for text in texts))[0]


def from_tokenizers(bundle: Bundle) -> Detector:
    """For a bundle without a detector: the subwords that each side has, of the scripts of its language."""
    sides = {
        bundle.description.source_language: bundle.tokenizers.source,
        bundle.description.target_language: bundle.tokenizers.target,
    }
    return Detector.train({language: own_pieces(language, side) for language, side in sides.items()})


def own_pieces(language: str, reader: Reader) -> list[str]:
    """Subwords that the language could write."""
    scripts = SCRIPTS.get(primary(language), ("LATIN",))
    plain = (piece.replace("▁", " ") for piece in reader.pieces(range(len(reader))) if not piece.startswith("<"))
    return [piece for piece in plain if scripts_in(piece) & {*scripts}]


def scripts_in(text: str) -> set[str]:
    """Of all letters."""
    return {script for script in map(script_of, text) if script}


@cache
def script_of(character: str) -> str:
    """The first word of a letter's name in Unicode, which is its script; empty for what is no letter."""
    return unicodedata.name(character, "").split(" ")[0].split("-")[0] if character.isalpha() else ""
