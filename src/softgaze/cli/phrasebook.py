"""`softgaze phrasebook`: write the built-in corpus as plain files."""

from pathlib import Path
from typing import Annotated

import typer

from softgaze.cli._options import flag, option
from softgaze.errors import UsageError


def phrasebook(
    out: Annotated[Path, option("Output directory.", "--out", "-o", metavar="DIR")],
    pairs: Annotated[int, option("Number of training pairs.", min=1, max=20_000)] = 20_000,
    seed: Annotated[int, option("Which of the two built-in corpora.", min=0, max=1)] = 0,
    force: Annotated[bool, flag("Write even if DIR holds other files.", "--force")] = False,
) -> None:
    """Write the built-in English-Korean corpus.

    softgaze phrasebook -o phrasebook
    softgaze check phrasebook/train.en phrasebook/train.ko

    Training, validation and test sets as plain text, with gold word
    alignments.
    """
    from softgaze.data.corpora.phrasebook import SPLITS, write

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out names a directory")
    present = {path.name for path in out.iterdir()} if out.exists() else set()
    expected = {"README.txt", *(f"{split}.{suffix}" for split in SPLITS for suffix in ("en", "ko", "gold"))}
    if present and present != expected and not force:  # an incomplete phrasebook may contain edits
        other = min(present - expected, default="an incomplete phrasebook")
        raise UsageError(f"{out} is not empty (it holds {other}); choose another -o, or add --force")
    write(out, pairs=pairs, seed=seed)
    for path in sorted(path for path in out.iterdir() if path.is_file()):
        typer.echo(f"{path}  {path.stat().st_size:,} bytes")
