"""Caption metrics with several references per image: BLEU-1 to 4, CIDEr-D, ROUGE-L and exact match.

All lower-case the text. BLEU is sacreBLEU's and keeps punctuation; CIDEr-D and ROUGE-L use the same words without
punctuation, as COCO's evaluation does. COCO tokenizes with a Java program and drops punctuation for BLEU too, so its
values differ slightly. METEOR needs Java and is not included.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from softgaze.data.tokenizer import normalise
from softgaze.explain.word_spans import EDGE_PUNCTUATION
from softgaze.metrics import bleu_tokenizer

MAX_NGRAM = 4
CIDER_SIGMA = 6.0  # words of length difference
CIDER_SCALE = 10.0
ROUGE_BETA = 1.2  # weight of recall against precision, as in COCO
TITLES = {
    **{f"bleu_{size}": f"BLEU-{size}" for size in range(1, MAX_NGRAM + 1)},
    "cider": "CIDEr-D",
    "rouge_l": "ROUGE-L",
}

Words = Sequence[str]
Ngram = tuple[str, ...]


@dataclass(frozen=True)
class CaptionScores:
    """Scores from 0 to 100; CIDEr-D has 1000 for a caption equal to its only reference, as papers report it."""

    images: int
    references: int
    values: dict[str, float]  # by the names of `TITLES`
    exact: float  # % of captions that equal one of their references
    signatures: dict[str, str]  # by the names of `TITLES`

    def to_dict(self) -> dict[str, Any]:
        counts = {"images": self.images, "references": self.references}
        return {**counts, **self.values, "exact": self.exact, "signatures": self.signatures}

    def lines(self) -> list[str]:
        """Return one line per score, with its signature."""
        matches = round(self.exact * self.images / 100)
        return [
            *(f"{title:<8} {self.values[name]:7.2f}  {self.signatures[name]}" for name, title in TITLES.items()),
            f"{'exact':<8} {self.exact:7.2f}  {matches:,} of {self.images:,} captions equal a reference",
        ]


def score_captions(
    captions: Sequence[str], references: Sequence[Sequence[str]], *, language: str = ""
) -> CaptionScores:
    """Compare captions with any number of references each; `language` is the code of their language."""
    if not captions or len(captions) != len(references) or not all(references):
        raise ValueError(f"expected a non-empty set of references for each of {len(captions)} captions")
    captions = [normalise(text) for text in captions]
    references = [[normalise(text) for text in texts] for texts in references]
    tokenizer = bleu_tokenizer(language)
    values, signatures = {}, {}
    # sacreBLEU takes the first reference of every caption, the second, …; None where a caption has fewer.
    reference_sets = [list(texts) for texts in zip_longest(*references)]
    for size in range(1, MAX_NGRAM + 1):
        bleu = BLEU(tokenize=tokenizer, lowercase=True, force=True, max_ngram_order=size)
        values[f"bleu_{size}"] = float(bleu.corpus_score(captions, reference_sets).score)
        signatures[f"bleu_{size}"] = str(bleu.get_signature())

    def words(text: str) -> list[str]:
        return list(filter(None, (word.strip(EDGE_PUNCTUATION) for word in bleu.tokenizer(text.lower()).split())))

    caption_words = [words(text) for text in captions]
    reference_words = [[words(text) for text in texts] for texts in references]
    values["cider"] = 100 * fmean(cider(caption_words, reference_words))
    values["rouge_l"] = 100 * fmean(map(rouge_l, caption_words, reference_words))
    text_signature = f"case:lc|tok:{tokenizer}|punctuation:no"
    signatures["cider"] = f"n:{MAX_NGRAM}|sigma:{CIDER_SIGMA:g}|idf:test|{text_signature}"
    signatures["rouge_l"] = f"beta:{ROUGE_BETA:g}|{text_signature}"
    return CaptionScores(
        images=len(captions),
        references=sum(map(len, references)),
        values=values,
        exact=100 * sum(text in texts for text, texts in zip(captions, references, strict=True)) / len(captions),
        signatures=signatures,
    )


def cider(captions: Sequence[Words], references: Sequence[Sequence[Words]]) -> list[float]:
    """Return CIDEr-D (Vedantam et al. 2015) of each caption, 0 to 10, as COCO's evaluation server computes it.

    N-grams of 1 to 4 words are weighted by tf-idf over the references of all images; the counts of a caption are
    clipped to those of the reference, and length differences are penalised. With a single image every score is 0.
    """
    sizes = range(1, MAX_NGRAM + 1)
    document_counts = Counter[Ngram]()
    for texts in references:
        document_counts.update({ngram for words in texts for size in sizes for ngram in _ngrams(words, size)})

    def tf_idf(words: Words, size: int) -> dict[Ngram, float]:
        counts = Counter(_ngrams(words, size))
        idf = {ngram: math.log(len(references) / max(document_counts[ngram], 1)) for ngram in counts}
        return {ngram: count * idf[ngram] for ngram, count in counts.items()}

    def similarity(caption: Words, reference: Words, size: int) -> float:
        ours, theirs = tf_idf(caption, size), tf_idf(reference, size)
        norm = math.hypot(*ours.values()) * math.hypot(*theirs.values())
        if not norm:
            return 0.0
        product = sum(min(value, theirs[ngram]) * theirs[ngram] for ngram, value in ours.items() if ngram in theirs)
        return product / norm * math.exp(-((len(caption) - len(reference)) ** 2) / (2 * CIDER_SIGMA**2))

    return [
        CIDER_SCALE * fmean(similarity(caption, words, size) for words in texts for size in sizes)
        for caption, texts in zip(captions, references, strict=True)
    ]


def _ngrams(words: Words, size: int) -> list[Ngram]:
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


def rouge_l(caption: Words, references: Sequence[Words]) -> float:
    """Return ROUGE-L (Lin & Och 2004): F of the best precision and the best recall over the references, 0 to 1."""
    common = [common_length(caption, words) for words in references]
    precision = max(common) / len(caption) if caption else 0.0
    recall = max(length / max(len(words), 1) for length, words in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


def common_length(one: Words, other: Words) -> int:
    lengths = [0] * (len(other) + 1)  # of the part of `one` read so far with each prefix of `other`
    for word in one:
        diagonal = 0
        for column, other_word in enumerate(other, 1):
            longer = diagonal + 1 if word == other_word else max(lengths[column], lengths[column - 1])
            diagonal, lengths[column] = lengths[column], longer
    return lengths[-1]
