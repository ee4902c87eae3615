"""Scores of translations against references: BLEU, chrF and TER by sacreBLEU, and exact match.

Both sides are normalised first (`data.tokens.normalise`: NFC, single spaces), since a reference typed as decomposed
Hangul is not a wrong translation. Every score carries the signature that makes it comparable. Knows no models.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from softgaze.data.languages import is_unspaced
from softgaze.data.tokens import normalise


@dataclass(frozen=True)
class Scores:
    """All from 0 to 100 (TER may exceed it); higher is better except for TER."""

    sentences: int
    bleu: float
    chrf: float
    ter: float | None  # None when it was not asked for
    exact: float  # share of sentences that equal their reference, in per cent
    signatures: dict[str, str]  # by the names above

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """A line for each score, with its signature."""
        named = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
        rows = [(title, getattr(self, name), self.signatures.get(name)) for name, title in named.items()]
        matches = round(self.exact * self.sentences / 100)
        return [
            *(f"{title:<5} {value:6.2f}  {signature}" for title, value, signature in rows if value is not None),
            f"exact {self.exact:6.2f}  {matches:,} of {self.sentences:,} sentences equal their reference",
        ]


def score(hypotheses: Sequence[str], references: Sequence[str], *, language: str = "", ter: bool = True) -> Scores:
    """Compare translations with one reference each. `language` is the target's code; TER is slow, hence optional."""
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations cannot be scored against {len(references)} references")
    written, wanted = [normalise(text) for text in hypotheses], [normalise(text) for text in references]
    metrics: dict[str, BLEU | CHRF | TER] = {**bleu_and_chrf(language)}
    if ter:
        unspaced = is_unspaced(language)
        metrics["ter"] = TER(normalized=unspaced, asian_support=unspaced)
    values = {name: float(metric.corpus_score(written, [wanted]).score) for name, metric in metrics.items()}
    return Scores(
        sentences=len(written),
        bleu=values["bleu"],
        chrf=values["chrf"],
        ter=values.get("ter"),
        exact=100 * sum(map(str.__eq__, written, wanted)) / len(written),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def bleu_and_chrf(language: str = "") -> dict[str, BLEU | CHRF]:
    """The two scores that softgaze reports everywhere, as set up for a target language."""
    # force: no warning about tokenised text
    return {"bleu": BLEU(tokenize=bleu_tokenizer(language), force=True), "chrf": CHRF()}


def sentence_scores(hypothesis: str, reference: str, *, language: str = "") -> dict[str, float]:
    """BLEU and chrF of one sentence, from 0 to 100; BLEU of the n-grams there are, or a short one would get nothing."""
    written, wanted = normalise(hypothesis), [normalise(reference)]
    bleu = BLEU(tokenize=bleu_tokenizer(language), force=True, effective_order=True)
    found = {"bleu": bleu.sentence_score(written, wanted), "chrf": CHRF().sentence_score(written, wanted)}
    return {name: round(float(each.score), 2) for name, each in found.items()}


def bleu_tokenizer(language: str) -> str:
    """What cuts text into words for BLEU: sacreBLEU's 13a, but characters where there are no spaces.

    Japanese by MeCab where it is installed, as sacreBLEU itself would; Korean has spaces, so 13a serves.
    """
    if not is_unspaced(language):
        return "13a"
    kind = language.lower()[:2]
    if kind == "ja" and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    return "zh" if kind == "zh" else "char"
