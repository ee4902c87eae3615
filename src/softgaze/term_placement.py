"""Terms of a glossary in a translation: their tokens for the search, and the insertion of those that it left out.

The torch search starts terms where the model attends to them (`softgaze.search.terms`). A term that is still missing
replaces the words that are aligned to it, so that every term is in the translation, with every engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from softgaze.bundle import Tokenizers
from softgaze.data.language_id import is_unspaced
from softgaze.data.tokenizer import Tokenizer, normalise
from softgaze.errors import SoftgazeError
from softgaze.explain.word_spans import token_bytes
from softgaze.glossary import Glossary, Span, TermMatch, capitalised, find_forms, fold, is_start, occurrences
from softgaze.search.terms import SourceTerm
from softgaze.special_tokens import UNK
from softgaze.translation import combined_score

if TYPE_CHECKING:
    from softgaze.alignment import StatisticalAligner
    from softgaze.explain import Attention
    from softgaze.translation import Translation
    from softgaze.translator import Translator

BY_SEARCH, BY_ALIGNMENT = "search", "alignment"
Ids = tuple[int, ...]


class PlacedTerm(NamedTuple):
    """A term in a translation."""

    source: str
    target: str
    by: str  # "search", or "alignment" if it was inserted after the search


# --- before the search ------------------------------------------------------------------------------------------


def source_terms(
    text: str, ids: Sequence[int], glossary: Glossary, tokenizers: Tokenizers, target_language: str
) -> tuple[SourceTerm, ...]:
    """Return the terms in a text with these tokens that the model can write."""
    text = normalise(text)
    matches = glossary.find(text)
    if not matches or not isinstance(tokenizers.source, Tokenizer):
        return ()
    offset = len(tokenizers.source.frame_pieces("")[0])
    is_joined = is_unspaced(target_language)
    is_whole_word = not is_joined and target_language.split("-")[0].split("_")[0] != "ko"
    starts_with_capital = text[:1].isupper()
    found = []
    for match, positions in zip(matches, term_positions(text, tokenizers.source.pieces(ids), matches), strict=True):
        forms = form_tokens(match.forms, tokenizers.target, is_joined=is_joined)
        first = () if match.is_case_sensitive or not starts_with_capital else tuple(map(capitalised, match.forms))
        if forms:
            moved = tuple(position + offset for position in positions)
            first_forms = form_tokens(first, tokenizers.target, is_joined=is_joined)
            found.append(SourceTerm(moved, forms, first_forms, is_whole_word))
    return tuple(found)


def term_positions(text: str, pieces: Sequence[str], matches: Sequence[TermMatch]) -> list[tuple[int, ...]]:
    """Return the positions of the tokens of each term; a tokenizer may normalise the text around it."""
    owner: list[int] = []  # the token of each byte
    spelled = b""
    for position, piece in enumerate(pieces):
        own = token_bytes(piece)
        owner += [position] * len(own)
        spelled += own
    written, folded = fold(spelled.decode(errors="replace")), fold(text)
    found: list[tuple[int, ...]] = []
    for match in matches:
        part = folded[match.start : match.end]
        nth = sum(start < match.start for start in occurrences(folded, part))
        starts = [*occurrences(written, part)]
        if nth >= len(starts):
            found.append(())
            continue
        first = len(written[: starts[nth]].encode())
        found.append(tuple(sorted({*owner[first : first + len(part.encode())]})))
    return found


def form_tokens(forms: Sequence[str], tokenizer: Tokenizer, *, is_joined: bool) -> tuple[Ids, ...]:
    """Return the tokens of the forms that the tokenizer can write; `is_joined` languages have no spaces before them."""
    found = []
    for form, ids in zip(forms, tokenizer.encode(forms), strict=True):
        if UNK in ids or normalise(tokenizer.decode(ids)) != form:
            continue
        first = tokenizer.pieces(ids[:1])[0]
        if is_joined and first.startswith("▁"):
            rest = tokenizer.piece_ids.get(first[1:])
            ids = ids[1:] if first == "▁" else ids if rest is None else [rest, *ids[1:]]
        found.append(tuple(ids))
    return tuple(found)


# --- after the search -------------------------------------------------------------------------------------------


def insert_missing_terms(translator: "Translator", translations: "Sequence[Translation]") -> "Iterator[Translation]":
    """Yield translations with the terms that the search left out, in one pass over their attention."""
    hypotheses = [one for best in translations for one in (best, *best.alternatives)]
    matches = [each.options.glossary.find(normalise(each.source)) for each in hypotheses if each.options.glossary]
    missing = [
        index
        for index, (each, own) in enumerate(zip(hypotheses, matches, strict=True))
        if None in find_forms(each.text, own)
    ]
    recorded = [index for index in missing if hypotheses[index].parts and translator.has_attention]
    maps = dict(zip(recorded, translator.attentions([hypotheses[index] for index in recorded]), strict=True))
    done = iter(
        insert_terms(translator, each, own, maps.get(index))
        for index, (each, own) in enumerate(zip(hypotheses, matches, strict=True))
    )
    for best in translations:
        yield replace(next(done), alternatives=tuple(islice(done, len(best.alternatives))))


def insert_terms(
    translator: "Translator", translation: "Translation", matches: "Sequence[TermMatch]", attention: "Attention | None"
) -> "Translation":
    """Return a translation with its missing terms; of several forms the most probable."""
    source, text = normalise(translation.source), translation.text
    insertions = find_insertions(source, text, matches, attention, translator.statistical_aligner)
    if insertions:
        forms = [insertion.match.forms[0] for insertion in insertions]
        translation = rescored(translator, translation, insert_forms(text, insertions, forms))
        for index, insertion in enumerate(insertions):
            for form in insertion.match.forms[1:]:
                others = [*forms[:index], form, *forms[index + 1 :]]
                other = rescored(translator, translation, insert_forms(text, insertions, others))
                if other.score > translation.score:
                    translation, forms = other, others
    inserted = {insertion.match for insertion in insertions}
    spans = find_forms(translation.text, matches)
    placed = tuple(
        PlacedTerm(match.source, translation.text[slice(*span)], BY_ALIGNMENT if match in inserted else BY_SEARCH)
        for match, span in zip(matches, spans, strict=True)
        if span
    )
    return replace(translation, terms=placed)


def rescored(translator: "Translator", translation: "Translation", text: str) -> "Translation":
    """Return a translation with another text; one of several parts keeps their tokens."""
    changed = replace(translation, text=text)
    if len(translation.parts) != 1:
        return changed
    try:
        part = translator.score(translation.source, text).parts[0]
    except (SoftgazeError, IndexError):  # too long for the model
        return changed
    return replace(changed, parts=(part,), score=combined_score([part], translation.options.length_penalty))


class Insertion(NamedTuple):
    """The words of a translation that a missing term replaces."""

    span: Span
    match: TermMatch


def find_insertions(
    source: str,
    target: str,
    matches: Sequence[TermMatch],
    attention: "Attention | None",
    statistics: "StatisticalAligner | None",
) -> list[Insertion]:
    """Return which words the missing terms replace; the span is empty where a term is inserted between words."""
    spans = find_forms(target, matches)
    taken = [span for span in spans if span]
    sources, targets, links = aligned_words(source, target, attention, statistics)
    found: list[Insertion] = []
    for match, span in zip(matches, spans, strict=True):
        if span is not None:
            continue
        own = [word for word, (start, end) in enumerate(sources) if start < match.end and end > match.start]
        free = [
            word
            for word, (start, end) in enumerate(targets)
            if all(end <= low or high <= start for low, high in taken) and any((each, word) in links for each in own)
        ]
        run = longest_run(free)
        if run:
            start, end = targets[run[0]][0], targets[run[-1]][1]
            start, end = trim(target, start, end)
        else:
            start = end = insertion_offset(match, sources, targets, links, len(source), taken)
        taken.append((start, end))
        found.append(Insertion((start, end), match))
    return found


def aligned_words(
    source: str, target: str, attention: "Attention | None", statistics: "StatisticalAligner | None"
) -> tuple[list[Span], list[Span], frozenset[tuple[int, int]]]:
    """Return the spans of the words of both texts, and their links; none without an alignment."""
    if attention is None:
        return word_spans(source, source.split()), word_spans(target, target.split()), frozenset()
    from softgaze.alignment import combined_alignment  # a tenth of a cold start, and few texts have terms

    recording = attention.recording
    alignment = combined_alignment(attention, statistics) if statistics else attention.alignment()
    return word_spans(source, recording.source.words), word_spans(target, recording.target.words), alignment.links


def word_spans(text: str, words: Sequence[str]) -> list[Span]:
    """Return the span of each word in a text."""
    spans, position = [], 0
    for word in words:
        start = max(text.find(word, position), position)
        position = min(start + len(word), len(text))
        spans.append((start, position))
    return spans


def longest_run(words: Sequence[int]) -> range:
    """Return the longest run of consecutive words."""
    best = run = range(0)
    for word in words:
        run = range(run.start, word + 1) if run and word == run.stop else range(word, word + 1)
        best = max(best, run, key=len)
    return best


def trim(text: str, start: int, end: int) -> Span:
    """Return a span without the punctuation at its edges, unless there is nothing else."""
    letters = [index for index in range(start, end) if text[index].isalnum()]
    return (letters[0], letters[-1] + 1) if letters else (start, end)


def insertion_offset(
    match: TermMatch,
    sources: Sequence[Span],
    targets: Sequence[Span],
    links: frozenset[tuple[int, int]],
    length: int,
    taken: Sequence[Span],
) -> int:
    """Return where a term without an aligned word goes: behind its neighbour, else at its relative position."""
    before = [word for word, (_, end) in enumerate(sources) if end <= match.start]
    aligned = [target for source, target in links if before and source == before[-1]]
    offset = targets[max(aligned)][1] if aligned else 0
    if not aligned and targets:
        word = round(match.start / max(length, 1) * len(targets))
        offset = targets[word][0] if word < len(targets) else targets[-1][1]
    return next((high for low, high in taken if low < offset < high), offset)


def insert_forms(target: str, insertions: Sequence[Insertion], forms: Sequence[str]) -> str:
    """Return a translation with these forms at the insertions."""
    output, position = "", 0
    for index in sorted(range(len(insertions)), key=lambda index: (insertions[index].span, index)):
        (start, end), form = insertions[index].span, forms[index]
        output = join_words(join_words(output, target[position:start]), form)
        position = end
    return join_words(output, target[position:])


def join_words(before: str, after: str) -> str:
    """Return two texts with a space between them if they would be one word."""
    joined = before + after
    is_boundary = not before or not after or is_start(joined, len(before))
    return joined if is_boundary else f"{before} {after}"
