import pytest

from softgaze.data.languages import is_unspaced


@pytest.mark.parametrize(
    ("language", "expected"), [("zh", True), ("ja-JP", True), ("ko", False), ("", False), ("jam", False)]
)
def test_unspaced_languages(language, expected):
    assert is_unspaced(language) == expected
