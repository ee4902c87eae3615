"""A model directory: settings, weights, tokenizer and a manifest with the fingerprint of each file.

Raw text in, raw text out. Nothing in it is executed: weights are safetensors, the rest is YAML, JSON and SentencePiece.
Imports torch only when weights are asked for.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from softgaze import __version__
from softgaze.data.detector import Detector
from softgaze.data.tokens import Tokenizer
from softgaze.errors import DataError
from softgaze.files import sha256_of, write_bytes, write_text

if TYPE_CHECKING:
    from softgaze.models import Seq2Seq

FORMAT = 1
CONFIG, WEIGHTS, MANIFEST, DETECTOR = "config.yaml", "model.safetensors", "manifest.json", "detector.json"
ATTENTION = "attention"  # the fact that says which map of the model to show
JOINT, SOURCE, TARGET = "tokenizer.model", "tokenizer.source.model", "tokenizer.target.model"


@dataclass(frozen=True)
class Tokenizers:
    """How each side is cut; one and the same object when the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Both sides share one vocabulary."""
        return self.source is self.target

    def files(self) -> dict[str, bytes]:
        """As they are kept in a bundle."""
        if self.joint:
            return {JOINT: self.source.model}
        return {SOURCE: self.source.model, TARGET: self.target.model}

    @classmethod
    def load(cls, directory: Path) -> "Tokenizers":
        """From a bundle."""
        if (directory / JOINT).exists():
            both = Tokenizer.load(directory / JOINT)
            return cls(both, both)
        return cls(Tokenizer.load(directory / SOURCE), Tokenizer.load(directory / TARGET))


@dataclass(frozen=True)
class Description:
    """What `config.yaml` says: enough to build the model again."""

    arch: str
    size: str
    options: dict[str, Any]
    source_language: str
    target_language: str
    max_length: int  # subwords of a source the model was trained for; longer text is split

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
        manifest = read_manifest(path)
        for name, entry in manifest["files"].items():
            check_file(path / name, entry)
        try:
            description = Description(**yaml.safe_load((path / CONFIG).read_text(encoding="utf-8")))
        except (OSError, TypeError, ValueError, yaml.YAMLError) as error:
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

    @cached_property
    def detector(self) -> Detector | None:
        """Tells the bundle's languages apart; older bundles have none."""
        path = self.path / DETECTOR
        return Detector.from_json(path.read_text(encoding="utf-8")) if path.exists() else None

    def model(self, device: str = "cpu") -> "Seq2Seq":
        """The trained model, ready to translate."""
        model = self.description.build(self.tokenizers)
        load_weights(model, self.path / WEIGHTS)
        return model.to(device).eval()


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, or one line on why this directory is no bundle."""
    if not path.is_dir():
        raise DataError(f"{path}: there is no such model directory")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        version, _, _ = manifest["format"], manifest["files"], manifest["facts"]
        _ = manifest.get("engine", {"name": ""})["name"]
    except FileNotFoundError:
        raise DataError(
            f"{path}: holds no {MANIFEST}, so it is no model (a run has one after its first validation)"
        ) from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path / MANIFEST}: is not a softgaze manifest: {error}") from error
    if version != FORMAT:
        raise DataError(f"{path}: is a bundle of format {version}; softgaze {__version__} reads format {FORMAT}")
    return dict(manifest)


def check_file(path: Path, entry: dict[str, Any]) -> None:
    """A file must be the one the manifest speaks of, byte for byte."""
    if not path.is_file():
        raise DataError(f"{path}: is named in {MANIFEST} but is not there")
    if path.stat().st_size != entry["bytes"]:
        raise DataError(f"{path}: has {path.stat().st_size:,} bytes, not {entry['bytes']:,}: it was cut or changed")
    if sha256_of(path) != entry["sha256"]:
        raise DataError(f"{path}: does not match its fingerprint in {MANIFEST}: it was changed or damaged")


def save_bundle(
    path: Path,
    model: "Seq2Seq",
    description: Description,
    tokenizers: Tokenizers,
    detector: Detector | None,
    facts: dict[str, Any],
) -> None:
    """Write or replace a bundle, file by file and the manifest last."""
    path.mkdir(parents=True, exist_ok=True)
    contents = {
        CONFIG: yaml.safe_dump(vars(description), allow_unicode=True, sort_keys=False).encode(),
        WEIGHTS: weights_bytes(model),
        **tokenizers.files(),
    }
    if detector is not None:
        contents[DETECTOR] = detector.to_json().encode()
    for name, content in contents.items():
        write_bytes(path / name, content)
    seal(path, contents, facts)


def seal(path: Path, names: Iterable[str], facts: dict[str, Any], **more: Any) -> None:
    """Write the manifest of files that are there."""
    files = {name: {"sha256": sha256_of(path / name), "bytes": (path / name).stat().st_size} for name in names}
    write_manifest(path, {"format": FORMAT, "softgaze": __version__, **more, "files": files, "facts": facts})


def add_facts(path: Path, facts: dict[str, Any], section: str = "facts") -> None:
    """Say more about a bundle that is there already; nothing else of it changes."""
    manifest = read_manifest(path)
    manifest[section] |= facts
    write_manifest(path, manifest)


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """In one move."""
    write_text(path / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


# --- weights: the two places that touch safetensors -------------------------------------------------------------


def weights_bytes(model: "Seq2Seq") -> bytes:
    """Every parameter once, whatever shares it."""
    from safetensors.torch import save

    return save({name: value.detach().contiguous() for name, value in model.named_parameters()})


def load_weights(model: "Seq2Seq", path: Path) -> None:
    """Fill the model; every parameter must be there with its shape, and nothing else."""
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
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as safetensors: {error}") from error
