"""The English vocabulary of the grammar, from its tables."""

from tools.phrasebook.collocations import LIKINGS_OF, OBJECTS_OF, PLACES_OF
from tools.phrasebook.english import plural, third_person
from tools.phrasebook.lexicon.adjectives import QUALITIES, SITUATIONS, STATES, TRAITS
from tools.phrasebook.lexicon.adverbials import (
    DEGREES,
    FREQUENCIES,
    MANNERS,
    POSITIONS,
    STATE_TIMES,
    TIMES,
    TOOLS,
    VEHICLES,
)
from tools.phrasebook.lexicon.nouns import FAMILY, NAMES, NOUNS, NUMBERS, OTHERS, PLACES, ROLES
from tools.phrasebook.lexicon.verbs import RARE, WEATHER

# The words the grammar itself adds to those of the lexicon.
_FUNCTION_WORDS = (
    "a an the my our this that i we you me it there no not and but with to by in at on of cups pairs "
    "am is are was were do does did will can cannot must what who where when why "
    "while before after because if have has had become became new"
)


def words() -> tuple[str, ...]:
    """Return every English word form of the grammar, lower-cased and sorted."""
    texts = [_FUNCTION_WORDS, *_verb_forms(), *_noun_forms(), *(row[0] for row in WEATHER)]
    texts += [adjective.english for adjective in (*TRAITS, *STATES, *QUALITIES, *SITUATIONS)]
    texts += [phrase.english for phrase in (*TIMES, *STATE_TIMES, *FREQUENCIES, *MANNERS, *DEGREES)]
    texts += [row[0] for row in (*VEHICLES, *POSITIONS, *NUMBERS)]
    texts += [tool for _, _, tool, _ in TOOLS]
    return tuple(sorted({word.lower() for text in texts for word in text.split()}))


def _verb_forms() -> list[str]:
    """Every verb, its past and its third person, if it has one."""
    verbs = [(verb.english, verb.past) for verb in (*OBJECTS_OF, *LIKINGS_OF, *PLACES_OF)]
    verbs += [(english, past) for english, past, *_ in WEATHER if past]
    return [form for verb in verbs for form in verb] + [third_person(base) for base, _ in verbs if base not in RARE]


def _noun_forms() -> list[str]:
    """Return every person, thing and location, and their plurals."""
    people = [one.english for one in (*NAMES, *FAMILY)]
    people += [form for one in (*ROLES, *OTHERS) for form in (one.english, plural(one.english))]
    # Nouns with a plural: "two dogs", "dogs" in general.
    liked = {noun for nouns in LIKINGS_OF.values() for noun in nouns}
    many = [plural(noun.english) for noun in NOUNS if noun.number == "count" and (noun.counter or noun in liked)]
    return [*people, *many, *(noun.english for noun in NOUNS), *(place.english for place in PLACES)]
