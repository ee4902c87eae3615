"""Files and directories wherever they lie: on a disk, in S3, Google Cloud or HDFS by Arrow, elsewhere by fsspec.

A place is named as a path or as a URL, and knows nothing of what its bytes mean.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from softgaze.errors import DataError, ResourceError, UsageError, absent
from softgaze.files import explained, replacing

OF_ARROW = {"file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"}  # what Arrow reaches without help
ASIDE = (".", "_")  # how names begin that are not data, to Hadoop, Spark, Ray and us


@dataclass(frozen=True)
class Place:
    """A file or a directory, there or not."""

    url: str

    @classmethod
    def of(cls, url: str) -> "Place":
        """From what a person typed; a path means the same in every process."""
        return cls(url.rstrip("/") if "://" in url else str(Path(url).absolute()))

    def __str__(self) -> str:
        return self.url

    @cached_property
    def storage(self) -> tuple[Any, str]:
        """Arrow's file system, and the name of this place in it."""
        from pyarrow.fs import FileSystem, FSSpecHandler, LocalFileSystem, PyFileSystem

        scheme, mark, _ = self.url.partition("://")
        if not mark:
            return LocalFileSystem(), self.url
        try:
            if scheme in OF_ARROW:
                return cast(tuple[Any, str], FileSystem.from_uri(self.url))
            from fsspec.core import url_to_fs

            files, path = url_to_fs(self.url)
        except (ImportError, ValueError, OSError) as error:
            raise UsageError(f"{self}: cannot be reached: {' '.join(str(error).split())}") from error
        return PyFileSystem(FSSpecHandler(files)), path

    @property
    def is_local(self) -> bool:
        """On a disk of this machine, where a crash can leave half a file."""
        return "://" not in self.url

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rpartition("/")[2]

    def child(self, name: str) -> "Place":
        """Inside this directory."""
        return Place(f"{self.url}/{name}")

    # --- what is there

    def info(self) -> Any:
        """Kind and size, as Arrow tells them."""
        files, path = self.storage
        with self.reading():
            return files.get_file_info(path)

    def is_file(self) -> bool:
        """A file is there."""
        return bool(self.info().is_file)

    def is_directory(self) -> bool:
        """A directory is there; in object storage, something lies under this name."""
        return str(self.info().type.name) == "Directory"

    def size(self) -> int:
        """Bytes of a file."""
        return int(self.info().size or 0)

    def names(self) -> list[str]:
        """Of the files in this directory, sorted; none where there is no such directory."""
        from pyarrow.fs import FileSelector

        files, path = self.storage
        with self.reading():
            found = files.get_file_info(FileSelector(path, allow_not_found=True))
        return sorted(each.base_name for each in found if each.is_file)

    # --- bytes

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One line when storage does not answer."""
        try:
            yield
        except FileNotFoundError as error:
            raise absent(self) from error
        except OSError as error:
            raise DataError(f"{self} cannot be read: {' '.join(str(error).split())}") from error

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The bytes of a file as a stream, decompressed if its name says that it is compressed."""
        files, path = self.storage
        with self.reading(), files.open_input_stream(path) as raw, io.BufferedReader(raw) as stream:
            yield cast(BinaryIO, stream)

    def read(self) -> bytes:
        """All of a file."""
        with self.opened() as stream:
            return stream.read()

    @contextmanager
    def filling(self) -> Iterator[BinaryIO]:
        """A file to fill, compressed if named so; it is there when all of it is there."""
        if self.is_local:
            with explained(Path(self.url)):
                Path(self.url).parent.mkdir(parents=True, exist_ok=True)
            with replacing(Path(self.url)) as file:
                yield file
            return
        files, path = self.storage
        try:
            files.create_dir(path.rpartition("/")[0])
            with files.open_output_stream(path, compression="detect") as stream:
                yield stream
        except OSError as error:
            raise ResourceError(f"{self}: cannot be written: {' '.join(str(error).split())}") from error

    def write(self, content: bytes) -> None:
        """Replace a file."""
        with self.filling() as stream:
            stream.write(content)

    def remove(self) -> None:
        """A file, or a directory with all that is in it."""
        files, path = self.storage
        (files.delete_dir if self.is_directory() else files.delete_file)(path)
