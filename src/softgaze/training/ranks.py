"""Processes that train together, called ranks: each takes a share of every batch, and all add up their gradients.

Nobody is started here. torchrun and Slurm's srun start the ranks and say so in the environment; Ray Train and Kubeflow
have them joined already. Without any of these a run is alone, and nothing in this file does anything.
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

BUCKET = 2**24  # numbers added up at once: 64 MB, so that the copy that travels stays small
PATIENCE = timedelta(days=2)  # for the leader's reading of a large corpus
PORT = 29_500  # torchrun's own


class Ranks:
    """This process among those that train together. All must make the same calls in the same order."""

    def __init__(self, rank: int = 0, size: int = 1, local: int = 0) -> None:
        self.rank, self.size, self.local = rank, size, local
        self.patient = dist.new_group(timeout=PATIENCE, backend="gloo") if size > 1 else None

    @property
    def alone(self) -> bool:
        """Nobody else is there."""
        return self.size == 1

    @property
    def leads(self) -> bool:
        """The one rank that writes, validates and talks."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """A graphics card of its own for each rank of a machine."""
        wants_one = device.type == "cuda" and device.index is None and not self.alone
        return torch.device("cuda", self.local) if wants_one else device

    def wait(self) -> None:
        """Until all are here, however long the leader takes."""
        if not self.alone:
            with self.in_touch():
                dist.barrier(self.patient)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """The sum over all ranks of each tensor, in place."""
        if not self.alone:
            for bucket in buckets(tensors):
                self.add_bucket(bucket)

    def add_bucket(self, tensors: Sequence[Tensor]) -> None:
        """As one message."""
        device = tensors[0].device if tensors[0].device.type == "cuda" else torch.device("cpu")
        message = torch.cat([each.detach().flatten().to(device) for each in tensors])
        with self.in_touch():
            dist.all_reduce(message)
        sizes = [each.numel() for each in tensors]
        for each, part in zip(tensors, torch.split_with_sizes(message, sizes), strict=True):
            each.copy_(part.view_as(each))

    def total(self, *numbers: float) -> list[float]:
        """The sum over all ranks of each number."""
        if self.alone:
            return list(numbers)
        message = torch.tensor(numbers, dtype=torch.float64)
        self.add_up([message])
        return [float(each) for each in message]

    def any(self, flag: bool) -> bool:
        """Whether it is so for at least one rank."""
        return self.total(float(flag))[0] > 0

    def tell(self, value: Any) -> Any:
        """What the leader says, to all; anything that JSON can write."""
        if self.alone:
            return value
        text = json.dumps(value).encode() if self.leads else b""
        [size] = self.total(float(len(text)))
        message = torch.tensor(list(text) if self.leads else [0] * int(size), dtype=torch.uint8)
        with self.in_touch():
            dist.broadcast(message, src=0)
        return json.loads(bytes(message.tolist()))

    @contextmanager
    def in_touch(self) -> Iterator[None]:
        """One line when another rank has died or does not answer in time."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().split("\n")[0]
            raise ResourceError(
                f"rank {self.rank} of {self.size} lost touch with the others ({reason}); what was saved is safe: "
                "start all ranks again to go on"
            ) from error


def buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of one kind, about `BUCKET` numbers together."""
    bucket: list[Tensor] = []
    for each in tensors:
        fits = bucket and bucket[0].dtype == each.dtype and sum(one.numel() for one in bucket) + each.numel() <= BUCKET
        if bucket and not fits:
            yield bucket
            bucket = []
        bucket.append(each)
    if bucket:
        yield bucket


# --- who is there -----------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """What a launcher says."""

    rank: int
    size: int
    local: int


@contextmanager
def joined(seconds: float) -> Iterator[Ranks]:
    """All ranks, for as long as the block runs; one that says nothing for so many seconds counts as dead."""
    if dist.is_available() and dist.is_initialized():  # by whoever called us
        yield Ranks(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", 0)))
        return
    place = place_in(os.environ)
    if place.size == 1:
        yield Ranks()
        return
    ranks = join(place, seconds)
    try:
        yield ranks
    finally:
        dist.destroy_process_group()


def place_in(environment: Mapping[str, str]) -> Place:
    """From torchrun's variables, or those of Slurm's srun."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    elif int(environment.get("SLURM_STEP_NUM_TASKS", 1)) > 1:  # of a step: a batch script itself is no rank
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    else:
        return Place(0, 1, 0)
    return Place(*(int(environment.get(name, 0)) for name in names))


def join(place: Place, seconds: float) -> Ranks:
    """Meet the others at the leader's address."""
    for name, value in meeting_point(os.environ).items():
        os.environ.setdefault(name, value)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        store, *who = next(rendezvous("env://", place.rank, place.size, timeout=timedelta(seconds=seconds)))
        # torchrun keeps one store through restarts; where the dead could once be reached must not be read again.
        fresh = dist.PrefixStore(  # type: ignore[attr-defined]
            f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store
        )
        dist.init_process_group(
            backend, store=fresh, rank=who[0], world_size=who[1], timeout=timedelta(seconds=seconds)
        )
        return Ranks(*place)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise ResourceError(
            f"rank {place.rank} of {place.size} cannot meet the others at {where} ({str(error).splitlines()[0]}); "
            "are all of them running, and can they reach that address?"
        ) from error


def meeting_point(environment: Mapping[str, str]) -> dict[str, str]:
    """Where Slurm's ranks meet: on the first host of the step, at a port that two jobs seldom share."""
    nodes = environment.get("SLURM_STEP_NODELIST")
    if nodes is None:
        return {}
    port = PORT + int(environment.get("SLURM_JOB_ID", 0)) % 1000
    return {"MASTER_ADDR": first_host(nodes), "MASTER_PORT": str(port)}


def first_host(nodes: str) -> str:
    """`gpu[03-07,12],login` -> `gpu03`."""
    name, bracket, rest = nodes.partition("[")
    if not bracket or "," in name:
        return nodes.split(",")[0]
    first = rest.split("]")[0].split(",")[0].split("-")[0]
    return name + first
