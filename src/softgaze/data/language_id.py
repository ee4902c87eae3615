"""Language identification among the languages of a bundle: character n-grams and Bayes' rule, a few kilobytes."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from softgaze.data.tokenizer import normalise

MAX_N = 3
NGRAMS = 2000  # per language: more only memorise rare words
UNSEEN_COUNT = 0.5

# Languages and scripts written without spaces between words, and the code points of these scripts.
UNSPACED_LANGUAGES = (
    "zh",
    "ja",
    "th",
    "lo",
    "km",
    "my",
    "bo",
    "zho",
    "cmn",
    "yue",
    "jpn",
    "tha",
    "lao",
    "khm",
    "mya",
    "bod",
)
UNSPACED_SCRIPTS = ("HAN", "KANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
UNSPACED_RANGES = (
    (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x30FF),  # kana, CJK radicals and punctuation
    (0x31F0, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def is_unspaced(language: str) -> bool:
    """Return whether a language, given by a code such as zh-Hant, is written without spaces."""
    return language.lower().replace("_", "-").split("-")[0] in UNSPACED_LANGUAGES


def ngrams(text: str) -> Counter[str]:
    """Count all character n-grams of lower-cased text, with spaces around it."""
    padded = f" {normalise(text).lower()} "
    return Counter(padded[start : start + n] for n in range(1, MAX_N + 1) for start in range(len(padded) - n + 1))


@dataclass(frozen=True)
class LanguageDetector:
    """Log-probabilities of n-grams in each language; `floors` are those of unseen n-grams."""

    languages: dict[str, dict[str, float]]
    floors: dict[str, float]

    @classmethod
    def train(cls, texts: dict[str, Iterable[str]]) -> "LanguageDetector":
        languages, floors = {}, {}
        for language, lines in texts.items():
            counts: Counter[str] = Counter()
            for line in lines:
                counts.update(ngrams(line))
            frequent = counts.most_common(NGRAMS)
            total = sum(count for _, count in frequent) + UNSEEN_COUNT
            languages[language] = {ngram: round(math.log(count / total), 3) for ngram, count in frequent}
            floors[language] = round(math.log(UNSEEN_COUNT / total), 3)
        return cls(languages, floors)

    def detect(self, text: str) -> dict[str, float]:
        """Return the probability of each language, most likely first; uniform for empty text."""
        counts = ngrams(text) if text.strip() else Counter()
        scores = {
            language: sum(count * table.get(ngram, self.floors[language]) for ngram, count in counts.items())
            for language, table in self.languages.items()
        }
        best = max(scores.values())
        odds = {language: math.exp(score - best) for language, score in scores.items()}
        total = sum(odds.values())
        return {language: value / total for language, value in sorted(odds.items(), key=lambda item: -item[1])}

    def to_json(self) -> str:
        """Return the content of the file in a bundle."""
        return json.dumps({"languages": self.languages, "floors": self.floors}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "LanguageDetector":
        return cls(**json.loads(text))
