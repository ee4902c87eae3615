"""Resumable output: each shard of lines is written to a file, and a complete shard has a marker.

A shard is a window of lines of one input file, so its batches are those of one machine. Its marker has a
fingerprint of the model, the options and the source lines. A run translates only shards without a matching marker.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

from softgaze.errors import DataError, SoftgazeError, UsageError
from softgaze.scale.storage import PARQUET, StoragePath, read_texts
from softgaze.translation import Translation

TEXT, DONE, PARTS = ".txt", ".done", ".parts"
SHARD_FILE = re.compile(rf"part-\d{{5}}-\d{{6}}({re.escape(TEXT)}|{re.escape(PARQUET)}|{re.escape(DONE)})")

Formatter = Callable[[Translation], str]


class Shard(NamedTuple):
    """Lines of an input file that are translated together; without lines once it is done, or an error."""

    file: int  # index of the input file
    number: int  # of the shard within the file
    first_line: int  # from 1
    size: int  # in lines
    lines: list[str]
    error: str = ""
    exit_code: int = 0

    @property
    def name(self) -> str:
        """The file name without suffix; the alphabetical order is the order of the lines."""
        return f"part-{self.file:05}-{self.number:06}"

    @classmethod
    def of_error(cls, error: SoftgazeError) -> "Shard":
        return cls(0, 0, 0, 0, [], str(error), error.exit_code)

    def raise_error(self) -> None:
        """Raise the error of a remote process, if this is one."""
        if self.error:
            types = {subclass.exit_code: subclass for subclass in SoftgazeError.__subclasses__()}
            raise types.get(self.exit_code, SoftgazeError)(self.error)


def read_shards(file: int, path: StoragePath, language: str, size: int) -> Iterator[Shard]:
    """Yield the shards of a file, with one shard in memory at a time."""
    texts = read_texts(path, language)
    number = 0
    while lines := list(islice(texts, size)):
        yield Shard(file, number, number * size + 1, len(lines), lines)
        number += 1


class ShardMarker(NamedTuple):
    """The content of a marker file."""

    fingerprint: str
    lines: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ShardStore:
    """The directory of output shards; `recipe` is all that a translation depends on besides its source lines."""

    directory: StoragePath
    suffix: str
    recipe: str

    def fingerprint(self, shard: Shard) -> str:
        return sha256("\n".join([self.recipe, *shard.lines]).encode()).hexdigest()

    def part(self, name: str) -> StoragePath:
        return self.directory.child(name + self.suffix)

    def marker(self, name: str) -> StoragePath:
        return self.directory.child(name + DONE)

    def is_done(self, shard: Shard) -> bool:
        """Return whether a complete translation of these lines by this model exists."""
        marker = self.read_marker(shard.name)
        return marker is not None and marker.fingerprint == self.fingerprint(shard)

    def read_marker(self, name: str) -> ShardMarker | None:
        """Return the marker, or None if it is missing, damaged, or does not match the size of the part."""
        try:
            marker = ShardMarker(**json.loads(self.marker(name).read()))
            return marker if self.part(name).size() == marker.bytes else None
        except (DataError, ValueError, TypeError):
            return None

    def write(self, shard: Shard, content: bytes) -> None:
        """Write the part, then its marker: a run killed in between translates the shard again."""
        self.part(shard.name).write(content)
        marker = ShardMarker(self.fingerprint(shard), len(shard.lines), len(content), sha256(content).hexdigest())
        self.marker(shard.name).write(json.dumps(marker._asdict()).encode())

    def read(self, name: str) -> bytes:
        """Return the content of a complete part, or raise if it was changed."""
        content, marker = self.part(name).read(), self.read_marker(name)
        if marker is None or marker.sha256 != sha256(content).hexdigest():
            raise DataError(f"{self.part(name)}: was changed after it was written; remove it and run the command again")
        return content


def encode_shard(
    path: StoragePath, shard: Shard, translations: Sequence[Translation], formatter: Formatter | None
) -> bytes:
    """Return the content of a part: formatted lines, or a Parquet table if `formatter` is None."""
    if len(translations) != len(shard.lines):
        raise DataError(
            f"{path}: {len(shard.lines)} lines from line {shard.first_line} gave {len(translations)} translations"
        )
    if formatter is not None:
        return "".join(f"{formatter(translation)}\n" for translation in translations).encode()
    import pyarrow
    from pyarrow.parquet import write_table

    rows = [
        {
            "file": path.name,
            "line": line,
            "source": best.source,
            "text": best.text,
            "score": best.score,
            "alternatives": [alternative.text for alternative in best.alternatives],
        }
        for line, best in enumerate(translations, shard.first_line)
    ]
    buffer = BytesIO()
    write_table(pyarrow.Table.from_pylist(rows, table_schema()), buffer)
    return buffer.getvalue()


def table_schema() -> Any:
    import pyarrow

    types = {"file": "string", "line": "int64", "source": "string", "text": "string", "score": "float64"}
    return pyarrow.schema([*types.items(), ("alternatives", pyarrow.list_(pyarrow.string()))])


class OutputTarget(NamedTuple):
    """The output: one file, or a directory of shards."""

    path: StoragePath
    is_directory: bool
    suffix: str

    @classmethod
    def of(cls, url: str, inputs: Sequence[StoragePath]) -> "OutputTarget":
        """Return the target of a URL, which is a directory if it ends with / or exists as one."""
        path = StoragePath.of(url)
        if str(path) in map(str, inputs):
            raise UsageError(f"{url} is both input and output; choose another --output")
        if not url.endswith("/") and not path.is_directory():
            return cls(path, False, PARQUET if path.is_parquet else TEXT)
        others = [name for name in path.names() if not SHARD_FILE.fullmatch(name)]
        if others:
            raise UsageError(f"{url} contains {others[0]}, which is not a shard; choose an empty directory")
        return cls(path, True, PARQUET if inputs[0].is_parquet else TEXT)

    def shard_store(self, recipe: dict[str, Any]) -> ShardStore:
        """Return the store of the shards: the output directory, or a temporary one next to the output file."""
        directory = self.path if self.is_directory else StoragePath(f"{self.path}{PARTS}")
        return ShardStore(directory, self.suffix, json.dumps({**recipe, "ending": self.suffix}, sort_keys=True))

    def finish(self, store: ShardStore, names: list[str]) -> None:
        """Remove shards of an earlier run with longer input; join the others if the output is a file."""
        current = {*names}
        for file_name in store.directory.names():
            if file_name.partition(".")[0] not in current:
                store.directory.child(file_name).remove()
        if self.is_directory:
            return
        with self.path.create() as file:
            if self.suffix == PARQUET:
                from pyarrow.parquet import ParquetWriter, read_table

                with ParquetWriter(file, table_schema()) as writer:
                    for name in names:
                        writer.write_table(read_table(BytesIO(store.read(name))))
            else:
                for name in names:
                    file.write(store.read(name))
        if store.directory.is_directory():
            store.directory.remove()
