"""Features of frozen backbones on disk, by the content of the image file and of the network.

One file per image, written when its batch is done: an interrupted extraction resumes, and another run, architecture or
copy of the images reuses the features.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def extract_features(
    processor: "BackboneProcessor", images: Sequence[Path], batch: int, advance: Callable[[int], None]
) -> int:
    """Store the features of all images that are not stored yet; return how many were computed.

    Files are decoded by one thread per core while the network runs. `advance` receives the number of finished images.
    A file that cannot be read is skipped: encoding the corpus reports it.
    """
    cache = processor.feature_cache
    if cache is None:
        return 0
    computed = 0

    def decode(image: Path) -> tuple[Path, Array] | None:
        """Return the cache path and the patches of an image, None if there is nothing to compute."""
        try:
            path = cache.path(image)
            return None if cache.load(path, processor.feature_shape) is not None else (path, processor.read(image))
        except (OSError, DataError):
            return None

    stream = iter(dict.fromkeys(images))
    with ThreadPoolExecutor(cores()) as pool:
        block = [pool.submit(decode, image) for image in islice(stream, batch)]
        while block:
            following = [pool.submit(decode, image) for image in islice(stream, batch)]
            missing = [decoded for job in block if (decoded := job.result()) is not None]
            for (path, _), features in zip(missing, processor.forward([part for _, part in missing]), strict=True):
                cache.store(path, features)
            computed += len(missing)
            advance(len(block))
            block = following
    return computed
