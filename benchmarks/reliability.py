"""Is the stated reliability of attention maps right? Compare it with gold alignments.

    python -m benchmarks.reliability NAME MODEL TEST_SRC TEST_TGT GOLD BASE [NAME …]

Writes `reliability.md`, `.json` and `.svg`. A link is right if the gold alignment has it as sure or possible.
References are forced as output, because gold alignments belong to them. MODEL is not changed.
"""

import json
import sys
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.report import circumstances
from docs.dark import with_dark_colours
from softgaze.data.corpus import read_lines, read_pairs
from softgaze.evaluation.confidence_metrics import (
    UNKNOWN,
    Reliability,
    ReliabilityBin,
    area_under_curve,
    reliability_chart,
)
from softgaze.evaluation.tables import Table
from softgaze.explain.alignment import Alignment, parse_lines
from softgaze.explain.attention_map import Attention, row_column_normalize
from softgaze.explain.recording import Flags, Matrix
from softgaze.translator import load

ARGUMENTS = 6
HEADER = ["", "sentences", "links", "right", "stated", "error", "correlation", "AUC of links"]
DRAWS, MIN_SENTENCES = 2000, 2  # of the bootstrap; a bin with fewer sentences has no interval
NOTE = (
    "Right: share of the links of the selected map that gold has. Stated: mean reliability. Error: expected "
    "calibration error over ten bins of sentences, weighted by links. Correlation: of the reliability and the share of "
    "right links of sentences. AUC: probability that a right link has a higher probability than a wrong one."
)

BINS_NOTE = "Confidence interval of the share of right links: bootstrap over the sentences of the bin."


@dataclass(frozen=True)
class Measured:
    """The reliability of one model on one test set with gold alignments."""

    bins: list[tuple[int, int, float, float, float, float]]  # sentences, links, stated, right, its 95 % interval
    right: float
    stated: float
    correlation: float
    auc: float

    def reliability(self) -> Reliability:
        """Return it for the chart; the unit of a bin is a link."""
        rows = tuple(ReliabilityBin(*own[1:4], own[4:]) for own in self.bins)
        return Reliability(rows, self.auc, float("nan"), None)


def measure(model: Path, test: list[Path], gold_file: Path, base: int) -> Measured:
    translator = load(model, engine="torch")
    tested = list(read_pairs(*test))
    gold = parse_lines(list(read_lines(gold_file)), base, str(gold_file))
    found = [label(translator.score(*pair).attention, own) for pair, own in zip(tested, gold, strict=True)]
    probs, rights = zip(*(each for each in found if each is not None and len(each[0])), strict=True)
    stated, right = (np.array([own.mean() for own in values]) for values in (probs, rights))
    links = np.array([len(own) for own in probs])
    bins = np.minimum((10 * stated).astype(int), 9)
    masks = [bins == index for index in range(10) if (bins == index).any()]
    rows: list[tuple[int, int, float, float, float, float]] = []
    for mask in masks:
        means = [float(np.average(v[mask], weights=links[mask])) for v in (stated, right)]
        bounds = bootstrap_interval(right[mask], links[mask])
        mean_stated, mean_right, low, high = (round(value, 4) for value in (*means, *bounds))
        rows.append((int(mask.sum()), int(links[mask].sum()), mean_stated, mean_right, low, high))
    auc = area_under_curve(np.concatenate(probs), np.concatenate(rights))
    return Measured(
        bins=rows,
        right=round(float(np.average(right, weights=links)), 4),
        stated=round(float(np.average(stated, weights=links)), 4),
        correlation=round(float(np.corrcoef(stated, right)[0, 1]), 4),
        auc=round(auc, 4),
    )


def label(attention: Attention | None, gold: Alignment) -> tuple[Matrix, Flags] | None:
    """Return the stated probability of each linked word, and whether its largest weight is a gold link."""
    if attention is None or attention.reliability is None:
        return None
    best = row_column_normalize(attention.word_weights()).argmax(axis=1)
    linked = [(row, value) for row, value in enumerate(attention.reliability.links) if value is not None]
    right = [(int(best[row]), row) in gold.links | gold.possible for row, _ in linked]
    return np.array([value for _, value in linked]), np.array(right, bool)


def bootstrap_interval(right: Matrix, links: Matrix) -> tuple[float, float]:
    """Return the 95 % confidence interval of the share of right links; whole sentences are drawn with replacement.

    The links of a sentence are right or wrong together, so intervals over links would be too narrow.
    """
    if len(right) < MIN_SENTENCES:
        return UNKNOWN
    drawn = np.random.default_rng(0).integers(len(right), size=(DRAWS, len(right)))
    low, high = np.percentile((right * links)[drawn].sum(1) / links[drawn].sum(1), (2.5, 97.5))
    return float(low), float(high)


def main() -> None:
    arguments = iter(sys.argv[1:])
    results: dict[str, Measured] = {}
    while row := list(islice(arguments, ARGUMENTS)):
        name, model, *paths, base = row
        files = [Path(path) for path in paths]
        results[name] = measure(Path(model), files[:2], files[2], int(base))
        print(name, results[name], flush=True)
    folder = Path(__file__).parent
    (folder / "reliability.json").write_text(
        json.dumps({name: asdict(each) for name, each in results.items()}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )
    cells = [
        [name, f"{sum(own[0] for own in each.bins):,}", f"{each.reliability().words:,}"]
        + [f"{100 * value:.1f} %" for value in (each.right, each.stated, each.reliability().ece)]
        + [f"{each.correlation:.2f}", f"{each.auc:.3f}"]
        for name, each in results.items()
    ]
    bins = [
        [
            name,
            f"{10 * int(10 * stated)}–{10 * int(10 * stated) + 10} %",
            f"{count:,}",
            f"{links:,}",
            f"{100 * stated:.1f} %",
            f"{100 * right:.1f} %",
            "–" if count < MIN_SENTENCES else f"{100 * low:.1f}–{100 * high:.1f} %",
        ]
        for name, each in results.items()
        for count, links, stated, right, low, high in each.bins
    ]
    header = ["", "bin", "sentences", "links", "stated", "right", "95 % confidence interval"]
    tables = [Table("", HEADER, cells, NOTE), Table("", header, bins, BINS_NOTE)]
    text = "\n\n".join(
        [f"# Reliability of attention maps\n\n{circumstances('reliability')}", *(t.markdown() for t in tables)]
    )
    (folder / "reliability.md").write_text(f"{text}\n\n![Reliability diagram](reliability.svg)\n", encoding="utf-8")
    chart = reliability_chart(
        {name: each.reliability() for name, each in results.items()}, "Reliability of attention maps", "links"
    )
    (folder / "reliability.svg").write_text(with_dark_colours(chart) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
