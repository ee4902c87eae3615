"""What is to be translated: lines of text files, or a column of Parquet files, one after the other.

A directory stands for the files in it, by name. Text keeps to the rules of `softgaze.data.corpus`; a row of a table is
one line whatever it holds, and a row that holds nothing is an empty one.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from softgaze.data.corpus import stream_lines
from softgaze.errors import DataError, absent
from softgaze.scale.places import ASIDE, Place

PARQUET = ".parquet"
COLUMNS = ("source", "text")  # what a column of text is called, if not by its language


def is_table(place: Place) -> bool:
    """Parquet, by its name."""
    return place.name.endswith(PARQUET)


def files_of(urls: Iterable[str]) -> list[Place]:
    """Every file that is meant, in the order they are read."""
    found = [each for url in urls for each in expanded(Place.of(url))]
    if not found:
        raise DataError(f"{', '.join(urls)}: no files are there")
    return found


def expanded(place: Place) -> list[Place]:
    """A file, or what a directory holds."""
    if place.is_file():
        return [place]
    if not place.is_directory():
        raise absent(place)
    return [place.child(name) for name in place.names() if not name.startswith(ASIDE)]


def texts_of(place: Place, language: str) -> Iterator[str]:
    """Every text of a file; `language` is that of the source, which may name the column of a table."""
    return cells(place, language) if is_table(place) else lines(place)


def lines(place: Place) -> Iterator[str]:
    """Of a text file."""
    with place.opened() as stream:
        yield from stream_lines(stream, Path(place.url) if place.is_local else place)  # type: ignore[arg-type]


def cells(place: Place, language: str) -> Iterator[str]:
    """Of the column that holds the source."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    files, path = place.storage
    try:
        with place.reading(), files.open_input_file(path) as raw, ParquetFile(raw) as table:
            name = column(place, table.schema_arrow, language)
            for batch in table.iter_batches(columns=[name]):
                yield from (text or "" for text in batch.column(0).to_pylist())
    except (ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{place}: cannot be read as Parquet: {' '.join(str(error).split())}") from error


def column(place: Place, schema: Any, language: str) -> str:
    """The column named so, or the only one with text in it."""
    from pyarrow import types

    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    named = [name for name in (*COLUMNS, language) if name in texts]
    if not named and len(texts) != 1:
        raise DataError(
            f"{place}: which column is to be translated? (with text: {', '.join(texts) or 'none'}); "
            f"name it {', '.join(map(repr, COLUMNS))} or {language!r}"
        )
    return (named or texts)[0]


def size_of(files: Sequence[Place]) -> int:
    """Bytes of all of them, as they lie there."""
    return sum(each.size() for each in files)
