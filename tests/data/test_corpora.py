"""The built-in corpora: splits, sizes, held-out combinations, drawings and the files they are written to."""

import json
import random
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from softgaze.data import captions
from softgaze.data.captions import read_boxes
from softgaze.data.corpora import phrasebook, scenes
from softgaze.data.images import pointing
from softgaze.errors import DataError

# --- phrasebook -------------------------------------------------------------------------------------------------


def words(pair):
    return {word.strip(".,?") for word in f"{pair.source.lower()} {pair.target}".split()}


@pytest.mark.parametrize("seed", phrasebook.SEEDS)
def test_the_full_phrasebook(seed):
    splits = {split: phrasebook.load(split, seed=seed) for split in phrasebook.SPLITS}
    assert [len(pairs) for pairs in splits.values()] == [20_000, 500, 500, 500]
    every = [pair for pairs in splits.values() for pair in pairs]
    assert len({pair.source for pair in every}) == len(every)
    for pair in every:
        assert re.fullmatch(r"\d+[-p]\d+( \d+[-p]\d+)*", pair.gold)
        links = [tuple(map(int, re.split("[-p]", link))) for link in pair.gold.split()]
        assert {source for source, _ in links} == set(range(len(pair.source.split())))
        assert {target for _, target in links} == set(range(len(pair.target.split())))
    lengths = {split: [len(pair.source.split()) for pair in pairs] for split, pairs in splits.items()}
    assert max(max(lengths[split]) for split in ("train", "dev", "test")) == phrasebook.MAX_WORDS
    assert set(lengths["long"]) <= set(phrasebook.LONG_WORDS)


@pytest.mark.parametrize("pairs", [60, 600, 3000])
def test_a_smaller_phrasebook_is_a_prefix_whose_dev_and_test_have_no_unknown_word(pairs):
    train = phrasebook.load("train", pairs)
    assert train == phrasebook.load("train")[:pairs]
    known = set().union(*map(words, train))
    for split in ("dev", "test"):
        held_out = phrasebook.load(split, pairs)
        assert pairs // 20 - 1 <= len(held_out) <= pairs // 20
        assert set().union(*map(words, held_out)) <= known


def test_sets_by_length_have_equally_many_sentences_per_range():
    inside, beyond = (phrasebook.load(name, seed=phrasebook.LENGTH_SEED) for name in phrasebook.LENGTH_SPLITS)
    per_range = Counter((len(pair.source.split()) - 1) // 8 for pair in inside)
    assert per_range == dict.fromkeys(range(5), 100)
    per_range = Counter((len(pair.source.split()) - 1) // 10 for pair in beyond)
    assert per_range == dict.fromkeys(range(4, 8), 50)


@pytest.mark.parametrize(("pairs", "seed"), [(0, 0), (-5, 0), (20_001, 0), (100, 2)])
def test_a_phrasebook_that_is_not_shipped_is_an_error_that_names_the_generator(pairs, seed):
    with pytest.raises(DataError, match=r"python -m tools\.phrasebook"):
        phrasebook.load("train", pairs, seed)


def test_the_phrasebook_is_written_as_utf8_lines(tmp_path):
    phrasebook.write(tmp_path / "book", pairs=100, seed=1)
    names = {f"{split}.{column}" for split in phrasebook.SPLITS for column in ("en", "ko", "gold")} | {"README.txt"}
    assert {path.name for path in (tmp_path / "book").iterdir()} == names
    for split in phrasebook.SPLITS:
        columns = [(tmp_path / "book" / f"{split}.{column}").read_bytes() for column in ("en", "ko", "gold")]
        assert b"\r" not in b"".join(columns)
        rows = zip(*(column.decode().splitlines() for column in columns), strict=True)
        assert tuple(rows) == phrasebook.load(split, 100, 1)
    assert "seed: 1" in (tmp_path / "book" / "README.txt").read_text(encoding="utf-8")


# --- scenes -----------------------------------------------------------------------------------------------------

TRAIN, DEV, TEST = (scenes.load(split, 2000) for split in scenes.SPLITS)


def kinds(some):
    return Counter((item.rgb, item.shape) for scene in some for item in scene.objects)


def edges(box, side):
    scaled = [edge * side for edge in box]
    assert scaled == pytest.approx(np.rint(scaled)), "boxes are of whole pixels"
    return [round(edge) for edge in scaled]


def test_sizes_and_prefixes():
    assert [len(part) for part in (TRAIN, DEV, TEST)] == [2000, 100, 100]
    assert [len(scenes.load(split)) for split in scenes.SPLITS] == list(scenes.SPLITS.values())
    assert scenes.load("train", 100) == TRAIN[:100]
    assert scenes.load("test", 1) == ()
    for count in (0, -5, 10_001):
        with pytest.raises(DataError, match="expected 1 to 10,000 images"):
            scenes.load("train", count)


def test_held_out_scenes_show_a_combination_that_train_never_does_of_common_parts():
    trained = kinds(TRAIN)
    assert len(trained) == 56
    assert min(trained.values()) > 0.5 * max(trained.values())
    held_out = [set(kinds(part)) - set(trained) for part in (DEV, TEST)]
    assert [len(part) for part in held_out] == [4, 4]
    assert not held_out[0] & held_out[1]
    for part, new in zip((DEV, TEST), held_out, strict=True):
        assert all(new & set(kinds([scene])) for scene in part)
    assert all(max(kinds([scene]).values()) == 1 for scene in TRAIN)


@pytest.mark.parametrize("side", [scenes.SIDE, 97])
def test_boxes_hold_the_pixels_of_an_object_and_no_more(side):
    for scene in TRAIN[:100]:
        drawing = scenes.draw(scene, side)
        assert drawing.pixels.shape == (side, side, 3)
        assert drawing.pixels.dtype == np.uint8
        for item, box in zip(scene.objects, drawing.boxes, strict=True):
            inked = (scenes.draw(replace(scene, objects=(item,)), side).pixels != scene.background).any(axis=2)
            rows, columns = inked.any(axis=1).nonzero()[0], inked.any(axis=0).nonzero()[0]
            assert [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1] == edges(box, side)


def test_objects_do_not_touch_and_none_is_cut_off():
    for scene in TRAIN[:300]:
        drawing = scenes.draw(scene)
        covered = np.zeros((scenes.SIDE, scenes.SIDE), dtype=int)
        for item, box in zip(scene.objects, drawing.boxes, strict=True):
            left, top, right, bottom = edges(box, scenes.SIDE)
            assert 0 < left < right < scenes.SIDE
            assert 0 < top < bottom < scenes.SIDE
            covered[top:bottom, left:right] += 1
            assert (drawing.pixels[top:bottom, left:right] == item.rgb).all(axis=2).mean() > 0.1
        assert covered.max() == 1
        assert (drawing.pixels[covered == 0] == scene.background).all()


def test_every_shape_stays_in_its_circle_and_differs_from_the_others():
    x, y = np.meshgrid(np.linspace(-1.5, 1.5, 301), np.linspace(-1.5, 1.5, 301))
    insides = [scenes.contains(shape, x, y) for shape in scenes.SHAPES]
    for inside in insides:
        assert 0.1 < inside.mean() * 9 / np.pi < 1
        assert np.hypot(x, y)[inside].max() <= 1.0001
    small = next(scene for scene in TRAIN if "small" in scene.captions["en"].split()[:2])
    items = [small.objects[0]._replace(shape=shape, rgb=(0, 0, 0), angle=0.0) for shape in scenes.SHAPES]
    drawn = [scenes.draw(replace(small, objects=(item,))).pixels.astype(int) for item in items]
    for index, one in enumerate(drawn):
        for other in drawn[:index]:
            assert (abs(one - other).max(axis=2) > 60).sum() >= 20
    with pytest.raises(ValueError, match="unknown shape 'cube'"):
        scenes.contains("cube", x, y)


def test_a_larger_image_is_the_same_image():
    for scene in TRAIN[:20]:
        small, large = scenes.draw(scene, 60).pixels, scenes.draw(scene, 240).pixels
        shrunk = large.reshape(60, 4, 60, 4, 3).mean(axis=(1, 3))
        assert abs(small - shrunk).max() < 40
        assert abs(small - shrunk).mean() < 0.5


def reading_order(scene):
    """Order objects by their boxes alone: objects whose boxes share some height are in one row."""
    drawn = list(zip(scenes.draw(scene).boxes, scene.objects, strict=True))
    random.Random(0).shuffle(drawn)
    rows = []
    for box, item in sorted(drawn, key=lambda one: one[0].top):
        if rows and any(box.top < other.bottom for other, _ in rows[-1]):
            rows[-1].append((box, item))
        else:
            rows.append([(box, item)])
    return [[item for _, item in sorted(row, key=lambda one: one[0].left)] for row in rows]


@pytest.mark.parametrize(("language", "beside", "below"), [("en", "left of", "above"), ("ko", "오른쪽에", "아래에")])
def test_the_caption_follows_from_the_image(language, beside, below):
    colours = {}
    for scene in (*TRAIN[:500], *TEST):
        rows = reading_order(scene)
        assert [item for row in rows for item in row] == list(scene.objects)
        text = scene.captions[language].replace(beside, "→").replace(below, "↓")
        expected = "".join("→" if column else "↓" for row in rows for column, _ in enumerate(row))[1:]
        assert "".join(re.findall("[→↓]", text)) == expected
        caption = scene.captions[language].replace(",", "").split()
        for noun, item in zip(scene.nouns(language), scene.objects, strict=True):
            assert caption[noun] == (item.shape if language == "en" else scenes.SHAPES[item.shape])
            colours.setdefault(caption[noun - 1], item.rgb)
            assert colours[caption[noun - 1]] == item.rgb
    assert len(colours) == 8


def test_chance_is_the_pointing_of_a_uniform_map():
    uniform = np.full((7, 5), 1 / 35)
    measured = [pointing(uniform, [box]) for scene in TEST for box in scenes.draw(scene).boxes]
    assert scenes.chance(TEST) == pytest.approx(np.mean(measured))
    assert 0.05 < scenes.chance(TEST) < 0.15


def test_written_scenes_are_read_again_and_the_same_each_time(tmp_path):
    pytest.importorskip("PIL", reason="images need softgaze[vision]")
    from softgaze.data.images import read_image

    for name in ("one", "other"):
        scenes.write(tmp_path / name, 40)
    folder = tmp_path / "one"
    for path in folder.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "other" / path.relative_to(folder)).read_bytes()
    assert len(list((folder / "images").iterdir())) == 44
    for split in scenes.SPLITS:
        expected = scenes.load(split, 40)
        for language in scenes.LANGUAGES:
            entries = captions.read_captions(folder / "images", folder / f"{split}.{language}.csv")
            assert [entry.captions for entry in entries] == [(scene.captions[language],) for scene in expected]
        boxes = read_boxes(folder / f"{split}.boxes.json")
        for entry, scene in zip(entries, expected, strict=True):
            drawing = scenes.draw(scene)
            assert np.array_equal(read_image(entry.path).pixels, drawing.pixels)
            labelled = boxes[entry.path.name]
            assert [one.box for one in labelled] == [pytest.approx(box) for box in drawing.boxes]
            assert [one.name for one in labelled] == [item.shape for item in scene.objects]
        record = json.loads((folder / f"{split}.boxes.json").read_text())
        nouns = [annotation["word"]["en"] for annotation in record["annotations"]]
        assert nouns == [noun for scene in expected for noun in scene.nouns()]
