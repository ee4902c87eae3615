"""Features of frozen backbones on disk, by the content of the image file and of the network.

One file per image, written when its batch is done: an interrupted extraction resumes, and another run, architecture or
copy of the images reuses the features.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgaze.atomic_io import replace_file
from softgaze.errors import DataError
from softgaze.runtime import cores

if TYPE_CHECKING:
    from softgaze.data.processors import BackboneProcessor

Array = npt.NDArray[Any]


class FeatureCache:
    """Arrays (S, W) of 16-bit floats by key."""

    def __init__(self, directory: Path, network: str) -> None:
        self.directory = directory / sha256(network.encode()).hexdigest()[:16]

    def path(self, image: Path) -> Path:
        """Return where the features of an image are, by the SHA-256 of its bytes."""
        key = sha256(image.read_bytes()).hexdigest()
        return self.directory / key[:2] / f"{key}.npy"

    def load(self, path: Path, shape: tuple[int, int]) -> Array | None:
        """Return stored features, or None if there are none or they are damaged."""
        try:
            features: Array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return features if features.shape == shape and features.dtype == np.float16 else None

    def store(self, path: Path, features: Array) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as file:
            np.save(file, features.astype(np.float16))


class Extraction(NamedTuple):
    """Counts of images by where their features came from."""

    computed: int = 0
    stored: int = 0
    unreadable: int = 0

    def __str__(self) -> str:
        counts = f"{self.computed:,} computed, {self.stored:,} from the cache"
        return f"{counts}, {self.unreadable:,} not readable" if self.unreadable else counts


def extract_features(
    processor: "BackboneProcessor", images: Sequence[Path], batch: int, advance: Callable[[int], None]
) -> Extraction:
    """Store the features of all images that are not stored yet; return the counts.

    Files are decoded by one thread per core while the network runs. `advance` receives the number of finished images.
    A file that cannot be read is skipped: encoding the corpus reports it.
    """
    cache = processor.feature_cache
    if cache is None:
        return Extraction()
    computed = unreadable = done = 0

    def decode(image: Path) -> tuple[Path | None, Array | None]:
        """Return the cache path and the patches of an image: no patches if stored, neither if unreadable."""
        try:
            path = cache.path(image)
            is_stored = cache.load(path, processor.feature_shape) is not None
            return path, None if is_stored else processor.read(image)
        except (OSError, DataError):
            return None, None

    stream = iter(dict.fromkeys(images))
    with ThreadPoolExecutor(cores()) as pool:
        block = [pool.submit(decode, image) for image in islice(stream, batch)]
        while block:
            following = [pool.submit(decode, image) for image in islice(stream, batch)]
            decoded = [job.result() for job in block]
            missing = [(path, patches) for path, patches in decoded if path is not None and patches is not None]
            for (path, _), features in zip(missing, processor.forward([part for _, part in missing]), strict=True):
                cache.store(path, features)
            computed, done = computed + len(missing), done + len(block)
            unreadable += sum(path is None for path, _ in decoded)
            advance(len(block))
            block = following
    return Extraction(computed, done - computed - unreadable, unreadable)
