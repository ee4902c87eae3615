"""The statistical aligner: planted lexicons are recovered, links stay inside the sentence, files are exact."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgaze.alignment import statistical
from softgaze.alignment.hmm import JUMPS, JumpCounts, hmm_posteriors, jump_index
from softgaze.alignment.statistical import StatisticalAligner, train_aligner
from softgaze.alignment.words import split_words
from softgaze.errors import DataError, UsageError
from softgaze.explain.alignment import Alignment, count_corpus

WORDS = 60


def translated(dice, length):
    """A sentence of invented words, its translation in a shuffled neighbourhood, and the links."""
    words = [dice.randrange(WORDS) for _ in range(length)]
    order = sorted(range(length), key=lambda position: position + dice.uniform(0, 1.8))
    source = " ".join(f"s{'abcdefghij'[word % 10]}{word}" for word in words)
    target = " ".join(f"{'klmnopqrst'[words[position] % 10]}{words[position]}t" for position in order)
    return (source, target), Alignment({(position, place) for place, position in enumerate(order)})


@pytest.fixture(scope="module")
def planted():
    dice = random.Random(4)
    rows = [translated(dice, dice.randint(2, 9)) for _ in range(600)]
    return [pair for pair, _ in rows], [links for _, links in rows]


@pytest.fixture(scope="module")
def aligner(planted):
    return train_aligner(planted[0][:500])


def test_a_planted_lexicon_is_recovered_also_in_unseen_sentences(planted, aligner):
    pairs, gold = planted
    assert count_corpus(aligner.align(pairs[:500]), gold[:500]).aer < 0.05
    assert count_corpus(aligner.align(pairs[500:]), gold[500:]).aer < 0.05


def test_sentences_three_times_as_long_are_aligned(aligner):
    dice = random.Random(9)
    rows = [translated(dice, 30) for _ in range(20)]
    assert count_corpus(aligner.align([pair for pair, _ in rows]), [links for _, links in rows]).aer < 0.1


def test_a_word_that_shares_its_translation_is_linked():
    forward = np.array([[0.03, 0.95]], np.float32)  # the target word is nearly always translated from the second one
    reverse = np.array([[0.9, 0.9]], np.float32)
    scores = statistical.geometric_mean(forward, reverse)
    assert statistical.links_above(scores, statistical.THRESHOLD).links == {(0, 0), (1, 0)}


def test_agreement_in_training_keeps_links_that_one_direction_doubts(planted, monkeypatch):
    index = statistical.Cooccurrences.of(statistical.sample_pairs(planted[0][:50]))
    lifts = statistical.Lexicon.uninformed(index)
    both, jumps = lifts.lifts(lifts.find(index)), (np.ones(JUMPS), np.ones(JUMPS))
    kept = statistical.expected_links(index, both, jumps)[0]
    monkeypatch.setattr(statistical, "AGREEMENT", np.float32(1))
    assert (kept > statistical.expected_links(index, both, jumps)[0]).all()


def test_casing_and_attached_punctuation_change_nothing(planted, aligner):
    pairs, _ = planted
    plain = aligner.align(pairs[500:520])
    assert aligner.align([(source.upper(), target.title()) for source, target in pairs[500:520]]) == plain
    raw = [(f"«{source}.»", f"{target}!") for source, target in pairs[500:520]]
    spaced = [(f"« {source} .»", f"{target} !") for source, target in pairs[500:520]]
    for one, other in zip(aligner.align(raw), aligner.align(spaced), strict=True):
        words = {(source + 1, target) for source, target in one.links}
        assert words <= other.links


def test_learning_from_raw_or_from_tokenised_text_gives_the_same_aligner(planted):
    raw = [(f"{source.title()}.", f"«{target}», {target}!") for source, target in planted[0][:100]]
    tokenised = [(f"{source} .", f"« {target} », {target} !") for source, target in planted[0][:100]]
    learned, other = train_aligner(raw), train_aligner(tokenised)
    assert learned.to_bytes() == other.to_bytes()
    assert len(learned.align(raw)[0].links) >= len(planted[0][0][0].split())


def test_an_unknown_name_is_found_by_its_spelling(planted):
    pairs = [(f"{source} Zwölfkirchen", f"{target} Zwolfkirchen") for source, target in planted[0][:20]]
    learned = train_aligner([*planted[0][:300], *(("2024 Anna", "2024 Anna"),) * 30])
    last = [tuple(len(side.split()) - 1 for side in pair) for pair in pairs]
    assert sum(link in links.all for link, links in zip(last, learned.align(pairs), strict=True)) >= 18


texts = st.text(st.sampled_from("ab.,' 12é漢字の\u3000-"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, texts), max_size=6))
def test_every_pair_gets_links_inside_the_sentence(aligner, pairs):
    alignments = aligner.align(pairs)
    assert len(alignments) == len(pairs)
    for (source, target), links in zip(pairs, alignments, strict=True):
        sizes = [(split_words(text).word_of or (-1,))[-1] + 1 for text in (source, target)]
        assert all(one < sizes[0] and other < sizes[1] for one, other in links)


def test_a_pair_is_aligned_alone_as_in_a_block(planted, aligner):
    pairs = planted[0][:40]
    for pair, scores in zip(pairs, aligner.scores(pairs), strict=True):
        np.testing.assert_allclose(aligner.scores([pair])[0], scores, atol=1e-5)


def test_both_directions_are_one_model(planted, aligner):
    mirrored = train_aligner([(target, source) for source, target in planted[0][:500]])
    for pair, links in zip(planted[0][500:], aligner.align(planted[0][500:]), strict=True):
        assert mirrored.align([pair[::-1]])[0].inverted() == links


def test_posteriors_are_those_of_all_paths():
    """Enumerate every path from before the first position to behind the last; without a link, the position stays."""
    dice = np.random.default_rng(0)
    steps, size = 3, 2
    lifts = dice.uniform(0.1, 5, (1, steps, size)).astype(np.float32)
    jumps = dice.uniform(0.1, 1, JUMPS)

    def weight(jump):
        return jumps[jump + JUMPS // 2]

    def share(before, after):
        return weight(after - before) / sum(weight(position - before) for position in range(size))

    expected, total = np.zeros((steps, size)), 0.0
    for path in np.ndindex(*[2 * size] * steps):
        probability, before = 1.0, None
        for step, state in enumerate(path):
            position, linked = state % size, state < size
            if before is None:
                probability *= share(-1, position)
            else:
                probability *= share(before, position) if linked else position == before
            probability *= 0.8 * lifts[0, step, position] if linked else 0.2
            before = position
        probability *= weight(size - before)
        total += probability
        for step, state in enumerate(path):
            if state < size:
                expected[step, state] += probability
    np.testing.assert_allclose(hmm_posteriors(lifts, jumps)[0], expected / total, rtol=1e-4)


def test_a_jump_weighs_what_a_position_at_its_distance_is_worth():
    """If all positions are equally likely, so are all distances, though a sentence has fewer distant positions."""
    counts, size = JumpCounts(), 9
    counts.add(jump_index(size)[1:, :-1], np.full((size, size), 1000 / size, np.float32))
    weights = counts.weights()[counts.possible > 0]
    assert len(weights) == 2 * size - 1
    assert weights.max() / weights.min() < 1.01


def test_a_file_gives_the_same_links_and_bytes(tmp_path, planted, aligner):
    aligner.save(tmp_path / "a.npz")
    loaded = StatisticalAligner.load(tmp_path / "a.npz")
    assert loaded.to_bytes() == aligner.to_bytes()
    assert loaded.align(planted[0]) == aligner.align(planted[0])


def test_a_damaged_file_is_rejected(tmp_path, aligner):
    content = aligner.to_bytes()
    for damaged in (b"", b"no", content[:-40], content[:200] + b"\0\0\0\0" + content[204:]):
        with pytest.raises(DataError, match=r"a\.npz"):
            StatisticalAligner.from_bytes(damaged, "a.npz")
    with pytest.raises(DataError, match="cannot be read"):
        StatisticalAligner.load(tmp_path / "nowhere")


def test_training_repeats_exactly(planted, aligner):
    assert train_aligner(iter(planted[0][:500])).to_bytes() == aligner.to_bytes()


def test_a_large_corpus_is_sampled(monkeypatch, planted):
    monkeypatch.setattr(statistical, "MAX_TRAINING_CELLS", 4000)
    sample = statistical.sample_pairs(planted[0])
    assert 40 < len(sample) < 300
    assert sum(len(one.parts) * len(other.parts) for one, other in sample) <= 4000


def test_a_sentence_that_is_too_long_costs_nothing_and_has_no_links(aligner):
    endless = "word " * (statistical.MAX_PARTS + 1)
    assert [len(links) for links in aligner.align([(endless, "wort"), ("sa0", "k0t")])] == [0, 1]


def test_nothing_to_learn_and_wrong_thresholds_are_errors(aligner):
    with pytest.raises(DataError, match="no sentence pairs"):
        train_aligner([("", "a"), ("b", "")])
    for threshold in (0.0, 1.0, -1.0):
        with pytest.raises(UsageError, match="threshold"):
            StatisticalAligner(aligner.lexicon, aligner.jumps, threshold)
