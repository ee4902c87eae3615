"""Translate files with Ray: tasks read shards, and a pool of actors with the loaded model translates and writes them.

Errors travel between the processes as shards do, so that the user sees one line instead of Ray's traceback.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.bundle import Bundle
from softgaze.errors import ResourceError, SoftgazeError, UsageError
from softgaze.runtime import cores, need, tune_cpu
from softgaze.scale.output_shards import (
    TEXT,
    Formatter,
    OutputTarget,
    Shard,
    ShardStore,
    encode_shard,
    read_shards,
)
from softgaze.scale.storage import StoragePath, list_inputs

if TYPE_CHECKING:
    from softgaze.search import SearchOptions

READER_CPUS = 0.25  # a reader waits for storage most of the time
BYTES_PER_WORKER = 100_000  # of input that justify another worker: about one shard
OBJECT_STORE_BYTES = 256 << 20  # of a local Ray: text is small
START_ATTEMPTS = 3  # of a local Ray

RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # a local Ray listens on loopback only
    "RAY_agent_register_timeout_ms": "300000",  # on a busy machine, processes start slowly
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the future default; without it, Ray warns
}


class RayJob(NamedTuple):
    """The description of a job that a remote process receives."""

    model: Path
    device: str
    language: str  # of the source
    files: Sequence[str]
    window: int  # lines per shard
    store: ShardStore
    formatter: Formatter | None  # None: Parquet
    options: "SearchOptions"
    languages: tuple[str | None, str | None] = (None, None)  # of a multilingual model


def translate(
    model: Path,
    sources: Sequence[str],
    output: str,
    options: "SearchOptions",
    *,
    window: int,
    formatter: Formatter,
    address: str | None = None,
    device: str = "auto",
    languages: tuple[str | None, str | None] = (None, None),
    progress: Callable[[int], None] | None = None,
) -> int:
    """Translate files to a file or a directory of shards, and return the number of lines.

    An interrupted run resumes with the missing shards. `formatter` makes a line of text output; Parquet needs none.
    Without the `address` of a running Ray, a local Ray is started and stopped.
    """
    for package in ("ray", "pyarrow"):
        need(package, "softgaze[scale]")
    if device.startswith("cuda:"):
        raise UsageError(f"--device {device}: Ray assigns the GPUs; use --device cuda")
    files = list_inputs(sources)
    bundle = Bundle.open(model)
    if any(languages):
        bundle = bundle.with_languages(*languages)
    target = OutputTarget.of(output, files)
    settings = {**options.to_dict(), "show": getattr(formatter, "__name__", ""), "languages": list(languages)}
    store = target.shard_store({"model": bundle.files, "options": settings, "window": window})
    job = RayJob(
        model.absolute(),
        device,
        bundle.description.source_language,
        [str(path) for path in files],
        window,
        store,
        formatter if target.suffix == TEXT else None,
        options,
        languages,
    )
    shards = []
    with ray_cluster(address) as resources:
        pool = worker_pool(device, resources, sum(path.size() for path in files))
        for shard in run_pipeline(job, pool):
            shard.raise_error()
            if progress is not None:
                progress(shard.size)
            shards.append(shard)
    target.finish(store, [shard.name for shard in check_complete(shards, job)])
    return sum(shard.size for shard in shards)


def check_complete(shards: Iterable[Shard], job: RayJob) -> list[Shard]:
    """Return the shards in order; raise unless every line of every file occurs once."""
    ordered: list[Shard] = []
    for file, name in enumerate(job.files):
        *parts, end = sorted(shard for shard in shards if shard.file == file) or [Shard(file, 0, 0, 1, [])]
        first_lines = accumulate((shard.size for shard in parts), initial=1)
        if end.size or [shard.first_line for shard in (*parts, end)] != [*first_lines]:
            raise ResourceError(f"{name}: Ray lost some lines; run the command again")
        ordered += parts
    return ordered


# --- in the cluster ---------------------------------------------------------------------------------------------


def read_files(batch: Any, job: RayJob) -> Iterator[Any]:
    """Yield the shards of each file, then an empty one as its end or an error, one table each; a Ray task."""
    for file in batch.column("file").to_pylist():
        count, line = 0, 1
        try:
            for shard in read_shards(file, StoragePath(job.files[file]), job.language, job.window):
                yield to_arrow(shard._replace(lines=[]) if job.store.is_done(shard) else shard)
                count, line = count + 1, line + shard.size
            yield to_arrow(Shard(file, count, line, 0, []))
        except SoftgazeError as error:
            yield to_arrow(Shard.of_error(error))


class TranslateWorker:
    """A Ray actor that loads the model once."""

    def __init__(self, job: RayJob) -> None:
        from softgaze.translator import load

        self.job = job
        self.load_error: Shard | None = None
        os.environ["OMP_NUM_THREADS"] = "1"  # each worker has one CPU
        tune_cpu()
        try:
            source, target = job.languages
            self.translator = load(job.model, job.device, source_lang=source, target_lang=target)
        except SoftgazeError as error:
            message = f"{error} (every machine of the Ray cluster needs the model)"
            self.load_error = Shard.of_error(error)._replace(error=message)

    def __call__(self, batch: Any) -> Any:
        """Translate and write the shards of a table."""
        return to_arrow(*map(self.translate, from_arrow(batch)))

    def translate(self, shard: Shard) -> Shard:
        """Translate and write a shard; return it as done, or the error."""
        if shard.error or not shard.lines:
            return shard
        if self.load_error is not None:
            return self.load_error
        job = self.job
        try:
            translations = list(self.translator.translate_lines(shard.lines, job.options, window=job.window))
            path = StoragePath(job.files[shard.file])
            job.store.write(shard, encode_shard(path, shard, translations, job.formatter))
        except SoftgazeError as error:
            return Shard.of_error(error)
        return shard._replace(lines=[])


def to_arrow(*shards: Shard) -> Any:
    import pyarrow

    integers = {name: pyarrow.int64() for name in ("file", "number", "first_line", "size", "exit_code")}
    schema = {**integers, "lines": pyarrow.list_(pyarrow.string()), "error": pyarrow.string()}
    return pyarrow.Table.from_pylist([shard._asdict() for shard in shards], pyarrow.schema([*schema.items()]))


def from_arrow(table: Any) -> list[Shard]:
    return [Shard(**row) for row in table.select(Shard._fields).to_pylist()]


def run_pipeline(job: RayJob, pool: "WorkerPool") -> Iterator[Shard]:
    """Yield all shards in the order they are done."""
    from ray.data import ActorPoolStrategy, DataContext, from_items
    from ray.exceptions import RayError

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1  # byte: every shard is a block, which goes to any idle worker
    batches = {"batch_size": 1, "batch_format": "pyarrow"}
    files = from_items([{"file": index} for index in range(len(job.files))])
    shards = files.map_batches(read_files, fn_args=(job,), num_cpus=READER_CPUS, **batches)
    done = shards.map_batches(
        TranslateWorker,
        fn_constructor_args=(job,),
        compute=ActorPoolStrategy(size=pool.size),
        num_cpus=pool.cpus,
        num_gpus=pool.gpus,
        **batches,
    )
    try:
        for batch in done.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from from_arrow(batch)
    except RayError as error:
        raise ResourceError(
            f"Ray failed: {first_line(error)}; run the command again to resume with the missing shards"
        ) from error


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# --- the cluster ------------------------------------------------------------------------------------------------


class WorkerPool(NamedTuple):
    """The number of workers, and the CPUs and GPUs of each."""

    size: int
    cpus: float
    gpus: int


def worker_pool(device: str, resources: Mapping[str, float], input_bytes: int) -> WorkerPool:
    """Return one worker per GPU, or per CPU except one for the readers; fewer for small input."""
    cpus, gpus = int(resources.get("CPU", 1)), int(resources.get("GPU", 0))
    useful = 1 + input_bytes // BYTES_PER_WORKER
    if device == "cuda" and not gpus:
        raise UsageError("--device cuda: the Ray cluster has no GPU; omit --device")
    if gpus and device in ("auto", "cuda"):
        return WorkerPool(min(gpus, useful), min(1.0, cpus / (2 * gpus)), 1)
    return WorkerPool(min(max(1, cpus - 1), useful), 1.0 if cpus > 1 else 0.5, 0)


@contextmanager
def ray_cluster(address: str | None) -> Iterator[Mapping[str, float]]:
    """Yield the resources of the Ray at `address`, of the one this process is part of, or of a local one."""
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        yield ray.cluster_resources()
        return
    if address is None:
        # One CPU more than there are, since readers need little of one.
        local = {"num_cpus": cores() + 1, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        init_ray("local", attempts=START_ATTEMPTS, **local)
    else:
        init_ray(address)
    try:
        yield ray.cluster_resources()
    finally:
        ray.shutdown()


def init_ray(address: str, *, attempts: int = 1, **options: Any) -> None:
    """Initialize Ray without its log output; on a busy machine, a start may exceed Ray's timeouts."""
    import ray

    for attempt in range(1, attempts + 1):
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
            return
        except Exception as error:  # Ray raises plain exceptions too
            ray.shutdown()
            if attempt == attempts:
                problem = "start Ray" if address == "local" else f"connect to Ray at {address}; is it running?"
                raise ResourceError(f"cannot {problem} ({first_line(error)})") from error
