"""Many processes, one training: the same batches, the same losses, one writer; whoever dies is missed."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy
import pytest
import torch
from safetensors.torch import load_file

from corpora import SMALL, write_corpus
from softgaze.training.gradients import shares
from softgaze.training.ranks import Ranks, buckets, first_host, meeting_point, place_in

SIGN = 5e-3  # Adam turns a gradient that rounds to a little more or less than zero into a whole step

SETTINGS = {
    "training.batch_tokens": 64,
    "training.average": 0,
    "validation.every": 10,
    "validation.save_every": 1,
    "validation.sentences": 4,
    **{f"model.options.{name}": value for name, value in SMALL["transformer"].items()},
}


def words(directory, out, steps=30, **changes):
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
    """One process."""
    command = [sys.executable, "-m", *words(directory, out, steps, **changes)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def start(directory, out, steps=30, restarts=0, **changes):
    """Two ranks under torchrun."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    command = [sys.executable, "-m", *launcher, "-m", *words(directory, out, steps, **changes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def together(*arguments, **changes):
    """To the end."""
    process = start(*arguments, **changes)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def farthest(one, other):
    """The largest difference of any weight."""
    pairs = [load_file(path / "model.safetensors") for path in (one, other)]
    return max(float((pairs[0][name] - pairs[1][name]).abs().max()) for name in pairs[0])


def losses(out):
    rows = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if row["kind"] == "validation"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Text, and a model that one process trained on it without dropout."""
    place = tmp_path_factory.mktemp("ranks")
    write_corpus(place)
    alone(place, place / "alone", **{"model.options.dropout": 0})
    return place


def test_two_ranks_learn_what_one_learns(place):
    said = together(place, place / "two", **{"model.options.dropout": 0})
    assert "2 ranks" in said
    assert farthest(place / "alone", place / "two") < SIGN
    assert losses(place / "two") == pytest.approx(losses(place / "alone"), abs=1e-4)
    assert len(losses(place / "two")) == 3  # one journal, written by one rank


def test_one_rank_goes_on_as_two(place):
    alone(place, place / "grown", steps=20, **{"model.options.dropout": 0})
    together(place, place / "grown", **{"model.options.dropout": 0})
    assert losses(place / "grown") == pytest.approx(losses(place / "alone"), abs=1e-4)
    assert farthest(place / "alone", place / "grown") < SIGN


def test_a_batch_too_small_for_all_ranks_does_not_hang(place):
    single = {"training.batch_tokens": 1, "model.options.dropout": 0}  # one pair a batch: a share is always empty
    alone(place, place / "single", 12, **single)
    together(place, place / "single-two", 12, **single)
    assert losses(place / "single-two") == pytest.approx(losses(place / "single"), abs=1e-4)


def rank_process(launcher, rank):
    """The process id of one rank."""
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
    """Until some checkpoints are written; returns the ranks' processes."""
    for _ in range(1200):
        assert process.poll() is None
        if len(list((out / "checkpoints").glob("step-*"))) > 1:
            newest = max((out / "checkpoints").glob("step-*")).name
            if int(newest.removeprefix("step-")) >= steps:
                return [rank_process(process.pid, rank) for rank in (0, 1)]
        time.sleep(0.05)
    raise AssertionError("never began")


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks ranks up in /proc")
def test_a_rank_that_is_told_to_stop_stops_all_at_one_step(place):
    process = start(place, place / "stopped", steps=100_000)
    first, second = wait_for_steps(process, place / "stopped")
    os.kill(second, signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "stopped and saved at step" in said
    assert "lost touch" not in said
    newest = max((place / "stopped/checkpoints").glob("step-*"))
    saved = json.loads((newest / "progress.json").read_text())["step"]
    assert f"saved at step {saved:,};" in said
    assert not os.path.exists(f"/proc/{first}")


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks ranks up in /proc")
def test_a_rank_that_dies_is_missed_and_after_a_restart_nothing_was_lost(place):
    together(place, place / "undisturbed", steps=60)
    process = start(place, place / "killed", steps=60, restarts=3)
    _, second = wait_for_steps(process, place / "killed")
    os.kill(second, signal.SIGKILL)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert farthest(place / "undisturbed", place / "killed") == 0


def test_others_that_never_come_are_an_error_not_a_hang(place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", *words(place, place / "lonely", **{"training.rank_timeout": 2})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **meeting})
    assert done.returncode == 4
    assert f"rank 1 of 2 cannot meet the others at 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


# --- two machines, as far as the network knows ------------------------------------------------------------------

HOSTS = {"softgaze-a": "10.213.7.1", "softgaze-b": "10.213.7.2"}


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


@pytest.fixture
def hosts():
    """Two network namespaces joined by a cable; skipped where the kernel or the user may not."""
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
    """One rank of two, each on a host of its own."""
    host, address = list(HOSTS.items())[number]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{HOSTS['softgaze-a']}:29473", "--rdzv-id", "softgaze"]
    own = ["--rdzv-conf", f"is_host={number == 0}", "--local-addr", address, "--nnodes", "2", "--nproc-per-node", "1"]
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, *own, "-m", *words(directory, out, **changes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": ("sg-a", "sg-b")[number]}
    return subprocess.Popen(
        ["ip", "netns", "exec", host, *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_hosts_learn_what_one_process_learns(place, hosts):
    processes = [on_host(number, place, place / "hosts", **{"model.options.dropout": 0}) for number in (0, 1)]
    for process in processes:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
    assert losses(place / "hosts") == pytest.approx(losses(place / "alone"), abs=1e-4)


# --- small parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("pairs", [1, 2, 7, 100])
def test_shares_cover_a_batch_once_and_evenly(pairs, count):
    lengths = numpy.random.default_rng(pairs).integers(1, 30, size=(pairs, 2))
    found = shares(lengths, count)
    assert len(found) == count
    assert sorted(numpy.concatenate(found).tolist()) == list(range(pairs))
    if pairs == 100:
        amounts = [lengths[places].sum() for places in found]
        assert max(amounts) - min(amounts) <= 2 * lengths.sum(axis=1).max()


def test_a_run_by_itself_changes_nothing():
    ranks = Ranks()
    tensor = torch.ones(3)
    ranks.add_up([tensor])
    ranks.wait()
    assert ranks.alone
    assert ranks.leads
    assert tensor.tolist() == [1, 1, 1]
    assert ranks.total(1, 2) == [1, 2]
    assert ranks.tell({"a": (1, 2)}) == {"a": (1, 2)}
    assert ranks.device(torch.device("cuda")) == torch.device("cuda")


def test_buckets_hold_every_tensor_once_and_one_kind_each():
    tensors = [torch.zeros(size) for size in (3, 2**24, 5, 7)] + [torch.zeros(2, dtype=torch.float64)]
    found = list(buckets(tensors))
    assert [each.numel() for bucket in found for each in bucket] == [each.numel() for each in tensors]
    assert all(len({each.dtype for each in bucket}) == 1 for bucket in found)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1, 0)),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, (3, 8, 1)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_LOCALID": "1"}, (5, 6, 1)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "6"}, (0, 1, 0)),  # a batch script, which starts no ranks by itself
    ],
)
def test_the_launcher_says_who_is_who(environment, expected):
    assert place_in(environment) == expected


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("gpu[03-07,12],login", "gpu03"), ("a,b", "a"), ("one", "one"), ("n[1,5]", "n1"), ("a,b[1-2]", "a")],
)
def test_the_first_host_of_a_list(nodes, host):
    assert first_host(nodes) == host


def test_slurm_s_ranks_meet_on_the_first_host():
    assert meeting_point({}) == {}
    found = meeting_point({"SLURM_STEP_NODELIST": "gpu[03-07]", "SLURM_JOB_ID": "41002"})
    assert found == {"MASTER_ADDR": "gpu03", "MASTER_PORT": "29502"}
