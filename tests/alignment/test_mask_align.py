"""The network of the neural aligner: a part is predicted without being seen, and its attention is a distribution."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import torch

from softgaze.alignment import train_aligner
from softgaze.alignment.mask_align import MaskAlign, MaskedAttention, PartVocabulary, blocks
from softgaze.alignment.statistical import (
    MAX_PARTS,
    MIN_FACTOR,
    THRESHOLD,
    StatisticalAligner,
    agreement,
    links_above,
    relative_attention,
)
from softgaze.alignment.words import split_words
from softgaze.errors import DataError
from softgaze.models.base import Source

PAIRS = [("the house is big", "la maison est grande"), ("a house", "une maison"), ("a big dog", "un grand chien")] * 3


@pytest.fixture
def network():
    torch.manual_seed(3)
    return MaskAlign(20, 30).eval()


@pytest.fixture
def attention():
    torch.manual_seed(3)
    sides = zip(*([split_words(text) for text in pair] for pair in PAIRS), strict=True)
    vocabularies = tuple(map(PartVocabulary.of, sides))
    return MaskedAttention(MaskAlign(*map(len, vocabularies)).half().float(), vocabularies)  # rounded as in a file


SOURCES, TARGETS = [[3, 1, 4, 1, 5], [9, 2]], [[6, 5, 3], [2, 7, 1, 8]]


def test_rows_sum_to_one_with_the_column_of_unaligned_parts(network):
    forward, reverse = network(Source.of(SOURCES), Source.of(TARGETS))
    assert forward.attention.shape == (2, 4, 6)
    assert reverse.attention.shape == (2, 5, 5)
    for predicted in (forward, reverse):
        torch.testing.assert_close(predicted.attention.sum(-1), torch.ones(predicted.attention.shape[:2]))
        assert predicted.attention[..., -1].min() > 0
    assert not forward.attention[1, :, 2:5].any(), "padding gets nothing"


@pytest.mark.parametrize("side", [0, 1])
def test_a_part_is_predicted_without_being_seen(network, side):
    other, rows = (TARGETS, SOURCES) if side == 0 else (SOURCES, TARGETS)
    changed = [[11, *rows[0][1:]], rows[1]]

    def predicted(own):
        sides = (own, other) if side == 0 else (other, own)
        return network(*map(Source.of, sides))[1 - side]

    before, after = predicted(rows), predicted(changed)
    torch.testing.assert_close(before.features[0, 0], after.features[0, 0])
    torch.testing.assert_close(before.attention[0, 0], after.attention[0, 0])
    assert not torch.allclose(before.features[0, 1], after.features[0, 1]), "the other parts see it"


def test_padding_and_batches_change_nothing(attention):
    pairs = [(split_words(source), split_words(target)) for source, target in PAIRS]
    together, alone = list(attention.attention(pairs)), [next(attention.attention([pair])) for pair in pairs]
    for one, other, (source, target) in zip(together, alone, pairs, strict=True):
        for values, expected in zip(one, other, strict=True):
            assert values.shape == (len(target.parts), len(source.parts)), "both directions have one shape"
            np.testing.assert_allclose(values, expected, atol=1e-5)
    assert [pair for block in blocks(pairs, 40) for pair in block] == pairs


def test_unknown_parts_have_the_row_of_their_stem():
    vocabulary = PartVocabulary.of(map(split_words, ["house house housing houses houseboat"]))
    rows = vocabulary.find(split_words("house houses housekeeper zebra"))
    assert rows[1] == rows[2], "both are known by their stem"
    assert len({0, *rows[[0, 1]]}) == 3
    assert rows[3] == 0


def test_a_file_has_the_network_and_every_pair_gets_an_alignment(attention):
    statistics = train_aligner(PAIRS)
    aligner = replace(statistics, network=attention)
    content = aligner.to_bytes()
    again = StatisticalAligner.from_bytes(content, "file")
    texts = [*PAIRS, ("", "x"), ("", ""), ("a " * (MAX_PARTS + 1), "b"), ("a house", "une maison")]
    scores = aligner.scores(texts)
    for one, other in zip(scores, again.scores(texts), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert len(aligner.align(texts)) == len(texts)
    assert any(not np.allclose(one, other) for one, other in zip(scores, statistics.scores(texts), strict=True))
    assert again.to_bytes() == content


def test_a_direction_and_the_network_can_make_a_link_that_the_other_direction_doubts():
    forward, reverse = np.array([[0.01, 0.98]], np.float32), np.array([[0.8, 0.9]], np.float32)
    none, sure = np.zeros((2, 1, 2), np.float32), np.full((2, 1, 2), 0.8, np.float32)
    alone, doubted, shared = (links_above(agreement(forward, reverse, own), THRESHOLD) for own in (None, none, sure))
    assert alone.links == doubted.links == {(1, 0)}
    assert shared.links == {(0, 0), (1, 0)}
    assert agreement(np.ones((1, 1)), np.ones((1, 1)), np.ones((2, 1, 1))) == pytest.approx(1)
    assert all(values.min() >= MIN_FACTOR for values in relative_attention(*none))


@pytest.mark.parametrize("damage", [lambda v: v[:-1], lambda v: v * np.float16(np.nan)])
def test_a_damaged_network_is_rejected(attention, damage):
    aligner = replace(train_aligner(PAIRS), network=attention)
    with np.load(BytesIO(aligner.to_bytes())) as stored:
        arrays = dict(stored)
    arrays["network.bias"] = damage(arrays["network.bias"])
    file = BytesIO()
    np.savez(file, **arrays)
    with pytest.raises(DataError, match=r"network\.bias"):
        StatisticalAligner.from_bytes(file.getvalue(), "file")


def test_without_torch_the_statistics_align_alone(attention, monkeypatch):
    statistics = train_aligner(PAIRS)
    content = replace(statistics, network=attention).to_bytes()
    monkeypatch.setattr("softgaze.alignment.statistical.has_torch", lambda: False)
    alone = StatisticalAligner.from_bytes(content, "file")
    assert alone.network is None
    assert alone.align(PAIRS) == statistics.align(PAIRS)
