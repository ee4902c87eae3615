"""Reliability of an attention map on one sentence: the share of its links that can be expected to be right.

Each output word has a link to the source word with its largest weight, or none (`Attention.alignment`). The
probability that this link is right is a logistic function of features that need no gold alignment: how peaked the map
is, whether the maps of the other layers agree, how far the link is from the diagonal, how likely the model finds the
output, and into how many tokens the source words are split. The reliability of a sentence is the mean of its links.

The function is fitted on held-out text with the links of a statistical aligner: on references and on the model's own
translations, of sentences alone and concatenated, of misspelled ones, and of references whose words were replaced pair
by pair, so that it covers unfamiliar text, too. If the bundle has a word aligner, as that of a guided head, the aligner
is asked about every link: it is right about text of other domains more often than the attention is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from softgaze.bundle import RELIABILITY
from softgaze.explain.alignment import Alignment, Links
from softgaze.explain.attention_map import Attention, LinkReliability, row_column_normalize
from softgaze.explain.confidence import Calibration
from softgaze.explain.explanation import Translator
from softgaze.explain.map_selection import SentencePairs, candidate_views, concatenate, word_maps
from softgaze.explain.recording import Flags, Matrix, Recording, SelectedMap, View
from softgaze.explain.scoring import Scorer, TokenizedPair, record_attention
from softgaze.explain.word_spans import is_unspaced_text
from softgaze.search.options import SearchOptions
from softgaze.special_tokens import EOS

FEATURES = 13
MIN_LOG_PROB = -15.0  # nats: smaller ones are no further evidence
TINY = 1e-9
HELD_OUT_PAIRS, GENERATED = 160, 80  # held-out pairs to fit on; translated by the model itself
CONCATENATED = ((2, 40), (4, 30))  # sentences joined, and how many such texts
MISSPELLED = ((0.3, 20), (1.0, 10))  # share of misspelled words, and how many such sentences
# Probability of a link by the score of the bundle's aligner; not confirmed: times that of the fit (docs/log.md).
CONFIRMED, DENIED = (0.65, 0.34), 0.3
SUBSTITUTED = 0.25  # weight of a link in a reference with replaced words; chosen on text of another domain, docs/log.md
SEED = 0


class WordAligner(Protocol):
    """Links the words of sentence pairs without attention: `softgaze.alignment.StatisticalAligner`."""

    def align(self, pairs: SentencePairs) -> list[Alignment]: ...


class ScoringAligner(Protocol):
    """Gives every link of two words a score, (target words, source words); links have one above the threshold."""

    threshold: float

    def scores(self, pairs: SentencePairs) -> list[Matrix]: ...


class ReliabilityCalibration(NamedTuple):
    """The logistic function of link features, and the map it holds for."""

    view: View
    function: Calibration

    @classmethod
    def of_facts(cls, facts: dict[str, Any]) -> "ReliabilityCalibration | None":
        """Read the calibration from the facts of a bundle."""
        function = Calibration.of_facts(facts, RELIABILITY, FEATURES)
        return None if function is None else cls(SelectedMap.view_of(facts[RELIABILITY]["view"]), function)

    def to_facts(self) -> dict[str, Any]:
        [(name, stored)] = self.function.to_facts(RELIABILITY).items()
        return {name: {**stored, "view": asdict(self.view)}}


def with_reliability(
    translator: Translator, pairs: Sequence[TokenizedPair], maps: Sequence[Attention | None]
) -> list[Attention | None]:
    """Return the maps with their reliability, from one pass over all pairs; unchanged if the model has no fit for them.

    Pairs with interventions have none: the function was fitted on unchanged attention. Empty outputs have no links.
    """
    calibration = ReliabilityCalibration.of_facts(translator.bundle.facts)
    fitting = [
        number
        for number, (pair, attention) in enumerate(zip(pairs, maps, strict=True))
        if attention is not None and pair.parts and calibration is not None and attention.view == calibration.view
        if attention.recording.target.words
        if not any(part.interventions for part in pair.parts)
    ]
    found = [*maps]
    if calibration is not None and fitting:
        log_probs = token_log_probs(translator.scorer, [pairs[number] for number in fitting])
        for number, own in zip(fitting, log_probs, strict=True):
            attention = maps[number]
            assert attention is not None
            values = calibration.function.probs(link_features(attention.recording, calibration.view, own))
            if translator.statistical_aligner is not None:
                values = with_second_opinion(values, attention, translator.statistical_aligner)
            linked = {target for _, target in attention.alignment().links}
            links = [value if row in linked else None for row, value in enumerate(values.round(4).tolist())]
            found[number] = replace(attention, reliability=LinkReliability(tuple(links)))
    return found


def with_second_opinion(probs: Matrix, attention: Attention, aligner: ScoringAligner) -> Matrix:
    """Return the probabilities (T,) that links are right, given the score that a word aligner gives them.

    Scripts without spaces have no words that the aligner could know.
    """
    source, target = (text.words for text in (attention.recording.source, attention.recording.target))
    [scores], weights = aligner.scores([(" ".join(source), " ".join(target))]), attention.word_weights()
    if is_unspaced_text(source) or is_unspaced_text(target) or scores.shape != weights.shape:
        return probs
    best = row_column_normalize(weights).argmax(axis=1)
    score = scores[np.arange(len(best)), best]
    confirmed: Matrix = np.where(score > aligner.threshold, CONFIRMED[0] + CONFIRMED[1] * score, DENIED * probs)
    return confirmed


def token_log_probs(scorer: Scorer, pairs: Sequence[TokenizedPair]) -> Iterator[Matrix]:
    """Yield the log-probabilities of the target tokens of each pair, with the EOS of each part."""
    parts = [part._replace(target=[*part.target, EOS]) for pair in pairs for part in pair.parts]
    scored = iter(scorer.log_probs(parts))
    for pair in pairs:
        yield np.concatenate([*islice(scored, len(pair.parts))])


def link_features(recording: Recording, view: View, log_probs: Matrix) -> Matrix:
    """Return the features (T, F) of the link of each output word."""
    others = [
        other
        for other in candidate_views(recording)
        if (other.head, other.measure, other.rows) == (None, "weights", "predicting")
    ]
    weights, *maps = word_maps(recording, [view, *others])  # each (T, S)
    rows, (height, width) = np.arange(len(weights)), weights.shape
    linked = row_column_normalize(weights).argmax(axis=1)
    of_row = (weights / (weights.sum(axis=1, keepdims=True) + TINY))[rows, linked]
    of_column = (weights / (weights.sum(axis=0) + TINY))[rows, linked]
    agreement = np.mean([row_column_normalize(each).argmax(axis=1) == linked for each in maps], axis=0)
    mass = np.mean([(each / (each.sum(axis=1, keepdims=True) + TINY))[rows, linked] for each in maps], axis=0)
    own_weight = weights[rows, linked]  # less than its share of the words if EOS has some
    off_diagonal = np.abs((linked + 0.5) / width - (rows + 0.5) / height)
    own = np.array([log_probs[list(label.positions)].sum() for label in recording.target.core_labels()])
    own = own.clip(min=MIN_LOG_PROB)
    tokens = float(np.mean([len(label.positions) for label in recording.source.core_labels()]))  # of a source word
    means = [of_row.mean(), agreement.mean(), own.mean(), np.exp(own.mean()), tokens]
    columns = [
        own_weight,
        of_row,
        of_column,
        agreement,
        mass,
        off_diagonal,
        own,
        np.exp(own),
        *(np.full(height, m) for m in means),
    ]
    return np.stack(columns, axis=1)


# --- calibration ------------------------------------------------------------------------------------------------


class LabelledLinks(NamedTuple):
    """The links of a map with their features, whether each is right, and whether the aligner links the word at all."""

    features: Matrix  # (N, F)
    is_right: Flags  # (N,)
    is_linked: Flags  # (N,)


def calibrate_reliability(
    translator: Translator, aligner: WordAligner, pairs: SentencePairs
) -> ReliabilityCalibration | None:
    """Fit the reliability of the selected map on held-out pairs; None if there are too few words.

    A link is wrong if the aligner links its word differently. A word that the aligner does not link counts only in the
    model's own translations: aligners miss some words of references, too, and words above this share are hallucinated.
    """
    if translator.selected_map is None or not translator.bundle.tokenizers.source.is_text:
        return None
    pairs = [pair for pair in pairs if min(len(side.split()) for side in pair) > 1][:HELD_OUT_PAIRS]
    if not pairs:
        return None
    links = [alignment.links for alignment in aligner.align(pairs)]
    texts = [(pairs, links), *(concatenate(pairs, links, size, count) for size, count in CONCATENATED)]
    labelled = [label_links(translator, *each) for each in texts]
    counts = [each.is_linked.astype(float) for each in labelled]
    for text, text_links in texts:
        labelled.append(label_links(translator, substitute_words(text, text_links), text_links))
        counts.append(SUBSTITUTED * labelled[-1].is_linked)
    missed = 1 - labelled[0].is_linked.mean() if len(labelled[0].is_linked) else 0.0
    for spelled, meant in generation_sources([source for source, _ in own] for own, _ in texts):
        own = label_generated(translator, aligner, spelled, meant)
        unlinked = 1 - own.is_linked.mean() if len(own.is_linked) else 0.0
        hallucinated = max(0.0, 1 - missed / unlinked) if unlinked else 0.0  # share of the unlinked words
        labelled.append(own)
        counts.append(np.where(own.is_linked, 1.0, hallucinated))
    features, is_right, _ = (np.concatenate(column) for column in zip(*labelled, strict=True))
    function = Calibration.fit(features, is_right, len(pairs), np.concatenate(counts))
    return None if function is None else ReliabilityCalibration(translator.selected_map.view, function)


def substitute_words(pairs: SentencePairs, links: Sequence[Links]) -> list[tuple[str, str]]:
    """Replace each two words that are linked only with each other by two such words of any pair; the links stay right.

    The model knows no such sentences: as in another domain, its attention is worse and its log-probabilities are lower.
    """
    random, only = np.random.default_rng(SEED), [links_of_one(own) for own in links]
    words = [(source.split(), target.split()) for source, target in pairs]
    known = sorted({(own[0][s], own[1][t]) for own, each in zip(words, only, strict=True) for s, t in each})
    for own, each in zip(words, only, strict=True):
        for (source, target), drawn in zip(each, random.integers(len(known), size=len(each)), strict=True):
            own[0][source], own[1][target] = known[drawn]
    return [(" ".join(source), " ".join(target)) for source, target in words]


def links_of_one(links: Links) -> list[tuple[int, int]]:
    """Return the links whose two words have no other link."""
    sources, targets = (Counter(link[side] for link in links) for side in (0, 1))
    return sorted(link for link in links if sources[link[0]] == targets[link[1]] == 1)


def generation_sources(texts: Iterable[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the sources that the model translates itself, and the same without misspelled words."""
    first, *others = texts
    yield first[:GENERATED], first[:GENERATED]
    for own in others:
        yield own[: len(own) // 2], own[: len(own) // 2]
    random = np.random.default_rng(SEED)
    for share, count in MISSPELLED:
        yield [misspell(source, share, random) for source in first[:count]], first[:count]


def label_generated(
    translator: Translator, aligner: WordAligner, spelled: Sequence[str], meant: Sequence[str]
) -> LabelledLinks:
    """Label the links of the model's own translations; the aligner reads the sources that are `meant`."""
    outputs = translator.translate(spelled, SearchOptions(beam_size=1))
    chosen = [index for index, output in enumerate(outputs) if len(output.parts) == 1 and output.text.strip()]
    alignments = aligner.align([(meant[index], outputs[index].text) for index in chosen])
    pairs = [(spelled[index], outputs[index].text) for index in chosen]
    return label_links(translator, pairs, [alignment.links for alignment in alignments])


def misspell(text: str, share: float, random: np.random.Generator) -> str:
    """Swap the inner letters of a share of the words, so that the tokenizer splits them into unusual tokens."""
    words = text.split()
    for index, word in enumerate(words):
        if len(word) > 3 and random.random() < share:
            inner = [*word[1:-1]]
            random.shuffle(inner)
            words[index] = word[0] + "".join(inner) + word[-1]
    return " ".join(words)


def label_links(translator: Translator, pairs: SentencePairs, links: Sequence[Links]) -> LabelledLinks:
    """Compare the links of the selected map with given ones; texts without spaces are left out."""
    tokenizers, selected = translator.bundle.tokenizers, translator.selected_map
    tokenized = [TokenizedPair.of(*pair, tokenizers) for pair in pairs]
    chosen = [number for number, pair in enumerate(tokenized) if pair.parts]
    recordings = record_attention(translator.scorer, tokenizers, [tokenized[number] for number in chosen])
    log_probs = token_log_probs(translator.scorer, [tokenized[number] for number in chosen])
    rows, right, linked = [np.zeros((0, FEATURES))], [np.zeros(0, bool)], [np.zeros(0, bool)]
    for number, recording, own in zip(chosen, recordings, log_probs, strict=True):
        if (recording.source.words, recording.target.words) != tuple(tuple(side.split()) for side in pairs[number]):
            continue
        attention = Attention(recording, selected.view, selected)
        best, targets = row_column_normalize(attention.word_weights()).argmax(axis=1), {t for _, t in links[number]}
        shown = sorted({target for _, target in attention.alignment().links})
        rows.append(link_features(recording, selected.view, own)[shown])
        right.append(np.array([(int(best[target]), target) in links[number] for target in shown], bool))
        linked.append(np.array([target in targets for target in shown], bool))
    return LabelledLinks(np.concatenate(rows), np.concatenate(right), np.concatenate(linked))
