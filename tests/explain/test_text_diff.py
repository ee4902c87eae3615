from hypothesis import given
from hypothesis import strategies as st

from softgaze.explain.text_diff import TextDiff, word_diff

TEXTS = st.lists(st.sampled_from(["the", "dog", "개", "sleeps", "학교에", "a"]), max_size=8).map(" ".join)


def test_runs_of_same_removed_and_added_words():
    runs = word_diff("나는 학교에 매일 가요", "나는 집에 가요 네")
    assert runs == (
        ("same", "나는"),
        ("removed", "학교에 매일"),
        ("added", "집에"),
        ("same", "가요"),
        ("added", "네"),
    )


@given(before=TEXTS, after=TEXTS)
def test_both_texts_can_be_restored(before, after):
    runs = word_diff(before, after)
    assert " ".join(text for kind, text in runs if kind != "added") == before
    assert " ".join(text for kind, text in runs if kind != "removed") == after
    assert all(text for _, text in runs)
    assert TextDiff(runs, 0, 0).is_same == (before == after)


def test_a_script_without_spaces_is_compared_by_characters():
    assert word_diff("我喜欢狗", "我喜欢猫") == (("same", "我喜欢"), ("removed", "狗"), ("added", "猫"))
    assert word_diff("", "我喜欢猫") == (("added", "我喜欢猫"),)


def test_a_diff_is_printed_like_wdiff():
    diff = TextDiff(word_diff("나는 학교에 가요", "나는 집에 가요"), -0.5, -0.75)
    assert str(diff) == "나는 [-학교에-] {+집에+} 가요\nscore -0.50 → -0.75 (-0.25)"
    assert str(TextDiff((), 0, 0)) == "score 0.00 → 0.00 (+0.00)"
