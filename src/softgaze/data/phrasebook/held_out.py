"""Which pairs of words dev and test keep for themselves: a hash decides, so that every seed and size agrees."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256

from softgaze.data.phrasebook.collocations import LIKINGS_OF, OBJECTS_OF, QUALITIES_OF
from softgaze.data.phrasebook.lexicon.adjectives import QUALITIES
from softgaze.data.phrasebook.lexicon.verbs import GOAL_PARTICLES, PLACE_PARTICLES, UNSPLIT

# Of a hundred combinations, how many dev and test each keep for themselves.
_SHARE = 5
# Which draw this is: choices were made while looking at the test split of the first.
_DRAW = "second draw"
# With fewer partners than these, a word cannot be learned without all of them.
ENOUGH = 5

# What goes with few words, or follows a rule of its own, cannot be learned from the rest: nothing of it is held out.
SPARSE = {
    *(verb.english for verb, nouns in {**OBJECTS_OF, **LIKINGS_OF}.items() if len(nouns) < ENOUGH),
    *(one.english for one in QUALITIES if sum(one in said for said in QUALITIES_OF.values()) < ENOUGH),
    *(*UNSPLIT, *GOAL_PARTICLES, *PLACE_PARTICLES),
}


@cache
def side(combination: str) -> str:
    """The split that owns a combination: "train", "dev" or "test"; the same for every seed and size."""
    number = int.from_bytes(sha256(f"{_DRAW}: {combination}".encode()).digest()[:4], "big") % 100
    return "dev" if number < _SHARE else "test" if number < 2 * _SHARE else "train"


def belongs(combinations: Sequence[str], split: str) -> bool:
    """Whether a sentence fits a split: train and long have nothing held out, dev and test something of their own."""
    sides = {side(combination) for combination in combinations} - {"train"}
    return sides == ({split} if split in ("dev", "test") else set())
