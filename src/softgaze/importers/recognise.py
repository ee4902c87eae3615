"""Detect foreign formats by the names and first bytes of their files."""

import zipfile
from pathlib import Path
from typing import NoReturn

from softgaze.errors import DataError

CTRANSLATE2_WEIGHTS, ARGOS_FOLDER = "model.bin", "model"
MARIAN_START = (1).to_bytes(8, "little")  # the version of a Marian .bin
ZIP_START = b"PK"


def is_ctranslate2(path: Path) -> bool:
    """Whether a path is a CTranslate2 directory, an unpacked Argos package or a packed one."""
    if path.is_dir():
        folder = ctranslate2_folder(path)
        return (folder / CTRANSLATE2_WEIGHTS).is_file() and any(folder.glob("*vocabulary*"))
    return path.suffix == ".argosmodel" or (path.suffix == ".zip" and zipfile.is_zipfile(path))


def ctranslate2_folder(path: Path) -> Path:
    """Return the folder of the weights: that of an Argos package, or the directory itself."""
    return path / ARGOS_FOLDER if (path / ARGOS_FOLDER / CTRANSLATE2_WEIGHTS).is_file() else path


def is_marian(path: Path) -> bool:
    """Whether a file, or a file of a directory, holds Marian weights, as they are or compressed."""
    return bool(marian_files(path) or compressed_files(path))


def marian_files(path: Path) -> list[Path]:
    """Return the Marian weights in a directory, without the lexical shortlists next to them, or the named file."""
    if path.is_file():
        return [path] if path.suffix in (".npz", ".bin") else []
    files = [file for suffix in ("*.npz", "*.bin") for file in sorted(path.glob(suffix))]
    return [file for file in files if not file.name.startswith("lex") and starts_as_marian(file)]


def compressed_files(path: Path) -> list[Path]:
    """Return the compressed weights in a directory, as Firefox models are published, or the named file."""
    files = [path] if path.is_file() else sorted(path.glob("*.bin.gz"))
    return [file for file in files if file.name.endswith(".bin.gz") and not file.name.startswith("lex")]


def starts_as_marian(path: Path) -> bool:
    start = MARIAN_START if path.suffix == ".bin" else ZIP_START
    with path.open("rb") as file:
        return file.read(len(start)) == start


def is_pickle(path: Path) -> bool:
    """Whether a path is a checkpoint of fairseq or OpenNMT-py, or contains one."""
    return path.suffix == ".pt" if path.is_file() else any(path.glob("*.pt"))


def read_model(path: Path) -> NoReturn:
    """Reject a checkpoint of fairseq or OpenNMT-py: its settings are Python objects, which are never loaded."""
    raise DataError(
        f"{path}: is a pickled checkpoint, which could execute code, so it is not loaded; convert it with "
        "ct2-opennmt-py-converter or ct2-fairseq-converter of CTranslate2 and import the result, with "
        "sentencepiece.model in the same directory"
    )
