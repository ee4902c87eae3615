"""Writing files so that a crash leaves the old ones or the new ones, never a mixture; and fingerprints of files.

A file or directory is written under a temporary name, flushed to the disk, and renamed.
"""

import gzip
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from softgaze.errors import ResourceError, UsageError

TEMPORARY = ".writing-"  # what starts with this was never finished and may be removed


def sha256_of(path: Path) -> str:
    """Fingerprint of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """An OSError on the way to `path` becomes one line that names it."""
    try:
        yield
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to fill, compressed if its name says so; when something goes wrong, what was there before stays."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    with explained(path):
        try:
            with gzip.open(temporary, "wb") if path.suffix == ".gz" else temporary.open("wb") as file:
                yield cast(BinaryIO, file)
            sync_file(temporary)
            os.replace(temporary, path)
            sync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


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
    with explained(path):
        remove(temporary)
        temporary.mkdir(parents=True)
        try:
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    sync_file(file)
            sync_directory(temporary)
        except BaseException:
            remove(temporary)
            raise
        remove(before)
        if path.exists() or path.is_symlink():
            os.replace(path, before)
        os.replace(temporary, path)
        sync_directory(path.parent)
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
