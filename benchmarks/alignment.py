"""Alignment error rate of every attention map of a model, with the one that was chosen, and what the choices are worth.

    softgaze phrasebook -o data
    python -m benchmarks.alignment runs/quickstart/model data/test.en data/test.ko data/test.gold --gold-base 0

The map is the one stored in the model; with `--dev SRC TGT` it is chosen again, on those. Gold is only compared with.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from softgaze.data.corpus import read_lines, read_pairs
from softgaze.errors import DataError
from softgaze.explain import Alignment, Attention, View
from softgaze.explain.alignment import AlignmentCounts, count_corpus, parse_lines
from softgaze.explain.map_selection import AttentionReader, SentencePairs, candidate_views, select_by_occlusion
from softgaze.explain.occlusion import faithfulness, occlusion_scores
from softgaze.explain.recording import ROWS, Matrix, Recording
from softgaze.translator import load

MEASURES = ("weights", "norms")


def short_pairs(
    source: Path, target: Path, gold: Sequence[Alignment], longest: int
) -> tuple[SentencePairs, list[Alignment]]:
    """Pairs whose sides both have words, and at most `longest`, with their gold."""
    pairs = list(read_pairs(source, target))
    if len(pairs) != len(gold):
        raise DataError(f"{source} has {len(pairs):,} lines and the gold {len(gold):,}")
    sizes = [[len(side.split()) for side in pair] for pair in pairs]
    kept = [number for number, both in enumerate(sizes) if min(both) > 0 and max(both) <= longest]
    return [pairs[number] for number in kept], [gold[number] for number in kept]


def row_maxima(weights: Matrix) -> Alignment:
    """Each output word linked to the greatest weight of its row: what most toolkits do."""
    return Alignment(frozenset((int(each.argmax()), row) for row, each in enumerate(weights) if each.any()))


def whole_weights(attention: Attention) -> Matrix:
    """(target words, source words) of all pieces of words, the punctuation attached to them too."""
    words = attention.words()
    rows, columns = ([label.word is not None for label in side] for side in (words.row_labels, words.column_labels))
    found: Matrix = words.weights[rows][:, columns]
    return found


def table(recordings: Sequence[Recording], gold: Sequence[Alignment], chosen: View) -> Iterable[str]:
    """The error rate of every candidate, in per cent; the chosen one in bold type."""
    columns = [*product(ROWS, MEASURES)]
    yield "| layer | head | " + " | ".join(f"{rows}, {measure}" for rows, measure in columns) + " |"
    yield "|---|---|" + "---:|" * len(columns)
    for layer, head in dict.fromkeys((view.layer, view.head) for view in candidate_views(recordings[0])):
        views = [View(layer=layer, head=head, rows=rows, measure=measure) for rows, measure in columns]
        rates = [
            100 * count_corpus([Attention(each, view).alignment() for each in recordings], gold).aer for view in views
        ]
        cells = [
            f"**{rate:.1f}**" if view == chosen else f"{rate:.1f}" for view, rate in zip(views, rates, strict=True)
        ]
        names = ["mean" if number is None else str(number) for number in (layer, head)]
        yield f"| {' | '.join(names)} | {' | '.join(cells)} |"


def parts(attentions: Sequence[Attention], gold: Sequence[Alignment]) -> Iterable[str]:
    """What each step from a row's maximum to our links is worth, on the chosen map."""
    ways = {
        "greatest weight of the row": [row_maxima(whole_weights(each)) for each in attentions],
        "… without attached punctuation": [row_maxima(each.word_weights()) for each in attentions],
        "… and by mutual shares: our links": [each.alignment() for each in attentions],
    }
    yield "| links | AER % | precision % | recall % |"
    yield "|---|---:|---:|---:|"
    for name, found in ways.items():
        yield f"| {name} | {' | '.join(percent(count_corpus(found, gold)))} |"


def percent(counts: AlignmentCounts) -> list[str]:
    """Error rate, precision and recall."""
    return [f"{100 * value:.1f}" for value in (counts.aer, counts.precision, counts.recall)]


def mean_faithfulness(reader: AttentionReader, pairs: SentencePairs, attentions: Sequence[Attention]) -> float:
    """Over sentences; those with nothing to rank are left out."""
    mattered = occlusion_scores(reader.model, reader.tokenizers, reader.tokenize(pairs))
    return float(np.nanmean([faithfulness(*both) for both in zip(attentions, mattered, strict=True)]))


def main() -> None:
    """Print it all, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name in ("model", "source", "target", "gold"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--gold-base", type=int, choices=(0, 1), required=True)
    parser.add_argument("--dev", type=Path, nargs=2, metavar=("SRC", "TGT"), help="select the map again, on these")
    parser.add_argument("--longest", type=int, default=10_000, help="leave longer sentences out")
    given = parser.parse_args()
    right = parse_lines(list(read_lines(given.gold)), given.gold_base, "gold")
    pairs, gold = short_pairs(given.source, given.target, right, given.longest)
    reader = load(given.model).aligner().forward
    if given.dev or reader.selected_map is None:
        reader = replace(
            reader, selected_map=select_by_occlusion(reader, read_pairs(*given.dev) if given.dev else pairs)
        )
    if reader.selected_map is None:
        raise DataError(f"{given.model} has no attention, or there is no sentence to measure it on")
    recordings = reader.recordings(pairs)
    attentions = [Attention(each, reader.selected_map.view, reader.selected_map) for each in recordings]
    print(f"{given.model}, {len(pairs):,} sentence pairs. {attentions[0].description}.")
    print(f"Faithfulness {mean_faithfulness(reader, pairs, attentions):.2f}.\n")
    print(*table(recordings, gold, reader.selected_map.view), "", *parts(attentions, gold), sep="\n")


if __name__ == "__main__":
    main()
