"""Translating over Ray: tasks read shards, a pool of actors that keep the model loaded translates and keeps them.

What travels is text with the number of its shard and line, and what comes back is that a shard is done. A mistake in
the text or with the model travels as a row too, so that a person reads one line and not Ray's account of it.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.bundle import Bundle
from softgaze.devices import cores, need
from softgaze.errors import ResourceError, SoftgazeError, UsageError
from softgaze.scale.inputs import files_of, size_of
from softgaze.scale.places import Place
from softgaze.scale.shards import Output, Shard, Shards, Show, shards_of, written

if TYPE_CHECKING:
    from softgaze.translator import Options

READER = 0.25  # of a CPU: it waits for storage most of the time
WORTHWHILE = 100_000  # bytes of text for each worker that is started: a shard or so
STORE = 256 << 20  # bytes that travel at once on a machine of our own: text is small

ATTEMPTS = 3  # to start a Ray

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # a Ray of our own listens on loopback alone
    "RAY_agent_register_timeout_ms": "300000",  # a busy machine is no broken one
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray will do one day, and else warns of
}


class Job(NamedTuple):
    """Everything a process somewhere else must know."""

    model: Path
    device: str
    language: str  # of the source
    files: Sequence[str]
    window: int  # lines of a shard
    shards: Shards
    show: Show | None  # None: rows of a table
    options: "Options"


class Row(NamedTuple):
    """What travels: a shard on its way, one that is done, or what went wrong."""

    file: int
    number: int
    first: int
    size: int  # in lines
    lines: list[str]  # none when it is done
    mistake: str
    exit_code: int

    @property
    def shard(self) -> Shard:
        """On its way to a worker."""
        return Shard(self.file, self.number, self.first, self.lines)

    @classmethod
    def of(cls, shard: Shard, *, done: bool) -> "Row":
        """Of a shard; its text is left out when nobody needs it any more."""
        file, number, first, lines = shard
        return cls(file, number, first, len(lines), [] if done else lines, "", 0)

    @classmethod
    def wrong(cls, error: SoftgazeError) -> "Row":
        """Of a mistake, in the words a person will read."""
        return cls(0, 0, 0, 0, [], str(error), error.exit_code)


def translate(
    model: Path,
    sources: Sequence[str],
    output: str,
    options: "Options",
    *,
    window: int,
    show: Show,
    address: str | None = None,
    device: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> int:
    """Translate files to a file, or to a directory of shards; returns how many lines.

    Run again after whatever happened, it goes on with the shards that are missing. `show` makes a line of a
    translation; a table needs none. `address` is that of a running Ray; without one, a Ray is started and stopped here.
    """
    for package in ("ray", "pyarrow"):
        need(package, "softgaze[scale]")
    if device.startswith("cuda:"):
        raise UsageError(f"--device {device} is one of this machine; Ray gives each worker its own: say --device cuda")
    files = files_of(sources)
    bundle = Bundle.open(model)
    wanted = Output.of(output, files)
    drawn = options.get("sampling")
    asked = {**options, "sampling": drawn and vars(drawn), "show": getattr(show, "__name__", "")}
    shards = wanted.shards({"model": bundle.files, "options": asked, "window": window})
    language = bundle.description.source_language
    names = [str(each) for each in files]
    as_table = wanted.ending != ".txt"
    job = Job(model.absolute(), device, language, names, window, shards, None if as_table else show, options)
    with joined(address) as resources:
        done = list(told(results(job, pool(device, resources, size_of(files))), progress))
    wanted.finish(shards, [row.shard.name for row in checked(done, job)])
    return sum(row.size for row in done)


def told(rows: Iterator[Row], progress: Callable[[int], None] | None) -> Iterator[Row]:
    """The rows as they come in; the first mistake ends it, and what was done stays done."""
    for row in rows:
        if row.mistake:
            raise again(row)
        if progress is not None:
            progress(row.size)
        yield row


def again(row: Row) -> SoftgazeError:
    """The mistake somebody else made."""
    kinds = {kind.exit_code: kind for kind in SoftgazeError.__subclasses__()}
    return kinds.get(row.exit_code, SoftgazeError)(row.mistake)


def checked(rows: Iterable[Row], job: Job) -> list[Row]:
    """All shards in the order of the text: of every file, every line up to its end must be there once."""
    found: list[Row] = []
    for file, name in enumerate(job.files):
        *own, end = sorted(row for row in rows if row.file == file) or [Row(file, 0, 0, 1, [], "", 0)]
        lines = accumulate((row.size for row in own), initial=1)
        if end.size or [row.first for row in (*own, end)] != [*lines]:
            raise ResourceError(f"{name}: Ray lost some of its lines on the way; run the same again")
        found += own
    return found


# --- in the cluster ---------------------------------------------------------------------------------------------


def read(batch: Any, job: Job) -> Iterator[Any]:
    """The task that reads: every shard of a file by itself."""
    for file in batch.column("file").to_pylist():
        for row in rows_of(file, job):
            yield packed(row)


def rows_of(file: int, job: Job) -> Iterator[Row]:
    """Shards of a file, those that are done without their text, and then its end; or a mistake, which is the last."""
    number, line = 0, 1
    try:
        for shard in shards_of(file, Place(job.files[file]), job.language, job.window):
            yield Row.of(shard, done=job.shards.is_done(shard))
            number, line = number + 1, line + len(shard.lines)
        yield Row.of(Shard(file, number, line, []), done=True)
    except SoftgazeError as error:
        yield Row.wrong(error)


class Worker:
    """An actor with the model, which is loaded once."""

    def __init__(self, job: Job) -> None:
        from softgaze.translator import load

        self.job = job
        self.mistake: Row | None = None
        os.environ["OMP_NUM_THREADS"] = "1"  # each has a CPU, and there are many
        try:
            self.translator = load(job.model, job.device)
        except SoftgazeError as error:
            wrong = Row.wrong(error)
            self.mistake = wrong._replace(mistake=f"{wrong.mistake} (on a machine of Ray's, which must have it too)")

    def __call__(self, batch: Any) -> Any:
        """Translate what is not done yet, and keep it."""
        return packed(*(self.done(row) for row in unpacked(batch)))

    def done(self, row: Row) -> Row:
        """A shard, kept; or what went wrong."""
        if row.mistake or not row.lines:
            return row
        if self.mistake is not None:
            return self.mistake
        try:
            self.keep(row.shard)
        except SoftgazeError as error:
            return Row.wrong(error)
        return Row.of(row.shard, done=True)

    def keep(self, shard: Shard) -> None:
        """Translate and write."""
        job = self.job
        found = list(self.translator.translate_lines(shard.lines, window=job.window, **job.options))
        job.shards.keep(shard, written(Place(job.files[shard.file]), shard, found, job.show))


def packed(*rows: Row) -> Any:
    """As Arrow carries them."""
    import pyarrow

    kinds = {"file": "int64", "number": "int64", "first": "int64", "size": "int64"}
    text = {"lines": pyarrow.list_(pyarrow.string()), "mistake": pyarrow.string(), "exit_code": pyarrow.int64()}
    return pyarrow.Table.from_pylist([row._asdict() for row in rows], pyarrow.schema([*kinds.items(), *text.items()]))


def unpacked(table: Any) -> list[Row]:
    """As they were."""
    return [Row(**row) for row in table.select(Row._fields).to_pylist()]


def results(job: Job, workers: "Pool") -> Iterator[Row]:
    """What becomes of every shard, in whatever order they are done."""
    from ray.data import ActorPoolStrategy, DataContext, from_items
    from ray.exceptions import RayError

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1  # byte: every shard travels by itself, to whoever is free
    arrow = {"batch_size": 1, "batch_format": "pyarrow"}
    shards = from_items([{"file": number} for number in range(len(job.files))]).map_batches(
        read, fn_args=(job,), num_cpus=READER, **arrow
    )
    done = shards.map_batches(
        Worker,
        fn_constructor_args=(job,),
        compute=ActorPoolStrategy(size=workers.size),
        num_cpus=workers.cpus,
        num_gpus=workers.gpus,
        **arrow,
    )
    try:
        for batch in done.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from unpacked(batch)
    except RayError as error:
        raise ResourceError(f"Ray gave up: {first_line(error)}; what is done is kept: run the same again") from error


def first_line(error: Exception) -> str:
    """What an error begins with."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# --- the cluster ------------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """How many workers, and what each of them takes."""

    size: int
    cpus: float
    gpus: int


def pool(device: str, resources: Mapping[str, float], size: int) -> Pool:
    """As many workers as there are graphics cards, or CPUs but one, which is left to those who read.

    No more than `size` bytes of text are worth.
    """
    cpus, cards = int(resources.get("CPU", 1)), int(resources.get("GPU", 0))
    most = 1 + size // WORTHWHILE
    if device == "cuda" and not cards:
        raise UsageError("--device cuda: this Ray has no graphics card; leave --device away")
    if cards and device in ("auto", "cuda"):
        return Pool(min(cards, most), min(1.0, cpus / (2 * cards)), 1)
    return Pool(min(max(1, cpus - 1), most), 1.0 if cpus > 1 else 0.5, 0)


@contextmanager
def joined(address: str | None) -> Iterator[Mapping[str, float]]:
    """What the Ray at `address` has to offer, or one that is started for this; a Ray this process is in is used."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        yield ray.cluster_resources()
        return
    if address is None:
        start()
    else:
        enter(address=address)
    try:
        yield ray.cluster_resources()
    finally:
        ray.shutdown()


def start() -> None:
    """A Ray on this machine; its parts give each other seconds to begin, which on a busy machine is sometimes too few.

    It has one CPU more than there are, since those who read take little of one.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            enter(address="local", num_cpus=cores() + 1, include_dashboard=False, object_store_memory=STORE)
            return
        except ResourceError:
            if attempt == ATTEMPTS:
                raise


def enter(**options: Any) -> None:
    """Ray, without what it likes to print."""
    import ray

    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # of any kind: Ray raises plain ones too
        ray.shutdown()
        where = options["address"]
        why = "cannot be started here" if where == "local" else f"cannot be reached at {where}; is it running?"
        raise ResourceError(f"Ray {why} ({first_line(error)})") from error
