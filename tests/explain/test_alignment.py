"""Alignments: parsed and formatted, symmetrized between intersection and union, and scored as by Och and Ney."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import DataError, UsageError
from softgaze.explain.alignment import METHODS, Alignment, aer, check_bounds, count_corpus, parse_lines
from softgaze.explain.word_spans import max_word_count

DATA = Path(os.environ.get("SOFTGAZE_DATA", Path(__file__).parents[3] / "shared" / "data"))
HANSARDS = DATA / "hansards-en-fr"

links = st.frozensets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12)
alignments = st.builds(Alignment, links, links)


# --- reading and writing


@given(alignments, st.sampled_from([0, 1]))
def test_a_formatted_line_parses_back(alignment, base):
    shifted = Alignment(
        frozenset((a + base, b + base) for a, b in alignment.links),
        frozenset((a + base, b + base) for a, b in alignment.possible),
    )
    assert Alignment.parse(str(shifted), base) == alignment


def test_a_line_is_sorted_pharaoh():
    assert str(Alignment.parse("3-3 0-0 10-2 1-1 2-2")) == "0-0 1-1 2-2 3-3 10-2"
    assert str(Alignment()) == ""


@pytest.mark.parametrize("line", ["1p2 1-1", "1-2:P 1-1:S", "1-2P 1-1S"])
def test_possible_links_are_parsed(line):
    assert Alignment.parse(line, base=1) == Alignment(frozenset({(0, 0)}), frozenset({(0, 1)}))


def test_a_link_that_is_sure_and_possible_is_sure():
    assert Alignment.parse("1p2 1-2").possible == frozenset()


@pytest.mark.parametrize("line", ["1", "a-b", "1--2", "-1-2", "1-2x", "1,2", "²-1"])
def test_invalid_links_are_rejected(line):
    with pytest.raises(DataError, match="is not a link"):
        Alignment.parse(line)


@given(alignments, st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_links_past_the_end_are_rejected(alignment, sizes):
    past = [link for link in alignment if link[0] >= sizes[0] or link[1] >= sizes[1]]
    with pytest.raises(DataError, match=f"file: the link {past[0][0]}-{past[0][1]} is past") if past else nullcontext():
        check_bounds(alignment, sizes, "file", "a hint")


# --- symmetrization


@given(alignments, alignments)
def test_the_methods_lie_between_intersection_and_union(forward, reverse):
    low, high = forward & reverse, forward | reverse
    links_of = {method: forward.symmetrized(reverse, method).links for method in METHODS}
    assert links_of["intersection"] == low.links
    assert links_of["union"] == high.links
    assert low.links <= links_of["grow-diag"] <= links_of["grow-diag-final-and"] <= high.links
    assert links_of["grow-diag"] <= links_of["grow-diag-final"] <= high.links


@given(alignments, alignments)
def test_grow_diag_final_links_every_word_of_the_union(forward, reverse):
    final, union = forward.symmetrized(reverse, "grow-diag-final"), forward | reverse
    for side in (0, 1):
        assert {link[side] for link in final} == {link[side] for link in union}


def test_growing_continues_from_new_links():
    forward, reverse = Alignment.parse("0-0 1-1 2-2 5-5"), Alignment.parse("0-0 4-5")
    assert str(forward.symmetrized(reverse, "grow-diag")) == "0-0 1-1 2-2"
    assert str(forward.symmetrized(reverse, "grow-diag-final-and")) == "0-0 1-1 2-2 5-5"
    assert str(forward.symmetrized(reverse, "grow-diag-final")) == "0-0 1-1 2-2 4-5 5-5"


def test_growing_needs_a_free_word():
    forward, reverse = Alignment.parse("0-0 1-1 0-1"), Alignment.parse("0-0 1-1")
    assert str(forward.symmetrized(reverse, "grow-diag-final")) == "0-0 1-1"


@given(alignments)
def test_inverting_twice_is_the_identity(alignment):
    assert alignment.inverted().inverted() == alignment
    assert {(other, one) for one, other in alignment} == set(alignment.inverted())


# --- the error rate


@given(st.lists(alignments, min_size=1, max_size=5))
def test_the_sure_links_have_no_error(gold):
    assert aer([Alignment(each.links) for each in gold], gold, gold_base=0) == 0


@given(st.lists(links.filter(len), min_size=1, max_size=5))
def test_no_correct_link_is_an_error_of_one(gold):
    wrong = [Alignment(frozenset((one + 10, other) for one, other in each)) for each in gold]
    assert aer(wrong, [Alignment(each) for each in gold], gold_base=0) == 1


@given(st.lists(st.tuples(alignments, alignments), max_size=5))
def test_aer_is_between_0_and_1(pairs):
    hypothesis, gold = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert 0 <= aer(hypothesis, gold, gold_base=1) <= 1


GOLD = ["1-1 2-2 3p2", "1-2 2-1", ""]
HYPOTHESIS = ["0-0 2-1", "0-1 1-1", "0-0"]


def test_counts_of_a_small_corpus():
    """S = 4, A = 5; 0-0 and 0-1 are sure, 2-1 is possible, 1-1 and the last 0-0 are wrong: 1 − (2 + 3) / 9."""
    counts = count_corpus(parse_lines(HYPOTHESIS, 0, "hypothesis"), parse_lines(GOLD, 1, "gold"))
    assert counts == (5, 4, 2, 3)
    assert aer(HYPOTHESIS, GOLD, gold_base=1) == pytest.approx(1 - 5 / 9)
    assert (counts.precision, counts.recall) == (3 / 5, 2 / 4)


def test_the_rate_is_of_the_corpus_not_a_mean_of_sentences():
    assert aer(["0-0", ""], ["0-0", "0-0 1-1 2-2"], gold_base=0) == pytest.approx(1 - 2 / 5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: aer(["0-0"] * 2, ["1-1", "0-1"], gold_base=1), DataError, "gold, line 2: the link 0-1 contains a 0"),
        (lambda: aer(["0-0"], ["1-1"], gold_base=2), UsageError, "from 0 or from 1"),
        (lambda: aer(["0-0"], ["1-1"], gold_base="1"), UsageError, "from 0 or from 1"),
        (lambda: aer(HYPOTHESIS, GOLD), TypeError, "gold_base"),  # has no default
        (lambda: aer(["0-0"], ["0-0", "0-0"], gold_base=0), DataError, "as many gold alignments as hypotheses"),
        (lambda: aer(["0-0"], [None], gold_base=0), UsageError, "gold, line 1: expected an Alignment or a line"),
        (lambda: aer(["0-0"], [[(0, 0)]], gold_base=0), UsageError, "gold, line 1: expected an Alignment or a line"),
        (lambda: aer("0-0", ["0-0"], gold_base=0), UsageError, "sequence of lines"),
        (lambda: Alignment().symmetrized(Alignment(), "grow-diag-finale"), UsageError, "grow-diag-final"),
    ],
)
def test_invalid_calls_are_rejected(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.skipif(not HANSARDS.is_dir(), reason=f"the Hansards gold alignments are not in {HANSARDS}")
def test_gold_is_within_bounds_only_with_its_base():
    texts = [(HANSARDS / name).read_text().splitlines() for name in ("test.en", "test.fr")]
    gold = (HANSARDS / "gold.talp").read_text().splitlines()

    def check(base):
        for line, source, target in zip(gold, *texts, strict=True):
            check_bounds(Alignment.parse(line, base), (max_word_count(source), max_word_count(target)), "gold", "")

    check(1)
    with pytest.raises(DataError, match="is past the end"):
        check(0)


@pytest.mark.skipif(not HANSARDS.is_dir(), reason=f"the Hansards gold alignments are not in {HANSARDS}")
def test_aer_of_a_published_alignment_of_the_hansards():
    hypothesis = (HANSARDS / "awesome-align.pharaoh").read_text().splitlines()
    gold = (HANSARDS / "gold.talp").read_text().splitlines()
    assert round(aer(hypothesis, gold, gold_base=1), 3) == 0.041
    assert round(aer(hypothesis, gold, gold_base=0), 3) == 0.437
