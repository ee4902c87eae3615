"""Comprehensiveness and sufficiency of the selected map and of other measures, for any model and any source text.

    python -m benchmarks.faithfulness "Multi30k, in domain" runs/m30k test.en "Multi30k, Tatoeba" runs/m30k tatoeba.en

The first 24 sentences of 3 to 20 words (`--sentences`) are translated greedily. Prints a table as Markdown.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from softgaze.data.corpus import read_lines
from softgaze.explain.erasure import MAX_SENTENCES, compare_maps
from softgaze.explain.map_selection import SENTENCE_LENGTHS
from softgaze.search.options import SearchOptions
from softgaze.translator import load

HEADER = "| model, text | map | comprehensiveness | sufficiency | output words |\n|---|---|--:|--:|--:|"


def rows(name: str, model: Path, source: Path, sentences: int) -> Iterator[str]:
    """Yield a line of the table for each measure."""
    translator = load(model, "cpu", engine="torch")
    lines = (line for line in read_lines(source) if len(line.split()) in SENTENCE_LENGTHS)
    translations = translator.translate(list(islice(lines, sentences)), SearchOptions(beam_size=1))
    for measure, scores in compare_maps(translator, translations, SENTENCE_LENGTHS, sentences).items():
        values = f"{scores.comprehensiveness:.3f} | {scores.sufficiency:.3f} | {scores.words}"
        yield f"| {name} | {measure} | {values} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("given", nargs="+", metavar="NAME MODEL SOURCE")
    parser.add_argument("--sentences", type=int, default=MAX_SENTENCES)
    arguments = parser.parse_args()
    given = arguments.given
    print(HEADER)
    for name, model, source in zip(given[::3], given[1::3], given[2::3], strict=True):
        for row in rows(name, Path(model), Path(source), arguments.sentences):
            print(row, flush=True)


if __name__ == "__main__":
    main()
