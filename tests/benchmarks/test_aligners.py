"""The comparison of aligners: every aligner gets the same text and is scored on the same words."""

import random
from pathlib import Path

import pytest

from benchmarks import aligners
from benchmarks.aligners import ALIGNERS, hand_aligned, rows, word_links
from softgaze.alignment.words import split_words
from softgaze.explain.alignment import Alignment


@pytest.fixture(scope="module")
def text():
    dice = random.Random(1)
    words = {f"s{letter}": f"{letter}{letter}t" for letter in "abcdefghijklmnop"}
    sources = [dice.choices(list(words), k=dice.randint(2, 7)) for _ in range(300)]
    pairs = [(" ".join(source) + ".", " ".join(words[word] for word in source) + " .") for source in sources]
    return pairs, [Alignment({(place, place) for place in range(len(source))}) for source in sources]


@pytest.mark.parametrize("name", ALIGNERS)
def test_an_easy_text_is_aligned_seen_and_unseen(text, name):
    if name == "eflomal":
        pytest.importorskip("thot", reason="sil-thot is not installed")
    pairs, gold = text
    _, _, *lines = rows(pairs[:250], pairs[250:], gold[250:], [name])
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {row[1] for row in cells} == {"seen", "unseen"}
    assert all(float(row[2]) < 10 for row in cells if "union" not in row[0])


def test_links_of_parts_become_links_of_words():
    source, target = split_words("l'homme dort."), split_words("the man sleeps .")
    assert source.parts == ("l'", "homme", "dort", ".")
    links = word_links(frozenset({(0, 0), (1, 1), (2, 2), (3, 3)}), source, target)
    assert links == {(0, 0), (0, 1), (1, 2)}, "the full stop is attached to dort"


def test_hand_alignments_name_their_lines():
    pairs = [(f"s{line}", f"t{line}") for line in range(1, 2000)]
    chosen, gold = hand_aligned(Path(aligners.__file__).with_name("hand-alignments.tsv"), ["multi30k-val-en-de"], pairs)
    assert len(chosen) == len(gold) == 24
    assert chosen[0] == ("s38", "t38")
    assert (0, 0) in gold[0].links
