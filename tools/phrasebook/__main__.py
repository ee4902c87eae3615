"""Write a phrasebook of any size and seed as plain files: `python -m tools.phrasebook -o DIR --pairs N --seed N`."""

import argparse
from pathlib import Path

from tools.phrasebook.write_files import write

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-o", "--out", type=Path, required=True)
parser.add_argument("--pairs", type=int, default=20_000)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()
write(given.out, given.pairs, given.seed)
