"""Which word combinations only dev or only test has: a hash decides, equally for every seed and size."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256

from tools.phrasebook.collocations import LIKINGS_OF, OBJECTS_OF, QUALITIES_OF
from tools.phrasebook.lexicon.adjectives import QUALITIES
from tools.phrasebook.lexicon.verbs import GOAL_PARTICLES, PLACE_PARTICLES, UNSPLIT

# Percentage of combinations held out for dev, and for test.
_SHARE = 5
# Salt of the hash: design decisions were made with the test split of the first one.
_DRAW = "second draw"
# A word with fewer partners cannot be learned without all of them.
ENOUGH = 5

# Words with few partners or irregular behaviour: none of their combinations is held out.
SPARSE = {
    *(verb.english for verb, nouns in {**OBJECTS_OF, **LIKINGS_OF}.items() if len(nouns) < ENOUGH),
    *(one.english for one in QUALITIES if sum(one in said for said in QUALITIES_OF.values()) < ENOUGH),
    *(*UNSPLIT, *GOAL_PARTICLES, *PLACE_PARTICLES),
}


@cache
def split_of(combination: str) -> str:
    """Return the split of a combination: "train", "dev" or "test"."""
    number = int.from_bytes(sha256(f"{_DRAW}: {combination}".encode()).digest()[:4], "big") % 100
    return "dev" if number < _SHARE else "test" if number < 2 * _SHARE else "train"


def fits_split(combinations: Sequence[str], split: str) -> bool:
    """Return whether a sentence may be in a split: dev and test need held-out combinations, others have none."""
    sides = {split_of(combination) for combination in combinations} - {"train"}
    return sides == ({split} if split in ("dev", "test") else set())
