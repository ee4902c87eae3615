"""A long output that a crash does not lose: written beside its name, and gone on with when the same is asked for again.

`out.txt` begins as `out.txt.part`. Beside it `out.txt.part.json` says what it is made from, and how many of its lines
and bytes are surely on the disk. Once whole, it takes its name and the note goes.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from softgaze.errors import UsageError
from softgaze.files import explained, gap, remove, rename, write_text


class Unfinished:
    """A file on its way, and how many of its lines were there when it was opened."""

    def __init__(self, file: BinaryIO, note: Path, made_from: dict[str, Any], lines: int) -> None:
        self.file, self.note, self.made_from, self.lines = file, note, made_from, lines

    def keep(self, lines: int) -> None:
        """So many more lines are written since it was opened: from now on they survive."""
        self.file.flush()
        gap()
        os.fsync(self.file.fileno())
        gap()
        kept = {"made_from": self.made_from, "lines": self.lines + lines, "bytes": self.file.tell()}
        write_text(self.note, json.dumps(kept, ensure_ascii=False))


@contextmanager
def going_on(path: Path, made_from: dict[str, Any]) -> Iterator[Unfinished]:
    """The rest of a file that was begun from the same things, or all of it; whatever happens, what was kept stays."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    part, note = (path.with_name(f"{path.name}{ending}") for ending in (".part", ".part.json"))
    lines, size = kept_of(part, note, made_from)
    try:
        with explained(path, part), part.open("r+b" if size else "wb") as file:
            file.truncate(size)
            file.seek(size)
            yield Unfinished(file, note, made_from, lines)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        if not note.exists():  # nothing was kept
            remove(part)
        raise
    gap()
    rename(part, path)
    gap()
    remove(note)


def kept_of(part: Path, note: Path, made_from: dict[str, Any]) -> tuple[int, int]:
    """Lines and bytes that can be gone on from; none where anything differs."""
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
        lines, size = int(kept["lines"]), int(kept["bytes"])
        if kept["made_from"] == made_from and 0 < size <= part.stat().st_size:
            return lines, size
    except (OSError, ValueError, KeyError, TypeError):
        pass
    remove(note)
    return 0, 0
