"""A real Ray, started once: what it writes is what one process writes, whoever dies on the way."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")  # and not yet Ray, which reads the environment
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import table
from pyarrow.parquet import read_table, write_table

from bundles import lines, tiny_bundle
from commands import run
from engines.exported import exported, lively_bundle
from softgaze.devices import cores
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.scale.on_ray import QUIET, Job, Pool, Row, again, checked, packed, pool, told, unpacked

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray by Ray

OPTIONS = ("--beam", 1, "--window", 8, "--device", "cpu")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Some lines, a model without torch in it, and what one process makes of them."""
    place = tmp_path_factory.mktemp("text")
    exported(lively_bundle(place / "plain"), place / "model", "ctranslate2")
    some = [*lines("en", 50), "", "a\u2028cat\x85sees", *lines("ko", 9), "", "the dog " * 30]
    (place / "in.txt").write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
    done = run(place, "translate", "model", "-i", "in.txt", "-o", "out.txt", *OPTIONS)
    assert done.returncode == 0, done.stderr
    return place


def on_ray(place, text, *words):
    return run(place, "translate", text / "model", *words, *OPTIONS, "--on", "ray")


# --- the same lines -----------------------------------------------------------------------------------------------


def test_a_file_becomes_the_file_that_one_process_writes(ray, text, tmp_path):
    done = on_ray(text, text, "-i", "in.txt", "-o", tmp_path / "out.txt")
    assert done == (0, "", "")
    assert (tmp_path / "out.txt").read_bytes() == (text / "out.txt").read_bytes()
    assert os.listdir(tmp_path) == ["out.txt"]


def test_several_inputs_follow_each_other(ray, text, tmp_path):
    """A directory, a table, a file by URL; into a table that says where each line is from."""
    (tmp_path / "in").mkdir()
    first = (text / "in.txt").read_text(encoding="utf-8").split("\n")[:-1]
    write_table(table({"id": range(20), "source": first[:20]}), tmp_path / "in" / "b.parquet")
    (tmp_path / "in" / "a.txt").write_text("".join(f"{line}\n" for line in first[:10]))
    (tmp_path / "in" / "empty.txt").touch()
    inputs = ("-i", tmp_path / "in", "-i", f"local://{text}/in.txt")
    done = on_ray(text, text, *inputs, "-o", f"local://{tmp_path}/out.parquet", "--nbest", 1)
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "out.parquet").to_pylist()
    expected = (text / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert [row["source"] for row in rows] == [*first[:10], *first[:20], *first]
    assert [row["text"] for row in rows] == [*expected[:10], *expected[:20], *expected]
    assert [(row["file"], row["line"]) for row in rows[9:11]] == [("a.txt", 10), ("b.parquet", 1)]


def test_a_mistake_is_one_line_and_what_was_done_is_not_done_again(ray, text, tmp_path):
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


def test_a_ray_of_our_own_is_alone_with_itself(ray):
    """It listens on loopback, shows no dashboard, tells nobody, and leaves a CPU to those who read."""
    from ray._common.usage.usage_lib import usage_stats_enabled

    assert ray.get_runtime_context().gcs_address.startswith("127.0.0.1:")
    assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
    assert not usage_stats_enabled()
    assert not ray._private.worker._global_node.webui_url
    assert ray.cluster_resources()["CPU"] == cores() + 1


# --- whoever dies -------------------------------------------------------------------------------------------------


def test_killed_and_run_again_is_undisturbed(ray, text, tmp_path):
    """The command, twice at random instants; then one of its workers, which Ray replaces by itself."""
    address = ray.get_runtime_context().gcs_address
    words = [sys.executable, "-m", "softgaze", "translate", text / "model", "-i", text / "in.txt", "-o", "out.txt"]
    command = [*map(str, (*words, *OPTIONS, "--on", "ray", "--address", address))]
    environment = {**os.environ, **QUIET, "OMP_NUM_THREADS": "1", "SOFTGAZE_SLOW_WRITES": "0.05"}
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
    said = process.communicate(timeout=300)
    assert (process.returncode, *said) == (0, b"", b"")  # Ray has much to say
    assert (tmp_path / "out.txt").read_bytes() == (text / "out.txt").read_bytes()
    assert os.listdir(tmp_path) == ["out.txt"]


def workers():
    """Processes of actors that translate, of this very Ray: somebody else may have one on this machine."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            name, raylet = path.read_bytes().split(b"\0")[0], parent_of(path.parent.name)
            if name.startswith(b"ray::MapWorker") and parent_of(raylet) == str(os.getpid()):
                found.add(int(path.parent.name))
    return found


def wait_for_worker(process, others):
    """One that is not of a command that was killed before."""
    while process.poll() is None:
        if new := workers() - others:
            return new.pop()
        time.sleep(0.02)
    raise AssertionError(f"ended with {process.returncode} before a worker was seen")


def parent_of(process):
    """The number of the process that started this one: of a worker the raylet, of the raylet these tests."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]


# --- what cannot work ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["text", "--on", "ray"], "--on ray translates files"),
        (["-i", "a", "--on", "ray"], "--on ray translates files"),
        (["-i", "a", "-o", "b", "--on", "rye"], "unknown engine to translate on 'rye'; did you mean ray"),
        (["-i", "a", "-o", "b", "--address", "x:1"], "say --on ray too"),
        (["-i", "a", "-i", "b", "-o", "c"], "one --input at a time"),
        (["-i", "a", "-o", "b.parquet", "--on", "ray", "--json"], "--json is for text"),
        (["-i", "a", "-o", "b", "--on", "ray", "--device", "cuda:1"], "say --device cuda"),
    ],
)
def test_what_cannot_work_is_refused_before_ray_is_started(tmp_path, words, message):
    done = run(tmp_path, "translate", tiny_bundle(), *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_missing_input_is_named_before_ray_is_started(tmp_path):
    done = run(tmp_path, "translate", tiny_bundle(), "-i", "nothing.txt", "-o", "b", "--on", "ray")
    assert done.returncode == 3
    assert "nothing.txt does not exist" in done.stderr


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("softgaze.devices.find_spec", lambda name: None)
    done = run(tmp_path, "translate", tiny_bundle(), "-i", "a", "-o", "b", "--on", "ray")
    assert done == (4, "", "this needs ray, which is not installed; pip install 'softgaze[scale]'")


# --- small parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "resources", "size", "expected"),
    [
        ("auto", {"CPU": 8}, 10**9, Pool(7, 1.0, 0)),
        ("auto", {"CPU": 1}, 10**9, Pool(1, 0.5, 0)),
        ("auto", {"CPU": 64}, 250_000, Pool(3, 1.0, 0)),
        ("auto", {"CPU": 64}, 0, Pool(1, 1.0, 0)),
        ("auto", {"CPU": 16, "GPU": 4}, 10**9, Pool(4, 1.0, 1)),
        ("auto", {"CPU": 4, "GPU": 4}, 10**9, Pool(4, 0.5, 1)),
        ("cpu", {"CPU": 16, "GPU": 4}, 10**9, Pool(15, 1.0, 0)),
    ],
)
def test_the_pool_never_takes_every_cpu(device, resources, size, expected):
    found = pool(device, resources, size)
    assert found == expected
    assert found.size * found.cpus < resources["CPU"]


def test_cards_that_are_not_there_are_refused():
    with pytest.raises(UsageError, match="no graphics card"):
        pool("cuda", {"CPU": 8}, 1)


def test_rows_travel_unchanged():
    rows = [Row(0, 1, 9, 2, ["", "줄\u2028"], "", 0), Row.wrong(DataError("why"))]
    assert unpacked(packed(*rows)) == rows


@pytest.mark.parametrize("kind", [DataError, ResourceError, UsageError])
def test_a_mistake_made_elsewhere_is_the_same_mistake(kind):
    error = again(Row.wrong(kind("why")))
    assert (type(error), str(error)) == (kind, "why")
    with pytest.raises(kind, match="why"):
        list(told(iter([Row.wrong(kind("why"))]), None))


def job(*files):
    return Job(Path(), "cpu", "en", files, 8, None, None, {})


def complete(counts):
    """Rows of one file whose shards hold so many lines, and its end."""
    firsts = [1 + sum(counts[:number]) for number in range(len(counts) + 1)]
    return [
        Row(0, number, first, count, [], "", 0)
        for number, (first, count) in enumerate(zip(firsts, [*counts, 0], strict=True))
    ]


@given(st.lists(st.integers(1, 9), max_size=6), st.randoms())
def test_lines_that_are_lost_on_the_way_are_missed(counts, dice):
    rows = complete(counts)
    mixed = dice.sample(rows, len(rows))
    assert checked(mixed, job("a")) == rows[:-1]
    mixed.pop()
    with pytest.raises(ResourceError, match="a: Ray lost some of its lines"):
        checked(mixed, job("a"))
    with pytest.raises(ResourceError, match="b: Ray lost some of its lines"):
        checked(rows, job("a", "b"))
