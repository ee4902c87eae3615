"""`softgaze phrasebook`: write the built-in corpus as plain files. Knows directories, not grammar."""

from pathlib import Path
from typing import Annotated

import typer


def phrasebook(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write to.")],
    pairs: Annotated[int, typer.Option(min=1, help="Sentence pairs, most of them to train on.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed writes the same sentences.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write even among files of others.")] = False,
) -> None:
    """Write the built-in English–Korean corpus: plain text to train, tune and test on, with gold word alignments.

    softgaze phrasebook -o phrasebook

    softgaze check phrasebook/train.en phrasebook/train.ko
    """
    from softgaze.data.phrasebook import write

    refuse_others(out, force)
    write(out, pairs=pairs, seed=seed)
    for path in sorted(each for each in out.iterdir() if each.is_file()):
        typer.echo(f"{path}  {path.stat().st_size:,} bytes")


def refuse_others(out: Path, force: bool) -> None:
    """Refuse a directory with anything in it, unless it is an earlier phrasebook whole: it may be somebody's work."""
    from softgaze.data.phrasebook import SPLITS
    from softgaze.errors import UsageError

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out names a directory")
    there = {each.name for each in out.iterdir()} if out.exists() else set()
    own = {"README.txt", *(f"{split}.{ending}" for split in SPLITS for ending in ("en", "ko", "gold"))}
    if there and there != own and not force:
        stranger = min(there - own, default="part of one")
        raise UsageError(
            f"{out} is not empty and is no phrasebook (it holds {stranger}); choose another -o, or --force"
        )
