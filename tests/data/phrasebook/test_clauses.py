"""Clauses: no verb whose tense cannot be seen, and the particle of a place by what is done there."""

from data.phrasebook.lines import types
from softgaze.data.phrasebook.lexicon.nouns import PLACES


def test_a_verb_that_looks_past_is_past(everything):
    """ "I read a book" would be both 읽어요 and 읽었어요; only "reads" and "do … read" are present."""
    checked = 0
    for sentence in everything:
        if sentence.kind == "transitive" and sentence.source.endswith("."):
            english, korean = types(sentence.source), types(sentence.target)
            for base, present in (("read", "읽어요"), ("cut", "잘라요")):
                if present in korean:
                    checked += 1
                    assert base not in english or "not" in english, sentence
    assert checked > 20


def test_e_and_eseo_by_verb(everything):
    """One sleeps 집에서 and goes 집에; the short sentences show it without another clause in the way."""
    for sentence in everything:
        tokens = types(sentence.target)
        if sentence.kind in ("motion", "static", "seated", "located", "existing"):
            assert not any(token.endswith("에서") for token in tokens), sentence
        if sentence.kind == "intransitive":
            places = {row.korean + "에" for row in PLACES}
            assert not places & set(tokens), sentence
