"""Scores of captions that have several references each: BLEU-1 to 4 by sacreBLEU, CIDEr-D, ROUGE-L, and exact match.

All are of lower-case text. BLEU keeps punctuation, and its signature says how it is cut into words; CIDEr-D and ROUGE-L
take the same words without punctuation, as COCO's evaluation does. That one cuts words with a program in Java and drops
punctuation for BLEU, too, so its figures differ a little from these. METEOR needs Java as well, and is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from softgaze.data.tokens import normalise
from softgaze.evaluation.cider import LONGEST, SPREAD, cider
from softgaze.evaluation.rouge import RECALL, rouge_l
from softgaze.gaze.words import QUOTES
from softgaze.metrics import bleu_tokenizer

SIZES = (1, 2, 3, 4)
TITLES = {**{f"bleu_{size}": f"BLEU-{size}" for size in SIZES}, "cider": "CIDEr-D", "rouge_l": "ROUGE-L"}

References = Sequence[Sequence[str]]  # those of each caption


@dataclass(frozen=True)
class CaptionScores:
    """All from 0 to 100, but CIDEr-D, which has 1000 for a caption that is its only reference: as papers report it."""

    images: int
    references: int
    values: dict[str, float]  # by the names of `TITLES`
    exact: float  # share of captions that equal one of their references, in per cent
    signatures: dict[str, str]  # by the same names

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = {"images": self.images, "references": self.references}
        return {**counts, **self.values, "exact": self.exact, "signatures": self.signatures}

    def lines(self) -> list[str]:
        """A line for each score, with its signature."""
        matches = round(self.exact * self.images / 100)
        return [
            *(f"{title:<8} {self.values[name]:7.2f}  {self.signatures[name]}" for name, title in TITLES.items()),
            f"{'exact':<8} {self.exact:7.2f}  {matches:,} of {self.images:,} captions equal a reference",
        ]


def score_captions(captions: Sequence[str], references: References, *, language: str = "") -> CaptionScores:
    """Compare captions with any number of references each. `language` is that of the captions, as a code."""
    if not captions or len(captions) != len(references) or not all(references):
        raise ValueError(f"{len(captions)} captions need as many sets of references, each with one at least")
    written = [normalise(text) for text in captions]
    wanted = [[normalise(text) for text in own] for own in references]
    values, signatures = bleu_scores(written, wanted, language)
    more, own_signatures = word_scores(written, wanted, language)
    return CaptionScores(
        images=len(written),
        references=sum(map(len, wanted)),
        values={**values, **more},
        exact=100 * sum(text in own for text, own in zip(written, wanted, strict=True)) / len(written),
        signatures={**signatures, **own_signatures},
    )


def bleu_scores(
    captions: Sequence[str], references: References, language: str
) -> tuple[dict[str, float], dict[str, str]]:
    """BLEU of n-grams up to each size, and the signatures; sacreBLEU takes sets of unequal sizes."""
    sets = [list(each) for each in zip_longest(*references)]  # the first reference of every caption, the second, …
    values, signatures = {}, {}
    for size in SIZES:
        bleu = BLEU(tokenize=bleu_tokenizer(language), lowercase=True, force=True, max_ngram_order=size)
        values[f"bleu_{size}"] = float(bleu.corpus_score(captions, sets).score)
        signatures[f"bleu_{size}"] = str(bleu.get_signature())
    return values, signatures


def word_scores(
    captions: Sequence[str], references: References, language: str
) -> tuple[dict[str, float], dict[str, str]]:
    """CIDEr-D and ROUGE-L, and what they were computed from."""
    tokenizer = bleu_tokenizer(language)
    bleu = BLEU(tokenize=tokenizer, lowercase=True, force=True)
    written = [words_of(text, bleu) for text in captions]
    wanted = [[words_of(text, bleu) for text in own] for own in references]
    pairs = list(zip(written, wanted, strict=True))
    values = {"cider": 100 * mean(cider(written, wanted)), "rouge_l": 100 * mean([rouge_l(*pair) for pair in pairs])}
    text = f"case:lc|tok:{tokenizer}|punctuation:no"
    return values, {"cider": f"n:{LONGEST}|sigma:{SPREAD:g}|idf:test|{text}", "rouge_l": f"beta:{RECALL:g}|{text}"}


def words_of(text: str, bleu: BLEU) -> list[str]:
    """As BLEU cuts them, without punctuation."""
    return list(filter(None, (word.strip(QUOTES) for word in bleu.tokenizer(text.lower()).split())))


def mean(values: Sequence[float]) -> float:
    """Of at least one."""
    return sum(values) / len(values)
