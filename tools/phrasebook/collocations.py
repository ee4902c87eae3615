"""Collocations: for each word of the lexicon, the words that it may be combined with."""

from collections.abc import Sequence
from typing import TypeVar

from tools.phrasebook.lexicon.adjectives import CAUSES, QUALITIES, SITUATIONS, STATES
from tools.phrasebook.lexicon.adverbials import MANNERS, STATE_TIMES, TIMES, TOOLS
from tools.phrasebook.lexicon.nouns import ANIMALS, NOUNS, PLACES, THINGS
from tools.phrasebook.lexicon.types import Adjective, Fixed, Noun, Place, Verb
from tools.phrasebook.lexicon.verbs import (
    ANIMAL_VERBS,
    DATIVE,
    GENERIC,
    INTRANSITIVE,
    LASTING,
    MOTION,
    RELATIVE,
    SIT,
    STATIC,
    TRANSITIVE,
)

Kind = TypeVar("Kind", Noun, Place, Adjective)


def _sharing(items: Sequence[Kind], kinds: Sequence[str]) -> tuple[Kind, ...]:
    """Return the nouns, locations or adjectives of any of these kinds."""
    return tuple(item for item in items if set(item.kinds) & set(kinds))


def _tagged(phrases: Sequence[Fixed], *tags: str) -> tuple[Fixed, ...]:
    """The phrases with any of these tags."""
    return tuple(phrase for phrase in phrases if set(phrase.tags) & set(tags))


def _named(verbs: Sequence[Verb], names: Sequence[str]) -> tuple[Verb, ...]:
    """The verbs whose English is one of these."""
    return tuple(verb for verb in verbs if verb.english in names)


# Objects, locations, manners and tools of verbs.
OBJECTS_OF = {verb: _sharing(NOUNS, verb.objects) for verb in (*TRANSITIVE, *DATIVE, *SIT)}
LIKINGS_OF = {verb: _sharing(NOUNS, verb.objects) for verb in GENERIC}
PLACES_OF = {verb: _sharing(PLACES, verb.places) for verb in (*TRANSITIVE, *DATIVE, *INTRANSITIVE, *STATIC, *MOTION)}
MANNERS_OF = {verb: _tagged(MANNERS, *verb.manners) for verb in (*PLACES_OF, *SIT)}
TOOLS_OF = {verb: [row[1:] for row in TOOLS if row[0] == verb.english] for verb in OBJECTS_OF}

# Times of verbs.
TIMES_IN = {tense: _tagged(TIMES, tense) for tense in ("past", "present", "future")}
TIMES_IN |= {"can": TIMES_IN["future"], "must": TIMES_IN["future"]}
STATE_TIMES_IN = {tense: _tagged(STATE_TIMES, tense) for tense in ("past", "present")}

# Adjectives of nouns and locations, and verbs of relative clauses.
QUALITIES_OF = {noun: _sharing(QUALITIES, noun.kinds) for noun in NOUNS}
SITUATIONS_OF = {place: _sharing(SITUATIONS, place.kinds) for place in PLACES if "goal" in place.kinds}
HISTORY_OF = {
    noun: tuple(verb for verb in _named(tuple(OBJECTS_OF), RELATIVE) if noun in OBJECTS_OF[verb]) for noun in NOUNS
}

# Nouns for one construction each: "The bag is heavy", "I have a dog", "The cat is under the table", "The dog runs".
DESCRIBABLE = tuple(noun for noun in NOUNS if QUALITIES_OF[noun])
OWNED = _sharing(NOUNS, ("owned", "pet"))
PUT = tuple(noun for noun in _sharing(NOUNS, ("pet", "lost", "small", "headwear", "reading")) if noun.counter)
LANDMARKS = _sharing(THINGS, ("surface", "building", "plant", "vehicle"))
SURFACES = _sharing(THINGS, ("surface",))
RUNNERS = _sharing(ANIMALS, ("runner",))

# Verbs and adjectives for one construction each.
ACTS = tuple(verb for verb in TRANSITIVE if "person" not in verb.objects)
ENCOUNTERS = tuple(verb for verb in TRANSITIVE if "person" in verb.objects)
ANIMAL_ACTIONS = _named(INTRANSITIVE, ANIMAL_VERBS)
PASTIMES = _named(TRANSITIVE, LASTING)
ARRIVALS = _named(MOTION, ("go", "come", "arrive", "return"))
CAUSING = tuple(state for state in STATES if state.english in CAUSES)
