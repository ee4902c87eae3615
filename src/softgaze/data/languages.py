"""What a language code tells about how a language is written."""

# Written without spaces between words, so that a usual tokenizer would take a clause for a word.
UNSPACED = ("zh", "ja", "th", "lo", "km", "my", "bo")


def is_unspaced(language: str) -> bool:
    """Whether a language code, such as zh-Hant, is of a language written without spaces."""
    return language.lower().replace("_", "-").split("-")[0] in UNSPACED
