"""Characters: their kind comes from Unicode alone."""

import pytest

from softgaze.data.doctor.characters import SCRIPT_KIND, kind_of


@pytest.mark.parametrize(
    ("character", "script"),
    [
        *[("a", "LATIN"), ("ß", "LATIN"), ("Ａ", "LATIN"), ("я", "CYRILLIC"), ("ع", "ARABIC"), ("가", "HANGUL")],
        *[
            ("漢", "HAN"),
            ("々", "HAN"),
            ("ひ", "KANA"),
            ("ー", "KANA"),
            ("ｶ", "KANA"),
            ("ा", "DEVANAGARI"),
            ("ก", "THAI"),
        ],
    ],
)
def test_scripts_come_from_unicode_names(character: str, script: str) -> None:
    assert kind_of(character) == SCRIPT_KIND[script]
