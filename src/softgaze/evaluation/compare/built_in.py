"""The phrasebook as text to compare on: its grammar writes sentences of whatever length is asked for.

Models learn from the usual corpus. They are tested on as many sentences of each range of lengths that is in it, and,
apart from that, on longer ones than any model has seen. All hold combinations of words that were kept from training.
What the text does not give is as much training of each length: the longer, the rarer, so the report tells how rare.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softgaze.data import phrasebook
from softgaze.data.phrasebook import LONGEST, Sentence
from softgaze.errors import UsageError
from softgaze.evaluation.buckets import source_lengths
from softgaze.evaluation.compare.plan import Plan
from softgaze.files import new_directory
from softgaze.training.prepare import FACTS

PAIRS = 20_000
INSIDE = tuple(range(start, start + 8) for start in range(1, LONGEST, 8))
BEYOND = tuple(range(start, start + 10) for start in range(LONGEST + 1, 2 * LONGEST, 10))
EACH_INSIDE, EACH_BEYOND = 100, 50  # sentences of a range of lengths


def write_built_in(directory: Path, pairs: int = PAIRS, seed: int = 1) -> None:
    """Write the corpus and its dialled tests, unless they are there."""
    if directory.exists():
        return
    with new_directory(directory) as place:
        train = phrasebook.write(place, pairs=pairs, seed=seed).train
        for name, ranges, each in (("dialled", INSIDE, EACH_INSIDE), ("beyond", BEYOND, EACH_BEYOND)):
            sentences = [one for lengths in ranges for one in phrasebook.dialled(train, lengths, each, seed)]
            write_pair(place / name, sentences)


def write_pair(stem: Path, sentences: Sequence[Sentence]) -> None:
    """Two files, line by line."""
    for ending, lines in (("en", [each.source for each in sentences]), ("ko", [each.target for each in sentences])):
        text = "".join(f"{line}\n" for line in lines)
        stem.with_suffix(f".{ending}").write_text(text, encoding="utf-8", newline="\n")


def built_in_files(directory: Path) -> dict[str, Any]:
    """What a plan needs to know of it."""
    files = {
        name: (directory / f"{name}.en", directory / f"{name}.ko") for name in ("train", "dev", "dialled", "beyond")
    }
    return {
        "train": (files["train"],),
        "dev": (files["dev"],),
        "test": files["dialled"],
        "edges": tuple(lengths.stop - 1 for lengths in INSIDE),
        "beyond": files["beyond"],
        "beyond_edges": tuple(lengths.stop - 1 for lengths in BEYOND),
        "built_in": True,
    }


def check_whole(plan: Plan) -> None:
    """Refuse settings that leave pairs of it out: lengths that were not trained on would be shown as if they were."""
    facts = json.loads((plan.encoded / FACTS).read_text(encoding="utf-8"))
    if plan.built_in and facts["left_out"]:
        limit = plan.config(plan.variants[0].name).data.max_length
        raise UsageError(
            f"data.max_length={limit} leaves out {facts['left_out']:,} pairs of --built-in, which tests all lengths up "
            f"to {LONGEST} words as trained; give a larger one"
        )


def trained_lengths(plan: Plan, buckets: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
    """How many pairs were trained on of the lengths of each bucket, the shortest first."""
    highs = [each["high"] for each in buckets]
    found = Counter(bisect_left(highs, length) for length in source_lengths([pair.source for pair in plan.corpus]))
    return [{"low": each["low"], "high": each["high"], "pairs": found[place]} for place, each in enumerate(buckets)]
