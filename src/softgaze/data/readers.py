"""How a source becomes what a model reads: items in a row, each an id or a vector. Knows no models.

A source is named by a line of text: the text itself, which a `Tokenizer` cuts into ids, or the path of a file. Whatever
is above (batches, training, search, attention) asks a reader and never what kind it is.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import isqrt
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy
import numpy.typing

from softgaze.data.features import read_features
from softgaze.data.images import Picture, centre_square, read_image
from softgaze.data.photo import Photo, photo_of
from softgaze.data.sound import Mel
from softgaze.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from softgaze.backbones import Backbone

Array = numpy.typing.NDArray[Any]
Complain = Callable[[DataError], None]

KEPT = 1 << 26  # bytes of what was read last that are kept: captions of one picture follow each other
TOGETHER = 16  # pictures that a frozen network sees at once
LARGEST_SIDE = 4096  # pixels
GRID = 16  # patches across a picture, where nothing else says how many


class Reader(ABC):
    """One way of reading. What differs between text and everything else is said by its methods."""

    kind: ClassVar[str]  # in a word, for people
    file: ClassVar[str]  # what it is kept in as the source of a bundle
    model: bytes  # what that file holds
    spells: ClassVar = False  # whether its pieces spell the source, so that they make words
    vectors: ClassVar[str | None] = None  # the kind of number, where items are vectors and not ids
    network: str | None = None  # a pretrained network that sees the sources before any model does
    together: ClassVar = 4096  # sources read at once

    @abstractmethod
    def __len__(self) -> int:
        """How many ids there are, or how many numbers an item has."""

    @abstractmethod
    def encode(self, sources: Sequence[str]) -> list[Any]:
        """The items of each source; the first that cannot be read is a `DataError`."""

    @abstractmethod
    def survey(self, sources: Sequence[str], complain: Complain) -> list[Any]:
        """The items of each source, None for one that cannot be read; `complain` is told why."""

    @abstractmethod
    def pieces(self, items: Sequence[Any]) -> list[str]:
        """What each item is called."""

    def decode(self, items: Sequence[Any]) -> str:
        """The text of a part of a source, where it is text."""
        return ""

    @abstractmethod
    def without(self, items: Sequence[Any], places: Sequence[int]) -> Any:
        """The source as it would be if there were nothing at some places."""

    def closed(self, items: Any) -> Any:
        """As a model reads it."""
        return items

    def opened(self, items: Any) -> Any:
        """What was `closed`."""
        return items

    @property
    def bare(self) -> "Reader":
        """What reads the same sources for a model that brings the network with it; this one where there is none."""
        return self

    def most(self, trained: int) -> int:
        """How many items are read at once, by a model that was trained for so many: a longer source is split."""
        return sys.maxsize

    def grid(self, items: Sequence[Any]) -> tuple[int, int] | None:
        """Rows and columns that the items stand in; None if they stand in a line."""
        return None

    def photo(self, source: str) -> Photo | None:
        """What a look at the source is drawn on; None where it is no picture."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """For people."""


class Items(Sequence[Array]):
    """Vectors (S, W) that can be compared and handed about like the ids of a text."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        return self.values[place]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return numpy.array(self.values, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and numpy.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.values.shape, self.values[:1].tobytes()))

    def __repr__(self) -> str:
        return f"<Items {' × '.join(map(str, self.values.shape))} of {self.values.dtype}>"


class FileReader(Reader):
    """Sources that are files of vectors. What was read last is kept, as long as its file stays as it is."""

    file = "reader.json"
    together = 64

    def __init__(self) -> None:
        self.recent: dict[Any, Items] = {}
        self.lock = Lock()

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What a reader of this kind is made from once more."""

    @property
    def model(self) -> bytes:  # type: ignore[override]
        """As it is kept in a bundle."""
        return (json.dumps({"reader": type(self).__name__, **self.settings()}, indent=2) + "\n").encode()

    @abstractmethod
    def read(self, paths: Sequence[Path], complain: Complain) -> Iterator[Array | None]:
        """The vectors (S, W) of each file."""

    def encode(self, sources: Sequence[str]) -> list[Items]:
        """The items of each file."""
        found = self.survey(sources, _refuse)
        return [each for each in found if each is not None]

    def survey(self, sources: Sequence[str], complain: Complain) -> list[Items | None]:
        """Each file once, however often it is named."""
        keys = {source: _stamp(source) for source in sources}
        with self.lock:
            found: dict[str, Items | None] = {
                source: self.recent[key] for source, key in keys.items() if key in self.recent
            }
        new = [source for source in keys if source not in found]
        for source, values in zip(new, self.read([Path(each) for each in new], complain), strict=True):
            found[source] = None if values is None else self.keep(keys[source], Items(values))
        return [found[source] for source in sources]

    def keep(self, key: Any, items: Items) -> Items:
        """Remember it, and forget the oldest."""
        with self.lock:
            self.recent[key] = items
            while len(self.recent) > max(1, KEPT // max(1, items.values.nbytes)):
                del self.recent[next(iter(self.recent))]
        return items

    def without(self, items: Sequence[Any], places: Sequence[int]) -> Items:
        """The mean of all items stands where there is to be nothing: gaps would be news to any model."""
        values = numpy.array(items)
        values[list(places)] = values.mean(axis=0).astype(values.dtype)
        return Items(values)

    def pieces(self, items: Sequence[Any]) -> list[str]:
        """By number, or by row and column; from 1."""
        grid = self.grid(items)
        if grid is None:
            return [str(place + 1) for place in range(len(items))]
        return [f"{row + 1},{column + 1}" for row in range(grid[0]) for column in range(grid[1])]


def _stamp(source: str) -> Any:
    """What changes when a file does."""
    try:
        facts = Path(source).stat()
    except (OSError, ValueError):
        return None, source  # reading it says what is wrong
    return source, facts.st_mtime_ns, facts.st_size


def _refuse(error: DataError) -> None:
    raise error


# ------------------------------------------------------------------------------------------------------------ pictures


class Pictures(FileReader):
    """Photos as square patches in reading order, each the red, green and blue bytes of its pixels."""

    kind, vectors = "image", "|u1"

    def __init__(self, side: int, patch: int) -> None:
        super().__init__()
        if not (1 <= patch <= side <= LARGEST_SIDE) or side % patch:
            raise UsageError(f"a picture of {side} × {side} pixels cannot be cut into patches of {patch} × {patch}")
        self.side, self.patch = side, patch

    def __len__(self) -> int:
        return 3 * self.patch**2

    def settings(self) -> dict[str, Any]:
        """Pixels."""
        return {"side": self.side, "patch": self.patch}

    def picture(self, path: str | Path) -> Picture:
        """As the model sees it: the square in the middle."""
        return read_image(Path(path), centre_square(self.side))

    def photo(self, source: str) -> Photo:
        """All of it, and which part the model sees."""
        return photo_of(Path(source), centre_square(self.side))

    def read(self, paths: Sequence[Path], complain: Complain) -> Iterator[Array | None]:
        """The patches of each."""
        for path in paths:
            try:
                yield self.patches(self.picture(path).pixels)
            except DataError as error:
                complain(error)
                yield None

    def patches(self, pixels: Array) -> Array:
        """(side, side, 3) -> (patches, 3 · patch²)."""
        rows, patch = self.side // self.patch, self.patch
        grid = pixels.reshape(rows, patch, rows, patch, 3).transpose(0, 2, 1, 3, 4)
        return numpy.ascontiguousarray(grid).reshape(rows * rows, -1)

    def grid(self, items: Sequence[Any]) -> tuple[int, int] | None:
        """A square."""
        rows = isqrt(len(items))
        return rows, rows

    def describe(self) -> str:
        """How a picture is seen."""
        rows = self.side // self.patch
        return f"pictures of {self.side} × {self.side} pixels in {rows} × {rows} patches"


class Seen(Pictures):
    """Photos as a frozen pretrained network sees them: a vector for each patch, computed once."""

    vectors = "<f2"  # in shards, where they take the room; what is read now is not rounded, so that engines agree

    def __init__(self, network: str, side: int, patch: int, width: int) -> None:
        super().__init__(side, patch)
        self.network: str = network
        self.width = width

    @property
    def bare(self) -> Pictures:
        """Patches, before the network sees them."""
        return Pictures(self.side, self.patch)

    @classmethod
    def by(cls, network: str) -> "Seen":
        """By the network of a name, or of a directory."""
        from softgaze.backbones import shape_of

        return cls(network, *shape_of(network))

    def __len__(self) -> int:
        return self.width

    def settings(self) -> dict[str, Any]:
        """What the network takes and gives is told before it is there."""
        return {"network": self.network, "side": self.side, "patch": self.patch, "width": self.width}

    @cached_property
    def eyes(self) -> "Backbone":
        """The network."""
        from softgaze.backbones import backbone
        from softgaze.devices import need_torch

        need_torch()
        return backbone(self.network).eval()

    def read(self, paths: Sequence[Path], complain: Complain) -> Iterator[Array | None]:
        """The vectors of each, some pictures at a time."""
        stream = super().read(paths, complain)
        while block := list(islice(stream, TOGETHER)):
            vectors = iter(self.looked_at([patches for patches in block if patches is not None]))
            yield from (None if patches is None else next(vectors) for patches in block)

    def looked_at(self, pictures: Sequence[Array]) -> Iterable[Array]:
        """Patches of pictures as the network sees them, (S, width) each."""
        import torch

        if not pictures:
            return []
        with torch.inference_mode():
            return self.eyes.of_patches(torch.from_numpy(numpy.stack(pictures))).numpy()

    def describe(self) -> str:
        """How a picture is seen."""
        return f"{super().describe()}, each {self.width} numbers of {self.network}"


# ------------------------------------------------------------------------------------------------------------ features


class Features(FileReader):
    """Arrays (frames, width) from `.npy` and `.npz`, and sounds from `.wav` as log-mel frames."""

    kind, vectors = "features", "<f4"

    def __init__(self, width: int, mel: Sequence[Any] = Mel()) -> None:
        super().__init__()
        self.width, self.mel = width, Mel(*mel)

    @classmethod
    def like(cls, path: Path) -> "Features":
        """Whose frames are as wide as those of a file."""
        return cls(read_features(path).shape[1])

    def __len__(self) -> int:
        return self.width

    def settings(self) -> dict[str, Any]:
        """Numbers of a frame, and how sound becomes frames."""
        return {"width": self.width, "mel": list(self.mel)}

    def read(self, paths: Sequence[Path], complain: Complain) -> Iterator[Array | None]:
        """The frames of each."""
        for path in paths:
            try:
                yield read_features(path, self.mel, self.width)
            except DataError as error:
                complain(error)
                yield None

    def describe(self) -> str:
        """How an array is seen."""
        return f"frames of {self.width} numbers"


# --------------------------------------------------------------------------------------------------------- making them

READERS: dict[str, type[FileReader]] = {kind.__name__: kind for kind in (Pictures, Seen, Features)}
POWERS = (32, 64, 128, 256, 512)
SIDES = {"cnn": 128, "patches": 128}  # pixels, where nobody says how many
FRAMES = "frames"  # the encoder that reads features


def picture_reader(encoder: str, frozen: bool, side: int | None) -> Pictures:
    """What gives a captioner's encoder what it reads."""
    if encoder in SIDES:
        side = side or SIDES[encoder]
        if side not in POWERS:
            raise UsageError(f"the encoder {encoder} sees squares of {', '.join(map(str, POWERS))} pixels, not {side}")
        return Pictures(side, side // GRID)
    if encoder == FRAMES:
        raise UsageError(f"the encoder {FRAMES!r} reads features; for pictures there are cnn, patches and efficientnet")
    from softgaze.backbones import shape_of

    shape = shape_of(encoder)
    if side not in (None, shape.side):
        raise UsageError(f"{encoder} sees pictures of {shape.side} × {shape.side} pixels; leave data.side out")
    return Seen.by(encoder) if frozen else Pictures(shape.side, shape.patch)


def load_reader(path: Path) -> FileReader:
    """From the file of a bundle."""
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
        name = record.pop("reader")
        if name not in READERS:
            raise ValueError(f"there is no reader {name!r}; {did_you_mean(str(name), READERS)}")
        if not all(isinstance(value, str | list) or type(value) is int for value in record.values()):
            raise ValueError("its settings are words, whole numbers and lists")
        return READERS[name](**record)
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError, UsageError) as error:
        raise DataError(f"{path}: does not say how a source is read: {error}") from error
