"""Terms in translations: accuracy, placement, quality and speed of four methods.

    python -m benchmarks.terms MODEL --dev val.en val.de

200 source words are drawn from the dev text, with up to four target words that the bundle's statistical aligner links
to them in the references. Sentences are used if the reference has a form of each of their terms. A term is correctly
placed if the same aligner links it to its source word. Prints a table as Markdown.
"""

import argparse
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import sacrebleu

from softgaze.data.corpus import read_pairs
from softgaze.engines.torch_engine import StepAttention
from softgaze.glossary import Glossary, Span, Term, find_forms
from softgaze.search.options import SearchOptions
from softgaze.translator import Translator, load

NUM_TERMS, MAX_FORMS, MIN_LETTERS = 200, 4, 4
COUNTS = range(2, 31)  # of a drawn word in the dev text
FIRST_MASK = 731
Pairs = Sequence[tuple[str, str]]


class Row(NamedTuple):
    """The result of one method."""

    method: str
    accuracy: float
    placed: float
    missing_before: float  # accuracy on the terms that are missing without a glossary
    bleu: float
    chrf: float
    seconds: float  # of this process on the CPU

    def markdown(self) -> str:
        numbers = (self.accuracy, self.placed, self.missing_before, self.bleu, self.chrf, self.seconds)
        return f"| {self.method} | {' | '.join(f'{number:.1f}' for number in numbers)} |"


HEADER = "| method | terms % | placed % | terms % of those missing without a glossary | BLEU | chrF | CPU s |"


def draw_terms(translator: Translator, pairs: Pairs, seed: int) -> Glossary:
    """Return random words of the sources, with their translations in the references as forms."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for (source, target), alignment in zip(pairs, align(translator, pairs), strict=True):
        words = source.split(), target.split()
        fertility = [Counter(link[side] for link in alignment) for side in (0, 1)]
        for one, other in alignment:
            if fertility[0][one] == fertility[1][other] == 1:
                forms[words[0][one].strip('.,!?"').lower()][words[1][other].strip('.,!?"')] += 1
    eligible = sorted(
        word for word, found in forms.items() if word.isalpha() and len(word) >= MIN_LETTERS and found.total() in COUNTS
    )
    drawn = random.Random(seed).sample(eligible, min(NUM_TERMS, len(eligible)))
    kept = {word: [form for form, _ in forms[word].most_common(MAX_FORMS) if form.isalpha()] for word in drawn}
    return Glossary([Term(word, tuple(own)) for word, own in kept.items() if own])


def align(translator: Translator, pairs: Pairs) -> list[frozenset[tuple[int, int]]]:
    """Return links by the statistics of the bundle alone, without attention."""
    if translator.statistical_aligner is None:
        raise SystemExit("the model has no statistical aligner")
    return [alignment.links for alignment in translator.statistical_aligner.align(pairs)]


def masked_translations(translator: Translator, sources: Sequence[str], glossary: Glossary) -> list[str]:
    """Replace each term by a number before the translation, and the number by its first form after it."""
    masked, masks = [], []
    for source in sources:
        own: dict[str, str] = {}
        text, position = "", 0
        for match in glossary.find(source):
            mask = str(FIRST_MASK + len(own))
            own[mask] = match.forms[0]
            text, position = f"{text}{source[position : match.start]}{mask}", match.end
        masked.append(text + source[position:])
        masks.append(own)
    found = translator.translate(masked)
    return [
        re.sub(r"\d+", lambda number, own=own: own.get(number[0], number[0]), best.text)  # type: ignore[misc]
        for best, own in zip(found, masks, strict=True)
    ]


def is_linked(source: str, target: str, term: Span, form: Span, links: frozenset[tuple[int, int]]) -> bool:
    """Return whether a word of the term is linked to a word of the form."""
    sides = []
    for text, (start, end) in ((source, term), (target, form)):
        words = enumerate(re.finditer(r"\S+", text))
        sides.append({index for index, word in words if word.start() < end and word.end() > start})
    return any(one in sides[0] and other in sides[1] for one, other in links)


def measure(
    method: str, translate: Callable[[], list[str]], translator: Translator, pairs: Pairs, glossary: Glossary
) -> tuple[Row, list[bool]]:
    """Return the result of a method, and which terms its translations have."""
    start = time.process_time()
    texts = translate()
    seconds = time.process_time() - start
    found: list[bool] = []
    placed = 0
    sources, references = zip(*pairs, strict=True)
    links = align(translator, [*zip(sources, texts, strict=True)])
    for source, text, own in zip(sources, texts, links, strict=True):
        matches = glossary.find(source)
        for match, span in zip(matches, find_forms(text, matches), strict=True):
            found.append(span is not None)
            placed += span is not None and is_linked(source, text, (match.start, match.end), span, own)
    bleu = sacrebleu.corpus_bleu(texts, [references]).score
    chrf = sacrebleu.corpus_chrf(texts, [references]).score
    return Row(method, 100 * sum(found) / len(found), 100 * placed / len(found), 0.0, bleu, chrf, seconds), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dev", type=Path, nargs=2, required=True)
    parser.add_argument("--seed", type=int, default=2)
    arguments = parser.parse_args()
    fast, torch = load(arguments.model), load(arguments.model, engine="torch")
    every = [*read_pairs(*arguments.dev)]
    glossary = draw_terms(torch, every, arguments.seed)
    pairs = []
    for source, target in every:
        matches = glossary.find(source)
        if matches and None not in find_forms(target, matches):
            pairs.append((source, target))
    sources = [source for source, _ in pairs]
    for translator in (fast, torch):  # load and warm up
        translator.translate(sources[:8], glossary=glossary)

    def with_terms(translator: Translator, **options: object) -> list[str]:
        search = SearchOptions.of(None, {"glossary": glossary, **options})
        return [best.text for best in translator.translate(sources, search)]

    def anywhere() -> list[str]:
        with patch.object(StepAttention, "read", lambda reader: reader.weights.clear()):
            return with_terms(torch)

    methods: dict[str, Callable[[], list[str]]] = {
        f"no glossary, {fast.engine.name}": lambda: [best.text for best in fast.translate(sources)],
        "no glossary, torch": lambda: [best.text for best in torch.translate(sources)],
        "placeholder substitution, torch": lambda: masked_translations(torch, sources, glossary),
        "constrained beam search, torch": anywhere,
        "terms by attention, torch": lambda: with_terms(torch),
        "terms by attention, greedy search": lambda: with_terms(torch, beam_size=1),
    }
    total = sum(len(glossary.find(source)) for source in sources)
    print(f"{len(glossary)} terms, {len(pairs):,} sentences with {total:,} of them, seed {arguments.seed}\n")
    print(f"{HEADER}\n|---|{'---:|' * (HEADER.count('|') - 2)}")
    before: list[bool] = []
    for method, translate in methods.items():
        row, found = measure(method, translate, torch, pairs, glossary)
        before = before or found
        missing = [has for has, had in zip(found, before, strict=True) if not had]
        print(row._replace(missing_before=100 * sum(missing) / max(len(missing), 1)).markdown(), flush=True)


if __name__ == "__main__":
    main()
