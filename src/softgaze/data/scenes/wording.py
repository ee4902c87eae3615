"""The caption of a scene: things in reading order with size, colour and shape, joined by where the next one is."""

from collections.abc import Callable
from typing import NamedTuple

from softgaze.data.scenes.things import Scene, Thing
from softgaze.errors import pick


class Caption(NamedTuple):
    """The text, and for each thing in the order of mention which word names it: words stand between spaces, from 0."""

    text: str
    nouns: tuple[int, ...]


class _Language(NamedTuple):
    """How a thing is called, and what leads to the next one along a row, or down to another row."""

    thing: Callable[[Thing], str]
    along: str
    down: str
    again: str  # said before a second step


def _english(thing: Thing) -> str:
    words = " ".join(filter(None, (thing.size.english, thing.colour.english, thing.shape.english)))
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _korean(thing: Thing) -> str:
    return " ".join(filter(None, (thing.size.korean, thing.colour.korean, thing.shape.korean)))


# Korean says where the next thing is, "to its right", so that both languages mention things in the same order.
LANGUAGES = {
    "en": _Language(_english, "left of", "above", ""),
    "ko": _Language(_korean, "오른쪽에", "아래에", ", 그"),
}


def caption(scene: Scene, language: str = "en") -> Caption:
    """What the picture shows, in one way only; `language` is "en" or "ko"."""
    speech = pick("language", language, LANGUAGES)
    text, nouns = "", list[int]()
    for row in scene.rows:
        for place, thing in enumerate(row):
            if nouns:
                text += f"{speech.again if len(nouns) > 1 else ''} {speech.along if place else speech.down} "
            text += speech.thing(thing)
            nouns.append(len(text.split()) - 1)
    return Caption(text, tuple(nouns))
