"""A real Ray, started once: its output equals that of one process, whatever is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")  # Ray itself is imported later: it reads the environment
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import table
from pyarrow.parquet import read_table, write_table

from bundles import lines, tiny_bundle
from commands import check_error, run, slow_writes
from engines.exported import exported, lively_bundle
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.runtime import cores
from softgaze.scale.output_shards import Shard
from softgaze.scale.ray_translate import (
    RAY_ENVIRONMENT,
    RayJob,
    WorkerPool,
    check_complete,
    from_arrow,
    to_arrow,
    worker_pool,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own

OPTIONS = ("--beam-size", 1, "--window", 8, "--device", "cpu")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Some lines, an exported model, and the output of one process."""
    folder = tmp_path_factory.mktemp("text")
    exported(lively_bundle(folder / "plain"), folder / "model", "ctranslate2")
    some = [*lines("en", 50), "", "a\u2028cat\x85sees", *lines("ko", 9), "", "the dog " * 30]
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
    done = run(folder, "translate", "model", "-i", "in.txt", "-o", "out.txt", *OPTIONS)
    assert done.returncode == 0, done.stderr
    return folder


def progress_lines(errors):
    """Return the lines of progress, which a busy machine prints."""
    return [line for line in errors.splitlines() if " lines/s, " in line]


def on_ray(folder, text, *words):
    return run(folder, "translate", text / "model", *words, *OPTIONS, "--on", "ray")


# --- output -----------------------------------------------------------------------------------------------


def test_output_equals_that_of_one_process(ray, text, tmp_path):
    done = on_ray(text, text, "-i", "in.txt", "-o", tmp_path / "out.txt")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not set(done.stderr.splitlines()) - set(progress_lines(done.stderr)), "nothing of Ray's own output"
    assert (tmp_path / "out.txt").read_bytes() == (text / "out.txt").read_bytes()
    assert os.listdir(tmp_path) == ["out.txt"]


def test_several_inputs(ray, text, tmp_path):
    """A directory with Parquet and text, and a file by URL; the output names the file and line of each row."""
    (tmp_path / "in").mkdir()
    first = (text / "in.txt").read_text(encoding="utf-8").split("\n")[:-1]
    write_table(table({"id": range(20), "source": first[:20]}), tmp_path / "in" / "b.parquet")
    (tmp_path / "in" / "a.txt").write_text("".join(f"{line}\n" for line in first[:10]))
    (tmp_path / "in" / "empty.txt").touch()
    inputs = ("-i", tmp_path / "in", "-i", f"local://{text}/in.txt")
    done = on_ray(text, text, *inputs, "-o", f"local://{tmp_path}/out.parquet", "--num-hypotheses", 1)
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "out.parquet").to_pylist()
    expected = (text / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert [row["source"] for row in rows] == [*first[:10], *first[:20], *first]
    assert [row["text"] for row in rows] == [*expected[:10], *expected[:20], *expected]
    assert [(row["file"], row["line"]) for row in rows[9:11]] == [("a.txt", 10), ("b.parquet", 1)]


def test_an_error_is_one_line_and_finished_shards_are_kept(ray, text, tmp_path):
    good = (text / "in.txt").read_bytes()
    (tmp_path / "in.txt").write_bytes(good + b"\xff\n")
    done = on_ray(tmp_path, text, "-i", "in.txt", "-o", "out/")
    assert done.returncode == 3
    assert f"in.txt, line {len(good.splitlines()) + 1}, byte {len(good):,}: not UTF-8" in done.stderr
    assert "\n" not in done.stderr.strip()
    (tmp_path / "in.txt").write_bytes(good)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.done")}
    assert on_ray(tmp_path, text, "-i", "in.txt", "-o", "out/").returncode == 0
    now = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.done")}
    assert kept.items() <= now.items()
    parts = sorted((tmp_path / "out").glob("*.txt"))
    assert b"".join(part.read_bytes() for part in parts) == (text / "out.txt").read_bytes()


def test_local_ray_is_private(ray):
    """It listens on loopback, has no dashboard, sends no statistics, and has one CPU more for readers."""
    from ray._common.usage.usage_lib import usage_stats_enabled

    assert ray.get_runtime_context().gcs_address.startswith("127.0.0.1:")
    assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
    assert not usage_stats_enabled()
    assert not ray._private.worker._global_node.webui_url
    assert ray.cluster_resources()["CPU"] == cores() + 1


# --- killed processes -------------------------------------------------------------------------------------------------


def test_a_killed_run_resumes_with_the_same_output(ray, text, tmp_path):
    """Kill the command twice at random instants, then one of its workers, which Ray replaces."""
    address = ray.get_runtime_context().gcs_address
    words = [sys.executable, "-m", "softgaze", "translate", text / "model", "-i", text / "in.txt", "-o", "out.txt"]
    command = [*map(str, (*words, *OPTIONS, "--on", "ray", "--address", address))]
    environment = {**os.environ, **RAY_ENVIRONMENT, "OMP_NUM_THREADS": "1", **slow_writes(0.05)}
    dice = random.Random(1)
    for kill in (1, 2):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        while process.poll() is None and len([*tmp_path.glob("out.txt.parts/*.done")]) < kill:
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 0.2))
        process.kill()
        process.wait()
        assert not (tmp_path / "out.txt").exists()
    others = workers()
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.kill(wait_for_worker(process, others), signal.SIGKILL)
    output, errors = (part.decode() for part in process.communicate(timeout=300))
    assert (process.returncode, output) == (0, ""), errors
    assert not set(errors.splitlines()) - set(progress_lines(errors)), "nothing of Ray's own output"
    assert (tmp_path / "out.txt").read_bytes() == (text / "out.txt").read_bytes()
    assert os.listdir(tmp_path) == ["out.txt"]


def workers():
    """Return the processes of the translation actors of this Ray, not of another one on this machine."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            name, raylet = path.read_bytes().split(b"\0")[0], parent_of(path.parent.name)
            if name.startswith(b"ray::MapWorker") and parent_of(raylet) == str(os.getpid()):
                found.add(int(path.parent.name))
    return found


def wait_for_worker(process, others):
    """Return a worker that does not belong to a killed command."""
    while process.poll() is None:
        if new := workers() - others:
            return new.pop()
        time.sleep(0.02)
    raise AssertionError(f"ended with {process.returncode} before a worker was seen")


def parent_of(process):
    """Return the id of the parent process: of a worker the raylet, of the raylet the test process."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]


# --- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["text", "--on", "ray"], "--output"),
        (["-i", "a", "--on", "ray"], "--output"),
        (["-i", "a", "-o", "b", "--on", "rye"], "'rye'"),
        (["-i", "a", "-o", "b", "--address", "x:1"], "--on ray"),
        (["-i", "a", "-i", "b", "-o", "c"], "--input"),
        (["-i", "a", "-o", "b.parquet", "--on", "ray", "--json"], "--json"),
        (["-i", "a", "-o", "b", "--on", "ray", "--device", "cuda:1"], "--device cuda"),
    ],
)
def test_usage_errors(tmp_path, words, message):
    check_error(run(tmp_path, "translate", tiny_bundle(), *words), 2, message)


def test_missing_input(tmp_path):
    done = run(tmp_path, "translate", tiny_bundle(), "-i", "nothing.txt", "-o", "b", "--on", "ray")
    check_error(done, 3, "nothing.txt does not exist")


def test_missing_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("softgaze.runtime.find_spec", lambda name: None)
    done = run(tmp_path, "translate", tiny_bundle(), "-i", "a", "-o", "b", "--on", "ray")
    check_error(done, 4, "pip install 'softgaze[scale]'")


# --- units --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "resources", "size", "expected"),
    [
        ("auto", {"CPU": 8}, 10**9, WorkerPool(7, 1.0, 0)),
        ("auto", {"CPU": 1}, 10**9, WorkerPool(1, 0.5, 0)),
        ("auto", {"CPU": 64}, 250_000, WorkerPool(3, 1.0, 0)),
        ("auto", {"CPU": 64}, 0, WorkerPool(1, 1.0, 0)),
        ("auto", {"CPU": 16, "GPU": 4}, 10**9, WorkerPool(4, 1.0, 1)),
        ("auto", {"CPU": 4, "GPU": 4}, 10**9, WorkerPool(4, 0.5, 1)),
        ("cpu", {"CPU": 16, "GPU": 4}, 10**9, WorkerPool(15, 1.0, 0)),
    ],
)
def test_the_pool_leaves_a_cpu_to_the_readers(device, resources, size, expected):
    pool = worker_pool(device, resources, size)
    assert pool == expected
    assert pool.size * pool.cpus < resources["CPU"]


def test_missing_gpu():
    with pytest.raises(UsageError, match="no GPU"):
        worker_pool("cuda", {"CPU": 8}, 1)


def test_rows_survive_arrow():
    rows = [Shard(0, 1, 9, 2, ["", "줄\u2028"], "", 0), Shard.of_error(DataError("why"))]
    assert from_arrow(to_arrow(*rows)) == rows


@pytest.mark.parametrize("kind", [DataError, ResourceError, UsageError])
def test_errors_of_remote_processes_keep_their_type(kind):
    with pytest.raises(kind, match="why"):
        Shard.of_error(kind("why")).raise_error()
    complete([])[0].raise_error()


def job(*files):
    return RayJob(Path(), "cpu", "en", files, 8, None, None, {})


def complete(counts):
    """Return the rows of a file whose shards have so many lines, and its end."""
    firsts = [1 + sum(counts[:number]) for number in range(len(counts) + 1)]
    sizes = zip(firsts, [*counts, 0], strict=True)
    return [Shard(0, number, first, count, []) for number, (first, count) in enumerate(sizes)]


@given(st.lists(st.integers(1, 9), max_size=6), st.randoms())
def test_lost_lines_are_an_error(counts, dice):
    rows = complete(counts)
    mixed = dice.sample(rows, len(rows))
    assert check_complete(mixed, job("a")) == rows[:-1]
    mixed.pop()
    with pytest.raises(ResourceError, match="a: Ray lost"):
        check_complete(mixed, job("a"))
    with pytest.raises(ResourceError, match="b: Ray lost"):
        check_complete(rows, job("a", "b"))
