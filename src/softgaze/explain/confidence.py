"""Confidence: the probability that an output word is right; and its alternatives, other words for its position.

A word is right if the reference translation has the same word where a minimal edit distance aligns the two texts, as in
word-level quality estimation. A reference is one of many good translations, so a word that is counted as wrong may be
a good one: the confidence of a good translation is rather too low.

The confidence is a logistic function of three log-probabilities, fitted on held-out text: of the word, of the mean word
of the sentence, and of the least likely word before it. A model without a fit has the probability of the word instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from softgaze.bundle import CONFIDENCE
from softgaze.errors import DataError, UsageError
from softgaze.explain.explanation import Translation, Translator, tokenized_pair
from softgaze.explain.recording import Flags, Matrix
from softgaze.explain.scoring import IdPair
from softgaze.explain.word_spans import EDGE_PUNCTUATION, TokenizedText

NUM_WEIGHTS = 7  # a bias, and a log-probability and a probability for each of the three
MIN_WORDS = 100  # to fit on
RIDGE = 1.0  # shrinks the weights, so that a few words cannot give a confidence of 0 or 1
NEWTON_STEPS = 25
MAX_ALTERNATIVES = 10


@dataclass(frozen=True)
class Calibration:
    """A logistic function of word features, and the number of sentences and words it was fitted on."""

    weights: tuple[float, ...]
    sentences: int
    words: int

    @classmethod
    def fit(
        cls, features: Matrix, is_right: Flags, sentences: int, counts: Matrix | None = None
    ) -> "Calibration | None":
        """Fit by Newton's method with a small ridge; None for too few words, or if all are right or all wrong.

        `counts` weigh the words; by default each counts once.
        """
        if len(features) < MIN_WORDS or is_right.all() or not is_right.any():
            return None
        inputs, counts = np.insert(features, 0, 1.0, axis=1), np.ones(len(features)) if counts is None else counts
        weights, ridge = np.zeros(inputs.shape[1]), RIDGE * np.eye(inputs.shape[1])
        for _ in range(NEWTON_STEPS):
            probs = logistic(inputs @ weights)
            hessian = (inputs * (counts * probs * (1 - probs))[:, None]).T @ inputs + ridge
            weights += np.linalg.solve(hessian, inputs.T @ (counts * (is_right - probs)) - RIDGE * weights)
        return cls(tuple(weights.round(6).tolist()), sentences, len(features))

    @classmethod
    def of_facts(
        cls, facts: dict[str, Any], name: str = CONFIDENCE, num_features: int = NUM_WEIGHTS - 1
    ) -> "Calibration | None":
        """Read a calibration of a model from the facts of its bundle."""
        stored = facts.get(name)
        if stored is None:
            return None
        try:
            calibration = cls(tuple(map(float, stored["weights"])), int(stored["sentences"]), int(stored["words"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the manifest of the model has an invalid calibration of {name}: {error}") from error
        if len(calibration.weights) != num_features + 1 or not np.isfinite(calibration.weights).all():
            raise DataError(f"the manifest of the model must have {num_features + 1} finite weights of {name}")
        return calibration

    def to_facts(self, name: str = CONFIDENCE) -> dict[str, Any]:
        return {name: {**asdict(self), "weights": list(self.weights)}}

    def probs(self, features: Matrix) -> Matrix:
        """Return (N,) probabilities of words with these features (N, F)."""
        return logistic(features @ np.array(self.weights[1:]) + self.weights[0])


def logistic(values: Matrix) -> Matrix:
    return 0.5 * (1 + np.tanh(values / 2))  # never overflows


@dataclass(frozen=True)
class Confidence:
    """The words of a translation and the confidence of each."""

    words: tuple[str, ...]
    values: Matrix  # (T,) from 0 to 1
    calibration: Calibration | None  # None: the values are the model's probabilities

    def to_dict(self) -> dict[str, Any]:
        """Return the confidence as JSON types."""
        values = self.values.round(4).tolist()
        words = [{"text": word, "confidence": value} for word, value in zip(self.words, values, strict=True)]
        return {"words": words, "calibrated": self.calibration is not None}


def confidences(translator: Translator, translations: Sequence[Translation]) -> list[Confidence]:
    """Return the confidence of each word of many translations, scored in batches.

    A text that its tokens do not spell has no words: a placeholder was lost and put back in another translation.
    """
    calibration = Calibration.of_facts(translator.bundle.facts)
    results = []
    for translation, (words, features) in zip(translations, word_features(translator, translations), strict=True):
        if "".join(words) != "".join(translation.text.split()):
            words, features = (), features[:0]
        values = np.exp(features[:, 0]) if calibration is None else calibration.probs(features)
        results.append(Confidence(words, values, calibration))
    return results


def word_features(
    translator: Translator, translations: Sequence[Translation]
) -> Iterator[tuple[tuple[str, ...], Matrix]]:
    """Yield the words of each translation and their features (T, 6), from one pass over all translations."""
    parts = [part for translation in translations for part in tokenized_pair(translator, translation).parts]
    scored = iter(translator.engine.log_probs(parts))
    for translation in translations:
        log_probs = [*islice(scored, len(translation.parts))]
        text = target_text(translation)
        yield text.words, features_of(text, np.concatenate([np.zeros(0), *log_probs]))


def target_text(translation: Translation) -> TokenizedText:
    """Return the tokens of a translation and its words, which may have placeholders that no token spells."""
    text = TokenizedText.of(translation.text, [part.target_tokens for part in translation.parts], after=())
    words = tuple(translation.text.split())
    return replace(text, words=words) if len(words) == len(text.words) else text


def features_of(text: TokenizedText, log_probs: Matrix) -> Matrix:
    """Return (T, 6): the log-probabilities of the word, of the mean word, of the least likely word before; then exp.

    Attached punctuation does not count. A word whose letters are all in a token of the word before has its values.
    """
    own = np.zeros(len(text.words))
    for index, label in enumerate(text.core_labels()):
        own[index] = log_probs[list(label.positions)].sum() if label.positions else own[index - 1]
    before = np.minimum.accumulate(np.concatenate([[0.0], own[:-1]])) if len(own) else own
    logs = np.stack([own, np.full(len(own), own.mean() if len(own) else 0.0), before], axis=1)
    return np.concatenate([logs, np.exp(logs)], axis=1)


# --- calibration ------------------------------------------------------------------------------------------------


class LabelledWords(NamedTuple):
    """The words of translations with their features, and whether each is right."""

    features: Matrix  # (N, 6)
    is_right: Flags  # (N,)


def label_words(
    translator: Translator, translations: Sequence[Translation], references: Sequence[str]
) -> LabelledWords:
    """Compare the words of translations with those of the references."""
    rows, labels = [np.zeros((0, NUM_WEIGHTS - 1))], [np.zeros(0, bool)]
    encode, pieces = (getattr(translator.bundle.tokenizers.target, name) for name in ("encode", "pieces"))
    for (words, features), reference in zip(word_features(translator, translations), references, strict=True):
        [ids] = encode([reference])
        rows.append(features)
        labels.append(matched_words(words, TokenizedText.of(reference, [pieces(ids)], after=()).words))
    return LabelledWords(np.concatenate(rows), np.concatenate(labels))


def matched_words(words: Sequence[str], reference: Sequence[str]) -> Flags:
    """Return (T,): which words a minimal edit distance leaves unchanged; of equal distances, the most words.

    Punctuation around a word does not count.
    """
    sides = [[word.strip(EDGE_PUNCTUATION) or word for word in side] for side in (words, reference)]
    same = np.array([[one == other for other in sides[1]] for one in sides[0]]).reshape(len(words), len(reference))
    scale = len(words) + len(reference) + 1  # an edit outweighs all matches
    costs = np.zeros((len(words) + 1, len(reference) + 1), int)
    costs[:, 0], costs[0] = scale * np.arange(len(words) + 1), scale * np.arange(len(reference) + 1)
    steps = np.where(same, -1, scale)
    for row, column in np.ndindex(same.shape):
        kept = costs[row, column] + steps[row, column]
        costs[row + 1, column + 1] = min(kept, costs[row, column + 1] + scale, costs[row + 1, column] + scale)
    matched = np.zeros(len(words), bool)
    row, column = same.shape
    while row and column:
        if costs[row, column] == costs[row - 1, column - 1] + steps[row - 1, column - 1]:
            row, column = row - 1, column - 1
            matched[row] = same[row, column]
        elif costs[row, column] == costs[row - 1, column] + scale:
            row -= 1
        else:
            column -= 1
    return matched


def calibrate(
    translator: Translator, translations: Sequence[Translation], references: Sequence[str]
) -> Calibration | None:
    """Fit the confidence on translations of held-out text; None if the text is too short."""
    return Calibration.fit(*label_words(translator, translations, references), len(translations))


# --- other words ------------------------------------------------------------------------------------------------


class WordAlternative(NamedTuple):
    """A word that could stand in a position, and the translation that continues from it."""

    word: str
    probability: float  # of its tokens after the tokens before
    translation: Translation


def word_alternatives(
    translator: Translator, translation: Translation, index: int, count: int = 5
) -> list[WordAlternative]:
    """Return the most likely words in the position of a word, most likely first, each with its continuation.

    The tokens before it stay; the search continues from each of the likeliest next tokens. The word itself is usually
    among them. An alternative that starts with punctuation, which belongs to the word before, is shown with it.
    """
    if not 1 <= count <= MAX_ALTERNATIVES:
        raise UsageError(f"the number of alternatives must be from 1 to {MAX_ALTERNATIVES}, got {count}")
    text, strip_eos = target_text(translation), translator.bundle.tokenizers.source.strip_eos
    if not 0 <= index < len(text.words):
        raise UsageError(f"the translation has {len(text.words)} words, so there is no word {index}")
    position = text.word_of.index(index) if index in text.word_of else text.word_of.index(index - 1)
    ends = np.cumsum([len(part.target_ids) for part in translation.parts])
    number = int(np.searchsorted(ends, position, side="right"))
    before, part, after = translation.parts[:number], translation.parts[number], translation.parts[number + 1 :]
    offset = int(ends[number]) - len(part.target_ids)
    position -= offset
    beam = replace(translation.options, prefix="", min_length=0, temperature=None, top_k=0, top_p=1.0, seed=0)
    next_tokens = replace(beam, beam_size=2 * count, num_hypotheses=2 * count, max_length=position + 1)
    [first] = translator.continue_part(part, [part.target_ids[:position]], next_tokens)
    prefixes = [hypothesis.tokens for hypothesis in first if not hypothesis.finished]
    continued = translator.continue_part(part, prefixes, replace(beam, num_hypotheses=1))
    log_probs = translator.engine.log_probs(
        [IdPair(strip_eos(part.source_ids), hypothesis.tokens) for [hypothesis] in continued]
    )
    found: dict[str, WordAlternative] = {}
    for [hypothesis], scores in zip(continued, log_probs, strict=True):
        parts = (*before, translator.part(part.source_ids, hypothesis), *after)
        result = translator.join(translation.source, parts, translation.options)
        labels = target_text(result).core_labels()
        end = max(labels[index].positions, default=0) + 1 - offset if index < len(labels) else 0
        if end > position:
            word, probability = translator.decode(hypothesis.tokens[position:end]), np.exp(scores[position:end].sum())
            found.setdefault(word, WordAlternative(word, float(probability), result))
    return sorted(found.values(), key=lambda alternative: -alternative.probability)[:count]
