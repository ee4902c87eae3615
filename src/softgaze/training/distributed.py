"""Data-parallel training: each rank computes a share of every batch, then all ranks sum their gradients.

The ranks are started by torchrun or Slurm's srun, which describe them in the environment, or by Ray Train or Kubeflow,
which also initialise the process group. Without them the world has one rank and every operation here does nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from softgaze.errors import ResourceError

BUCKET_SIZE = 2**24  # values per all-reduce: 64 MB, which bounds the copy
BARRIER_TIMEOUT = timedelta(days=2)  # rank 0 may preprocess a large corpus
TORCHRUN_PORT = 29_500


class Distributed:
    """This process among the ranks. All ranks must make the same calls in the same order."""

    def __init__(self, rank: int = 0, world_size: int = 1, local_rank: int = 0) -> None:
        self.rank, self.world_size, self.local_rank = rank, world_size, local_rank
        self.slow_group = dist.new_group(timeout=BARRIER_TIMEOUT, backend="gloo") if world_size > 1 else None

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes files, validates and reports."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """Return the device of this rank: each rank of a machine gets a GPU of its own."""
        if device.type == "cuda" and device.index is None and self.world_size > 1:
            return torch.device("cuda", self.local_rank)
        return device

    def barrier(self) -> None:
        """Wait for all ranks, however long rank 0 takes."""
        if self.world_size > 1:
            with self._connected():
                dist.barrier(self.slow_group)

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks."""
        if self.world_size == 1:
            return
        for bucket in buckets(tensors):
            device = bucket[0].device if bucket[0].device.type == "cuda" else torch.device("cpu")
            message = torch.cat([tensor.detach().flatten().to(device) for tensor in bucket])
            with self._connected():
                dist.all_reduce(message)
            sums = torch.split_with_sizes(message, [tensor.numel() for tensor in bucket])
            for tensor, total in zip(bucket, sums, strict=True):
                tensor.copy_(total.view_as(tensor))

    def sum(self, *values: float) -> list[float]:
        """Return the sum of each value over all ranks."""
        if self.world_size == 1:
            return list(values)
        message = torch.tensor(values, dtype=torch.float64)
        self.all_reduce([message])
        return [float(value) for value in message]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on at least one rank."""
        return self.sum(float(flag))[0] > 0

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value, which must be JSON-serialisable, on all ranks."""
        if self.world_size == 1:
            return value
        text = json.dumps(value).encode() if self.is_main else b""
        [size] = self.sum(float(len(text)))
        message = torch.tensor(list(text) if self.is_main else [0] * int(size), dtype=torch.uint8)
        with self._connected():
            dist.broadcast(message, src=0)
        return json.loads(bytes(message.tolist()))

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Raise a one-line error if another rank has died or does not answer in time."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().split("\n")[0]
            raise ResourceError(
                f"rank {self.rank} of {self.world_size} lost the connection to the others ({reason}); the last "
                "checkpoint is intact: start all ranks again to resume"
            ) from error


def buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Group consecutive tensors of one dtype into buckets of about `BUCKET_SIZE` values."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        size = sum(other.numel() for other in bucket) + tensor.numel()
        if bucket and (bucket[0].dtype != tensor.dtype or size > BUCKET_SIZE):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


# --- joining the process group ------------------------------------------------------------------------------------


class RankInfo(NamedTuple):
    """This process as its launcher describes it."""

    rank: int
    world_size: int
    local_rank: int


@contextmanager
def init_distributed(timeout: float) -> Iterator[Distributed]:
    """Join the process group for the block; a rank that is silent for `timeout` seconds counts as dead."""
    if dist.is_available() and dist.is_initialized():  # by the caller
        yield Distributed(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", 0)))
        return
    info = rank_info(os.environ)
    if info.world_size == 1:
        yield Distributed()
        return
    distributed = join(info, timedelta(seconds=timeout))
    try:
        yield distributed
    finally:
        dist.destroy_process_group()


def rank_info(environment: Mapping[str, str]) -> RankInfo:
    """Read the variables of torchrun or of Slurm's srun."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    elif int(environment.get("SLURM_STEP_NUM_TASKS", 1)) > 1:  # set in job steps only: the batch script is no rank
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    else:
        return RankInfo(0, 1, 0)
    return RankInfo(*(int(environment.get(name, 0)) for name in names))


def join(info: RankInfo, timeout: timedelta) -> Distributed:
    """Initialise the process group at rank 0's address."""
    for name, value in slurm_master(os.environ).items():
        os.environ.setdefault(name, value)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        store, rank, world_size = next(rendezvous("env://", info.rank, info.world_size, timeout=timeout))
        # torchrun keeps one store through restarts; the addresses of dead ranks must not be read again.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)
        store = dist.PrefixStore(f"attempt {attempt}", store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)
        return Distributed(*info)
    except (RuntimeError, ValueError) as error:
        address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise ResourceError(
            f"rank {info.rank} of {info.world_size} cannot connect to {address} ({str(error).splitlines()[0]}); "
            "check that all ranks are running and can reach that address"
        ) from error


def slurm_master(environment: Mapping[str, str]) -> dict[str, str]:
    """Return rank 0's address in a Slurm job step: its first host, and a port that two jobs rarely share."""
    nodes = environment.get("SLURM_STEP_NODELIST")
    if nodes is None:
        return {}
    port = TORCHRUN_PORT + int(environment.get("SLURM_JOB_ID", 0)) % 1000
    return {"MASTER_ADDR": first_host(nodes), "MASTER_PORT": str(port)}


def first_host(nodes: str) -> str:
    """Return the first host of a Slurm node list: `gpu[03-07,12],login` -> `gpu03`."""
    name, bracket, rest = nodes.partition("[")
    if not bracket or "," in name:
        return nodes.split(",")[0]
    return name + rest.split("]")[0].split(",")[0].split("-")[0]
