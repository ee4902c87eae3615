"""Files with captions as pairs: several of one file stay together."""

import numpy
import pytest

from softgaze.data.album import Album
from softgaze.data.corpus import Pair
from softgaze.data.readers import Pictures
from softgaze.errors import DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", "c"):
        numpy.save(tmp_path / f"{name}.npy", numpy.ones((3, 4)))
    (tmp_path / "train.ko.csv").write_text("image,caption\na.npy,하나\na.npy,둘\nc.npy,셋\nx.npy,넷\nb.npy,다섯\n")
    return tmp_path


def test_pairs_are_paths_and_captions_in_the_order_of_the_file(folder):
    complaints = []
    album = Album.of_features(folder, folder / "train.ko.csv", complaints.append)
    names = [str(folder / f"{name}.npy") for name in "aacb"]
    assert [*album] == [Pair(*pair) for pair in zip(names, ["하나", "둘", "셋", "다섯"], strict=True)]
    assert (album.count(), album.sources(), len(album.reader)) == (4, 3, 4)
    assert album.pairs_of(frozenset({0, 2})) == {0, 1, 3}
    assert album.languages() == ("features", "ko")
    assert ["x.npy" in str(each) for each in complaints] == [True]


def test_it_is_another_album_when_a_caption_or_a_file_changes(folder):
    def prints():
        return list(Album.of_features(folder, folder / "train.ko.csv", lambda error: None).sha256().values())

    first = prints()
    assert prints() == first
    numpy.save(folder / "b.npy", numpy.ones((5, 4)))
    assert prints()[0] == first[0]
    assert prints()[1] != first[1]


def test_features_that_cannot_be_read_are_passed_over_to_find_the_first(folder):
    (folder / "a.npy").write_bytes(b"nothing")
    complaints = []
    assert len(Album.of_features(folder, folder / "train.ko.csv", complaints.append).reader) == 4
    assert any("a.npy" in str(each) for each in complaints)
    for name in ("b", "c"):
        (folder / f"{name}.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="none of the 3 files"):
        Album.of_features(folder, folder / "train.ko.csv", complaints.append)


def test_another_folder_is_read_in_the_same_way(folder):
    album = Album(folder, folder / "train.ko.csv", (), Pictures(32, 4))
    assert album.beside(folder, folder / "train.ko.csv", lambda error: None).reader is album.reader
