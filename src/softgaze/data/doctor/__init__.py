"""The data doctor behind `softgaze check`: what is odd about a parallel corpus, where, and what can be kept of it.

Knows text and arrays; no model, no dictionary, no list of languages. Everything is judged against the corpus itself:
its own length ratio, its own scripts, and a lexicon of its own words.

The files are read twice, as a stream. Memory holds about 28 bytes a pair (two 8-byte hashes to find repeats, twelve
bytes of evidence for shifts), more for a moment while hashes are sorted, and a sample of at most `SAMPLE` pairs.

    characters → lines              text as arrays
    survey → judge                  first reading: what is normal here; second reading: which pairs are not
    likeness → evidence → shifts    which lines belong together, and where they slip
    diagnosis → examination         all of it in one `report`
    repair                          what can be kept

How shifted ranges are found. Words are cut to a prefix and given vectors from the pairs they occur in, so that a word
and its translation, which occur in the same pairs, get like vectors. A small logistic regression on likeness of
vectors, shared names and numbers, length and last punctuation tells pairs as they stand from pairs a few lines apart;
its log odds are the evidence that source line n belongs with target line n + k. The best path through all offsets k,
where each change of offset costs, is the answer. Lines are judged by a lexicon learned from *other* lines, otherwise a
shifted range would look right by its own rare words.
"""

from softgaze.data.doctor.examination import examine
from softgaze.data.doctor.repair import Fixed, fix
from softgaze.data.doctor.report import Example, Finding, Lengths, Level, Report, Side

__all__ = ["Example", "Finding", "Fixed", "Lengths", "Level", "Report", "Side", "examine", "fix"]
