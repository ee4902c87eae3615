"""The built-in corpus: English–Korean sentence pairs from a small grammar, with gold word alignments.

One English sentence has exactly one Korean sentence, in 해요체: subject, time, company, place, object, manner, verb.
Nothing here needs torch, a network or a file; everything follows from the seed. Words are what stands between spaces,
punctuation attached, counted from 0.

    lexicon → english, korean             the words, and the forms they take
    collocations → held_out               what goes with what, and what only dev or only test may show
    meaning → draft                       words with their ideas, and the sentence they are gathered for
    phrases → people → adjuncts           who, what, when and where
    word_order → clauses                  a verb and its company, in the order of each language
    statements, questions, joins          what a sentence may be
    alignment → sentences                 the sentence written down, word linked to word
    splits → writing                      train, dev, test and long, as files
"""

from softgaze.data.phrasebook.alignment import Link
from softgaze.data.phrasebook.held_out import side
from softgaze.data.phrasebook.sentences import LONG, LONGEST, Sentence
from softgaze.data.phrasebook.splits import LIMIT, SPLITS, Phrasebook, dialled, generate
from softgaze.data.phrasebook.vocabulary import words
from softgaze.data.phrasebook.writing import write

__all__ = [
    "LIMIT",
    "LONG",
    "LONGEST",
    "SPLITS",
    "Link",
    "Phrasebook",
    "Sentence",
    "dialled",
    "generate",
    "side",
    "words",
    "write",
]
