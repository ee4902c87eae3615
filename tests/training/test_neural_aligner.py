"""Training of a neural aligner: links of joined pairs stay inside their parts, and a stopped training resumes."""

import os
import random
import signal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softgaze.alignment import train_aligner
from softgaze.errors import DataError
from softgaze.explain.alignment import Alignment, count_corpus
from softgaze.training import neural_aligner
from softgaze.training.neural_aligner import AlignedText, Row, link_loss, objective, start_network, train_network
from softgaze.training.train import Interrupted

MINUTES = 0.03


def planted(count):
    """Sentences, their word-by-word translations in a shuffled neighbourhood, and the links."""
    rng, pairs, gold = random.Random(4), [], []
    for _ in range(count):
        words = [rng.randrange(40) for _ in range(rng.randint(2, 9))]
        order = sorted(range(len(words)), key=lambda position: position + rng.uniform(0, 1.8))
        pairs.append((" ".join(f"s{word}" for word in words), " ".join(f"t{words[position]}" for position in order)))
        gold.append(Alignment({(position, target) for target, position in enumerate(order)}))
    return pairs, gold


@pytest.fixture(scope="module")
def text():
    pairs = planted(400)[0]
    return AlignedText(pairs, train_aligner(pairs))


@st.composite
def rows(draw):
    source, target = (draw(st.lists(st.integers(0, 9), min_size=1, max_size=5)) for _ in range(2))
    links = np.random.default_rng(len(source)).random((2, len(target), len(source))).astype(np.float32)
    return Row(np.array(source), np.array(target), *links)


@given(st.lists(rows(), min_size=1, max_size=4))
def test_links_of_a_joined_row_are_those_of_its_parts(parts):
    row = Row.joined(parts)
    source = target = 0
    for part in parts:
        cells = slice(target, target := target + len(part.target)), slice(source, source := source + len(part.source))
        for whole, own in zip(row[2:], part[2:], strict=True):
            np.testing.assert_array_equal(whole[cells], own)
    assert (len(row.source), len(row.target)) == (source, target)
    for whole, index in zip(row[2:], (2, 3), strict=True):
        assert whole.sum() == pytest.approx(sum(part[index].sum() for part in parts), rel=1e-5), "none between parts"


def test_batches_are_the_same_from_any_step_and_use_a_pair_once_per_epoch(text, monkeypatch):
    monkeypatch.setattr(neural_aligner, "POOL_PAIRS", 150)
    monkeypatch.setattr(neural_aligner, "BATCH_PARTS", 200)
    order = random.Random(1).sample(range(400), 400)
    batches = text.pool_batches(order, random.Random(2))
    used = [n for batch in batches for group in batch for n in group]
    assert sorted(used) == list(range(400))
    assert any(len(group) > 1 for batch in batches for group in batch)
    for batch in batches:
        longest = max(sum(len(text.ids[n][side]) for n in group) for group in batch for side in (0, 1))
        assert longest * len(batch) <= 200

    def first(step, count):
        stream = text.batches_from(step)
        return [[row.source.tolist() for row in next(stream)] for _ in range(count)]

    many = first(0, 70)
    assert first(37, 33) == many[37:], "across pools and epochs"


def test_the_loss_of_links_is_least_for_the_expected_attention():
    expected = torch.tensor([[0.5, 0.2], [0.0, 0.0]])
    right = torch.tensor([[0.5, 0.2, 0.3], [0.0, 0.0, 1.0]])
    others = torch.rand(50, 2, 3).softmax(-1)
    assert all(link_loss(right, expected) <= link_loss(other, expected) for other in others)


def test_the_first_loss_is_finite_and_falls(text):
    model, shares = start_network(text), text.shares
    optimizer = neural_aligner.make_optimizer(model)
    batch = next(text.batches_from(0))
    before = objective(model.eval(), batch, shares).item()
    for step in range(30):
        neural_aligner.update(model.train(), optimizer, batch, shares, step + 70, 0.0)
    assert objective(model.eval(), batch, shares).item() < before


def test_a_trained_network_gives_good_links_and_leaves_random_numbers_alone():
    pairs, gold = planted(400)
    state = torch.get_rng_state()
    aligner = train_network(pairs, train_aligner(pairs), MINUTES)
    assert torch.equal(torch.get_rng_state(), state)
    assert count_corpus(aligner.align(pairs), gold).aer < 0.06
    with pytest.raises(DataError, match="no sentence pairs"):
        train_network([("", "x")], aligner, MINUTES)


def test_a_stopped_training_resumes_and_removes_its_checkpoints(tmp_path):
    pairs = planted(400)[0]
    statistics = train_aligner(pairs)
    directory = tmp_path / "links.training"

    def messages_until(count):
        """Train for an hour, but stop after so many messages."""
        messages = []

        def report(message, share):
            messages.append(message)
            if len(messages) == count:
                os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(Interrupted):
            train_network(pairs, statistics, 60, directory=directory, report=report)
        return messages

    first, second = messages_until(3), messages_until(2)
    assert "update 3," in first[-1]
    assert "resuming at update 3" in second[0]
    assert "update 4," in second[1]
    other = train_network(planted(300)[0], statistics, 1e-6, directory=tmp_path / "other")
    assert other.network is not None
    assert directory.is_dir(), "checkpoints of another training stay"
    train_network(pairs, statistics, 1e-6, directory=directory)
    assert not directory.exists()
