"""Disks that are full, read-only or limited, text that vanishes: a clean stop that says why, and nothing is lost."""

import os
import re
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from corpora import write_corpus
from faults.children import command, environment, finished, saved_step, started, wait_for_step
from runs import complete, trainer
from softgaze.bundle import Bundle
from softgaze.errors import ResourceError
from softgaze.files import TEMPORARY, new_directory, write_bytes
from softgaze.training.checkpoint import newest_checkpoint


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
        subprocess.run(["umount", str(place)], check=True)


def small_disk(place: Path, size: int):
    """In memory, with so many bytes."""
    return mounted(place, "-t", "tmpfs", "-o", f"size={size}", "none")


def one_line(message: str) -> str:
    """What a command says at its end."""
    line = message.strip().split("\n")[-1]
    assert line.startswith("softgaze: error: "), message
    return line


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


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    place = tmp_path_factory.mktemp("text")
    write_corpus(place)
    return place


@pytest.fixture(scope="module")
def straight(text):
    """What an undisturbed run comes to."""
    done = finished(command(text, text / "straight", steps=30))
    assert done.returncode == 0, done.stderr
    return (text / "straight" / "model.safetensors").read_bytes()


def used(place: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in place.rglob("*"))


def test_training_on_a_disk_that_fills_stops_and_goes_on(tmp_path, text, straight):
    """Somebody else takes the room: the run stops at a save, and goes on when there is room again."""
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        process = started(command(text, disk / "run", steps=30), SOFTGAZE_SLOW_WRITES="0.01")
        wait_for_step(process, disk / "run", 3)
        gorge(disk / "somebody's")
        said = one_line(process.communicate(timeout=120)[1])
        assert process.returncode == 4, said
        assert re.search(rf"{disk}/run/\S+: cannot be written: No space left on device \([\d,]+ bytes were", said), said
        assert not leftovers(disk)
        assert newest_checkpoint(disk / "run" / "checkpoints")[0] is not None
        (disk / "somebody's").unlink()
        done = finished(command(text, disk / "run", steps=30))
        assert done.returncode == 0, done.stderr
        assert "resuming at step" in done.stderr
        assert (disk / "run" / "model.safetensors").read_bytes() == straight


def gorge(path: Path) -> None:
    """All the room there is."""
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
    except OSError:
        return


@pytest.mark.parametrize("size", [64 << 10, 256 << 10, 1 << 20])
def test_a_disk_too_small_from_the_start_says_so(tmp_path, text, size):
    with small_disk(tmp_path / "disk", size) as disk:
        done = finished(command(text, disk / "run"))
        assert done.returncode == 4
        assert re.search(rf"{disk}/run\S*: cannot be written: No space.* free", one_line(done.stderr)), done.stderr
        assert not leftovers(disk)


def test_a_run_on_a_disk_that_became_read_only(tmp_path, text, straight):
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        process = started(command(text, disk / "run", steps=30))
        wait_for_step(process, disk / "run", 3)
        process.terminate()
        process.communicate(timeout=60)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        before = saved_step(disk / "run")
        for out in ("run", "another"):
            done = finished(command(text, disk / out, steps=30))
            assert done.returncode == 4
            assert f"{disk}/{out}: cannot be written: Read-only file system" in one_line(done.stderr)
        assert saved_step(disk / "run") == before
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert finished(command(text, disk / "run", steps=30)).returncode == 0
        assert (disk / "run" / "model.safetensors").read_bytes() == straight


@pytest.mark.parametrize("limit", [20_000, 60_000])
def test_a_limit_on_the_size_of_files_says_so(tmp_path, text, limit, straight):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        command(text, tmp_path / "run", steps=30),
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=limited,
        timeout=120,
    )
    assert done.returncode == 4, done.stderr
    assert re.search(r"run\S*: cannot be written: File too large \([\d,]+ bytes were", one_line(done.stderr))
    again = finished(command(text, tmp_path / "run", steps=30))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == straight


def test_text_that_vanishes_while_it_is_learnt_is_not_missed(tmp_path, straight):
    """It was encoded when the run began; only a resumed run asks for it again, and says which file is gone."""
    source, _ = write_corpus(tmp_path)
    process = started(command(tmp_path, tmp_path / "run", steps=30), SOFTGAZE_SLOW_WRITES="0.01")
    wait_for_step(process, tmp_path / "run", 3)
    source.rename(tmp_path / "away")
    shutil.rmtree(tmp_path / "run" / "encoded")
    assert process.wait(timeout=120) == 0, process.stderr.read()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == straight
    again = finished(command(tmp_path, tmp_path / "run", steps=31))
    assert again.returncode == 3
    assert f"{source} does not exist" in one_line(again.stderr)
    (tmp_path / "away").rename(source)
    assert finished(command(tmp_path, tmp_path / "run", steps=31)).returncode == 0


def test_translating_to_a_full_disk_leaves_no_half_file(tmp_path, text, straight):
    assert straight
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        (tmp_path / "many").write_text("dog sees cat and big red dog.\n" * 20)
        gorge(disk / "full")
        arguments = ["translate", str(text / "straight"), "--input", str(tmp_path / "many")]
        done = finished([sys.executable, "-m", "softgaze", *arguments, "--output", str(disk / "out")])
        assert done.returncode == 4
        assert f"{disk}/out: cannot be written: No space" in one_line(done.stderr)
        assert os.listdir(disk) == ["full"]


# --- places -----------------------------------------------------------------------------------------------------


def test_a_run_that_was_moved_or_copied_goes_on_there(tmp_path, text, straight):
    process = started(command(text, tmp_path / "run", steps=30), SOFTGAZE_SLOW_WRITES="0.01")
    wait_for_step(process, tmp_path / "run", 5)
    process.terminate()
    process.communicate(timeout=60)
    shutil.copytree(tmp_path / "run", tmp_path / "other place" / "copied")
    (tmp_path / "run").rename(tmp_path / "moved")
    shutil.copytree(text, tmp_path / "text", ignore=shutil.ignore_patterns("straight"))
    for place in (tmp_path / "other place" / "copied", tmp_path / "moved"):
        done = finished(command(tmp_path / "text", place, steps=30))
        assert done.returncode == 0, done.stderr
        assert "resuming at step" in done.stderr
        assert (place / "model.safetensors").read_bytes() == straight


def test_the_second_training_in_a_directory_is_refused_and_harms_nothing(tmp_path, text, straight):
    first = started(command(text, tmp_path / "run", steps=30), SOFTGAZE_SLOW_WRITES="0.05")
    wait_for_step(first, tmp_path / "run", 1)
    for more in ([], ["--fresh"]):
        second = finished(command(text, tmp_path / "run", *more, steps=30))
        assert second.returncode == 2
        assert "another process is training here" in one_line(second.stderr)
    assert first.wait(timeout=120) == 0, first.stderr.read()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == straight


def test_the_best_model_outlives_whatever_stops_a_run(tmp_path, monkeypatch):
    """A publication that fails half-way leaves the bundle before it."""
    made = trainer(tmp_path / "run")
    complete(made)
    before = Bundle.open(tmp_path / "run").files
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ResourceError, match=r"run/\S+: cannot be written: No space left on device"):
        made.publish({"loss": 1.0, "bleu": 1.0, "chrf": 1.0})
    assert Bundle.open(tmp_path / "run").files == before
