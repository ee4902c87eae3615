"""Pieces find their words, whatever the script: by number as a person counts them, none lost, none torn."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bundles import tokenizer
from softgaze.gaze.words import (
    BEGIN_MARK,
    END_MARK,
    NO_WORD,
    Side,
    between_spaces,
    by_character,
    is_punctuation,
    most_words,
    piece_bytes,
)

letters = st.sampled_from([*"abdogt.,▁é학교가東🐕", "\u1112", "\u1161", "e\u0301", "👩\u200d👧"])
texts = st.lists(st.lists(letters, min_size=1, max_size=6).map("".join), max_size=6).map(" ".join)


def pieces_of(text):
    return tokenizer().pieces(tokenizer().encode([text])[0])


def side_of(text):
    return Side.of(text, [pieces_of(text)])


def spelled(side, label):
    return b"".join(piece_bytes(side.pieces[place]) for place in label.places).decode().strip()


@given(texts)
@example("a ▁")  # a word that cannot be told from a space has no piece
@example("▁")
def test_every_piece_has_its_place_and_every_whitespace_token_is_a_word(text):
    side = side_of(text)
    assert side.words == tuple(text.split()) or by_character(pieces_of(text))[1] == list(side.words)
    labels = side.whole_words()
    assert [label.word for label in labels] == [*range(len(side.words)), None]
    assert sorted(place for label in labels for place in label.places) == [*range(len(side.pieces))]


@pytest.mark.parametrize(
    "text",
    [
        "the dog runs.",
        "빨간 고양이 학교에 가요.",
        "A 🐕 and 👩‍👩‍👧 café naïve",
        "  two\tkinds \u3000 of space  ",
        "大韓民國 만세 이에요",
        "한국어 typed as letters",
    ],
)
def test_a_word_is_spelled_by_its_own_pieces(text):
    side = side_of(text)
    assert side.words == tuple(text.split())
    for label in side.whole_words()[:-1]:
        assert spelled(side, label) == unicodedata.normalize("NFC", label.text)


@given(texts)
@example("私は学生です。 東京にいます。")  # of which words alone would make pieces
def test_between_spaces_a_piece_has_the_number_of_its_token_in_any_script(text):
    pieces = pieces_of(text)
    numbers = between_spaces(text, pieces)
    assert numbers is not None or not pieces
    for number, token in enumerate(text.split()):
        own = [piece_bytes(piece) for piece, word in zip(pieces, numbers or (), strict=True) if word == number]
        assert b"".join(own).replace(b" ", b"") == unicodedata.normalize("NFC", token).replace("▁", "").encode()


def test_pieces_that_do_not_spell_the_text_have_no_numbers():
    assert between_spaces("a dog", ["▁a", "▁cat"]) is None


@given(texts)
def test_a_core_is_a_word_less_its_punctuation_and_never_nothing(text):
    side = side_of(text)
    words = [label for label in side.whole_words() if label.word is not None]
    for core, word in zip(side.cores(), words, strict=True):
        assert (core.text, core.word) == (word.text, word.word)
        assert set(core.places) <= set(word.places)
        assert bool(core.places) == bool(word.places)
        left = [is_punctuation(side.pieces[place]) for place in core.places]
        assert not any(left) or (all(left) and core == word)


def test_punctuation_counts_only_where_it_is_the_word():
    side = Side.of("(go) home . 3.5", [["▁(", "go", ")", "▁home", "▁.", "▁3", ".", "5"]])
    assert [label.places for label in side.cores()] == [(1,), (3,), (4,), (5, 7)]


def test_the_space_mark_as_a_letter_changes_no_numbers():
    assert side_of("a▁b c ▁ d").words == ("a▁b", "c", "▁", "d")
    [nothing] = [label for label in side_of("c ▁ d").whole_words() if label.text == "▁"]
    assert nothing.places == ()


@pytest.mark.parametrize(
    "text", ["私は学校に行きます。", "我爱北京天安门", "ฉันไปโรงเรียนทุกวัน", "我爱北京大学 天安门广场上的人"]
)
def test_scripts_without_spaces_fall_back_to_pieces_with_no_character_torn(text):
    side = side_of(text)
    assert len(side.words) > len(text.split())
    assert "".join(side.words) == text.replace(" ", "")
    assert "�" not in "".join(side.words)


def test_chinese_that_somebody_cut_into_words_has_words():
    assert side_of("我 爱 北京 天安门").words == ("我", "爱", "北京", "天安门")


def test_one_chinese_name_in_an_english_sentence_is_one_word():
    assert side_of("she lives in 北京大学欢迎您 today").words[3] == "北京大学欢迎您"


def test_pieces_that_spell_no_text_are_words_by_their_spaces():
    side = Side.of("something else", [["▁ab", "c", "▁", "▁d", "<0xED>"]])
    assert side.words == ("abc", "d�")
    assert side.word_of == (0, 0, 1, 1, 1, NO_WORD)


@pytest.mark.parametrize(("text", "pieces"), [("", []), ("", ["▁"]), ("▁", ["▁"])])
def test_next_to_nothing_is_still_a_side(text, pieces):
    assert Side.of(text, [pieces]).pieces == (*pieces, END_MARK)


def test_a_text_read_in_parts_keeps_its_words():
    """The second cut goes through a word, as it must when there is no space to cut at."""
    side = Side.of("the dog sleeps", [["▁the"], ["▁dog", "▁sle"], ["▁eps"]])
    assert side.pieces == ("▁the", END_MARK, "▁dog", "▁sle", END_MARK, "▁eps", END_MARK)
    assert [(label.text, label.places) for label in side.whole_words()] == [
        ("the", (0,)),
        (END_MARK, (1,)),
        ("dog", (2,)),
        ("sleeps", (3, 5)),
        (END_MARK, (4,)),
        (END_MARK, (6,)),
    ]


def test_what_a_decoder_reads_begins_each_part_and_never_ends_it():
    side = Side.of("a b", [["▁a"], ["▁b"]]).as_read()
    assert side.pieces == (BEGIN_MARK, "▁a", BEGIN_MARK, "▁b")
    assert side.word_of == (NO_WORD, 0, NO_WORD, 1)


def test_plain_words_number_themselves_past_marks():
    assert Side.plain(["a", END_MARK, "b", END_MARK]).word_of == (0, NO_WORD, 1, NO_WORD)


def test_sides_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="cannot belong"):
        Side(("▁a",), (), ("a",))
    with pytest.raises(ValueError, match="words from 0 to 0"):
        Side(("▁a",), (1,), ("a",))


@given(text=st.text(st.sampled_from("the dog 학교에 🐕日本")))
def test_a_side_reads_as_its_text(text):
    assert side_of(text).text == " ".join(text.split())
    assert Side.plain(text.split()).text == " ".join(text.split())


def test_text_without_spaces_is_read_without_them():
    assert side_of("我去学校。").text == "我去学校。"


@given(texts)
def test_a_link_may_count_every_word_that_a_text_has(text):
    assert len(side_of(text).words) <= most_words(text)


def test_links_count_words_between_spaces_or_characters_where_there_are_none():
    assert most_words("the dog  sleeps 학교에") == 4
    assert most_words("東京に行きました。") == 9
    assert most_words("東京 に 行き ました 。") == 5
