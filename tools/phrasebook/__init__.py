"""Generate the phrasebook: English–Korean sentence pairs from a small grammar, with gold word alignments.

An English sentence has exactly one Korean translation, in 해요체: subject, time, company, place, object, manner, verb.
Everything follows from the seed. Words are separated by spaces, include their punctuation and are numbered from 0.

    lexicon → english, korean                 words and their forms
    collocations → held_out                   which words combine, and which combinations only dev or test have
    aligned_words → sentence_builder          words with the concepts they express, and the state of one sentence
    phrases → people → adjuncts               noun phrases, persons, adverbials
    word_order → clauses                      a verb with its arguments, in the order of each language
    statements, questions, conjunctions       kinds of sentences
    alignment → sentences                     text and links of a sentence
    splits → write_files                      train, dev, test and long, as files
"""

from tools.phrasebook.alignment import Link
from tools.phrasebook.held_out import split_of
from tools.phrasebook.sentences import LONG, LONGEST, Sentence
from tools.phrasebook.splits import LIMIT, SPLITS, Phrasebook, generate, generate_with_lengths
from tools.phrasebook.vocabulary import words
from tools.phrasebook.write_files import write

__all__ = [
    "LIMIT",
    "LONG",
    "LONGEST",
    "SPLITS",
    "Link",
    "Phrasebook",
    "Sentence",
    "generate",
    "generate_with_lengths",
    "split_of",
    "words",
    "write",
]
