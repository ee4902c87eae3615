"""Filming: a frame for each validation, once and whole whatever happens, and a training that does not notice."""

import numpy
import pytest
import torch

from corpora import small
from runs import complete, prepared, spoil_weights, trainer
from softgaze.gaze.choice import WORDS
from softgaze.gaze.film import NAME, read_film
from softgaze.training import loop
from softgaze.training.film import Camera, best_pair
from softgaze.training.listeners import Listener
from softgaze.training.signals import Stop


def filmed(arch="transformer", **sections):
    return small(arch, **{"validation": {"film": True}, **sections})


def frames(path):
    return [(each.step, each.scores, each.text) for each in read_film(path)]


def same_films(one, other):
    assert frames(one) == frames(other)
    for first, second in zip(read_film(one), read_film(other), strict=True):
        weights = [each.attention.recording.parts[0].cross.weights for each in (first, second)]
        assert numpy.array_equal(*weights)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run of ten updates that nothing disturbs: it saves at 0, 4, 8, at its end, and after its last validation."""
    path = tmp_path_factory.mktemp("film") / "straight"
    complete(trainer(path, filmed(budget={"steps": 10})))
    return path


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong"])
def test_a_filmed_training_has_the_same_weights(tmp_path, arch):
    made = [trainer(tmp_path / name, config) for name, config in (("plain", small(arch)), ("film", filmed(arch)))]
    for each in made:
        complete(each)
    for one, other in zip(*(each.model.parameters() for each in made), strict=True):
        assert torch.equal(one, other)
    bundles = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "film")]
    assert bundles[0] == bundles[1]
    assert not (tmp_path / "plain" / NAME).exists()


def test_there_is_a_frame_before_the_first_update_and_one_for_each_validation(straight):
    found = read_film(straight)
    assert [each.step for each in found] == [0, 4, 8, 10]
    assert [set(each.scores) for each in found] == [set()] + [{"loss", "bleu", "chrf"}] * 3
    assert sorted(each.minutes for each in found) == [each.minutes for each in found]
    assert {each.attention.recording.kinds for each in found} == {("cross",)}


def test_every_frame_is_of_the_same_two_texts_of_a_good_length(straight):
    sides = {
        (each.attention.recording.source.words, each.attention.recording.target.words) for each in read_film(straight)
    }
    [(source, target)] = sides
    assert (" ".join(source), " ".join(target)) in prepared().dev_text
    assert len(source) in WORDS


@pytest.mark.parametrize("training", [True, False])
def test_shooting_leaves_the_model_as_it_was(tmp_path, training):
    made = trainer(tmp_path / "run")
    made.model.train(training)
    Camera.of(tmp_path / NAME, prepared(), torch.device("cpu")).shoot(made.model, 3, 60.0, {"loss": 1.23456})
    assert made.model.training is training
    assert all(each.grad is None for each in made.model.parameters())
    [frame] = read_film(tmp_path / NAME)
    assert (frame.step, frame.minutes, frame.scores) == (3, 1.0, {"loss": 1.2346})


GOOD, SHORT, LONG = ("a b c d e f g h", "x y"), ("a b c", "x"), (" ".join("ab" * 20), "x")
PAIRS = [
    ([SHORT, LONG, GOOD], GOOD),
    ([LONG, SHORT], SHORT),
    ([LONG], LONG),
    ([("", "x"), ("a", ""), (GOOD[0], " ")], None),
    ([], None),
]


@pytest.mark.parametrize(("pairs", "best"), PAIRS)
def test_a_sentence_of_eight_to_fourteen_words_is_filmed_if_there_is_one(pairs, best):
    assert best_pair(pairs) == best


def test_without_a_pair_there_is_no_film_and_a_line_says_so(tmp_path, monkeypatch):
    said = []
    listener = Listener()
    monkeypatch.setattr(listener, "said", said.append)
    monkeypatch.setattr("softgaze.training.film.best_pair", lambda pairs: None)
    made = trainer(tmp_path / "run", filmed(), listener)
    made.resume()
    assert made.camera is None
    assert said == ["no held-out pair has words on both sides, so there will be no film"]
    assert not (tmp_path / "run" / NAME).exists()


# --- whatever happens -------------------------------------------------------------------------------------------


def die(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("save", "torn"), [(1, 0), (2, 0), (3, 7), (4, 0), (5, 0), (5, 7)])
def test_killed_before_a_save_no_frame_is_there_twice_or_torn(tmp_path, monkeypatch, straight, save, torn):
    plain, left = loop.save_checkpoint, [False] * (save - 1)
    config = filmed(budget={"steps": 10})
    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", lambda *given: plain(*given) if left and not left.pop() else die())
        with pytest.raises(KeyboardInterrupt):
            complete(trainer(tmp_path / "killed", config))
    if torn:
        film = tmp_path / "killed" / NAME
        film.write_bytes(film.read_bytes()[:-torn])
    complete(trainer(tmp_path / "killed", config))
    same_films(straight, tmp_path / "killed")


def test_stopped_and_resumed_it_is_one_film(tmp_path, straight):
    config = filmed(budget={"steps": 10})
    first = trainer(tmp_path / "stopped", config)
    first.resume()
    stop = Stop()
    stop.ask(15)
    assert not first.train(stop)
    complete(trainer(tmp_path / "stopped", config))
    same_films(straight, tmp_path / "stopped")


@pytest.mark.parametrize("step", [2, 8])
def test_going_back_forgets_the_frames_it_will_shoot_again(tmp_path, monkeypatch, step):
    spoilt = spoil_weights(monkeypatch, step)
    complete(trainer(tmp_path / "run", filmed()))
    assert spoilt
    assert [each.step for each in read_film(tmp_path / "run")] == [0, 4, 8]
