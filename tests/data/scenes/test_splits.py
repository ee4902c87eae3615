"""The three parts: the same for the same seed; dev and test show what train never does, of parts it has."""

from collections import Counter

import numpy
import pytest

from softgaze.data.boxes import pointing
from softgaze.data.scenes import COLOURS, LIMIT, SHAPES, SIZES, SPLITS, Scene, Scenes, chance, draw, generate, scene
from softgaze.errors import DataError


def kinds(some: tuple[Scene, ...]) -> Counter[tuple[str, str]]:
    return Counter((thing.colour.english, thing.shape.english) for scene in some for thing in scene.things)


def test_the_same_seed_gives_the_same_scenes_and_another_seed_others():
    assert generate(60, seed=7) == generate(60, seed=7)
    assert generate(60, seed=7).train != generate(60, seed=8).train


def test_fewer_scenes_are_the_first_of_more(scenes: Scenes):
    few = generate(100)
    assert few.train == scenes.train[:100]
    assert few.test == scenes.test[:5]
    assert scene("dev", 3) == scenes.dev[3]


def test_sizes_of_the_parts(scenes: Scenes):
    assert [len(getattr(scenes, split)) for split in SPLITS] == [2_000, 100, 100]
    assert [len(getattr(generate(1), split)) for split in SPLITS] == [1, 0, 0]


def test_held_out_scenes_show_a_combination_that_train_never_does(scenes: Scenes):
    trained = kinds(scenes.train)
    own = {split: set(kinds(getattr(scenes, split))) - set(trained) for split in ("dev", "test")}
    assert not own["dev"] & own["test"]
    for split in ("dev", "test"):
        assert len(own[split]) == 4
        for one in getattr(scenes, split):
            assert own[split] & set(kinds((one,)))


def test_every_part_of_what_is_held_out_is_common_in_train(scenes: Scenes):
    trained = kinds(scenes.train)
    assert len(trained) == 56
    assert min(trained.values()) > 0.5 * max(trained.values())
    assert {colour for colour, _ in trained} == {colour.english for colour in COLOURS}
    assert {shape for _, shape in trained} == {shape.english for shape in SHAPES}
    sizes = Counter((thing.size, thing.shape) for scene in scenes.train for thing in scene.things)
    assert len(sizes) == len(SIZES) * len(SHAPES)
    assert len({tuple(map(len, scene.rows)) for scene in scenes.train}) == 5


def test_a_scene_shows_no_kind_twice(scenes: Scenes):
    assert all(max(kinds((one,)).values()) == 1 for one in (*scenes.train, *scenes.test))


def test_chance_is_what_an_even_gaze_gets(scenes: Scenes):
    even = numpy.full((7, 5), 1 / 35)
    measured = [pointing(even, [box]) for one in scenes.test for box in draw(one).boxes]
    assert chance(scenes.test) == pytest.approx(numpy.mean(measured))
    assert 0.05 < chance(scenes.test) < 0.15


@pytest.mark.parametrize("pictures", [0, -5, LIMIT + 1])
def test_too_few_or_too_many_is_one_clear_line(pictures: int):
    with pytest.raises(DataError, match=r"scenes: .* pictures asked for") as caught:
        generate(pictures)
    assert "\n" not in str(caught.value)


def test_an_unknown_split_is_a_mistake():
    with pytest.raises(ValueError, match="no split 'trian'; there are train, dev, test"):
        scene("trian", 0)
