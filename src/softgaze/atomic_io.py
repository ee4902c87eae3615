"""Atomic writes: after a crash there is the old file or directory, or the new one, never a mixture.

Files are written under a temporary name, flushed to the disk and renamed. A long output file can be resumed.
"""

import errno
import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from softgaze.errors import ResourceError, UsageError

TEMPORARY = ".writing-"  # prefix of unfinished files and directories, which may be removed


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """Return the manifest entry of a file: its SHA-256 and size."""
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


@contextmanager
def write_errors(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Turn an OSError while writing `path`, through `temporary`, into a `ResourceError` that names the file."""
    try:
        yield
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written: {_reason(error, temporary or path)}") from error


def _reason(error: OSError, path: Path) -> str:
    """Describe a failed write, with the sizes if the disk is full or the file too large."""
    message = error.strerror or str(error)
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return message
    files = path.rglob("*") if path.is_dir() else [path]
    written = sum(file.stat().st_size for file in files if file.is_file())
    if error.errno == errno.EFBIG:
        return f"{message} ({written:,} bytes were written; see ulimit -f for the limit)"
    existing = next(directory for directory in path.absolute().parents if directory.exists())
    free = shutil.disk_usage(existing).free
    return f"{message} ({written:,} bytes were written and {free:,} are free; free some space and run it again)"


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the block ends, gzipped for .gz; on an error the old file stays."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    try:
        with write_errors(path, temporary):
            with temporary.open("wb") as raw:
                if path.suffix == ".gz":  # without name and time stamp: equal content, equal bytes
                    with gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
                        yield cast(BinaryIO, file)
                else:
                    yield raw
            sync_file(temporary)
            os.replace(temporary, path)
            sync_directory(path.parent)
    finally:
        with suppress(OSError):  # the first error is reported
            temporary.unlink(missing_ok=True)


def rename(temporary: Path, path: Path) -> None:
    """Rename a file that is already on the disk, replacing `path`."""
    with write_errors(path):
        os.replace(temporary, path)
        sync_directory(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    with replace_file(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Replace a text file atomically."""
    write_bytes(path, content.encode())


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory that replaces `path` when the block ends; on an error the old directory stays."""
    temporary, before = path.with_name(f"{TEMPORARY}{path.name}"), path.with_name(f"{TEMPORARY}old-{path.name}")
    try:
        with write_errors(path, temporary):
            remove(temporary)
            temporary.mkdir(parents=True)
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    sync_file(file)
            sync_directory(temporary)
            remove(before)
            if path.exists() or path.is_symlink():
                os.replace(path, before)
            os.replace(temporary, path)
            sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):  # the first error is reported
            remove(temporary)
            if before.exists() and not path.exists():
                os.replace(before, path)
        raise
    remove(before)


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Wait until a directory's entries are on the disk, where the system supports it."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove(path: Path) -> None:
    """Remove a file, link or directory if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# --- resumable output -------------------------------------------------------------------------------------------


class ResumableFile:
    """An unfinished output file, and the number of its lines that an earlier run completed."""

    def __init__(self, file: BinaryIO, state: Path, inputs: dict[str, Any], lines: int) -> None:
        self.file, self.state, self.inputs, self.lines = file, state, inputs, lines

    def checkpoint(self, lines: int) -> None:
        """Record that so many lines were written since the file was opened: a later run resumes after them."""
        self.file.flush()
        os.fsync(self.file.fileno())
        state = {"inputs": self.inputs, "lines": self.lines + lines, "bytes": self.file.tell()}
        write_text(self.state, json.dumps(state, ensure_ascii=False))


@contextmanager
def open_resumable(path: Path, inputs: dict[str, Any]) -> Iterator[ResumableFile]:
    """Open `path` for resumable writing: continue if an earlier run had the same inputs, else start over.

    The output is written to `path.part`; `path.part.json` records its inputs and how many lines and bytes are on the
    disk. The finished file takes its name, and the record is removed.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    part, state = (path.with_name(f"{path.name}{suffix}") for suffix in (".part", ".part.json"))
    lines, size = _completed(part, state, inputs)
    try:
        with write_errors(path, part), part.open("r+b" if size else "wb") as file:
            file.truncate(size)
            file.seek(size)
            yield ResumableFile(file, state, inputs, lines)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        if not state.exists():  # there was no checkpoint
            remove(part)
        raise
    rename(part, path)
    remove(state)


def _completed(part: Path, state: Path, inputs: dict[str, Any]) -> tuple[int, int]:
    """Return the lines and bytes to resume after; 0 if the record is damaged or has other inputs."""
    try:
        record = json.loads(state.read_text(encoding="utf-8"))
        lines, size = int(record["lines"]), int(record["bytes"])
        if record["inputs"] == inputs and 0 < size <= part.stat().st_size:
            return lines, size
    except (OSError, ValueError, KeyError, TypeError):
        pass
    remove(state)
    return 0, 0
