"""Links beside a corpus: each stays with its pair, none is guessed, and each piece of a word has its word's share."""

import gzip
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import corpus, write_corpus, write_links
from softgaze.data.corpus import Corpus, Pair
from softgaze.errors import DataError, UsageError
from softgaze.training.links import LinkFiles, largest_number, piece_links, read_links

# --- files ------------------------------------------------------------------------------------------------------


def two_files(directory):
    """A corpus of two parts, and the links of each."""
    files = [write_corpus(directory, name=name, pairs=count) for name, count in (("one", 3), ("two", 4))]
    return Corpus.of(files), [write_links(source) for source, _ in files]


def test_every_pair_has_the_links_of_its_line(tmp_path):
    text, links = two_files(tmp_path)
    found = list(LinkFiles(text, tuple(links)))
    assert [pair for pair, _ in found] == list(text)
    assert all(own == {(word, word) for word in range(len(pair.source.split()))} for pair, own in found)


def test_compressed_links_are_the_same(tmp_path):
    text, links = two_files(tmp_path)
    packed = [path.with_name(f"{path.name}.gz") for path in links]
    for path, other in zip(links, packed, strict=True):
        other.write_bytes(gzip.compress(path.read_bytes()))
    assert list(LinkFiles(text, tuple(packed))) == list(LinkFiles(text, tuple(links)))


@pytest.mark.parametrize("count", [1, 3])
def test_every_text_needs_its_own_file(tmp_path, count):
    text, links = two_files(tmp_path)
    with pytest.raises(UsageError, match=f"given {count} times for 2 texts"):
        LinkFiles(text, tuple([*links, *links][:count]))


def test_other_counts_of_lines_are_seen_before_anything_is_read(tmp_path):
    text, links = two_files(tmp_path)
    links[1].write_text("0-0\n" * 5)
    with pytest.raises(DataError, match=r"two\.links has 5 lines of links, .*two\.en 4"):
        LinkFiles(text, tuple(links)).check()
    LinkFiles(corpus(tmp_path, name="one", pairs=3), (links[0],)).check()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0-0 2-0", "the link 2-0 is past the end: its source has 2 words, counted from 0"),
        ("0-1", "the link 0-1 is past the end: its target has 1 word, counted from 0"),
        ("0p7", "the link 0-7 is past the end"),
        ("0-0 1:0", "'1:0' is no link"),
        ("0-0 -1-0", "'-1-0' is no link"),
        ("the dog", "'the' is no link"),
    ],
)
def test_what_is_wrong_names_file_and_line(tmp_path, line, words):
    (tmp_path / "a.en").write_text("ok ok\nthe dog\n")
    (tmp_path / "a.zh").write_text("ok ok\n一只好的狗\n")
    (tmp_path / "a.links").write_text(f"1-1\n{line}\n")
    text = Corpus.of([(tmp_path / "a.en", tmp_path / "a.zh")])
    with pytest.raises(DataError, match=r"a\.links, line 2: ") as caught:
        list(LinkFiles(text, (tmp_path / "a.links",)))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_only_possible_is_not_learnt_from():
    assert read_links("0-0 1p0 1p1 1-1:P", Pair("a b", "c d"), "here") == {(0, 0)}
    assert read_links("", Pair("a b", "c d"), "here") == frozenset()


# --- pieces -----------------------------------------------------------------------------------------------------

words = st.lists(st.integers(1, 4), min_size=1, max_size=6).map(
    lambda sizes: [word for word, size in enumerate(sizes) for _ in range(size)]
)


@st.composite
def linked(draw):
    """The words of the pieces of two sentences, and some links between them."""
    source, target = draw(words), draw(words)
    links = draw(st.sets(st.tuples(st.integers(0, source[-1]), st.integers(0, target[-1]))))
    return frozenset(links), source, target


@given(linked())
def test_every_linked_word_has_the_same_share_and_so_has_each_of_its_pieces(example):
    links, source, target = example
    found = piece_links(*example)
    shares = defaultdict(dict)
    for place, piece, parts in zip(found[::3], found[1::3], found[2::3], strict=True):
        assert piece not in shares[place]
        shares[place][piece] = Fraction(1, parts)
    for place, word in enumerate(target):
        wanted = {one for one, other in links if other == word}
        given_to = defaultdict(list)
        for piece, share in shares[place].items():
            given_to[source[piece]].append(share)
        assert set(given_to) == wanted
        for own, each in given_to.items():
            assert len(each) == source.count(own)
            assert len(set(each)) == 1
            assert sum(each) == Fraction(1, len(wanted))


def test_a_word_without_a_piece_gets_nothing_and_takes_nothing():
    assert piece_links(frozenset({(0, 0), (1, 0), (1, 1)}), [0, 2], [0, 1]) == [0, 0, 1]


@given(words=st.integers(1, 300), pieces=st.integers(1, 300))
def test_no_number_of_a_link_is_larger_than_the_largest(words, pieces):
    length = words - 1 + pieces  # one word of so many pieces among so many words
    assert max(length, words * pieces) <= largest_number(length)
