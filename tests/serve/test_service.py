import os
import time

import pytest

from softgaze.serve import service
from softgaze.serve.service import FileStore


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "files", 60)


def test_files_have_random_names_in_a_private_directory(store):
    names = [store.save(str(number).encode()) for number in range(20)]
    assert len({*names}) == 20
    assert [store.load(name) for name in names] == [str(number).encode() for number in range(20)]
    assert (store.directory.stat().st_mode & 0o777) == 0o700


def test_expired_files_are_deleted(store):
    name = store.save(b"old")
    path = store.directory / name
    os.utime(path, (time.time() - 61,) * 2)
    assert store.load(name) is None
    store.delete_old()
    assert not path.exists()


def test_the_number_of_files_is_limited(store, monkeypatch):
    monkeypatch.setattr(service, "MAX_FILES", 3)
    names = []
    for number in range(6):
        names.append(store.save(b"x"))
        os.utime(store.directory / names[-1], (time.time() - 30 + number,) * 2)
    assert [store.load(name) is not None for name in names] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("name", ["", "..", "../keys", "/etc/passwd", "a.txt", "A" * 32, "A" * 31 + "/.txt"])
def test_other_names_are_rejected(store, name):
    store.save(b"x")
    assert store.load(name) is None
