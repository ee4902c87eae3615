"""Which of a bundle's languages is this text? Character n-grams and Bayes' rule, a few kilobytes in the bundle."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from softgaze.data.tokens import normalise

LONGEST = 3
KEPT = 2000  # n-grams a language: more only remember rare words
UNSEEN = 0.5  # the count of an n-gram never seen


def grams(text: str) -> Counter[str]:
    """All character n-grams of lower-cased text, words fenced by spaces."""
    fenced = f" {normalise(text).lower()} "
    return Counter(
        fenced[start : start + size] for size in range(1, LONGEST + 1) for start in range(len(fenced) - size + 1)
    )


@dataclass(frozen=True)
class Detector:
    """Log-probabilities of n-grams in each language."""

    languages: dict[str, dict[str, float]]
    floors: dict[str, float]  # of an n-gram the language never showed

    @classmethod
    def train(cls, texts: dict[str, Iterable[str]]) -> "Detector":
        """From some lines of each language."""
        languages, floors = {}, {}
        for language, lines in texts.items():
            counts: Counter[str] = Counter()
            for line in lines:
                counts.update(grams(line))
            kept = counts.most_common(KEPT)
            total = sum(count for _, count in kept) + UNSEEN
            languages[language] = {gram: round(math.log(count / total), 3) for gram, count in kept}
            floors[language] = round(math.log(UNSEEN / total), 3)
        return cls(languages, floors)

    def detect(self, text: str) -> dict[str, float]:
        """Probability of each language, likeliest first; they sum to 1. Nothing to go by: all alike."""
        seen = grams(text) if text.strip() else Counter()
        scores = {
            language: sum(count * table.get(gram, self.floors[language]) for gram, count in seen.items())
            for language, table in self.languages.items()
        }
        best = max(scores.values())
        shares = {language: math.exp(score - best) for language, score in scores.items()}
        total = sum(shares.values())
        return {name: share / total for name, share in sorted(shares.items(), key=lambda item: -item[1])}

    def to_json(self) -> str:
        """As kept in a bundle."""
        return json.dumps({"languages": self.languages, "floors": self.floors}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Detector":
        """From what `to_json` wrote."""
        return cls(**json.loads(text))
