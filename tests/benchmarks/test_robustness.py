"""Changed text keeps its links: every word with a link is still the same word."""

import pytest

from benchmarks.robustness import CHANGES, rows
from softgaze.explain.alignment import Alignment

PAIRS = [("A «big» dog.", "Un gros chien !"), ("Yes, he is here", "Oui , il est là."), ("No.", "Non.")]
GOLD = [
    Alignment(frozenset({(0, 0), (1, 1), (2, 2)})),
    Alignment(frozenset({(0, 0), (1, 2), (2, 3)}), frozenset({(3, 4)})),
    Alignment(frozenset({(0, 0)})),
]


def linked_words(pairs, gold):
    found = []
    for (source, target), alignment in zip(pairs, gold, strict=True):
        for one, other in sorted(alignment.links | alignment.possible):
            words = source.split()[one], target.split()[other]
            found.append(tuple("".join(filter(str.isalnum, word)).lower() for word in words))
    return found


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "unknown words"])
def test_links_stay_between_the_same_words(change):
    assert linked_words(*CHANGES[change](PAIRS, GOLD)) == linked_words(PAIRS, GOLD)


def test_changes_change_the_text():
    assert CHANGES["three times as long"](PAIRS, GOLD)[0] == [
        ("A «big» dog. Yes, he is here No.", "Un gros chien ! Oui , il est là. Non.")
    ]
    assert CHANGES["punctuation split"](PAIRS, GOLD)[0][0] == ("A « big » dog .", "Un gros chien !")
    assert CHANGES["punctuation removed"](PAIRS, GOLD)[0][0] == ("A big dog", "Un gros chien !")
    changed = CHANGES["unknown words"](PAIRS[:2], GOLD[:2])[0]
    for (old_source, old_target), (source, target) in zip(PAIRS, changed, strict=False):
        for old, new in ((old_source, source), (old_target, target)):
            assert sum(one != other for one, other in zip(old.split(), new.split(), strict=True)) == 1


def test_a_perfect_aligner_has_no_errors():
    _, _, first, *_ = rows("text", {"perfect": lambda pairs: GOLD[: len(pairs)]}, PAIRS, GOLD)
    assert first == "| unchanged | 0.0 |"
