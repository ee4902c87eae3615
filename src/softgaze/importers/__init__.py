"""Import models of other toolkits: one file per foreign format, each of which returns an `ImportedModel`.

The result is an ordinary bundle. Nothing in a foreign file is executed, and nothing is left behind if an import fails.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.errors import DataError, UsageError, absent, pick
from softgaze.importers.recognise import is_ctranslate2, is_marian, is_pickle

if TYPE_CHECKING:
    from softgaze.importers.base import ImportedModel

__all__ = ["FORMATS", "ImportCallback", "ImportReport", "import_model"]


class Format(NamedTuple):
    """A foreign format: how its files are recognised, and the module whose `read_model` opens them."""

    name: str
    module: str
    recognise: Callable[[Path], bool]


FORMATS = (  # in this order: some directories of CTranslate2 have a config.json, too
    Format("CTranslate2 or Argos", "softgaze.importers.ctranslate2", is_ctranslate2),
    Format("Hugging Face", "softgaze.importers.huggingface", lambda path: (path / "config.json").is_file()),
    Format("Marian", "softgaze.importers.marian", is_marian),
    Format("fairseq or OpenNMT-py", "softgaze.importers.recognise", is_pickle),
)
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class ImportReport:
    """The facts of a finished import."""

    path: Path
    family: str
    parameters: int
    languages: tuple[int, int]  # source and target languages of a multilingual model, else (0, 0)
    pair: tuple[str, str]  # the languages that are translated unless others are named; empty if unknown
    compared_with: str
    largest_difference: float
    sample: str  # the translation of a sentence, to be read by a person
    seconds: float


class ImportCallback:
    """Receives the progress of an import; this one ignores it."""

    def on_start(self, tensors: int, size: int) -> None:
        """Receive the number of tensors to write, and their bytes."""

    def on_write(self, size: int) -> None:
        """Receive how many more bytes were written."""

    def on_verify(self, compared: str) -> None:
        """Receive the kind of comparison with the original before it starts: "logits" or "tensors"."""


def import_model(
    path: str | Path,
    output: str | Path,
    *,
    dtype: str = "float32",
    source_lang: str | None = None,
    target_lang: str | None = None,
    verify: bool = True,
    callback: ImportCallback = ImportCallback(),
) -> ImportReport:
    """Import a foreign model as a bundle in the new directory `output`.

    The languages of a model with one pair are taken from its files, or given. With `verify` the logits are compared
    with those of the original implementation if it is installed, else every tensor is read again and compared.
    """
    started, source, target = time.perf_counter(), Path(path), Path(output)
    pick("dtype", dtype, dict.fromkeys(DTYPES))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target}: exists and is not empty; name another directory")
    model = read_foreign(source)
    from softgaze.importers.write import write_bundle

    facts = write_bundle(model, source, target, dtype, (source_lang, target_lang), verify, callback)
    return ImportReport(path=target, family=model.family, seconds=time.perf_counter() - started, **facts)


def read_foreign(path: Path) -> "ImportedModel":
    """Recognise the format of a file or directory and open it."""
    if not path.exists():
        raise absent(path)
    for known in FORMATS:
        if known.recognise(path):
            read: Callable[[Path], Any] = import_module(known.module).read_model
            model: ImportedModel = read(path)
            return model
    names = ", ".join(known.name for known in FORMATS[:-1])  # the last is recognised only to say how to convert it
    raise DataError(f"{path}: contains no model that can be imported; known formats: {names}")
