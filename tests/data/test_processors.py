"""Source processors: what a file becomes, how long it is cached, and how a broken one is reported."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.images import write_image
from softgaze.data.processors import (
    BackboneProcessor,
    FeatureProcessor,
    FeatureSequence,
    ImageProcessor,
    image_processor_for,
    load_processor,
)
from softgaze.errors import DataError, UsageError
from softgaze.models.base import Source


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def photo(path, height=32, width=32, seed=0):
    write_image(path, noise(height, width, seed))
    return str(path)


@given(rows=st.integers(1, 4), patch=st.integers(1, 4))
def test_patches_are_the_pixels_in_reading_order(rows, patch):
    pixels, processor = noise(rows * patch, rows * patch), ImageProcessor(rows * patch, patch)
    patches = processor.patches(pixels)
    assert patches.shape == (rows**2, len(processor))
    for index, values in enumerate(patches):
        down, across = divmod(index, rows)
        cell = pixels[down * patch :, across * patch :][:patch, :patch]
        assert (values.reshape(patch, patch, 3) == cell).all()


def test_without_its_network_a_reader_gives_what_the_network_sees(tmp_path):
    """So that a model that brings the network with it can be given the same files."""
    seen = BackboneProcessor("any", 32, 8, 5)
    path = photo(tmp_path / "a.png")
    patches = seen.without_backbone
    assert (seen.backbone, len(seen), patches.backbone, len(patches)) == ("any", 5, None, 192)
    assert seen.without_backbone.encode([path]) == ImageProcessor(32, 8).encode([path])
    assert all(plain.without_backbone is plain for plain in (ImageProcessor(32, 8), FeatureProcessor(3)))


def test_a_picture_is_the_square_in_the_middle_of_the_photo(tmp_path):
    processor = ImageProcessor(16, 4)
    [items] = processor.encode([photo(tmp_path / "wide.png", 16, 40)])
    assert (np.asarray(items) == processor.patches(noise(16, 40)[:, 12:28])).all()
    assert processor.load(tmp_path / "wide.png").view.crop.left == 0.3
    assert processor.grid(items) == (4, 4)
    assert processor.pieces(items)[:5] == ["1,1", "1,2", "1,3", "1,4", "2,1"]


def test_a_file_is_read_once_while_it_stays_as_it_is(tmp_path, monkeypatch):
    processor, path, read = ImageProcessor(16, 4), photo(tmp_path / "a.png"), []
    plain = ImageProcessor.load
    monkeypatch.setattr(ImageProcessor, "load", lambda self, name: read.append(name) or plain(self, name))
    first, again = processor.encode([path, path])
    [later] = processor.encode([path])
    assert first is again is later
    assert len(read) == 1
    photo(tmp_path / "a.png", 40, 40, seed=1)
    [changed] = processor.encode([path])
    assert changed != first
    assert len(read) == 2


def test_what_is_kept_does_not_grow(tmp_path, monkeypatch):
    processor = ImageProcessor(16, 4)
    monkeypatch.setattr("softgaze.data.processors.CACHE_BYTES", 2 * 16 * 16 * 3)
    processor.encode([photo(tmp_path / f"{number}.png", seed=number) for number in range(5)])
    assert len(processor.cache) == 2


def test_broken_files_are_reported_and_the_others_read(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    names = [
        photo(tmp_path / "a.png"),
        str(tmp_path / "broken.png"),
        str(tmp_path / "none.png"),
        photo(tmp_path / "b.png"),
    ]
    errors = []
    encoded = ImageProcessor(16, 4).try_encode(names, errors.append)
    assert [items is not None for items in encoded] == [True, False, False, True]
    assert [str(error).split(":")[0] for error in errors] == names[1:3]
    with pytest.raises(DataError, match=r"broken\.png"):
        ImageProcessor(16, 4).encode(names)


def test_features_are_frames_as_wide_as_the_first(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "b.npy", np.ones((2, 5)))
    processor = FeatureProcessor.from_file(tmp_path / "a.npy")
    [items] = processor.encode([str(tmp_path / "a.npy")])
    assert (len(processor), len(items), processor.grid(items), processor.pieces(items)) == (4, 3, None, ["1", "2", "3"])
    with pytest.raises(DataError, match="frames of 4 numbers, got 5"):
        processor.encode([str(tmp_path / "b.npy")])


def test_occluded_positions_become_the_mean():
    items = FeatureSequence(np.array([[0, 0], [2, 4], [4, 8]], dtype=np.uint8))
    assert np.asarray(ImageProcessor(16, 4).occlude(items, [0, 2])).tolist() == [[2, 4], [2, 4], [2, 4]]
    assert items[0].tolist() == [0, 0]


def test_items_are_compared_by_what_they_hold():
    one, other = (FeatureSequence(np.array(rows, dtype=np.float32)) for rows in ([[1.0, 2.0]], [[1.0, 3.0]]))
    assert one == FeatureSequence(np.array([[1.0, 2.0]], dtype=np.float32))
    assert one != other
    assert hash(one) == hash(FeatureSequence(one.values.copy()))


@pytest.mark.parametrize("processor", [ImageProcessor(32, 4), FeatureProcessor(7)], ids=["pictures", "features"])
def test_a_reader_comes_back_from_its_file(tmp_path, processor):
    (tmp_path / processor.file).write_bytes(processor.model)
    again = load_processor(tmp_path / processor.file)
    assert (type(again), again.settings(), again.model) == (type(processor), processor.settings(), processor.model)


BAD = {
    "no-json": "{",
    "no-object": "[]",
    "no-reader": "{}",
    "unknown": '{"reader": "Path"}',
    "too-few": '{"reader": "Pictures", "side": 32}',
    "too-many": '{"reader": "Pictures", "side": 32, "patch": 4, "colour": 1}',
    "no-number": '{"reader": "Pictures", "side": "32", "patch": 4}',
    "huge": '{"reader": "Pictures", "side": 99999999, "patch": 1}',
    "uneven": '{"reader": "Pictures", "side": 32, "patch": 5}',
    "object": '{"reader": "Features", "width": {"a": 1}}',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_is_an_error_of_one_line(tmp_path, text):
    (tmp_path / "reader.json").write_text(text)
    with pytest.raises(DataError, match="not a valid source processor") as caught:
        load_processor(tmp_path / "reader.json")
    assert "\n" not in str(caught.value)


def test_encoders_take_pictures_of_their_size():
    assert image_processor_for("cnn", True, 64).settings() == {"side": 64, "patch": 4}
    assert image_processor_for("patches", True, None).side == 128
    with pytest.raises(UsageError, match="got 100"):
        image_processor_for("cnn", True, 100)
    with pytest.raises(UsageError, match="reads features"):
        image_processor_for("frames", True, None)


def test_a_batch_of_vectors_is_padded_with_zeros():
    one, two = FeatureSequence(np.ones((2, 3), dtype=np.uint8)), FeatureSequence(np.ones((1, 3), dtype=np.uint8))
    values, lengths = Source.of([one, two])
    assert (tuple(values.shape), lengths.tolist(), str(values.dtype)) == ((2, 2, 3), [2, 1], "torch.uint8")
    assert values[1, 1].tolist() == [0, 0, 0]
    assert json.loads(FeatureProcessor(3).model)["width"] == 3
