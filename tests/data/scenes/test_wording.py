"""The caption is a function of the picture: read back from boxes alone, and unambiguous."""

import random

import pytest

from softgaze.data.scenes import COLOURS, SHAPES, SIZES, Scene, Scenes, Thing, caption, draw
from softgaze.errors import UsageError

WORDS = {"en": lambda word: word.english, "ko": lambda word: word.korean}
NEXT = {"en": ("left of", "above"), "ko": ("오른쪽에", "아래에")}


def read_like_a_page(scene: Scene) -> list[list[Thing]]:
    """Rows found in the picture itself: things whose boxes share some height are in one row."""
    seen = list(zip(draw(scene).boxes, scene.things, strict=True))
    random.Random(0).shuffle(seen)
    rows: list[list[tuple]] = []
    for box, thing in sorted(seen, key=lambda one: one[0].top):
        if rows and any(box.top < other.bottom for other, _ in rows[-1]):
            rows[-1].append((box, thing))
        else:
            rows.append([(box, thing)])
    return [[thing for _, thing in sorted(row, key=lambda one: one[0].left)] for row in rows]


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_order_of_mention_follows_from_the_picture(scenes: Scenes, split: str):
    for scene in getattr(scenes, split)[:500]:
        assert read_like_a_page(scene) == [list(row) for row in scene.rows]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_nouns_are_where_the_caption_says(scenes: Scenes, language: str):
    for scene in scenes.train[:500]:
        said = caption(scene, language)
        words = [word.strip(",") for word in said.text.split(" ")]
        for noun, thing in zip(said.nouns, scene.things, strict=True):
            own = [WORDS[language](part) for part in (thing.size, thing.colour, thing.shape)]
            assert words[: noun + 1][-len(list(filter(None, own))) :] == list(filter(None, own))


def understood(text: str, language: str) -> list[tuple]:
    """What a reader who knows the words takes from a caption: kinds, and how they follow each other."""
    along, down = NEXT[language]
    marked = text.replace(along, "→").replace(down, "↓")
    tables = [{WORDS[language](word): word for word in words} for words in (SIZES, COLOURS, SHAPES)]
    facts = [word for word in marked.replace(",", "").split() if word not in ("a", "an", "그")]
    return [next((table[word] for table in tables if word in table), word) for word in facts]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_nothing_is_lost_in_the_caption(scenes: Scenes, language: str):
    for scene in scenes.train[:500]:
        expected: list = []
        for number, row in enumerate(scene.rows):
            for place, thing in enumerate(row):
                expected += ["→"] if place else ["↓"] if number else []
                expected += [thing.size] * bool(thing.size.english) + [thing.colour, thing.shape]
        assert understood(caption(scene, language).text, language) == expected


def test_articles(scenes: Scenes):
    text = " ".join(caption(scene).text for scene in scenes.train)
    assert " an orange" in text
    assert " a orange" not in text
    assert " a small orange" in text


def test_an_unknown_language_is_named(scenes: Scenes):
    with pytest.raises(UsageError, match="unknown language 'kr'"):
        caption(scenes.train[0], "kr")
