"""Conversions of a trained model for a faster engine: made once, proved, and kept next to the model.

A conversion is a directory `.engines/NAME-KEY` in the model directory: the engine's files and a manifest with their
SHA-256. The key covers the model's files and the versions of the converter and the engine. It is written under a
temporary name and renamed, so that concurrent and killed conversions leave nothing half done. If the model directory
cannot be written, the user's cache directory is used, else nothing is kept.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Timer
from typing import TYPE_CHECKING, Any

from softgaze.atomic_io import TEMPORARY, remove, sync_directory, sync_file
from softgaze.bundle import ATTENTION, MANIFEST, Bundle, check_listed_files, read_manifest, seal
from softgaze.engines.base import Engine, EngineFiles
from softgaze.errors import DataError, ResourceError, SoftgazeError
from softgaze.runtime import need_torch, user_cache_directory

if TYPE_CHECKING:
    from softgaze.engines.torch_engine import TorchEngine

CONVERTER = 1  # raise it when a converter changes: all conversions are then made again
DIRECTORY = ".engines"
KEY, REJECTED, PROOF, TORCH = "key", "rejected", "proof", "torch"  # in a conversion's manifest
QUIET_SECONDS = 1.0  # a conversion that takes longer is announced
LEFTOVER_SECONDS = 3600  # a temporary directory of this age belongs to a conversion that was killed

log = logging.getLogger("softgaze.engines")


class RejectedError(SoftgazeError):
    """The engine cannot run this model, or computes something else."""


def conversion_key(bundle: Bundle, package: str) -> str:
    """Return the SHA-256 of everything that a conversion depends on."""
    files = {name: entry["sha256"] for name, entry in bundle.files.items()}
    made_with = {"converter": CONVERTER, package: version(package), ATTENTION: bundle.facts.get(ATTENTION)}
    return hashlib.sha256(json.dumps([files, made_with], sort_keys=True).encode()).hexdigest()


def cache_directories(bundle: Bundle) -> list[Path]:
    """Return the directories that may hold conversions: in the model directory, and in the user's cache."""
    found = [bundle.path / DIRECTORY]
    with suppress(RuntimeError):  # a user without a home directory
        found.append(user_cache_directory() / "engines")
    return found


def find_conversion(bundle: Bundle, engine: str, package: str) -> EngineFiles | None:
    """Return the verified conversion of exactly this model; None if there is none, or if it is damaged."""
    key = conversion_key(bundle, package)
    for cache in cache_directories(bundle):
        directory = cache / f"{engine}-{key[:12]}"
        try:
            manifest = verified_manifest(directory) if directory.exists() else None
        except DataError as error:
            log.warning("%s; the model is converted again", error)
            continue
        if manifest is not None and manifest["facts"].get(KEY) == key:
            return EngineFiles(directory, {**manifest["engine"], PROOF: manifest["facts"].get(PROOF)})
    return None


def verified_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a conversion whose files are all unchanged."""
    manifest = read_manifest(directory)
    check_listed_files(directory, manifest["files"])
    return manifest


def convert(bundle: Bundle, engine: type[Engine], package: str) -> Engine:
    """Convert a model, prove that it is the same, keep it, and return it opened; raise `RejectedError` if it differs.

    A rejection is kept, too.
    """
    need_torch()
    from softgaze.engines.torch_engine import TorchEngine

    key, pair, languages = conversion_key(bundle, package), bundle, bundle.tokenizers.languages
    if languages is not None:  # any pair: a conversion serves all of them
        pair = bundle.with_languages(next(iter(languages.source), None), next(reversed([*languages.target]), None))
    notice = Timer(
        QUIET_SECONDS, log.info, ("%s: is converted to %s once; later loads are fast", bundle.path, engine.name)
    )
    notice.daemon = True
    notice.start()
    try:
        return convert_with(TorchEngine.open(pair, "cpu"), pair, engine, key).with_tokenizers(bundle.tokenizers)
    finally:
        notice.cancel()


def convert_with(reference: "TorchEngine", bundle: Bundle, engine: type[Engine], key: str) -> Engine:
    """Convert into the first directory that can be written; into a temporary one if there is none."""
    for cache in [*cache_directories(bundle), None]:
        try:
            with new_conversion(cache, f"{engine.name}-{key[:12]}") as directory:
                return convert_into(directory, bundle, reference, engine, key)
        except (OSError, ResourceError) as error:
            if cache is None:
                raise
            log.warning("%s: the conversion to %s cannot be kept there: %s", cache, engine.name, error)
    raise AssertionError("the last one is a temporary directory")


def convert_into(directory: Path, bundle: Bundle, reference: "TorchEngine", engine: type[Engine], key: str) -> Engine:
    """Write the engine's files and their manifest; the manifest of a rejected model has a reason and no files."""
    from softgaze.engines.parity import prove

    facts: dict[str, Any] = {KEY: key}
    try:
        described = write_conversion(directory, bundle, reference, engine.name)
        opened = engine.open(bundle, "cpu", EngineFiles(directory, described))
        proof = prove(bundle, reference, opened)
        if not proof.is_same:
            raise RejectedError(f"the conversion differs from torch: {proof}")
    except (ResourceError, DataError):
        raise
    except SoftgazeError as error:
        for file in directory.iterdir():
            remove(file)
        seal(directory, (), facts, engine={"name": engine.name, REJECTED: str(error)})
        raise RejectedError(str(error)) from error
    names = sorted(file.name for file in directory.iterdir())
    seal(directory, names, {**facts, PROOF: proof.to_dict()}, engine=described)
    return opened


def write_conversion(directory: Path, bundle: Bundle, reference: "TorchEngine", to: str) -> dict[str, Any]:
    """Write the engine's files in float32; the facts describe the torch model, too, so that it need not be loaded."""
    from softgaze.engines.export import TARGETS, write_files
    from softgaze.explain.recording import SelectedMap

    stored = bundle.facts.get(ATTENTION)
    selected = SelectedMap.from_dict(stored) if stored else None
    attention = selected if selected is not None and TARGETS[to].records(selected.view) else None
    facts = write_files(bundle, reference.model, directory, to, attention=attention)
    shape = list(reference.cross_attention_shape)
    return {**facts, TORCH: {"cross_attention_shape": shape, "max_positions": reference.num_positions}}


@contextmanager
def new_conversion(cache: Path | None, name: str) -> Iterator[Path]:
    """Yield a temporary directory that takes its name when it has a manifest; without a cache it is removed.

    Another process may do the same at the same time: one of them keeps its result. Conversions of earlier weights and
    leftovers of killed processes are removed.
    """
    if cache is None:
        with TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            yield Path(directory)
        return
    cache.mkdir(parents=True, exist_ok=True)
    temporary = Path(mkdtemp(prefix=TEMPORARY, dir=cache))
    try:
        yield temporary
    finally:
        if (temporary / MANIFEST).is_file():
            keep(temporary, cache / name)
        with suppress(OSError):
            remove(temporary)


def keep(temporary: Path, path: Path) -> None:
    """Rename a finished conversion, unless another process was faster, and remove the ones it replaces."""
    for file in temporary.iterdir():
        sync_file(file)
    with suppress(OSError):  # a valid one is never removed: another process may be loading it
        if path.exists() and not is_valid(path):
            remove(path)
        os.rename(temporary, path)
        sync_directory(path.parent)
    if path.parent.name == DIRECTORY:  # of this model alone
        remove_stale(path)


def is_valid(directory: Path) -> bool:
    try:
        verified_manifest(directory)
    except DataError:
        return False
    return True


def remove_stale(path: Path) -> None:
    """Remove conversions to the same engine of earlier weights, and the remains of killed conversions."""
    engine = path.name.rpartition("-")[0]
    for other in path.parent.iterdir():
        is_stale = other.name.startswith(f"{engine}-") and other != path
        with suppress(OSError):
            is_leftover = other.name.startswith(TEMPORARY) and time.time() - other.stat().st_mtime > LEFTOVER_SECONDS
            if is_stale or is_leftover:
                remove(other)
