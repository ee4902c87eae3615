"""Pointing: how much of the look of a word that names a thing lies on the thing, beside what a blind look would get."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from softgaze.data.boxes import Box, pointing, share
from softgaze.data.coco import Labelled
from softgaze.data.photo import Photo
from softgaze.data.scenes import SHAPES, Scene, draw
from softgaze.gaze.attention import Attention
from softgaze.gaze.words import QUOTES

# What people say of COCO's categories where they do not say their names; for all others the name and its plural.
ALSO_CALLED = {
    "person": "people man men woman women boy boys girl girls child children kid kids lady guy player rider skier",
    "airplane": "plane planes jet",
    "bicycle": "bike bikes",
    "motorcycle": "motorbike motorcycles bike bikes",
    "couch": "sofa",
    "tv": "television",
    "cell phone": "phone cellphone",
    "dining table": "table",
    "potted plant": "plant plants",
    "donut": "doughnut doughnuts",
    "refrigerator": "fridge",
    "knife": "knives",
    "sheep": "",
    "skis": "ski",
}


class Pointed(NamedTuple):
    """One word, or the mean of many."""

    mass: float  # the share of the look that lies in the right boxes
    chance: float  # the share of the picture that they cover: what a look gets that is the same everywhere
    nouns: int = 1

    def __str__(self) -> str:
        return f"{self.mass:.1%} of the look of {self.nouns:,} nouns lies in the right box (chance {self.chance:.1%})"


def pointed(attention: Attention, word: int, boxes: Sequence[Box]) -> Pointed:
    """Of one output word, counted from 0; boxes are in shares of what the model saw."""
    rows = [row for row, label in enumerate(attention.words().row_labels) if label.word == word]
    return Pointed(pointing(attention.words().tile(rows[0]), boxes), share(boxes))


def seen_mentions(attention: Attention, photo: Photo, mentions: "Iterable[Mention]") -> list[Pointed]:
    """Of all words of a caption that name something; what lies outside of what the model saw is left out."""
    seen = [(word, [photo.to_grid(box) for box in boxes]) for word, boxes in mentions]
    return [pointed(attention, word, boxes) for word, boxes in seen if any(box.area for box in boxes)]


def average(found: Iterable[Pointed]) -> Pointed | None:
    """Of many words; None of none."""
    every = list(found)
    if not every:
        return None
    masses, chances = ([getattr(each, name) for each in every] for name in ("mass", "chance"))
    return Pointed(sum(masses) / len(every), sum(chances) / len(every), len(every))


# --- which words name what --------------------------------------------------------------------------------------


class Mention(NamedTuple):
    """A word that names a thing: its number in the caption, from 0, and where such things are in the photo."""

    word: int
    boxes: tuple[Box, ...]


def scene_mentions(scene: Scene, text: str, language: str = "en") -> list[Mention]:
    """Nouns of a caption of a built-in scene, in the order of mention, each with the box of its own thing.

    A noun that names another shape than the thing that is there in its turn points at nothing.
    """
    position = ("en", "ko").index(language)
    nouns = {shape[position] for shape in SHAPES}
    said = [(number, word) for number, word in enumerate(spoken(text)) if word in nouns]
    boxes = draw(scene).boxes
    turns = zip(said, scene.things, boxes, strict=False)  # a caption may have more or fewer than there are
    return [Mention(number, (box,)) for (number, word), thing, box in turns if thing.shape[position] == word]


def label_mentions(text: str, labelled: Sequence[Labelled]) -> list[Mention]:
    """Words of a caption that name a kind of thing that is in the picture, each with the boxes of all of that kind."""
    words, found = spoken(text), dict[int, Mention]()
    for name in dict.fromkeys(each.name for each in labelled):
        boxes = tuple(each.box for each in labelled if each.name == name)
        for number in naming(words, name):
            found.setdefault(number, Mention(number, boxes))
    return [found[number] for number in sorted(found)]


def naming(words: Sequence[str], name: str) -> list[int]:
    """Where a kind of thing is named: by the last word of its name or of its plural, or by another word for it."""
    name = name.lower()
    forms = [each.split() for each in (name, f"{name}s", f"{name}es", *ALSO_CALLED.get(name, "").split())]
    return [
        end - 1
        for end in range(1, len(words) + 1)
        if any(list(words[max(end - len(form), 0) : end]) == form for form in forms)
    ]


def spoken(text: str) -> list[str]:
    """Words between spaces, in small letters and without the punctuation around them."""
    return [word.strip(QUOTES).lower() for word in text.split()]
