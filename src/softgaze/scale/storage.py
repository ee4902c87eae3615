"""Files on disk and in object storage, and the texts in them.

Arrow reaches S3, Google Cloud, Azure and HDFS without further packages; fsspec, which would need one for each, is used
for all other URLs.
"""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from softgaze.atomic_io import replace_file, write_errors
from softgaze.data.corpus import stream_lines
from softgaze.errors import DataError, ResourceError, UsageError, absent

ARROW_SCHEMES = {"file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"}
HIDDEN_PREFIXES = (".", "_")  # of files that are not data, as in Hadoop, Spark and Ray
PARQUET = ".parquet"
TEXT_COLUMNS = ("source", "text")  # preferred names of the column to translate


@dataclass(frozen=True)
class StoragePath:
    """The path or URL of a file or directory, which may not exist."""

    url: str

    @classmethod
    def of(cls, url: str) -> "StoragePath":
        """Return an absolute path, which other processes understand, or a URL."""
        return cls(url.rstrip("/") if "://" in url else str(Path(url).absolute()))

    def __str__(self) -> str:
        return self.url

    @cached_property
    def filesystem(self) -> tuple[Any, str]:
        """Arrow's file system and the path in it."""
        from pyarrow.fs import FileSystem, FSSpecHandler, LocalFileSystem, PyFileSystem

        scheme, separator, _ = self.url.partition("://")
        if not separator:
            return LocalFileSystem(), self.url
        try:
            if scheme in ARROW_SCHEMES:
                return cast(tuple[Any, str], FileSystem.from_uri(self.url))
            from fsspec.core import url_to_fs

            filesystem, path = url_to_fs(self.url)
        except (ImportError, ValueError, OSError) as error:
            raise UsageError(f"{self}: cannot open this storage: {one_line(error)}") from error
        return PyFileSystem(FSSpecHandler(filesystem)), path

    @property
    def is_local(self) -> bool:
        return "://" not in self.url

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def is_parquet(self) -> bool:
        return self.name.endswith(PARQUET)

    def child(self, name: str) -> "StoragePath":
        return StoragePath(f"{self.url}/{name}")

    def info(self) -> Any:
        """Return Arrow's file info."""
        filesystem, path = self.filesystem
        with self.explain_read_errors():
            return filesystem.get_file_info(path)

    def is_file(self) -> bool:
        return bool(self.info().is_file)

    def is_directory(self) -> bool:
        """Return whether this is a directory, or in object storage the prefix of an object."""
        return str(self.info().type.name) == "Directory"

    def size(self) -> int:
        return int(self.info().size or 0)

    def names(self) -> list[str]:
        """Return the sorted names of the files in this directory, which may not exist."""
        from pyarrow.fs import FileSelector

        filesystem, path = self.filesystem
        with self.explain_read_errors():
            entries = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.is_file)

    @contextmanager
    def explain_read_errors(self) -> Iterator[None]:
        """Convert errors of the storage to a DataError with one line."""
        try:
            yield
        except FileNotFoundError as error:
            raise absent(self) from error
        except OSError as error:
            raise DataError(f"{self}: cannot be read: {one_line(error)}") from error

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; decompress by suffix."""
        filesystem, path = self.filesystem
        with (
            self.explain_read_errors(),
            filesystem.open_input_stream(path) as raw,
            io.BufferedReader(raw) as stream,
        ):
            yield cast(BinaryIO, stream)

    def read(self) -> bytes:
        with self.open() as stream:
            return stream.read()

    @contextmanager
    def create(self) -> Iterator[BinaryIO]:
        """Open for writing; compress by suffix. The file appears only when it is complete."""
        if self.is_local:
            with write_errors(Path(self.url)):
                Path(self.url).parent.mkdir(parents=True, exist_ok=True)
            with replace_file(Path(self.url)) as file:
                yield file
            return
        filesystem, path = self.filesystem
        try:
            filesystem.create_dir(path.rpartition("/")[0])
            with filesystem.open_output_stream(path, compression="detect") as stream:
                yield stream
        except OSError as error:
            raise ResourceError(f"{self}: cannot be written: {one_line(error)}") from error

    def write(self, content: bytes) -> None:
        with self.create() as stream:
            stream.write(content)

    def remove(self) -> None:
        """Remove a file, or a directory and its contents."""
        filesystem, path = self.filesystem
        (filesystem.delete_dir if self.is_directory() else filesystem.delete_file)(path)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


# --- input ------------------------------------------------------------------------------------------------------


def list_inputs(urls: Iterable[str]) -> list[StoragePath]:
    """Return the input files in order; a directory stands for its sorted files."""
    files: list[StoragePath] = []
    for path in map(StoragePath.of, urls):
        if path.is_file():
            files.append(path)
        elif path.is_directory():
            files += [path.child(name) for name in path.names() if not name.startswith(HIDDEN_PREFIXES)]
        else:
            raise absent(path)
    if not files:
        raise DataError(f"{', '.join(urls)}: no input files")
    return files


def read_texts(path: StoragePath, language: str) -> Iterator[str]:
    """Yield the lines of a text file, or the rows of a Parquet column, where null is an empty text.

    `language` is the source language, which may be the name of the column.
    """
    if not path.is_parquet:
        with path.open() as stream:
            yield from stream_lines(stream, Path(path.url) if path.is_local else path)  # type: ignore[arg-type]
        return
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    filesystem, name = path.filesystem
    try:
        with path.explain_read_errors(), filesystem.open_input_file(name) as raw, ParquetFile(raw) as table:
            column = text_column(path, table.schema_arrow, language)
            for batch in table.iter_batches(columns=[column]):
                yield from (text or "" for text in batch.column(0).to_pylist())
    except (ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {one_line(error)}") from error


def text_column(path: StoragePath, schema: Any, language: str) -> str:
    """Return the name of the column to translate: a preferred name, or the only string column."""
    from pyarrow import types

    columns = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    named = [name for name in (*TEXT_COLUMNS, language) if name in columns]
    if not named and len(columns) != 1:
        raise DataError(
            f"{path}: cannot tell which column to translate (string columns: {', '.join(columns) or 'none'}); "
            f"name it {', '.join(map(repr, TEXT_COLUMNS))} or {language!r}"
        )
    return (named or columns)[0]
