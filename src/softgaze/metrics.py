"""BLEU, chrF and TER by sacreBLEU, and exact match.

Both sides are normalised first (`data.tokenizer.normalise`: NFC, single spaces), because a reference typed as
decomposed Hangul is not a wrong translation. Every score comes with the signature that makes it comparable.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from softgaze.data.language_id import is_unspaced
from softgaze.data.tokenizer import normalise


@dataclass(frozen=True)
class Scores:
    """Scores from 0 to 100 (TER may exceed 100); higher is better except for TER."""

    sentences: int
    bleu: float
    chrf: float
    ter: float | None  # None if not requested
    exact: float  # per cent of sentences that equal their reference
    signatures: dict[str, str]  # by metric

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """Return one line per score, with its signature."""
        names = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
        rows = [(title, getattr(self, name), self.signatures.get(name)) for name, title in names.items()]
        matches = round(self.exact * self.sentences / 100)
        return [
            *(f"{title:<5} {value:6.2f}  {signature}" for title, value, signature in rows if value is not None),
            f"exact {self.exact:6.2f}  {matches:,} of {self.sentences:,} sentences equal their reference",
        ]


def score(hypotheses: Sequence[str], references: Sequence[str], *, language: str = "", ter: bool = True) -> Scores:
    """Score translations against one reference each. `language` is the target language; TER is slow."""
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"expected as many translations as references, got {len(hypotheses)} and {len(references)}")
    outputs, expected = [normalise(text) for text in hypotheses], [normalise(text) for text in references]
    metrics: dict[str, BLEU | CHRF | TER] = {**bleu_and_chrf(language)}
    if ter:
        unspaced = is_unspaced(language)
        metrics["ter"] = TER(normalized=unspaced, asian_support=unspaced)
    values = {name: float(metric.corpus_score(outputs, [expected]).score) for name, metric in metrics.items()}
    return Scores(
        sentences=len(outputs),
        bleu=values["bleu"],
        chrf=values["chrf"],
        ter=values.get("ter"),
        exact=100 * sum(map(str.__eq__, outputs, expected)) / len(outputs),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def bleu_and_chrf(language: str = "") -> dict[str, BLEU | CHRF]:
    """Return the two metrics that softgaze reports everywhere, configured for a target language."""
    # force: no warning about tokenised text
    return {"bleu": BLEU(tokenize=bleu_tokenizer(language), force=True), "chrf": CHRF()}


def sentence_scores(hypothesis: str, reference: str, *, language: str = "") -> dict[str, float]:
    """Return BLEU and chrF of one sentence, from 0 to 100; BLEU of short sentences uses the n-grams they have."""
    output, expected = normalise(hypothesis), [normalise(reference)]
    bleu = BLEU(tokenize=bleu_tokenizer(language), force=True, effective_order=True)
    scores = {"bleu": bleu.sentence_score(output, expected), "chrf": CHRF().sentence_score(output, expected)}
    return {name: round(float(value.score), 2) for name, value in scores.items()}


def bleu_tokenizer(language: str) -> str:
    """Return the sacreBLEU tokenizer of a language: 13a, or characters for scripts without spaces.

    Japanese uses MeCab if it is installed, as sacreBLEU does. Korean has spaces, so it uses 13a.
    """
    if not is_unspaced(language):
        return "13a"
    code = language.lower()[:2]
    if code in ("ja", "jp") and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    return "zh" if code in ("zh", "cm") else "char"
