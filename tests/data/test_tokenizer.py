import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bundles import lines, tokenizer
from errors import one_line_error
from softgaze.data.tokenizer import (
    MAX_VOCABULARY,
    PARALLEL_TEXTS,
    Tokenizer,
    normalise,
    suggested_size,
    train_tokenizer,
    train_word_tokenizer,
)
from softgaze.errors import DataError
from softgaze.special_tokens import BOS, EOS, PAD, UNK

MARK = "\u2581"
quick = settings(max_examples=200, deadline=None)


def there_and_back(text: str) -> str:
    [ids] = tokenizer().encode([text])
    return tokenizer().decode(ids)


@quick
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters=MARK), max_size=60))
@example("한국어 문장이에요. 뷁!")
@example("👨‍👩‍👧 🏳️‍🌈 ☺️")
@example("</s><s><unk><pad>")
@example("e\u0301 i\u0307\u0323")
@example("\u1112\u1161\u11ab\u1100\u1173\u11af")
@example("<0x41> \x00 \ufeff\u200b")
def test_text_comes_back_as_it_went_in_up_to_normalisation(text):
    assert there_and_back(text) == normalise(text)


def test_a_literal_space_mark_comes_back_as_a_space():
    assert there_and_back(f"dog{MARK}cat") == "dog cat"


def test_decomposed_hangul_equals_composed():
    composed, decomposed = "한글", unicodedata.normalize("NFD", "한글")
    assert composed != decomposed
    assert tokenizer().encode([composed]) == tokenizer().encode([decomposed])


def test_special_ids_have_no_text():
    [ids] = tokenizer().encode(["the dog"])
    assert tokenizer().decode([BOS, *ids, EOS, PAD, UNK]) == "the dog"
    assert tokenizer().decode([]) == ""


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2028\u3000"])
def test_empty_text_has_no_ids(text):
    assert tokenizer().encode([text]) == [[]]


def test_texts_are_encoded_one_by_one():
    texts = [*lines("en", 5), "", *lines("ko", 5)]
    assert tokenizer().encode(texts) == [tokenizer().encode([text])[0] for text in texts]
    assert tokenizer().encode([]) == []


def test_many_texts_are_encoded_as_one_is():
    texts = lines("en", PARALLEL_TEXTS)
    assert tokenizer().encode(texts) == [tokenizer().encode([text])[0] for text in texts]


def test_a_sampled_segmentation_spells_the_text_and_depends_on_the_seed():
    texts = [*lines("en", 20), "", *lines("ko", 20)]
    sampled = [tokenizer().sample(texts, seed) for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert sampled[0] != tokenizer().encode(texts)
    for segmentation in sampled:
        assert [tokenizer().decode(ids) for ids in segmentation] == [normalise(text) for text in texts]


def test_pieces_spell_the_text():
    [ids] = tokenizer().encode(["the dog runs."])
    assert "".join(tokenizer().pieces(ids)).replace(MARK, " ").strip() == "the dog runs."


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


# --- learning


def test_the_same_text_gives_the_same_vocabulary():
    assert train_tokenizer(lines("en")).model == train_tokenizer(lines("en")).model


def test_a_saved_model_is_the_same_tokenizer(tmp_path):
    (tmp_path / "m").write_bytes(tokenizer().model)
    loaded = Tokenizer.load(tmp_path / "m")
    assert loaded.encode(lines("ko")) == tokenizer().encode(lines("ko"))
    assert len(loaded) == len(tokenizer())


def test_text_with_the_space_mark_can_be_trained_on():
    learnt = train_tokenizer([f"the{MARK}dog", "the cat", MARK, f" {MARK} "] * 5)
    assert learnt.decode(learnt.encode(["the dog"])[0]) == "the dog"


def test_a_single_letter_can_be_trained_on():
    learnt = train_tokenizer(["a"])
    assert learnt.decode(learnt.encode(["한 a 👍"])[0]) == "한 a 👍"


@pytest.mark.parametrize("text", [[], [""], [" ", "\n"]])
def test_empty_text_is_an_error(text):
    with pytest.raises(DataError, match="no text to train a tokenizer on"):
        train_tokenizer(text)


def test_a_size_too_small_is_raised_to_what_the_characters_need():
    assert len(train_tokenizer(lines("ko"), size=10)) > 256


def test_the_suggested_size_grows_with_the_text_up_to_a_limit():
    words = [f"word{number}" for number in range(200_000)]
    sizes = [suggested_size([" ".join(words[:count])] * 2) for count in (100, 2_000, 20_000, 200_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == MAX_VOCABULARY


def test_a_model_with_other_special_tokens_is_rejected(tmp_path):
    import io

    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines("en")), model_writer=written, vocab_size=40, minloglevel=2, hard_vocab_limit=False
    )
    with pytest.raises(DataError, match="expected special tokens"):
        Tokenizer(written.getvalue())


CAPTIONS = ["a dog runs", "a dog sits", "a cat sits here", "a dog"]


@pytest.mark.parametrize(
    ("min_count", "known"),
    [(1, {*["a", "dog", "runs", "sits", "cat", "here"]}), (2, {"a", "dog", "sits"}), (3, {"a", "dog"})],
)
def test_the_vocabulary_of_words_is_those_seen_often_enough(min_count, known):
    words = train_word_tokenizer(CAPTIONS, min_count)
    assert {piece.removeprefix(MARK) for piece in words.vocabulary[4:]} == known
    assert words.has_whole_words
    for text, ids in zip(CAPTIONS, words.encode(CAPTIONS), strict=True):
        assert (UNK in ids) == bool({*text.split()} - known)  # unknown words in a row become one
        assert words.decode(ids).split() == [word for word in text.split() if word in known]
    assert "words" in words.describe()


def test_words_that_are_all_too_rare_are_one_line():
    with one_line_error(DataError, "no word occurs 9 times", "data.min_count"):
        train_word_tokenizer(CAPTIONS, 9)


def test_subwords_are_not_whole_words():
    assert not tokenizer().has_whole_words
    assert "subwords" in tokenizer().describe()


def test_words_with_rare_characters_are_words_too():
    captions = [*["a dog runs on the grass"] * 900, "a señora", "ein 개", "in 1999 50% of it's 3-d"]
    words = train_word_tokenizer(captions, 1)
    assert words.vocabulary[4:]
    for text, ids in zip(captions, words.encode(captions), strict=True):
        assert words.decode(ids) == text
        assert UNK not in ids
