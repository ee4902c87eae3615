"""Writing files so that a crash leaves the old ones or the new ones, never a mixture; and fingerprints of files.

A file or directory is written under a temporary name, flushed to the disk, and renamed. Tests that kill a process in
between make the gaps wider: with SOFTGAZE_SLOW_WRITES=0.05 in the environment, each takes 0.05 seconds.
"""

import errno
import gzip
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from softgaze.errors import ResourceError, UsageError

TEMPORARY = ".writing-"  # what starts with this was never finished and may be removed


def sha256_of(path: Path) -> str:
    """Fingerprint of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """What a manifest says of a file."""
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


@contextmanager
def explained(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """An OSError on the way to `path`, by way of `temporary`, becomes one line that names it."""
    try:
        yield
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written: {reason(error, temporary or path)}") from error


def reason(error: OSError, path: Path) -> str:
    """Why writing to `path` failed, in bytes where something was too small."""
    words = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(existing(path)).free
        return f"{words} ({size_of(path):,} bytes were written and {free:,} are free; make room and run it again)"
    if error.errno == errno.EFBIG:
        return f"{words} ({size_of(path):,} bytes were written; ulimit -f says how large a file may be)"
    return words


def existing(path: Path) -> Path:
    """The nearest directory above that is there."""
    return next(each for each in path.absolute().parents if each.exists())


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a directory; of nothing, none."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file())


def gap() -> None:
    """Where a kill would strike between two steps of a write; tests make it last."""
    time.sleep(float(os.environ.get("SOFTGAZE_SLOW_WRITES", 0)))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to fill, compressed if its name says so; when something goes wrong, what was there before stays."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    try:
        with explained(path, temporary):
            with gzip.open(temporary, "wb") if path.suffix == ".gz" else temporary.open("wb") as file:
                yield cast(BinaryIO, file)
            gap()
            sync_file(temporary)
            gap()
            os.replace(temporary, path)
            gap()
            sync_directory(path.parent)
    finally:
        with suppress(OSError):  # the first error is the one to tell
            temporary.unlink(missing_ok=True)


def rename(temporary: Path, path: Path) -> None:
    """Give a file that is on the disk the name of another, which goes."""
    with explained(path):
        os.replace(temporary, path)
        sync_directory(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file in one move."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Replace a text file in one move."""
    write_bytes(path, content.encode())


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A directory to fill; it takes its name, and its place among its neighbours, when all of it is on the disk.

    What had its name before is moved aside first, and removed last; when something goes wrong, it stays.
    """
    temporary, before = path.with_name(f"{TEMPORARY}{path.name}"), path.with_name(f"{TEMPORARY}old-{path.name}")
    try:
        with explained(path, temporary):
            remove(temporary)
            temporary.mkdir(parents=True)
            yield temporary
            gap()
            for file in temporary.rglob("*"):
                if file.is_file():
                    sync_file(file)
            sync_directory(temporary)
            gap()
            remove(before)
            if path.exists() or path.is_symlink():
                os.replace(path, before)
            gap()
            os.replace(temporary, path)
            gap()
            sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell
            remove(temporary)
            if before.exists() and not path.exists():
                os.replace(before, path)
        raise
    remove(before)


def sync_file(path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Wait until a directory's names are on the disk; not every system can."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there; a link goes, what it points to stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
