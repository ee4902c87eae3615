"""A finished training has measured which map to show; a model without attention has nothing to measure."""

import torch

from bundles import make_bundle
from corpora import corpus, small
from softgaze.bundle import ATTENTION, Bundle
from softgaze.data.corpus import Pair
from softgaze.gaze import Choice
from softgaze.gaze.choice import INFLUENCE, SENTENCES
from softgaze.training import train
from softgaze.training.looking import choose_map


class Dev:
    """As much of the prepared text as is looked at."""

    dev_text = [Pair("the small dog sees a cat.", "작은 개 고양이 봐요.")] * (SENTENCES + 9)


def test_a_training_ends_with_a_choice(tmp_path):
    config = small(validation={"every": 4, "sentences": 4, "samples": 1})
    train(config, corpus(tmp_path), None, tmp_path / "run", device="cpu")
    choice = Choice.from_dict(Bundle.open(tmp_path / "run").facts[ATTENTION])
    assert choice.by == INFLUENCE
    assert 0 <= choice.score <= 1
    assert 1 <= choice.sentences <= SENTENCES


def test_the_sample_is_bounded_and_measuring_again_finds_the_same(tmp_path):
    path = make_bundle(tmp_path / "model")
    found = []
    for _ in range(2):
        choose_map(path, Dev(), torch.device("cpu"))
        found.append(Bundle.open(path).facts[ATTENTION])
    assert found[0] == found[1]
    assert found[0]["sentences"] == SENTENCES
    assert Bundle.open(path).facts["steps"] == 12_345


def test_nothing_is_chosen_where_nothing_looks(tmp_path):
    path = make_bundle(tmp_path / "rnn", arch="rnn", options={"width": 16})
    choose_map(path, Dev(), torch.device("cpu"))
    assert ATTENTION not in Bundle.open(path).facts


def test_the_choice_is_of_the_bundle_not_of_a_model_in_training(tmp_path):
    """Measured on what is on the disk, in evaluation mode; dropout would make it a matter of luck."""
    path = make_bundle(tmp_path / "model", options={"width": 16, "heads": 2, "dropout": 0.9})
    choose_map(path, Dev(), torch.device("cpu"))
    first = Bundle.open(path).facts[ATTENTION]
    torch.manual_seed(99)
    choose_map(path, Dev(), torch.device("cpu"))
    assert Bundle.open(path).facts[ATTENTION] == first
