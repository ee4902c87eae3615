"""Tokens are grouped into words in any script, with none lost and no character torn."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bundles import tokenizer
from softgaze.explain.word_spans import (
    BOS_MARK,
    EOS_MARK,
    NO_WORD,
    TokenizedText,
    is_punctuation,
    max_word_count,
    token_bytes,
    whitespace_word_of,
    words_by_character,
)

letters = st.sampled_from([*"abdogt.,▁é학교가東🐕", "\u1112", "\u1161", "e\u0301", "👩\u200d👧"])
texts = st.lists(st.lists(letters, min_size=1, max_size=6).map("".join), max_size=6).map(" ".join)


def tokens_of(text):
    return tokenizer().pieces(tokenizer().encode([text])[0])


def tokenized(text):
    return TokenizedText.of(text, [tokens_of(text)])


def spelled(sentence, label):
    return b"".join(token_bytes(sentence.tokens[position]) for position in label.positions).decode().strip()


@given(texts)
@example("a ▁")  # the word-start mark alone has no token
@example("▁")
def test_every_token_is_in_one_word_and_every_whitespace_token_is_a_word(text):
    sentence = tokenized(text)
    assert sentence.words == tuple(text.split()) or words_by_character(tokens_of(text))[1] == list(sentence.words)
    labels = sentence.word_labels()
    assert [label.word for label in labels] == [*range(len(sentence.words)), None]
    assert sorted(position for label in labels for position in label.positions) == [*range(len(sentence.tokens))]


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
def test_a_word_is_spelled_by_its_tokens(text):
    sentence = tokenized(text)
    assert sentence.words == tuple(text.split())
    for label in sentence.word_labels()[:-1]:
        assert spelled(sentence, label) == unicodedata.normalize("NFC", label.text)


@given(texts)
@example("私は学生です。 東京にいます。")  # a script without spaces, segmented into clauses
def test_whitespace_words_are_found_in_any_script(text):
    tokens = tokens_of(text)
    word_of = whitespace_word_of(text, tokens)
    assert word_of is not None or not tokens
    for index, word in enumerate(text.split()):
        spelled = [token_bytes(token) for token, own in zip(tokens, word_of or (), strict=True) if own == index]
        assert b"".join(spelled).replace(b" ", b"") == unicodedata.normalize("NFC", word).replace("▁", "").encode()


def test_tokens_that_do_not_spell_the_text_have_no_whitespace_words():
    assert whitespace_word_of("a dog", ["▁a", "▁cat"]) is None


@given(texts)
def test_a_core_is_a_word_without_punctuation_and_never_empty(text):
    sentence = tokenized(text)
    words = [label for label in sentence.word_labels() if label.word is not None]
    for core, word in zip(sentence.core_labels(), words, strict=True):
        assert (core.text, core.word) == (word.text, word.word)
        assert set(core.positions) <= set(word.positions)
        assert bool(core.positions) == bool(word.positions)
        marks = [is_punctuation(sentence.tokens[position]) for position in core.positions]
        assert not any(marks) or (all(marks) and core == word)


def test_punctuation_counts_only_as_a_word_of_its_own():
    sentence = TokenizedText.of("(go) home . 3.5", [["▁(", "go", ")", "▁home", "▁.", "▁3", ".", "5"]])
    assert [label.positions for label in sentence.core_labels()] == [(1,), (3,), (4,), (5, 7)]


def test_a_literal_word_start_mark_changes_no_index():
    assert tokenized("a▁b c ▁ d").words == ("a▁b", "c", "▁", "d")
    [mark] = [label for label in tokenized("c ▁ d").word_labels() if label.text == "▁"]
    assert mark.positions == ()


@pytest.mark.parametrize(
    "text", ["私は学校に行きます。", "我爱北京天安门", "ฉันไปโรงเรียนทุกวัน", "我爱北京大学 天安门广场上的人"]
)
def test_scripts_without_spaces_use_tokens_as_words_with_no_character_torn(text):
    sentence = tokenized(text)
    assert len(sentence.words) > len(text.split())
    assert "".join(sentence.words) == text.replace(" ", "")
    assert "�" not in "".join(sentence.words)


def test_segmented_chinese_has_words():
    assert tokenized("我 爱 北京 天安门").words == ("我", "爱", "北京", "天安门")


def test_one_chinese_name_in_an_english_sentence_is_one_word():
    assert tokenized("she lives in 北京大学欢迎您 today").words[3] == "北京大学欢迎您"


def test_tokens_that_do_not_spell_the_text_are_grouped_by_spaces():
    sentence = TokenizedText.of("something else", [["▁ab", "c", "▁", "▁d", "<0xED>"]])
    assert sentence.words == ("abc", "d�")
    assert sentence.word_of == (0, 0, 1, 1, 1, NO_WORD)


@pytest.mark.parametrize(("text", "tokens"), [("", []), ("", ["▁"]), ("▁", ["▁"])])
def test_nearly_empty_texts(text, tokens):
    assert TokenizedText.of(text, [tokens]).tokens == (*tokens, EOS_MARK)


def test_a_text_in_parts_keeps_its_words():
    """The second part ends within a word."""
    sentence = TokenizedText.of("the dog sleeps", [["▁the"], ["▁dog", "▁sle"], ["▁eps"]])
    assert sentence.tokens == ("▁the", EOS_MARK, "▁dog", "▁sle", EOS_MARK, "▁eps", EOS_MARK)
    assert [(label.text, label.positions) for label in sentence.word_labels()] == [
        ("the", (0,)),
        (EOS_MARK, (1,)),
        ("dog", (2,)),
        ("sleeps", (3, 5)),
        (EOS_MARK, (4,)),
        (EOS_MARK, (6,)),
    ]


def test_the_decoder_input_has_bos_and_no_eos():
    sentence = TokenizedText.of("a b", [["▁a"], ["▁b"]]).decoder_input()
    assert sentence.tokens == (BOS_MARK, "▁a", BOS_MARK, "▁b")
    assert sentence.word_of == (NO_WORD, 0, NO_WORD, 1)


def test_from_words_recognises_eos():
    assert TokenizedText.from_words(["a", EOS_MARK, "b", EOS_MARK]).word_of == (0, NO_WORD, 1, NO_WORD)


def test_inconsistent_texts_are_rejected():
    with pytest.raises(ValueError, match="need as many word indices"):
        TokenizedText(("▁a",), (), ("a",))
    with pytest.raises(ValueError, match="outside of 0 to 0"):
        TokenizedText(("▁a",), (1,), ("a",))


@given(text=st.text(st.sampled_from("the dog 학교에 🐕日本")))
def test_the_text_is_restored(text):
    assert tokenized(text).text == " ".join(text.split())
    assert TokenizedText.from_words(text.split()).text == " ".join(text.split())
    assert tokenized("我去学校。").text == "我去学校。"


@given(texts)
def test_max_word_count_bounds_the_words(text):
    assert len(tokenized(text).words) <= max_word_count(text)


def test_max_word_count_counts_whitespace_words_or_characters():
    assert max_word_count("the dog  sleeps 학교에") == 4
    assert max_word_count("東京に行きました。") == 9
    assert max_word_count("東京 に 行き ました 。") == 5
