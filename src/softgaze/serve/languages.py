"""Language names, language codes, and detection of the language of a text."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from babel import Locale
from babel.core import get_global

from softgaze.bundle import Bundle
from softgaze.data.language_id import LanguageDetector
from softgaze.data.tokenizer import Processor

DETECTION_CHARACTERS = 1000  # enough to detect a language; more only takes time
SCRIPTS = {  # the languages of each script, as Unicode character names begin; all others are in LATIN
    "ARABIC": "ar fa ur",
    "ARMENIAN": "hy",
    "BENGALI": "bn",
    "CJK": "ja zh",
    "CYRILLIC": "be bg kk mk ru sr uk",
    "DEVANAGARI": "hi ne",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "HANGUL": "ko",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "LATIN": "sr",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
}


def normalize_code(code: str) -> str:
    """Return a language code in the form en-us."""
    return code.lower().replace("_", "-")


def primary_code(code: str) -> str:
    """Return the language without script and region, of two letters where there is such a code."""
    primary = normalize_code(code).split("-")[0]
    alias: str = get_global("language_aliases").get(primary, primary) if len(primary) == 3 else primary
    return alias.split("_")[0]


def common_code(code: str, *, keep_region: bool = True) -> str:
    """Return the code that clients use for a language: en for eng, eng_Latn or en_XX; zh-Hant for zho_Hant."""
    primary, (_, *rest) = primary_code(code), code.replace("_", "-").split("-")
    if primary not in Locale("en").languages:
        return code
    likely = get_global("likely_subtags").get(primary, "").split("_")
    kept = (part for part in rest if part not in (*likely[1:2], "XX") and (keep_region or len(part) > 2))
    return "-".join([primary, *kept])


def language_name(code: str) -> str:
    """Return the English name of a language, or the code if it is unknown."""
    primary = primary_code(code)
    name = Locale("en").languages.get(primary)
    if name is None:
        return code
    return name if primary == code.lower() else f"{name} ({code})"


class Detected(NamedTuple):
    """A language and its confidence from 0 to 100."""

    language: str
    confidence: float


class CombinedDetector:
    """A detector of the languages of all models."""

    def __init__(self, detector: LanguageDetector) -> None:
        self.detector = detector
        self.scripts = {language: scripts_in("".join(table)) for language, table in detector.languages.items()}

    @classmethod
    def of(cls, bundles: Sequence[Bundle]) -> "CombinedDetector":
        """Combine the detectors of bundles; a language is detected by the first one that has it.

        A bundle without a detector gets one from the subwords of its tokenizers.
        """
        detectors = [bundle.detector for bundle in bundles if bundle.detector]
        for bundle in bundles:
            names, tokenizers = bundle.description, bundle.tokenizers
            sides = {names.source_language: tokenizers.source, names.target_language: tokenizers.target}
            detectors.append(LanguageDetector.train({code: subwords_of(code, side) for code, side in sides.items()}))
        languages: dict[str, dict[str, float]] = {}
        floors: dict[str, float] = {}
        for detector in detectors:
            for language, table in detector.languages.items():
                languages.setdefault(common_code(language), table)
                floors.setdefault(common_code(language), detector.floors[language])
        return cls(LanguageDetector(languages, floors))

    def detect(self, text: str) -> list[Detected]:
        """Return all languages, most probable first; confidence is scaled by the share of letters in its scripts."""
        prefix = text[:DETECTION_CHARACTERS]
        scripts = [script for script in map(script_of, prefix) if script]
        detected = []
        for language, probability in self.detector.detect(prefix).items():
            known = sum(script in self.scripts[language] for script in scripts)
            share = known / len(scripts) if scripts else 0.0
            detected.append(Detected(language, round(100 * probability * share, 1)))
        return sorted(detected, key=lambda entry: -entry.confidence)

    def detect_joint(self, texts: Sequence[str]) -> Detected:
        """Return one language for all texts of a request."""
        per_text = max(1, DETECTION_CHARACTERS // max(len(texts), 1))
        return self.detect("\n".join(text[:per_text] for text in texts))[0]


def subwords_of(language: str, tokenizer: Processor) -> list[str]:
    """Return the subwords of a tokenizer that are in a script of the language."""
    scripts = {name for name, codes in SCRIPTS.items() if primary_code(language) in codes.split()} or {"LATIN"}
    pieces = (piece.replace("▁", " ") for piece in tokenizer.pieces(range(len(tokenizer))) if not piece.startswith("<"))
    return [piece for piece in pieces if scripts_in(piece) & scripts]


def scripts_in(text: str) -> set[str]:
    return {script for script in map(script_of, text) if script}


@cache
def script_of(character: str) -> str:
    """Return the script of a letter: the first word of its Unicode name; empty for other characters."""
    return unicodedata.name(character, "").split(" ")[0].split("-")[0] if character.isalpha() else ""
