"""English word forms by rule: third person, plural, article, "be". Includes irregular words."""

from tools.phrasebook.lexicon.nouns import PLURALS

_BE = {
    ("I", "present"): "am",
    ("it", "present"): "is",
    ("they", "present"): "are",
    ("I", "past"): "was",
    ("it", "past"): "was",
    ("they", "past"): "were",
}


def be(person: str, tense: str) -> str:
    """The form of "be" for a person and a tense."""
    return _BE[("they" if person in ("we", "you") else person, tense)]


def third_person(verb: str) -> str:
    """The verb after he, she or it: go → goes, carry → carries, listen to → listens to."""
    first, *rest = verb.split()
    return " ".join(["has" if first == "have" else _with_s(first, ("s", "x", "ch", "sh", "o")), *rest])


def plural(noun: str) -> str:
    """More than one of it: dog → dogs, leaf → leaves, comic book → comic books."""
    *before, last = noun.split()
    return " ".join([*before, PLURALS.get(last) or _with_s(last, ("s", "x", "ch", "sh", "tomato", "potato"))])


def _with_s(word: str, hissing: tuple[str, ...]) -> str:
    """Append s: es after these endings, ies instead of y after a consonant."""
    if word.endswith(hissing):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def article(following: str) -> str:
    """Return a or an; the spelling decides, except for the two words that start with the sound "yu"."""
    return "an" if following[0].lower() in "aeiou" and not following.startswith(("use", "uni")) else "a"
