"""Readers: what a file becomes, once for as long as it stays as it is, and what is said of one that cannot be read."""

import json

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.data.images import write_image
from softgaze.data.readers import Features, Items, Pictures, Seen, load_reader, picture_reader
from softgaze.errors import DataError, UsageError
from softgaze.models.base import Source


def noise(height, width, seed=0):
    return numpy.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=numpy.uint8)


def photo(path, height=32, width=32, seed=0):
    write_image(path, noise(height, width, seed))
    return str(path)


@given(rows=st.integers(1, 4), patch=st.integers(1, 4))
def test_patches_are_the_pixels_in_reading_order(rows, patch):
    pixels, reader = noise(rows * patch, rows * patch), Pictures(rows * patch, patch)
    patches = reader.patches(pixels)
    assert patches.shape == (rows**2, len(reader))
    for place, values in enumerate(patches):
        down, across = divmod(place, rows)
        cell = pixels[down * patch :, across * patch :][:patch, :patch]
        assert (values.reshape(patch, patch, 3) == cell).all()


def test_without_its_network_a_reader_gives_what_the_network_sees(tmp_path):
    """So that a model that brings the network with it can be given the same files."""
    seen = Seen("any", 32, 8, 5)
    path = photo(tmp_path / "a.png")
    assert (seen.network, len(seen), seen.bare.network, len(seen.bare)) == ("any", 5, None, 192)
    assert seen.bare.encode([path]) == Pictures(32, 8).encode([path])
    assert all(each.bare is each for each in (Pictures(32, 8), Features(3)))


def test_a_picture_is_the_square_in_the_middle_of_the_photo(tmp_path):
    reader = Pictures(16, 4)
    [items] = reader.encode([photo(tmp_path / "wide.png", 16, 40)])
    assert (numpy.asarray(items) == reader.patches(noise(16, 40)[:, 12:28])).all()
    assert reader.picture(tmp_path / "wide.png").framing.crop.left == 0.3
    assert reader.grid(items) == (4, 4)
    assert reader.pieces(items)[:5] == ["1,1", "1,2", "1,3", "1,4", "2,1"]


def test_a_file_is_read_once_while_it_stays_as_it_is(tmp_path, monkeypatch):
    reader, path, read = Pictures(16, 4), photo(tmp_path / "a.png"), []
    plain = Pictures.picture
    monkeypatch.setattr(Pictures, "picture", lambda self, name: read.append(name) or plain(self, name))
    first, again = reader.encode([path, path])
    [later] = reader.encode([path])
    assert first is again is later
    assert len(read) == 1
    photo(tmp_path / "a.png", 40, 40, seed=1)
    [changed] = reader.encode([path])
    assert changed != first
    assert len(read) == 2


def test_what_is_kept_does_not_grow(tmp_path, monkeypatch):
    reader = Pictures(16, 4)
    monkeypatch.setattr("softgaze.data.readers.KEPT", 2 * 16 * 16 * 3)
    reader.encode([photo(tmp_path / f"{number}.png", seed=number) for number in range(5)])
    assert len(reader.recent) == 2


def test_broken_files_are_named_and_the_others_read(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    names = [
        photo(tmp_path / "a.png"),
        str(tmp_path / "broken.png"),
        str(tmp_path / "none.png"),
        photo(tmp_path / "b.png"),
    ]
    complaints = []
    found = Pictures(16, 4).survey(names, complaints.append)
    assert [each is not None for each in found] == [True, False, False, True]
    assert [str(each).split(":")[0] for each in complaints] == names[1:3]
    with pytest.raises(DataError, match=r"broken\.png"):
        Pictures(16, 4).encode(names)


def test_features_are_frames_as_wide_as_the_first(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.arange(12.0).reshape(3, 4))
    numpy.save(tmp_path / "b.npy", numpy.ones((2, 5)))
    reader = Features.like(tmp_path / "a.npy")
    [items] = reader.encode([str(tmp_path / "a.npy")])
    assert (len(reader), len(items), reader.grid(items), reader.pieces(items)) == (4, 3, None, ["1", "2", "3"])
    with pytest.raises(DataError, match="5 numbers a frame; the others have 4"):
        reader.encode([str(tmp_path / "b.npy")])


def test_without_some_places_there_is_the_mean():
    items = Items(numpy.array([[0, 0], [2, 4], [4, 8]], dtype=numpy.uint8))
    assert numpy.asarray(Pictures(16, 4).without(items, [0, 2])).tolist() == [[2, 4], [2, 4], [2, 4]]
    assert items[0].tolist() == [0, 0]


def test_items_are_compared_by_what_they_hold():
    one, other = (Items(numpy.array(rows, dtype=numpy.float32)) for rows in ([[1.0, 2.0]], [[1.0, 3.0]]))
    assert one == Items(numpy.array([[1.0, 2.0]], dtype=numpy.float32))
    assert one != other
    assert hash(one) == hash(Items(one.values.copy()))


@pytest.mark.parametrize("reader", [Pictures(32, 4), Features(7)], ids=["pictures", "features"])
def test_a_reader_comes_back_from_its_file(tmp_path, reader):
    (tmp_path / reader.file).write_bytes(reader.model)
    again = load_reader(tmp_path / reader.file)
    assert (type(again), again.settings(), again.model) == (type(reader), reader.settings(), reader.model)


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
def test_a_bad_file_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "reader.json").write_text(text)
    with pytest.raises(DataError, match="does not say how a source is read") as caught:
        load_reader(tmp_path / "reader.json")
    assert "\n" not in str(caught.value)


def test_encoders_take_pictures_of_their_size():
    assert picture_reader("cnn", True, 64).settings() == {"side": 64, "patch": 4}
    assert picture_reader("patches", True, None).side == 128
    with pytest.raises(UsageError, match="not 100"):
        picture_reader("cnn", True, 100)
    with pytest.raises(UsageError, match="reads features"):
        picture_reader("frames", True, None)


def test_a_batch_of_vectors_is_padded_with_zeros():
    one, two = Items(numpy.ones((2, 3), dtype=numpy.uint8)), Items(numpy.ones((1, 3), dtype=numpy.uint8))
    values, lengths = Source.of([one, two])
    assert (tuple(values.shape), lengths.tolist(), str(values.dtype)) == ((2, 2, 3), [2, 1], "torch.uint8")
    assert values[1, 1].tolist() == [0, 0, 0]
    assert json.loads(Features(3).model)["width"] == 3
