import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundles import tokenizer
from softgaze.data.sentence_split import _split_long, split_sentences, split_text
from softgaze.data.tokenizer import normalise

quick = settings(max_examples=40, deadline=None)


@quick
@given(st.text(max_size=200), st.integers(5, 30))
def test_parts_fit_unless_they_are_one_character(text, limit):
    parts = split_text(text, tokenizer(), limit)
    assert "".join("".join(parts).split()) == "".join(normalise(text).split())
    assert all(len(part) == 1 or len(ids) <= limit for part, ids in zip(parts, tokenizer().encode(parts), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One here. Two! Three? Four", ["One here.", "Two!", "Three?", "Four"]),
        ('He said "Yes." Then he left.', ['He said "Yes."', "Then he left."]),
        ("Mr. Kim met Dr. Lee in the U.S. today. Fine.", ["Mr. Kim met Dr. Lee in the U.S. today.", "Fine."]),
        ("It costs 3.50 dollars. Cheap.", ["It costs 3.50 dollars.", "Cheap."]),
        ("On the 3. May it rained.", ["On the 3. May it rained."]),
        ("Well... perhaps. And e.g. this one.", ["Well... perhaps.", "And e.g. this one."]),
        ("집에 가요. 밥을 먹어요! 네", ["집에 가요.", "밥을 먹어요!", "네"]),
        ("これは本です。あれは？「はい。」そう", ["これは本です。", "あれは？", "「はい。」", "そう"]),
        ("Mrs. Kim and Prof. Lee left, e.g. Ann. Bye.", ["Mrs. Kim and Prof. Lee left, e.g. Ann.", "Bye."]),
        ("See Fig. 3 and No. 5. He said no. Then", ["See Fig. 3 and No. 5. He said no.", "Then"]),
        ("It was built in 1990. It burned.", ["It was built in 1990.", "It burned."]),
        ("1. Open it. 2. Close it.", ["1. Open it.", "2. Close it."]),
        ("Tiere, z. B. Hunde, usw. Das ist Dr. Kim.", ["Tiere, z. B. Hunde, usw.", "Das ist Dr. Kim."]),
        ('"Stop!" she said. (It was late.) "Why?"', ['"Stop!" she said.', "(It was late.)", '"Why?"']),
        ("M. Dupont arrive. «Bonjour.» Il part.", ["M. Dupont arrive.", "«Bonjour.»", "Il part."]),
        ("「はい。」と言った。次", ["「はい。」と言った。", "次"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("집에 갔다.밥을 먹었다. “네.” 3.5점", ["집에 갔다.", "밥을 먹었다.", "“네.”", "3.5점"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert split_sentences(text) == expected


def test_a_long_sentence_is_cut_at_its_commas_then_at_its_spaces():
    clauses = _split_long("the dog runs slowly, a cat sleeps", tokenizer(), 12)
    assert clauses == ["the dog runs slowly,", "a cat sleeps"]
    words = _split_long("the dog runs a cat sleeps", tokenizer(), 4)
    assert words == ["the dog runs", "a cat sleeps"]


def test_a_cut_never_tears_a_character_apart():
    for part in _split_long("e\u0301\u0323" * 40, tokenizer(), 12):
        assert part[0] == "e"
    for part in _split_long("👨‍👩‍👧" * 20, tokenizer(), 30):
        assert part[0] == "👨"
