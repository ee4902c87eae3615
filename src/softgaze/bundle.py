"""A model directory: settings, weights, tokenizer and a manifest with the fingerprint of each file.

Raw text in, raw text out. Nothing in it is executed: weights are safetensors, the rest is YAML, JSON and SentencePiece.
Imports torch only when weights are asked for.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from softgaze import __version__
from softgaze.data.detector import Detector
from softgaze.data.readers import FileReader, Reader, load_reader
from softgaze.data.tokens import Tokenizer
from softgaze.errors import DataError, SoftgazeError
from softgaze.files import TEMPORARY, rename, sha256_of, write_bytes, write_text
from softgaze.manifest import MANIFEST, OWN, check_manifest, check_names, own_fingerprint, parse, read_small, shapes

if TYPE_CHECKING:
    from softgaze.models import Seq2Seq

FORMAT = 1
CONFIG, WEIGHTS, DETECTOR = "config.yaml", "model.safetensors", "detector.json"
NEXT = f"{TEMPORARY}next-{MANIFEST}"  # while a bundle is replaced
MODEST = 4096  # of an option that is no part of a size, such as the places of learnt positions
ATTENTION = "attention"  # the fact that says which map of the model to show
JOINT, SOURCE, TARGET = "tokenizer.model", Tokenizer.file, "tokenizer.target.model"
READER = FileReader.file  # in place of SOURCE, where sources are no text


@dataclass(frozen=True)
class Tokenizers:
    """How each side is read; one and the same object when the vocabulary is joint."""

    source: Reader
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Both sides share one vocabulary."""
        return self.source is self.target

    def files(self) -> dict[str, bytes]:
        """As they are kept in a bundle."""
        if self.joint:
            return {JOINT: self.source.model}
        return {self.source.file: self.source.model, TARGET: self.target.model}

    @classmethod
    def load(cls, directory: Path) -> "Tokenizers":
        """From a bundle."""
        if (directory / JOINT).exists():
            both = Tokenizer.load(directory / JOINT)
            return cls(both, both)
        read = load_reader(directory / READER) if (directory / READER).exists() else Tokenizer.load(directory / SOURCE)
        return cls(read, Tokenizer.load(directory / TARGET))


@dataclass(frozen=True)
class Description:
    """What `config.yaml` says: enough to build the model again."""

    arch: str
    size: str
    options: dict[str, Any]
    source_language: str
    target_language: str
    max_length: int  # subwords of a source the model was trained for; longer text is split

    def __post_init__(self) -> None:
        names = (self.arch, self.size, self.source_language, self.target_language)
        if not all(isinstance(name, str) for name in names) or type(self.max_length) is not int or self.max_length < 2:
            raise TypeError("arch, size and languages are words, and max_length is a count from 2")
        for name, value in self.options.items():  # not shown: YAML can spell a value longer than any memory
            if not isinstance(value, str | int | float | None):
                raise TypeError(f"the option {name!r} is neither a word nor a number")

    def build(self, tokenizers: Tokenizers) -> "Seq2Seq":
        """The model, with fresh weights."""
        from softgaze.models import build

        vocabularies = {
            "source_vocabulary": len(tokenizers.source),
            "target_vocabulary": len(tokenizers.target),
        }
        return build(self.arch, self.size, **vocabularies, **self.options)


@dataclass(frozen=True)
class Bundle:
    """A model directory that was checked when it was opened."""

    path: Path
    description: Description
    facts: dict[str, Any]  # how it was trained, and its scores
    files: dict[str, dict[str, Any]]  # name -> sha256, bytes
    engine: dict[str, Any] = field(default_factory=lambda: {"name": "torch"})  # what it was exported to, and how

    @classmethod
    def open(cls, path: Path) -> "Bundle":
        """Read and check everything but the weights' meaning; refuse by name what does not fit."""
        manifest = fitting_manifest(path)
        try:
            description = Description(**yaml.safe_load(read_small(path / CONFIG)))
        except (AttributeError, OSError, RecursionError, TypeError, ValueError, yaml.YAMLError) as error:
            raise DataError(f"{path / CONFIG}: does not describe a model: {' '.join(str(error).split())}") from error
        engine = {"engine": manifest["engine"]} if "engine" in manifest else {}
        return cls(path, description, manifest["facts"], manifest["files"], **engine)

    @property
    def has_weights(self) -> bool:
        """Whether torch can run it: an exported model need not have its weights beside it."""
        return WEIGHTS in self.files or self.engine["name"] == "torch"

    @cached_property
    def tokenizers(self) -> Tokenizers:
        """The bundle's own."""
        return Tokenizers.load(self.path)

    @property
    def held_out(self) -> list[tuple[str, str]] | None:
        """Pairs that training kept apart, where the bundle is still part of its run."""
        path = self.path / "encoded" / "dev.json"
        if not path.is_file():
            return None
        return [(source, target) for source, target in json.loads(path.read_text(encoding="utf-8"))]

    @cached_property
    def detector(self) -> Detector | None:
        """Tells the bundle's languages apart; older bundles have none."""
        path = self.path / DETECTOR
        try:
            return Detector.from_json(path.read_text(encoding="utf-8")) if path.exists() else None
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise DataError(f"{path}: is no detector of languages: {error}") from error

    def model(self, device: str = "cpu") -> "Seq2Seq":
        """The trained model, ready to translate."""
        self.check_weights()
        model = self.description.build(self.tokenizers)
        load_weights(model, self.path / WEIGHTS)
        return model.to(device).eval()

    def check_weights(self) -> None:
        """What is described must be what the weights hold, before memory is taken for it."""
        path, found = self.path / WEIGHTS, shapes(self.path / WEIGHTS)
        for name, value in self.description.options.items():
            if "layers" in name and isinstance(value, int) and value > len(found):
                raise DataError(
                    f"{self.path / CONFIG}: asks for more {name} than {WEIGHTS} has tensors ({len(found):,})"
                )
        if self.modest():
            return  # `load_weights` compares the shapes; planning first would cost two seconds
        wanted = self.planned()
        if sorted(wanted) != sorted(found):
            raise DataError(f"{path}: holds the weights of another model than {CONFIG} describes")
        for name, shape in wanted.items():
            if found[name] != shape:
                raise DataError(f"{path}: {name} has another shape than {CONFIG} describes")

    def modest(self) -> bool:
        """Nothing asked for is larger than in our own largest size, which any machine can build."""
        from softgaze.models import MODELS

        model = MODELS.get(self.description.arch)
        largest = model.sizes["big"] if model else {}
        numbers = {name: value for name, value in self.description.options.items() if isinstance(value, int)}
        return all(value <= largest.get(name, MODEST) for name, value in numbers.items())

    def planned(self) -> dict[str, list[int]]:
        """The shape of every parameter, from a model that is built without memory for them."""
        import torch

        try:
            with torch.device("meta"):
                model = self.description.build(self.tokenizers)
        except SoftgazeError:
            raise
        except (OverflowError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).split("\n")[0][:200]
            raise DataError(f"{self.path / CONFIG}: describes no model that could be: {reason}") from error
        return {name: list(parameter.shape) for name, parameter in model.named_parameters()}


def fitting_manifest(path: Path) -> dict[str, Any]:
    """The manifest whose files are there unchanged: the one that counts, else the next, where a save was killed."""
    manifest = read_manifest(path)
    try:
        check_files(path, manifest["files"])
    except DataError as error:
        try:
            manifest = read_manifest(path, NEXT)
            check_files(path, manifest["files"])
        except DataError:
            raise error from None
    return manifest


def read_manifest(path: Path, name: str = MANIFEST) -> dict[str, Any]:
    """A manifest, or one line on why this directory is no bundle."""
    if not path.is_dir():
        raise DataError(f"{path}: there is no such model directory")
    try:
        manifest = parse(read_small(path / name))
        if manifest["format"] == FORMAT:
            check_manifest(manifest)
        _ = manifest.get("engine", {"name": ""})["name"]
    except FileNotFoundError:
        raise DataError(
            f"{path}: holds no {MANIFEST}, so it is no model (a run has one after its first validation)"
        ) from None
    except (OSError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataError(f"{path / name}: is not a softgaze manifest: {error}") from error
    if manifest["format"] != FORMAT:
        version = manifest["format"]
        raise DataError(f"{path}: is a bundle of format {version}; softgaze {__version__} reads format {FORMAT}")
    return manifest


def check_files(path: Path, files: dict[str, Any]) -> None:
    """All that is named is there and unchanged; all that is needed is named, and what is not named is not used."""
    check_names(path, files)
    for name, entry in files.items():
        check_file(path / name, entry)
    vocabulary = [JOINT] if JOINT in files else [READER if READER in files else SOURCE, TARGET]
    for name in (CONFIG, *vocabulary):
        if name not in files:
            raise DataError(f"{path / MANIFEST}: does not name {name}, which a bundle needs")
    for name in (WEIGHTS, DETECTOR, JOINT, SOURCE, READER, TARGET):
        if name not in files and (path / name).exists():
            raise DataError(f"{path / name}: is not named in {MANIFEST}: it is no part of this bundle")


def check_file(path: Path, entry: Any, record: str = MANIFEST) -> None:
    """A file must be the one the record speaks of, byte for byte."""
    try:
        wanted, fingerprint = int(entry["bytes"]), str(entry["sha256"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: {record} does not say how many bytes it has, and their sha256") from error
    if not path.is_file():
        raise DataError(f"{path}: is named in {record} but is not there")
    if path.stat().st_size != wanted:
        raise DataError(f"{path}: has {path.stat().st_size:,} bytes, not {wanted:,}: it was cut or changed")
    if sha256_of(path) != fingerprint:
        raise DataError(f"{path}: does not match its fingerprint in {record}: it was changed or damaged")


def save_bundle(
    path: Path,
    model: "Seq2Seq",
    description: Description,
    tokenizers: Tokenizers,
    detector: Detector | None,
    facts: dict[str, Any],
) -> None:
    """Write or replace a bundle. The next manifest is there before the first file is replaced, and takes its name last.

    A run replaces nothing but weights, so that either manifest fits whenever it is killed.
    """
    path.mkdir(parents=True, exist_ok=True)
    contents = {
        CONFIG: yaml.safe_dump(vars(description), allow_unicode=True, sort_keys=False).encode(),
        WEIGHTS: weights_bytes(model),
        **tokenizers.files(),
    }
    if detector is not None:
        contents[DETECTOR] = detector.to_json().encode()
    files = {name: {"sha256": sha256(content).hexdigest(), "bytes": len(content)} for name, content in contents.items()}
    write_manifest(path, {"format": FORMAT, "softgaze": __version__, "files": files, "facts": facts}, NEXT)
    for name, content in contents.items():
        if not (path / name).is_file() or sha256_of(path / name) != files[name]["sha256"]:
            write_bytes(path / name, content)
    rename(path / NEXT, path / MANIFEST)


def seal(path: Path, names: Iterable[str], facts: dict[str, Any], **more: Any) -> None:
    """Write the manifest of files that are there."""
    files = {name: {"sha256": sha256_of(path / name), "bytes": (path / name).stat().st_size} for name in names}
    write_manifest(path, {"format": FORMAT, "softgaze": __version__, **more, "files": files, "facts": facts})


def add_facts(path: Path, facts: dict[str, Any], section: str = "facts") -> None:
    """Say more about a bundle that is there already; nothing else of it changes."""
    manifest = fitting_manifest(path)
    manifest[section] |= facts
    write_manifest(path, manifest)


def write_manifest(path: Path, manifest: dict[str, Any], name: str = MANIFEST) -> None:
    """In one move, with its own fingerprint."""
    manifest = {**manifest, OWN: own_fingerprint(manifest)}
    write_text(path / name, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


# --- weights: the two places that touch safetensors -------------------------------------------------------------


def weights_bytes(model: "Seq2Seq") -> bytes:
    """Every parameter once, whatever shares it."""
    from safetensors.torch import save

    return save({name: value.detach().contiguous() for name, value in model.named_parameters()})


def load_weights(model: "Seq2Seq", path: Path) -> None:
    """Fill the model; every parameter must be there with its shape, and nothing else."""
    import torch
    from safetensors import SafetensorError, safe_open

    wanted = dict(model.named_parameters())
    try:
        with safe_open(path, framework="pt") as file:
            if sorted(wanted) != sorted(file.keys()):
                raise DataError(f"{path}: holds the weights of another model than {CONFIG} describes")
            for name, parameter in wanted.items():
                if file.get_slice(name).get_shape() != list(parameter.shape):
                    raise DataError(f"{path}: {name} has another shape than {CONFIG} describes")
                parameter.data.copy_(file.get_tensor(name))
                if not bool(torch.isfinite(parameter).all()):
                    raise DataError(f"{path}: {name} holds numbers that are not finite (NaN or infinite)")
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as safetensors: {error}") from error
