"""Features of images are computed once, whatever the file is called, and again if the image or the network changes."""

import numpy as np
import pytest

from softgaze.data.feature_cache import FeatureCache, extract_features
from softgaze.data.images import write_image
from softgaze.data.processors import BackboneProcessor


class Counting(BackboneProcessor):
    """A backbone that returns the mean colour of each patch, and counts its images."""

    calls = 0

    def forward(self, images):
        self.calls += len(images)
        return [np.stack([patch.astype(np.float32).reshape(-1, 3).mean(0) for patch in image]) for image in images]


def processor(directory, network="toy"):
    made = Counting(network, 8, 4, 3)
    made.feature_cache = FeatureCache(directory, network)
    return made


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for path in paths:
        write_image(path, rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    return paths


def test_features_are_computed_once_and_reused_for_a_copy(photos, tmp_path):
    first, counts = processor(tmp_path / "cache"), []
    assert extract_features(first, photos, 2, counts.append) == (first.calls, 0, 0) == (5, 0, 0)
    assert sum(counts) == 5
    copy = tmp_path / "copy.png"
    copy.write_bytes(photos[0].read_bytes())
    again = processor(tmp_path / "cache")
    assert (
        extract_features(again, [*photos, copy, photos[0]], 2, lambda amount: None) == (again.calls, 6, 0) == (0, 6, 0)
    )
    stored, direct = again.encode([str(copy)]), Counting("toy", 8, 4, 3).encode([str(photos[0])])
    np.testing.assert_allclose(np.asarray(stored[0]), np.asarray(direct[0]), rtol=1e-3)  # 16-bit floats


def test_an_interrupted_extraction_resumes(photos, tmp_path):
    first = processor(tmp_path / "cache")

    def stop(amount):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_features(first, photos, 2, stop)
    assert extract_features(processor(tmp_path / "cache"), photos, 2, lambda amount: None) == (3, 2, 0)


def test_a_changed_image_network_or_damaged_file_is_computed_again(photos, tmp_path):
    extract_features(processor(tmp_path / "cache"), photos, 2, lambda amount: None)
    write_image(photos[0], np.zeros((8, 8, 3), dtype=np.uint8))
    cache = processor(tmp_path / "cache").feature_cache
    cache.path(photos[1]).write_bytes(b"half a file")
    assert extract_features(processor(tmp_path / "cache"), photos, 2, lambda amount: None) == (2, 3, 0)
    assert extract_features(processor(tmp_path / "cache", "other"), photos, 2, lambda amount: None) == (5, 0, 0)


def test_an_unreadable_image_is_left_to_the_encoding(photos, tmp_path):
    photos[2].write_bytes(b"no picture at all")
    made, errors = processor(tmp_path / "cache"), []
    assert extract_features(made, [*photos, tmp_path / "absent.png"], 4, lambda amount: None) == (4, 0, 2)
    items = made.try_encode([*map(str, photos)], errors.append)
    assert [item is None for item in items] == [False, False, True, False, False]
    assert len(errors) == 1
