"""Source processors of files: turn an image, a sound or an array into the vectors that a model reads.

The source is given as the path of a file. `softgaze.data.tokenizer` has the processor of text, and the interface.
"""

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import isqrt
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from softgaze.data.feature_cache import FeatureCache
from softgaze.data.features import Mel, read_features
from softgaze.data.images import LoadedImage, Photo, center_square, load_photo, read_image
from softgaze.data.tokenizer import PROCESSOR_FILE, Processor
from softgaze.errors import DataError, OnError, UsageError, did_you_mean, raise_error

if TYPE_CHECKING:
    from softgaze.models.backbones import Backbone

Array = npt.NDArray[Any]

CACHE_BYTES = 1 << 26  # decoded files kept in memory: the captions of one image follow each other
BACKBONE_BATCH = 16  # images per forward pass of a frozen backbone
MAX_SIDE = 4096  # pixels
PATCHES_PER_SIDE = 16
IMAGE_SIDES = (32, 64, 128, 256, 512)
DEFAULT_SIDES = {"cnn": 128, "patches": 128}  # encoder: pixels
FRAME_ENCODER = "frames"


class FeatureSequence(Sequence[Array]):
    """Immutable vectors (S, W) that compare and hash like the ids of a text."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureSequence) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.values.shape, self.values[:1].tobytes()))

    def __repr__(self) -> str:
        return f"<FeatureSequence {' × '.join(map(str, self.values.shape))} of {self.values.dtype}>"


class FileProcessor(Processor):
    """A processor of files. Recently decoded files are cached until they change on disk."""

    file = PROCESSOR_FILE
    batch_size = 64
    stored_name: ClassVar[str]  # identifies the class in bundles of format 1

    def __init__(self) -> None:
        self.cache: dict[Any, FeatureSequence] = {}
        self.lock = Lock()

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""

    @property
    def model(self) -> bytes:  # type: ignore[override]
        """Return the settings as stored in a bundle."""
        return (json.dumps({"reader": self.stored_name, **self.settings()}, indent=2) + "\n").encode()

    @abstractmethod
    def read(self, path: Path) -> Array:
        """Return the vectors (S, W) of a file."""

    def try_read(self, paths: Sequence[Path], on_error: OnError) -> Iterator[Array | None]:
        """Yield the vectors of each file, None for one that cannot be read."""
        for path in paths:
            try:
                yield self.read(path)
            except DataError as error:
                on_error(error)
                yield None

    def encode(self, sources: Sequence[str]) -> list[FeatureSequence]:
        return [items for items in self.try_encode(sources, raise_error) if items is not None]

    def try_encode(self, sources: Sequence[str], on_error: OnError) -> list[FeatureSequence | None]:
        """Return the vectors of each file, None for one that cannot be read; repeated files are read once."""
        keys = {source: _cache_key(source) for source in sources}
        with self.lock:
            encoded: dict[str, FeatureSequence | None] = {
                source: self.cache[key] for source, key in keys.items() if key in self.cache
            }
        missing = [source for source in keys if source not in encoded]
        for source, values in zip(missing, self.try_read([Path(name) for name in missing], on_error), strict=True):
            encoded[source] = items = None if values is None else FeatureSequence(values)
            if items is not None:
                with self.lock:
                    self.cache[keys[source]] = items
                    while len(self.cache) > max(1, CACHE_BYTES // max(1, items.values.nbytes)):
                        del self.cache[next(iter(self.cache))]
        return [encoded[source] for source in sources]

    def occlude(self, items: Sequence[Any], positions: Sequence[int]) -> FeatureSequence:
        """Replace vectors by the mean: a gap would be unlike anything the model was trained on."""
        values = np.array(items)
        values[list(positions)] = values.mean(axis=0).astype(values.dtype)
        return FeatureSequence(values)

    def pieces(self, items: Sequence[Any]) -> list[str]:
        """Return positions as labels, from 1: "7", or "row,column" in a grid."""
        grid = self.grid(items)
        if grid is None:
            return [str(index + 1) for index in range(len(items))]
        return [f"{row + 1},{column + 1}" for row in range(grid[0]) for column in range(grid[1])]


def _cache_key(source: str) -> Any:
    try:
        facts = Path(source).stat()
    except (OSError, ValueError):
        return None, source  # reading the file raises the error
    return source, facts.st_mtime_ns, facts.st_size


class ImageProcessor(FileProcessor):
    """Images as square patches in reading order; a vector is the RGB bytes of a patch."""

    kind, vector_dtype, stored_name = "image", "|u1", "Pictures"

    def __init__(self, side: int, patch: int) -> None:
        super().__init__()
        if not (1 <= patch <= side <= MAX_SIDE) or side % patch:
            raise UsageError(f"an image of {side} × {side} pixels cannot be divided into patches of {patch} × {patch}")
        self.side, self.patch = side, patch

    def __len__(self) -> int:
        return 3 * self.patch**2

    def settings(self) -> dict[str, Any]:
        return {"side": self.side, "patch": self.patch}

    def load(self, path: str | Path) -> LoadedImage:
        """Read the central square of an image as the model sees it."""
        return read_image(Path(path), center_square(self.side))

    def photo(self, source: str) -> Photo:
        """Return the whole image and the crop that the model sees."""
        return load_photo(Path(source), center_square(self.side))

    def read(self, path: Path) -> Array:
        return self.patches(self.load(path).pixels)

    def patches(self, pixels: Array) -> Array:
        """Reshape (side, side, 3) to (patches, 3 · patch²)."""
        rows, patch = self.side // self.patch, self.patch
        grid = pixels.reshape(rows, patch, rows, patch, 3).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(grid).reshape(rows * rows, -1)

    def grid(self, items: Sequence[Any]) -> tuple[int, int] | None:
        rows = isqrt(len(items))
        return rows, rows

    def describe(self) -> str:
        rows = self.side // self.patch
        return f"images of {self.side} × {self.side} pixels in {rows} × {rows} patches"


class BackboneProcessor(ImageProcessor):
    """Images as features of a frozen pretrained backbone, one vector per patch."""

    stored_name = "Seen"
    vector_dtype = "<f2"  # in shards only: at inference features are not rounded, so that engines agree

    def __init__(self, network: str, side: int, patch: int, width: int) -> None:
        super().__init__(side, patch)
        self.backbone: str = network
        self.width = width
        self.feature_cache: FeatureCache | None = None

    def use_cache(self, directory: Path) -> None:
        """Keep the features of images in a directory; they belong to this network with these weights."""
        from softgaze.models.backbones import backbone_version

        version = backbone_version(self.backbone)
        self.feature_cache = FeatureCache(directory, f"{version} {self.side} {self.patch} {self.width}")

    @property
    def feature_shape(self) -> tuple[int, int]:
        return (self.side // self.patch) ** 2, self.width

    @property
    def without_backbone(self) -> ImageProcessor:
        """Return the processor of the patches that the backbone reads."""
        return ImageProcessor(self.side, self.patch)

    def __len__(self) -> int:
        return self.width

    def settings(self) -> dict[str, Any]:
        """Return name and shape of the backbone, so that it need not be loaded."""
        return {"network": self.backbone, "side": self.side, "patch": self.patch, "width": self.width}

    @cached_property
    def backbone_model(self) -> "Backbone":
        from softgaze.models.backbones import backbone
        from softgaze.runtime import need_torch

        need_torch()
        return backbone(self.backbone).eval().for_inference()

    def try_read(self, paths: Sequence[Path], on_error: OnError) -> Iterator[Array | None]:
        """Yield the features of each image, from the cache or computed in batches."""
        stream = iter(paths)
        while block := list(islice(stream, BACKBONE_BATCH)):
            stored = [self._stored(path) for path in block]
            missing = [path for path, features in zip(block, stored, strict=True) if features is None]
            patches = list(super().try_read(missing, on_error))
            computed = iter(self.forward([part for part in patches if part is not None]))
            results = iter([None if part is None else next(computed) for part in patches])
            yield from (next(results) if features is None else features for features in stored)

    def _stored(self, path: Path) -> Array | None:
        """Return the cached features of an image, if there are any."""
        if self.feature_cache is None:
            return None
        try:
            features = self.feature_cache.load(self.feature_cache.path(path), self.feature_shape)
        except OSError:
            return None
        return None if features is None else features.astype(np.float32)

    def forward(self, images: Sequence[Array]) -> Sequence[Array]:
        """Return the features of images that are given as patches."""
        import torch

        if not images:
            return []
        with torch.inference_mode():
            return list(self.backbone_model.encode_patches(torch.from_numpy(np.stack(images))).numpy())

    def describe(self) -> str:
        return f"{super().describe()}, {self.width} features of {self.backbone} each"


class FeatureProcessor(FileProcessor):
    """Arrays (frames, width) from NumPy files, and audio files as log-mel frames."""

    kind, vector_dtype, stored_name = "features", "<f4", "Features"

    def __init__(self, width: int, mel: Sequence[Any] = Mel()) -> None:
        super().__init__()
        self.width, self.mel = width, Mel(*mel)

    @classmethod
    def from_file(cls, path: Path) -> "FeatureProcessor":
        """Create the processor of frames as wide as those of a file."""
        return cls(read_features(path).shape[1])

    def __len__(self) -> int:
        return self.width

    def settings(self) -> dict[str, Any]:
        return {"width": self.width, "mel": list(self.mel)}

    def read(self, path: Path) -> Array:
        return read_features(path, self.mel, self.width)

    def describe(self) -> str:
        return f"frames of {self.width} numbers"


PROCESSORS: dict[str, type[FileProcessor]] = {
    processor.stored_name: processor for processor in (ImageProcessor, BackboneProcessor, FeatureProcessor)
}


def image_processor_for(encoder: str, frozen: bool, side: int | None) -> ImageProcessor:
    """Return the processor that an image encoder needs; `side` in pixels is the default of the encoder if None."""
    if encoder in DEFAULT_SIDES:
        side = side or DEFAULT_SIDES[encoder]
        if side not in IMAGE_SIDES:
            sides = ", ".join(map(str, IMAGE_SIDES))
            raise UsageError(f"encoder {encoder}: expected an image side of {sides} pixels, got {side}")
        return ImageProcessor(side, side // PATCHES_PER_SIDE)
    if encoder == FRAME_ENCODER:
        raise UsageError(f"encoder {FRAME_ENCODER} reads features; for images use cnn, patches or efficientnet")
    from softgaze.models.backbones import backbone_shape

    shape = backbone_shape(encoder)
    if side not in (None, shape.side):
        raise UsageError(f"encoder {encoder} reads images of {shape.side} × {shape.side} pixels; omit data.image_size")
    return BackboneProcessor(encoder, *shape) if frozen else ImageProcessor(shape.side, shape.patch)


def load_processor(path: Path) -> FileProcessor:
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
        name = record.pop("reader")
        if name not in PROCESSORS:
            raise ValueError(f"unknown processor {name!r}; {did_you_mean(str(name), PROCESSORS)}")
        if not all(isinstance(value, str | list) or type(value) is int for value in record.values()):
            raise ValueError("expected strings, integers and lists as settings")
        return PROCESSORS[name](**record)
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError, UsageError) as error:
        raise DataError(f"{path}: not a valid source processor: {error}") from error
