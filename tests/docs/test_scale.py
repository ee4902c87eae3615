"""What docs/scale.md says is run: its commands in order, on a Ray of the tests' own, and its Python."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import commands
from corpora import SMALL, write_corpus
from softgaze.bundle import Bundle

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
QUICK = [f"--set=model.options.{name}={value}" for name, value in SMALL["transformer"].items()]
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


TRAINING, TRANSLATING = [block.strip().split("\n") for block in blocks("bash")]


def run(words, place):
    done = subprocess.run([sys.executable, *words], cwd=place, capture_output=True, text=True, timeout=300, env=ALONE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A person's own text, and a model of it as the first command makes it, but smaller."""
    place = tmp_path_factory.mktemp("scale")
    source, _ = write_corpus(place)
    (place / "more").mkdir()
    for name in ("big.txt", "more/a.txt", "more/b.txt"):
        shutil.copy(source, place / name)
    [line] = TRAINING
    run(["-m", *line.replace("torchrun", "torch.distributed.run").split(), "--steps", "3", *QUICK], place)
    return place


def test_torchrun_leaves_a_model(place):
    assert Bundle.open(place / "runs/mine").description.target_language == "de"


def test_the_python_prints_what_is_shown(place):
    [code], [shown] = blocks("python"), blocks("output")
    assert run(["-c", code], place) == shown


def test_two_workers_run_the_same_python_as_one(place, tmp_path):
    """As Kubeflow would start them: two processes that know their rank, and one run directory."""
    [code], [shown] = blocks("python"), blocks("output")
    write_corpus(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {**ALONE, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**meeting, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for worker in workers:
        said, complaint = worker.communicate(timeout=300)
        assert (worker.returncode, said) == (0, shown), complaint
    assert Bundle.open(tmp_path / "runs/as-a-library").facts["step"] == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray by Ray
def test_every_way_of_translating_writes_every_line(place, ray):
    for line in TRANSLATING:
        done = commands.run(place, *line.split()[1:], "--beam-size", "1")
        assert done.returncode == 0, done.stderr
    from pyarrow.parquet import read_table

    lines = (place / "out.txt").read_text().split("\n")
    assert len(lines) == 61
    assert (place / "out-ray.txt").read_text().split("\n") == lines
    assert read_table(place / "out.parquet").column("text").to_pylist() == lines[:-1] * 3
    assert sorted(path.name for path in (place / "shards").glob("*.txt")) == [
        "part-00000-000000.txt",
        "part-00001-000000.txt",
    ]


def test_files_that_are_named_are_there():
    for name in re.findall(r"(?:examples|benchmarks)/\w+\.\w+", PAGE):
        assert (ROOT / name).exists(), name
