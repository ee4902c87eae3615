"""Disks that are full, read-only or limited, text that vanishes: a clean stop that says why, and nothing is lost."""

import os
import resource
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from bundles import tiny_bundle
from commands import run
from corpora import corpus, small
from runs import EventLog, complete, trainer
from softgaze.atomic_io import TEMPORARY, new_directory, write_bytes
from softgaze.bundle import Bundle
from softgaze.errors import DataError, ResourceError
from softgaze.training.checkpoint import newest_checkpoint
from softgaze.training.train import train


@contextmanager
def mounted(place: Path, *options: str):
    """A file system of its own, where the system lets us have one."""
    place.mkdir(exist_ok=True)
    tried = subprocess.run(["mount", *options, str(place)], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no file system may be mounted here: {tried.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # encoded text may still be mapped


def small_disk(place: Path, size: int):
    """In memory, with so many bytes."""
    return mounted(place, "-t", "tmpfs", "-o", f"size={size}", "none")


def leftovers(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.name.startswith((TEMPORARY, ".tmp"))]


# --- one write --------------------------------------------------------------------------------------------------


def test_a_full_disk_is_told_in_bytes_and_leaves_what_was_there(tmp_path):
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        write_bytes(disk / "a", b"old")
        with pytest.raises(
            ResourceError, match=rf"^{disk}/a: cannot be written: .*[\d,]+ bytes were written and 0 are"
        ):
            write_bytes(disk / "a", b"x" * (2 << 20))
        assert (disk / "a").read_bytes() == b"old"
        with pytest.raises(ResourceError, match=rf"^{disk}/b: cannot be written: No space"):
            fill(disk / "b")
        assert os.listdir(disk) == ["a"]
        write_bytes(disk / "c", b"x" * (1 << 19))  # the room is free again


def fill(place):
    with new_directory(place) as directory:
        (directory / "c").write_bytes(b"x" * (2 << 20))


def test_a_read_only_disk_is_named(tmp_path):
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        write_bytes(disk / "a", b"old")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for write in (lambda: write_bytes(disk / "a", b"new"), lambda: fill(disk / "b")):
            with pytest.raises(ResourceError, match=r"disk/[ab]: cannot be written: Read-only file system"):
                write()
        assert (disk / "a").read_bytes() == b"old"


# --- a whole training -------------------------------------------------------------------------------------------

OFTEN = small(validation={"save_every": 1})


class Meddler(EventLog):
    """Does something to the world once, after an update."""

    def __init__(self, step, deed):
        super().__init__()
        self.step, self.deed = step, deed

    def on_update(self, update, share):
        super().on_update(update, share)
        if update.step == self.step:
            self.deed()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def straight(tmp_path_factory, text):
    """What an undisturbed run comes to."""
    place = tmp_path_factory.mktemp("straight")
    train(OFTEN, text, None, place / "run")
    return (place / "run" / "model.safetensors").read_bytes()


def go_on(run, text, straight):
    """From its last good checkpoint to the same end."""
    assert newest_checkpoint(run / "checkpoints")[0] is not None
    assert not leftovers(run)
    notes = EventLog()
    train(OFTEN, text, None, run, callback=notes)
    assert "resuming at step" in notes.messages[0]
    assert (run / "model.safetensors").read_bytes() == straight


def gorge(path: Path) -> None:
    """All the room there is."""
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
    except OSError:
        return


@pytest.mark.parametrize("step", [2, 4, 5])  # before the first bundle, at its making, and after it
def test_training_on_a_disk_that_fills_stops_and_goes_on(tmp_path, text, straight, step):
    """Somebody else takes the room: the run stops at a save, and goes on when there is room again."""
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        glutton = Meddler(step, lambda: gorge(disk / "somebody's"))
        with pytest.raises(ResourceError, match=rf"^{disk}/run/\S+: cannot .*No space.*[\d,]+ bytes were .*0 are free"):
            train(OFTEN, text, None, disk / "run", callback=glutton)
        if step > 4:
            Bundle.open(disk / "run")
        (disk / "somebody's").unlink()
        go_on(disk / "run", text, straight)


@pytest.mark.parametrize("size", [16 << 10, 64 << 10, 256 << 10])
def test_a_disk_too_small_from_the_start_says_so_and_is_left_empty_or_resumable(tmp_path, text, size):
    with small_disk(tmp_path / "disk", size) as disk:
        with pytest.raises(ResourceError, match=rf"^{disk}/run\S*: cannot be written: No space.* free"):
            train(OFTEN, text, None, disk / "run")
        assert not leftovers(disk)


def test_the_command_leaves_with_the_code_of_resources(tmp_path, text):
    source, target = text.paths
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        done = run(tmp_path, "train", "--train", source, target, "--out", disk / "run", "--steps", 2)
        assert done.returncode == 4
        assert f"{disk}/run" in done.stderr
        assert done.stderr.count("\n") == 0


def test_a_disk_that_becomes_read_only(tmp_path, text, straight):
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        with pytest.raises(ZeroDivisionError):
            train(OFTEN, text, None, disk / "run", callback=Meddler(5, lambda: 1 / 0))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for out in ("run", "another"):
            with pytest.raises(ResourceError, match=rf"^{disk}/{out}: cannot be written: Read-only file system"):
                train(OFTEN, text, None, disk / out)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        go_on(disk / "run", text, straight)


@pytest.mark.parametrize("limit", [4_000, 60_000])
def test_a_limit_on_the_size_of_files_says_so(tmp_path, text, limit, straight):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(ResourceError, match=r"run\S*: cannot be written: File too large \([\d,]+ bytes were"):
            train(OFTEN, text, None, tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    train(OFTEN, text, None, tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == straight


def test_text_that_vanishes_while_it_is_learnt_is_not_missed(tmp_path, straight):
    """It was encoded when the run began; only a resumed run asks for it again, and says which file is gone."""
    text = corpus(tmp_path)
    source = text.paths[0]

    def vanish():
        source.rename(tmp_path / "away")
        shutil.rmtree(tmp_path / "run" / "encoded")

    train(OFTEN, text, None, tmp_path / "run", callback=Meddler(3, vanish))
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == straight
    longer = small(validation={"save_every": 1}, budget={"steps": 9})
    with pytest.raises(DataError, match=rf"^{source} does not exist"):
        train(longer, text, None, tmp_path / "run")
    (tmp_path / "away").rename(source)
    assert train(longer, text, None, tmp_path / "run")["step"] == 9


def test_translating_to_a_full_disk_leaves_no_half_file(tmp_path):
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        (tmp_path / "many").write_text("the dog sees a red cat.\n" * 20)
        gorge(disk / "full")
        done = run(tmp_path, "translate", tiny_bundle(), "-i", "many", "-o", disk / "out", "--beam-size", 1)
        assert done.returncode == 4
        assert f"{disk}/out: cannot be written: No space" in done.stderr
        assert os.listdir(disk) == ["full"]


# --- places -----------------------------------------------------------------------------------------------------


def test_a_run_that_was_moved_or_copied_goes_on_there(tmp_path, text, straight):
    with pytest.raises(ZeroDivisionError):
        train(OFTEN, text, None, tmp_path / "run", callback=Meddler(5, lambda: 1 / 0))
    shutil.copytree(tmp_path / "run", tmp_path / "other place" / "copied")
    (tmp_path / "run").rename(tmp_path / "moved")
    elsewhere = corpus(tmp_path)
    for place in (tmp_path / "other place" / "copied", tmp_path / "moved"):
        go_on(place, elsewhere, straight)


def test_the_best_model_outlives_a_publication_that_fails(tmp_path, monkeypatch):
    made = trainer(tmp_path / "run")
    complete(made)
    before = Bundle.open(tmp_path / "run").files
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ResourceError, match=r"run/\S+: cannot be written: No space left on device"):
        made.publish({"loss": 1.0, "bleu": 1.0, "chrf": 1.0})
    assert Bundle.open(tmp_path / "run").files == before
