from hypothesis import given
from hypothesis import strategies as st

from softgaze.gaze.difference import Difference, difference

TEXTS = st.lists(st.sampled_from(["the", "dog", "개", "sleeps", "학교에", "a"]), max_size=8).map(" ".join)


def test_words_that_stay_go_and_come_are_named():
    found = difference("나는 학교에 매일 가요", "나는 집에 가요 네")
    assert found == (
        ("same", "나는"),
        ("removed", "학교에 매일"),
        ("added", "집에"),
        ("same", "가요"),
        ("added", "네"),
    )


@given(before=TEXTS, after=TEXTS)
def test_both_texts_can_be_read_from_it(before, after):
    pieces = difference(before, after)
    assert " ".join(text for kind, text in pieces if kind != "added") == before
    assert " ".join(text for kind, text in pieces if kind != "removed") == after
    assert all(text for _, text in pieces)
    assert Difference(pieces, 0, 0).is_same == (before == after)


def test_a_script_without_spaces_is_compared_by_characters():
    assert difference("我喜欢狗", "我喜欢猫") == (("same", "我喜欢"), ("removed", "狗"), ("added", "猫"))
    assert difference("", "我喜欢猫") == (("added", "我喜欢猫"),)


def test_it_is_readable_in_a_terminal():
    found = Difference(difference("나는 학교에 가요", "나는 집에 가요"), -0.5, -0.75)
    assert str(found) == "나는 [-학교에-] {+집에+} 가요\nscore -0.50 → -0.75 (-0.25)"
    assert str(Difference((), 0, 0)) == "score 0.00 → 0.00 (+0.00)"
