"""What was translated, kept shard by shard: a file each, and beside it a marker that says it is done and from what.

A shard is a window of lines of one file, and so is searched in the same batches as on one machine. Its marker holds a
fingerprint of everything its translation follows from: model, options and source. Whoever finds the same fingerprint
need not translate it again; whatever is changed, those shards alone are made anew.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from softgaze.errors import DataError, UsageError
from softgaze.files import gap
from softgaze.scale.inputs import PARQUET, is_table, texts_of
from softgaze.scale.places import Place
from softgaze.translator import Translation

TEXT, DONE, PARTS = ".txt", ".done", ".parts"
OURS = re.compile(rf"part-\d{{5}}-\d{{6}}({re.escape(TEXT)}|{re.escape(PARQUET)}|{re.escape(DONE)})")

Show = Callable[[Translation], str]


class Shard(NamedTuple):
    """Some lines of a file that are translated together."""

    file: int  # its number among the inputs
    number: int  # of the shard in it
    first: int  # line, from 1
    lines: list[str]

    @property
    def name(self) -> str:
        """Sorted by name they are in the order of their lines."""
        return f"part-{self.file:05}-{self.number:06}"


def shards_of(file: int, place: Place, language: str, size: int) -> Iterable[Shard]:
    """All lines of a file, no more than one shard of them in memory."""
    texts = iter(texts_of(place, language))
    number = 0
    while lines := list(islice(texts, size)):
        yield Shard(file, number, number * size + 1, lines)
        number += 1


class Done(NamedTuple):
    """What a marker says."""

    made_from: str
    lines: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Shards:
    """The directory they are kept in, and what each follows from beside its lines."""

    place: Place
    ending: str
    recipe: str

    def made_from(self, shard: Shard) -> str:
        """The fingerprint of everything that could change its translation."""
        return sha256("\n".join([self.recipe, *shard.lines]).encode()).hexdigest()

    def part(self, name: str) -> Place:
        """Where the lines of a shard are."""
        return self.place.child(name + self.ending)

    def marker(self, name: str) -> Place:
        """What says that they are all there."""
        return self.place.child(name + DONE)

    def is_done(self, shard: Shard) -> bool:
        """Whether its translation is there, of this very source, by this very model."""
        known = self.done(shard.name)
        return known is not None and known.made_from == self.made_from(shard)

    def done(self, name: str) -> Done | None:
        """The marker of a shard, if it has one that can be read and its part is as long as it says."""
        try:
            known = Done(**json.loads(self.marker(name).read()))
            return known if self.part(name).size() == known.bytes else None
        except (DataError, ValueError, TypeError):
            return None

    def keep(self, shard: Shard, content: bytes) -> None:
        """First the lines, then the marker: killed in between, the shard is not done."""
        self.part(shard.name).write(content)
        gap()
        known = Done(self.made_from(shard), len(shard.lines), len(content), sha256(content).hexdigest())
        self.marker(shard.name).write(json.dumps(known._asdict()).encode())

    def content(self, name: str) -> bytes:
        """The lines of a shard that is done, unless somebody changed them."""
        content, known = self.part(name).read(), self.done(name)
        if known is None or known.sha256 != sha256(content).hexdigest():
            raise DataError(f"{self.part(name)}: is not what was written there; remove it and run the same again")
        return content

    def forget_others(self, names: set[str]) -> None:
        """What an earlier run made and this one did not: the input was longer then."""
        for each in self.place.names():
            if each.partition(".")[0] not in names:
                self.place.child(each).remove()


# --- one shard --------------------------------------------------------------------------------------------------


def written(place: Place, shard: Shard, found: Sequence[Translation], show: Show | None) -> bytes:
    """Translations as they are kept: a line for each as `show` has it, or rows of a table that say where from."""
    if len(found) != len(shard.lines):
        raise DataError(f"{place}: {len(shard.lines)} lines from line {shard.first} on gave {len(found)} translations")
    if show is not None:
        return "".join(f"{show(each)}\n" for each in found).encode()
    return table(place, shard, found)


def table(place: Place, shard: Shard, found: Sequence[Translation]) -> bytes:
    """Parquet."""
    import pyarrow
    from pyarrow.parquet import write_table

    rows = [
        {"file": place.name, "line": number, "source": each.source, "text": each.text, "score": each.score}
        | {"alternatives": [other.text for other in each.alternatives]}
        for number, each in enumerate(found, shard.first)
    ]
    buffer = BytesIO()
    write_table(pyarrow.Table.from_pylist(rows, columns()), buffer)
    return buffer.getvalue()


def columns() -> Any:
    """Of a table of translations."""
    import pyarrow

    kinds = {"file": "string", "line": "int64", "source": "string", "text": "string", "score": "float64"}
    return pyarrow.schema([*kinds.items(), ("alternatives", pyarrow.list_(pyarrow.string()))])


# --- all of them ------------------------------------------------------------------------------------------------


class Output(NamedTuple):
    """What was asked for: one file, or a directory that keeps its shards."""

    place: Place
    joined: bool
    ending: str

    @classmethod
    def of(cls, url: str, inputs: Sequence[Place]) -> "Output":
        """A name with / at its end, or of a directory, is a directory; it takes the form of what is read."""
        place = Place.of(url)
        if str(place) in map(str, inputs):
            raise UsageError(f"{url} is read and cannot be written at the same time; choose another --output")
        if url.endswith("/") or place.is_directory():
            strangers = [name for name in place.names() if not OURS.fullmatch(name)]
            if strangers:
                raise UsageError(f"{url} holds {strangers[0]}, which is no shard of ours; choose an empty directory")
            return cls(place, False, PARQUET if is_table(inputs[0]) else TEXT)
        return cls(place, True, PARQUET if is_table(place) else TEXT)

    def shards(self, recipe: dict[str, Any]) -> Shards:
        """Where shards go meanwhile, or for good."""
        place = Place(f"{self.place}{PARTS}") if self.joined else self.place
        return Shards(place, self.ending, json.dumps({**recipe, "ending": self.ending}, sort_keys=True))

    def finish(self, shards: Shards, names: list[str]) -> None:
        """All shards are done: make them one file, if that was asked for."""
        shards.forget_others({*names})
        if not self.joined:
            return
        with self.place.filling() as file:
            (join_tables if self.ending == PARQUET else join_texts)(file, shards, names)
        if shards.place.is_directory():
            shards.place.remove()


def join_texts(file: BinaryIO, shards: Shards, names: Iterable[str]) -> None:
    """Line after line."""
    for name in names:
        file.write(shards.content(name))


def join_tables(file: BinaryIO, shards: Shards, names: Iterable[str]) -> None:
    """A group of rows for each shard."""
    from pyarrow.parquet import ParquetWriter, read_table

    with ParquetWriter(file, columns()) as writer:
        for name in names:
            writer.write_table(read_table(BytesIO(shards.content(name))))
