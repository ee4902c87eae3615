"""Train a translation model whose attention aligns words, supervised by a statistical aligner.

Attention that learned from short sentences alone fails on longer ones, and on capital letters. So the model also reads
joined sentence pairs, whose links stay inside their parts, and some pairs in lower and in upper case.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from softgaze.alignment import StatisticalAligner
from softgaze.alignment.words import whitespace_links
from softgaze.bundle import add_aligner
from softgaze.config import parse_config
from softgaze.data.corpus import Corpus, FilePair, Pair, line_writer
from softgaze.explain.alignment import Alignment, Links
from softgaze.training.callbacks import Callback
from softgaze.training.train import train

MAX_PAIRS = 500_000  # more than an hour of one core reads
BLOCK_PAIRS = 20_000  # aligned at once
JOINED = 2, 4  # pairs in a joined one
MAX_WORDS = 120  # of a joined pair, on either side
LOWER, UPPER = 0.1, 0.05  # shares of pairs in lower and in upper case
SEED = 1
HELD_OUT, VALIDATED = 200, 16  # pairs; the loss selects the weights, so few are translated


class LinkedPair(NamedTuple):
    pair: Pair
    links: Links


def train_attention(
    pairs: Sequence[Pair],
    statistics: StatisticalAligner,
    out: Path,
    minutes: float,
    *,
    languages: tuple[str, str] = ("source", "target"),
    device: str = "auto",
    callback: Callback = Callback(),
) -> None:
    """Train a model in the run directory `out`, and store the statistics in its bundle; called again, it resumes."""
    settings = {
        "data": {"source_language": languages[0], "target_language": languages[1], "held_out": HELD_OUT},
        "budget": {"minutes": minutes},
        "validation": {"metric": "loss", "sentences": VALIDATED, "samples": 0},
    }
    with TemporaryDirectory(prefix="softgaze-") as directory:
        text = FilePair(Path(directory) / "text.source", Path(directory) / "text.target")
        links = Path(directory) / "links"
        with line_writer(text.source) as source, line_writer(text.target) as target, line_writer(links) as link:
            for row in varied(linked_pairs(pairs, statistics)):
                source(row.pair.source)
                target(row.pair.target)
                link(str(Alignment(row.links)))
        train(parse_config(settings), Corpus((text,)), None, out, device=device, guided=[links], callback=callback)
    add_aligner(out, statistics.to_bytes())


def linked_pairs(pairs: Sequence[Pair], statistics: StatisticalAligner) -> list[LinkedPair]:
    """Return pairs without empty sides and their links, evenly spaced pairs of a large corpus."""
    usable = iter(
        [pair for pair in pairs[:: -(-len(pairs) // MAX_PAIRS)] if pair.source.strip() and pair.target.strip()]
    )
    rows = []
    while block := list(islice(usable, BLOCK_PAIRS)):
        for pair, alignment in zip(block, statistics.align(block), strict=True):
            rows.append(LinkedPair(pair, whitespace_links(alignment.links, *pair)))
    return rows


def varied(rows: Sequence[LinkedPair]) -> Iterator[LinkedPair]:
    """Yield every pair alone, and once more as a part of a longer one; some in another case."""
    rng = random.Random(SEED)
    for row in [*rows, *joined(rows, rng)]:
        share = rng.random()
        if share < LOWER:
            yield LinkedPair(Pair(*map(str.lower, row.pair)), row.links)
        elif share < LOWER + UPPER:
            yield LinkedPair(Pair(*map(str.upper, row.pair)), row.links)
        else:
            yield row


def joined(rows: Sequence[LinkedPair], rng: random.Random) -> Iterator[LinkedPair]:
    """Yield pairs of several pairs in random order; those with too many words are left out."""
    shuffled = iter(rng.sample(rows, len(rows)))
    while parts := list(islice(shuffled, rng.randint(*JOINED))):
        row = join(parts)
        if len(parts) > 1 and max(len(side.split()) for side in row.pair) <= MAX_WORDS:
            yield row


def join(parts: Iterable[LinkedPair]) -> LinkedPair:
    """Return one pair of several; links stay inside their parts."""
    words: tuple[list[str], list[str]] = [], []
    links: set[tuple[int, int]] = set()
    for pair, own in parts:
        links |= {(source + len(words[0]), target + len(words[1])) for source, target in own}
        for side, text in zip(words, pair, strict=True):
            side += text.split()
    return LinkedPair(Pair(*map(" ".join, words)), frozenset(links))
