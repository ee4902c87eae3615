"""Distributed training: ranks compute the same losses as one process; a dead rank is an error, not a hang."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from corpora import SMALL, write_corpus
from softgaze.training.distributed import Distributed, buckets, first_host, rank_info, slurm_master
from softgaze.training.gradients import rank_shares

TOLERANCE = 5e-3  # Adam makes a whole step of a gradient that rounds to just above or below zero

SETTINGS = {
    "training.warmup": 400,  # small steps, so that rounding stays small
    "training.decay": 0,  # a raised budget must not change the rates before
    "training.batch_tokens": 64,
    "training.average": 0,
    "validation.every": 10,
    "validation.save_every": 1,
    "validation.sentences": 4,
    **{f"model.options.{name}": value for name, value in SMALL["transformer"].items()},
}


def arguments(directory, out, steps=30, **changes):
    options = [f"--set={name}={value}" for name, value in (SETTINGS | changes).items()]
    text = (str(directory / "train.en"), str(directory / "train.de"))
    return [
        "softgaze",
        "train",
        "--train",
        *text,
        "--out",
        str(out),
        "--steps",
        str(steps),
        "--device",
        "cpu",
        *options,
    ]


def alone(directory, out, steps=30, **changes):
    """Train with one process."""
    command = [sys.executable, "-m", *arguments(directory, out, steps, **changes)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def start(directory, out, steps=30, restarts=0, **changes):
    """Start two ranks under torchrun."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    command = [sys.executable, "-m", *launcher, "-m", *arguments(directory, out, steps, **changes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def together(*options, **changes):
    """Train with two ranks; return their output."""
    process = start(*options, **changes)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def farthest(one, other):
    """Return the largest difference of any weight."""
    pairs = [load_file(path / "model.safetensors") for path in (one, other)]
    return max(float((pairs[0][name] - pairs[1][name]).abs().max()) for name in pairs[0])


def losses(out):
    rows = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if row["kind"] == "validation"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A text, and a model that one process trained on it without dropout."""
    directory = tmp_path_factory.mktemp("ranks")
    write_corpus(directory)
    alone(directory, directory / "alone", **{"model.options.dropout": 0})
    return directory


def test_two_ranks_learn_the_same_as_one(directory):
    output = together(directory, directory / "two", **{"model.options.dropout": 0})
    assert "2 ranks" in output
    assert farthest(directory / "alone", directory / "two") < TOLERANCE
    assert losses(directory / "two") == pytest.approx(losses(directory / "alone"), abs=1e-4)
    assert len(losses(directory / "two")) == 3  # written by one rank


def test_a_run_of_one_rank_resumes_with_two(directory):
    alone(directory, directory / "grown", steps=20, **{"model.options.dropout": 0})
    together(directory, directory / "grown", **{"model.options.dropout": 0})
    assert losses(directory / "grown") == pytest.approx(losses(directory / "alone"), abs=1e-4)
    assert farthest(directory / "alone", directory / "grown") < TOLERANCE


def test_a_batch_too_small_for_all_ranks_does_not_hang(directory):
    single = {"training.batch_tokens": 1, "model.options.dropout": 0}  # one pair per batch: one share is always empty
    alone(directory, directory / "single", 12, **single)
    together(directory, directory / "single-two", 12, **single)
    assert losses(directory / "single-two") == pytest.approx(losses(directory / "single"), abs=1e-4)


def rank_process(launcher, rank):
    """Return the process id of one rank."""
    for path in os.listdir("/proc"):
        if path.isdigit():
            try:
                with open(f"/proc/{path}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                with open(f"/proc/{path}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == launcher and f"RANK={rank}".encode() in variables:
                return int(path)
    return None


def wait_for_steps(process, out, steps=3):
    """Wait for some checkpoints; return the process ids of the ranks."""
    for _ in range(1200):
        assert process.poll() is None
        if len(list((out / "checkpoints").glob("step-*"))) > 1:
            newest = max((out / "checkpoints").glob("step-*")).name
            if int(newest.removeprefix("step-")) >= steps:
                return [rank_process(process.pid, rank) for rank in (0, 1)]
        time.sleep(0.05)
    raise AssertionError("no checkpoint was written")


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks ranks up in /proc")
def test_a_signal_to_one_rank_stops_all_at_one_step(directory):
    process = start(directory, directory / "stopped", steps=100_000)
    first, second = wait_for_steps(process, directory / "stopped")
    os.kill(second, signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "stopped and saved at step" in output
    assert "lost the connection" not in output
    newest = max((directory / "stopped/checkpoints").glob("step-*"))
    saved = json.loads((newest / "progress.json").read_text())["step"]
    assert f"saved at step {saved:,};" in output
    assert not os.path.exists(f"/proc/{first}")


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks ranks up in /proc")
def test_after_a_killed_rank_a_restart_loses_nothing(directory):
    together(directory, directory / "undisturbed", steps=60)
    process = start(directory, directory / "killed", steps=60, restarts=3)
    _, second = wait_for_steps(process, directory / "killed")
    os.kill(second, signal.SIGKILL)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert farthest(directory / "undisturbed", directory / "killed") == 0


def test_missing_ranks_are_an_error_not_a_hang(directory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", *arguments(directory, directory / "lonely", **{"training.rank_timeout": 2})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
    assert done.returncode == 4
    assert f"rank 1 of 2 cannot connect to 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


# --- two network namespaces, like two machines --------------------------------------------------------------------

HOSTS = {"softgaze-a": "10.213.7.1", "softgaze-b": "10.213.7.2"}


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


@pytest.fixture
def hosts():
    """Two connected network namespaces; skipped where they cannot be made."""
    if shutil.which("ip") is None or ip("netns", "add", "softgaze-a").returncode:
        pytest.skip("needs iproute2 and the right to make network namespaces")
    first, second = HOSTS
    ip("netns", "add", second)
    ip("link", "add", "sg-a", "netns", first, "type", "veth", "peer", "name", "sg-b", "netns", second)
    for (host, address), cable in zip(HOSTS.items(), ("sg-a", "sg-b"), strict=True):
        ip("-n", host, "address", "add", f"{address}/24", "dev", cable)
        ip("-n", host, "link", "set", cable, "up")
        ip("-n", host, "link", "set", "lo", "up")
    yield
    for host in HOSTS:
        ip("netns", "delete", host)


def on_host(number, directory, out, **changes):
    """Start one rank of two, each on its own host."""
    host, address = list(HOSTS.items())[number]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{HOSTS['softgaze-a']}:29473", "--rdzv-id", "softgaze"]
    own = ["--rdzv-conf", f"is_host={number == 0}", "--local-addr", address, "--nnodes", "2", "--nproc-per-node", "1"]
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        *meeting,
        *own,
        "-m",
        *arguments(directory, out, **changes),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": ("sg-a", "sg-b")[number]}
    return subprocess.Popen(
        ["ip", "netns", "exec", host, *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_hosts_learn_the_same_as_one_process(directory, hosts):
    processes = [on_host(number, directory, directory / "hosts", **{"model.options.dropout": 0}) for number in (0, 1)]
    for process in processes:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
    assert losses(directory / "hosts") == pytest.approx(losses(directory / "alone"), abs=1e-4)


# --- small parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("pairs", [1, 2, 7, 100])
def test_shares_cover_a_batch_once_and_evenly(pairs, count):
    lengths = np.random.default_rng(pairs).integers(1, 30, size=(pairs, 2))
    shares = rank_shares(lengths, count)
    assert len(shares) == count
    assert sorted(np.concatenate(shares).tolist()) == list(range(pairs))
    if pairs == 100:
        totals = [lengths[rows].sum() for rows in shares]
        assert max(totals) - min(totals) <= 2 * lengths.sum(axis=1).max()


def test_a_single_rank_changes_nothing():
    distributed = Distributed()
    tensor = torch.ones(3)
    distributed.all_reduce([tensor])
    distributed.barrier()
    assert distributed.world_size == 1
    assert distributed.is_main
    assert tensor.tolist() == [1, 1, 1]
    assert distributed.sum(1, 2) == [1, 2]
    assert distributed.broadcast({"a": (1, 2)}) == {"a": (1, 2)}
    assert distributed.device(torch.device("cuda")) == torch.device("cuda")


def test_buckets_hold_every_tensor_once_and_one_dtype_each():
    tensors = [torch.zeros(size) for size in (3, 2**24, 5, 7)] + [torch.zeros(2, dtype=torch.float64)]
    grouped = list(buckets(tensors))
    assert [tensor.numel() for bucket in grouped for tensor in bucket] == [tensor.numel() for tensor in tensors]
    assert all(len({tensor.dtype for tensor in bucket}) == 1 for bucket in grouped)
    assert len(grouped) == 4


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1, 0)),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, (3, 8, 1)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_LOCALID": "1"}, (5, 6, 1)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "6"}, (0, 1, 0)),  # a batch script, which is no rank
    ],
)
def test_rank_info_is_read_from_the_environment(environment, expected):
    assert rank_info(environment) == expected


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("gpu[03-07,12],login", "gpu03"), ("a,b", "a"), ("one", "one"), ("n[1,5]", "n1"), ("a,b[1-2]", "a")],
)
def test_the_first_host_of_a_list(nodes, host):
    assert first_host(nodes) == host


def test_ranks_of_slurm_meet_on_the_first_host():
    assert slurm_master({}) == {}
    variables = slurm_master({"SLURM_STEP_NODELIST": "gpu[03-07]", "SLURM_JOB_ID": "41002"})
    assert variables == {"MASTER_ADDR": "gpu03", "MASTER_PORT": "29502"}
