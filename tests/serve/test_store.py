import os
import time

import pytest

from softgaze.serve import store as store_module
from softgaze.serve.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "files", 60)


def test_what_is_kept_is_found_under_a_name_that_nobody_guesses(store):
    names = [store.keep(str(number).encode()) for number in range(20)]
    assert len({*names}) == 20
    assert [store.find(name) for name in names] == [str(number).encode() for number in range(20)]
    assert (store.directory.stat().st_mode & 0o777) == 0o700


def test_what_is_too_old_is_gone(store):
    name = store.keep(b"old")
    path = store.directory / name
    os.utime(path, (time.time() - 61,) * 2)
    assert store.find(name) is None
    store.sweep()
    assert not path.exists()


def test_there_is_an_end_to_what_is_kept(store, monkeypatch):
    monkeypatch.setattr(store_module, "MOST", 3)
    names = []
    for number in range(6):
        names.append(store.keep(b"x"))
        os.utime(store.directory / names[-1], (time.time() - 30 + number,) * 2)
    assert [store.find(name) is not None for name in names] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("name", ["", "..", "../keys", "/etc/passwd", "a.txt", "A" * 32, "A" * 31 + "/.txt"])
def test_only_names_of_its_own_are_looked_for(store, name):
    store.keep(b"x")
    assert store.find(name) is None
