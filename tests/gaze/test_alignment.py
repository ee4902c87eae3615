"""Links: read and written alike, joined in the right order of size, and scored as Och and Ney have it."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.errors import DataError, UsageError
from softgaze.gaze.alignment import METHODS, Alignment, aer, agreement, check_inside, read_all
from softgaze.gaze.words import most_words

DATA = Path(os.environ.get("SOFTGAZE_DATA", Path(__file__).parents[3] / "shared" / "data"))
HANSARDS = DATA / "hansards-en-fr"

links = st.frozensets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12)
alignments = st.builds(Alignment, links, links)


# --- reading and writing


@given(alignments, st.sampled_from([0, 1]))
def test_what_is_written_is_read_again(alignment, base):
    shifted = Alignment(
        frozenset((a + base, b + base) for a, b in alignment.links),
        frozenset((a + base, b + base) for a, b in alignment.possible),
    )
    assert Alignment.parse(str(shifted), base) == alignment


def test_a_line_is_pharaoh_in_the_order_of_the_words():
    assert str(Alignment.parse("3-3 0-0 10-2 1-1 2-2")) == "0-0 1-1 2-2 3-3 10-2"
    assert str(Alignment()) == ""


@pytest.mark.parametrize("line", ["1p2 1-1", "1-2:P 1-1:S", "1-2P 1-1S"])
def test_possible_links_of_a_gold_file_are_known(line):
    assert Alignment.parse(line, base=1) == Alignment(frozenset({(0, 0)}), frozenset({(0, 1)}))


def test_a_link_that_is_sure_and_possible_is_sure():
    assert Alignment.parse("1p2 1-2").possible == frozenset()


@pytest.mark.parametrize("line", ["1", "a-b", "1--2", "-1-2", "1-2x", "1,2", "²-1"])
def test_what_is_no_link_is_named(line):
    with pytest.raises(DataError, match="is no link"):
        Alignment.parse(line)


def test_a_zero_among_words_counted_from_one_is_noticed_with_its_line():
    with pytest.raises(DataError, match="gold, line 2: the link 0-1 has a 0"):
        aer(["0-0", "0-0"], ["1-1", "0-1"], gold_base=1)


@pytest.mark.parametrize("base", [2, -1, "1"])
def test_other_bases_are_refused(base):
    with pytest.raises(UsageError, match="from 0 or from 1"):
        aer(["0-0"], ["1-1"], gold_base=base)


@given(alignments, st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_links_past_the_end_are_named_and_no_others(alignment, sizes):
    past = [link for link in alignment if link[0] >= sizes[0] or link[1] >= sizes[1]]
    with pytest.raises(DataError, match=f"file: the link {past[0][0]}-{past[0][1]} is past") if past else nullcontext():
        check_inside(alignment, sizes, "file", "a hint")


# --- joining


@given(alignments, alignments)
def test_the_methods_lie_between_intersection_and_union(forward, reverse):
    low, high = forward & reverse, forward | reverse
    joined = {method: forward.joined(reverse, method).links for method in METHODS}
    assert joined["intersection"] == low.links
    assert joined["union"] == high.links
    assert low.links <= joined["grow-diag"] <= joined["grow-diag-final-and"] <= high.links
    assert joined["grow-diag"] <= joined["grow-diag-final"] <= high.links


@given(alignments, alignments)
def test_after_the_final_step_every_word_that_anybody_linked_is_linked(forward, reverse):
    joined, either = forward.joined(reverse, "grow-diag-final"), forward | reverse
    for side in (0, 1):
        assert {link[side] for link in joined} == {link[side] for link in either}


def test_growing_goes_to_neighbours_of_free_words_and_on_from_there():
    forward, reverse = Alignment.parse("0-0 1-1 2-2 5-5"), Alignment.parse("0-0 4-5")
    assert str(forward.joined(reverse, "grow-diag")) == "0-0 1-1 2-2"
    assert str(forward.joined(reverse, "grow-diag-final-and")) == "0-0 1-1 2-2 5-5"
    assert str(forward.joined(reverse, "grow-diag-final")) == "0-0 1-1 2-2 4-5 5-5"


def test_growing_never_takes_a_link_whose_words_are_both_taken():
    forward, reverse = Alignment.parse("0-0 1-1 0-1"), Alignment.parse("0-0 1-1")
    assert str(forward.joined(reverse, "grow-diag-final")) == "0-0 1-1"


@given(alignments)
def test_turned_twice_is_as_before(alignment):
    assert alignment.turned().turned() == alignment
    assert {(other, one) for one, other in alignment} == set(alignment.turned())


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="grow-diag-final"):
        Alignment().joined(Alignment(), "grow-diag-finale")


# --- the error rate


@given(st.lists(alignments, min_size=1, max_size=5))
def test_exactly_the_sure_links_are_no_error(gold):
    assert aer([Alignment(each.links) for each in gold], gold, gold_base=0) == 0


@given(st.lists(links.filter(len), min_size=1, max_size=5))
def test_nothing_right_is_an_error_of_one(gold):
    wrong = [Alignment(frozenset((one + 10, other) for one, other in each)) for each in gold]
    assert aer(wrong, [Alignment(each) for each in gold], gold_base=0) == 1


@given(st.lists(st.tuples(alignments, alignments), max_size=5))
def test_it_is_a_share(pairs):
    hypothesis, gold = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert 0 <= aer(hypothesis, gold, gold_base=1) <= 1


GOLD = ["1-1 2-2 3p2", "1-2 2-1", ""]
HYPOTHESIS = ["0-0 2-1", "0-1 1-1", "0-0"]


def test_by_hand():
    """S = 4, A = 5; 0-0 and 0-1 are sure, 2-1 is possible, 1-1 and the last 0-0 are wrong: 1 − (2 + 3) / 9."""
    counts = agreement(read_all(HYPOTHESIS, 0, "hypothesis"), read_all(GOLD, 1, "gold"))
    assert counts == (5, 4, 2, 3)
    assert aer(HYPOTHESIS, GOLD, gold_base=1) == pytest.approx(1 - 5 / 9)
    assert (counts.precision, counts.recall) == (3 / 5, 2 / 4)


def test_the_rate_is_of_the_corpus_not_a_mean_of_sentences():
    assert aer(["0-0", ""], ["0-0", "0-0 1-1 2-2"], gold_base=0) == pytest.approx(1 - 2 / 5)


def test_the_base_has_no_default():
    with pytest.raises(TypeError, match="gold_base"):
        aer(HYPOTHESIS, GOLD)


def test_different_numbers_of_sentences_are_refused():
    with pytest.raises(DataError, match="1 alignments cannot be scored against 2 lines"):
        aer(["0-0"], ["0-0", "0-0"], gold_base=0)


@pytest.mark.parametrize("wrong", [None, 1, [(0, 0)]])
def test_what_is_no_line_is_named(wrong):
    with pytest.raises(UsageError, match="gold, line 1: links are an Alignment or a line"):
        aer(["0-0"], [wrong], gold_base=0)


def test_one_text_is_not_taken_for_many_lines():
    with pytest.raises(UsageError, match="sequence of lines"):
        aer("0-0", ["0-0"], gold_base=0)


@pytest.mark.skipif(not HANSARDS.is_dir(), reason=f"the Hansards gold alignments are not in {HANSARDS}")
def test_gold_fits_its_sentences_from_the_right_number_only():
    texts = [(HANSARDS / name).read_text().splitlines() for name in ("test.en", "test.fr")]
    gold = (HANSARDS / "gold.talp").read_text().splitlines()

    def check(base):
        for line, source, target in zip(gold, *texts, strict=True):
            check_inside(Alignment.parse(line, base), (most_words(source), most_words(target)), "gold", "")

    check(1)
    with pytest.raises(DataError, match="is past the end"):
        check(0)


@pytest.mark.skipif(not HANSARDS.is_dir(), reason=f"the Hansards gold alignments are not in {HANSARDS}")
def test_a_known_alignment_of_the_hansards_has_its_known_error():
    hypothesis = (HANSARDS / "awesome-align.pharaoh").read_text().splitlines()
    gold = (HANSARDS / "gold.talp").read_text().splitlines()
    assert round(aer(hypothesis, gold, gold_base=1), 3) == 0.041
    assert round(aer(hypothesis, gold, gold_base=0), 3) == 0.437
