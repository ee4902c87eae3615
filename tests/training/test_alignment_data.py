"""Gold alignments: each line belongs to its pair, errors name file and line, and weights are shared equally."""

import gzip
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import corpus, write_corpus, write_links
from softgaze.data.corpus import Corpus, Pair
from softgaze.errors import DataError, UsageError
from softgaze.training.alignment_data import AlignmentFiles, max_link_value, parse_links, token_links

# --- files ------------------------------------------------------------------------------------------------------


def two_files(directory):
    """Return a corpus of two parts, and the link file of each."""
    files = [write_corpus(directory, name=name, pairs=count) for name, count in (("one", 3), ("two", 4))]
    return Corpus.of(files), [write_links(source) for source, _ in files]


def test_every_pair_has_the_links_of_its_line(tmp_path):
    text, links = two_files(tmp_path)
    aligned = list(AlignmentFiles(text, tuple(links)))
    assert [pair for pair, _ in aligned] == list(text)
    for pair, pair_links in aligned:
        assert pair_links == {(word, word) for word in range(len(pair.source.split()))}


def test_links_may_be_compressed(tmp_path):
    text, links = two_files(tmp_path)
    packed = [path.with_name(f"{path.name}.gz") for path in links]
    for path, other in zip(links, packed, strict=True):
        other.write_bytes(gzip.compress(path.read_bytes()))
    assert list(AlignmentFiles(text, tuple(packed))) == list(AlignmentFiles(text, tuple(links)))


@pytest.mark.parametrize("count", [1, 3])
def test_every_part_of_the_corpus_needs_a_file(tmp_path, count):
    text, links = two_files(tmp_path)
    with pytest.raises(UsageError, match=f"{count} --guided files for 2 texts"):
        AlignmentFiles(text, tuple([*links, *links][:count]))


def test_a_wrong_number_of_lines_is_found_by_check(tmp_path):
    text, links = two_files(tmp_path)
    links[1].write_text("0-0\n" * 5)
    with pytest.raises(DataError, match=r"two\.links has 5 lines but .*two\.en has 4"):
        AlignmentFiles(text, tuple(links)).check()
    AlignmentFiles(corpus(tmp_path, name="one", pairs=3), (links[0],)).check()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-0 2-0", "the link 2-0 is past the end: its source has 2 words, counted from 0"),
        ("0-1", "the link 0-1 is past the end: its target has 1 word, counted from 0"),
        ("0p7", "the link 0-7 is past the end"),
        ("0-0 1:0", "'1:0' is not a link"),
        ("0-0 -1-0", "'-1-0' is not a link"),
        ("the dog", "'the' is not a link"),
    ],
)
def test_errors_name_file_and_line(tmp_path, line, message):
    (tmp_path / "a.en").write_text("ok ok\nthe dog\n")
    (tmp_path / "a.zh").write_text("ok ok\n一只好的狗\n")
    (tmp_path / "a.links").write_text(f"1-1\n{line}\n")
    text = Corpus.of([(tmp_path / "a.en", tmp_path / "a.zh")])
    with pytest.raises(DataError, match=r"a\.links, line 2: ") as caught:
        list(AlignmentFiles(text, (tmp_path / "a.links",)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_possible_links_are_not_learned():
    assert parse_links("0-0 1p0 1p1 1-1:P", Pair("a b", "c d"), "here") == {(0, 0)}
    assert parse_links("", Pair("a b", "c d"), "here") == frozenset()


# --- tokens -------------------------------------------------------------------------------------------------------

words = st.lists(st.integers(1, 4), min_size=1, max_size=6).map(
    lambda sizes: [word for word, size in enumerate(sizes) for _ in range(size)]
)


@st.composite
def linked(draw):
    """Return the word of each token of two sentences, and some links between the words."""
    source, target = draw(words), draw(words)
    links = draw(st.sets(st.tuples(st.integers(0, source[-1]), st.integers(0, target[-1]))))
    return frozenset(links), source, target


@given(linked())
def test_linked_words_and_their_tokens_share_the_weight_equally(example):
    links, source, target = example
    triples = token_links(*example)
    weights = defaultdict(dict)
    for target_token, source_token, divisor in zip(triples[::3], triples[1::3], triples[2::3], strict=True):
        assert source_token not in weights[target_token]
        weights[target_token][source_token] = Fraction(1, divisor)
    for target_token, word in enumerate(target):
        linked_words = {one for one, other in links if other == word}
        if links and not linked_words:
            assert weights[target_token] == {len(source): 1}  # EOS
            continue
        by_word = defaultdict(list)
        for source_token, weight in weights[target_token].items():
            by_word[source[source_token]].append(weight)
        assert set(by_word) == linked_words
        for source_word, shares in by_word.items():
            assert len(shares) == source.count(source_word)
            assert len(set(shares)) == 1
            assert sum(shares) == Fraction(1, len(linked_words))


def test_a_word_without_a_token_has_no_weight():
    assert token_links(frozenset({(0, 0), (1, 0), (1, 1)}), [0, 2], [0, 1]) == [0, 0, 1]


@given(words=st.integers(1, 300), tokens=st.integers(1, 300))
def test_no_value_of_a_link_exceeds_the_maximum(words, tokens):
    length = words - 1 + tokens  # one word of so many tokens among so many words
    assert max(length, words * tokens) <= max_link_value(length)
