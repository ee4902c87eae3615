"""A model directory: configuration, weights, tokenizers and a manifest with the SHA-256 of each file.

Nothing in it is executed: weights are safetensors, the rest is YAML, JSON and SentencePiece. Names, sizes and headers
are checked before anything large is read or allocated. torch is imported only to load the weights.
"""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, cast

import yaml

from softgaze import __version__
from softgaze.atomic_io import TEMPORARY, fingerprint, rename, sha256_of, write_bytes, write_text
from softgaze.data.language_id import LanguageDetector
from softgaze.data.tokenizer import (
    PROCESSOR_FILE,
    Frame,
    ImportedTokenizer,
    LanguageTokens,
    Processor,
    Tokenizer,
)
from softgaze.errors import DataError, SoftgazeError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from softgaze.models import Seq2Seq

FORMAT = 1
MANIFEST, CONFIG, WEIGHTS, DETECTOR = "manifest.json", "config.yaml", "model.safetensors", "detector.json"
ALIGNER = "aligner.npz"  # a statistical word aligner of both languages, optional
JOINT, SOURCE, TARGET = "tokenizer.model", Tokenizer.file, "tokenizer.target.model"
PROCESSOR = PROCESSOR_FILE  # instead of SOURCE, for sources that are not text
VOCABULARY = "vocabulary.json"  # of an imported model: pieces in row order, languages
SOURCE_EOS = "source_eos"  # key in it: false if the model reads no EOS after the source
NEXT_MANIFEST = f"{TEMPORARY}next-{MANIFEST}"  # while a bundle is replaced
HELD_OUT = PurePosixPath("encoded/dev.json")  # held-out pairs, in the directory of a training run

ATTENTION = "attention"  # key of the selected attention map in the facts
CONFIDENCE = "confidence"  # key of the calibration of word confidence
RELIABILITY = "reliability"  # key of the calibration of the links of the selected attention map
FAITHFULNESS = "faithfulness"  # comprehensiveness and sufficiency of the selected map and of others
ALIGNMENT_HEAD = "alignment_head"  # key of the layer and head that were trained on alignments
IMPORTED, SEARCH = "imported", "search"  # keys of the origin and the search options of an imported model
SEARCH_FIELDS = ("beam_size", "length_penalty", "max_length")
SELF_SHA256 = "sha256"  # key of the manifest's own hash; bundles before 0.2 have none
MANIFEST_KEYS = {"format", "softgaze", "engine", "files", "facts", SELF_SHA256}
MAX_TEXT_BYTES = 1 << 24  # of a manifest or configuration; ours have thousands


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers or processors of both sides; the same object if the vocabulary is joint."""

    source: Processor
    target: Tokenizer
    languages: LanguageTokens | None = None  # of a multilingual model

    @property
    def joint(self) -> bool:
        return self.source is self.target

    @property
    def frame(self) -> Frame:
        """The special tokens of both sides; those of a source without languages until they are chosen."""
        chosen = self.source.frame if isinstance(self.source, ImportedTokenizer) else None
        return Frame(*(chosen or Frame()[:2]), self.target.start)

    @property
    def extra_tokens(self) -> int:
        """Most positions that language tokens take on one side."""
        before, after, start = self.frame
        return max(len(before) + len(after), len(start)) - 1

    def files(self) -> dict[str, bytes]:
        """Return {name: content} of the files in a bundle."""
        files = (
            {JOINT: self.source.model}
            if self.joint
            else {self.source.file: self.source.model, TARGET: self.target.model}
        )
        if isinstance(self.source, ImportedTokenizer) and isinstance(self.target, ImportedTokenizer):
            files[VOCABULARY] = _vocabulary_json(self.source, self.target, self.languages).encode()
        return files

    def with_languages(self, source: str | None, target: str | None) -> "Tokenizers":
        """Return the tokenizers with the special tokens of a language pair."""
        if self.languages is None:
            raise ValueError("these tokenizers have no languages to choose from")
        sides = (self.source,) if self.joint else (self.source, self.target)
        framed = [
            side.with_languages(self.languages, source, target) for side in sides if isinstance(side, ImportedTokenizer)
        ]
        return Tokenizers(framed[0], framed[-1], self.languages)

    @classmethod
    def load(cls, directory: Path) -> "Tokenizers":
        if (directory / VOCABULARY).exists():
            return _load_imported(directory)
        if (directory / JOINT).exists():
            both = Tokenizer.load(directory / JOINT)
            return cls(both, both)
        if not (directory / PROCESSOR).exists():
            return cls(Tokenizer.load(directory / SOURCE), Tokenizer.load(directory / TARGET))
        from softgaze.data.processors import load_processor

        return cls(load_processor(directory / PROCESSOR), Tokenizer.load(directory / TARGET))


def _vocabulary_json(source: ImportedTokenizer, target: ImportedTokenizer, languages: LanguageTokens | None) -> str:
    record: dict[str, Any] = {"special": sorted(source.special | target.special), "source": source.vocabulary}
    if target.vocabulary != source.vocabulary:
        record["target"] = target.vocabulary
    if source.frame == ((), ()):
        record[SOURCE_EOS] = False
    if languages is not None:
        record["languages"] = asdict(languages)
    return json.dumps(record, ensure_ascii=False, indent=0) + "\n"


def _load_imported(directory: Path) -> Tokenizers:
    """Load the tokenizers of an imported model: SentencePiece models with a table of pieces in row order."""
    path = directory / VOCABULARY
    try:
        record = dict(json.loads(_read_text(path)))
        pieces = [record["source"], record.get("target", record["source"])]
        special = record["special"]
        if not all(isinstance(piece, str) for piece in (*pieces[0], *pieces[1], *special)):
            raise TypeError("expected lists of pieces")
        if (directory / JOINT).exists():
            joint = ImportedTokenizer((directory / JOINT).read_bytes(), pieces[0], special)
            tokenizers = Tokenizers(joint, joint)
        else:
            source, target = (
                ImportedTokenizer((directory / name).read_bytes(), own, special)
                for name, own in zip((SOURCE, TARGET), pieces, strict=True)
            )
            tokenizers = Tokenizers(source, target)
        if record.get(SOURCE_EOS) is False:
            cast(ImportedTokenizer, tokenizers.source).frame = (), ()
        return tokenizers if "languages" not in record else _multilingual(tokenizers, record["languages"])
    except (AttributeError, KeyError, OSError, RecursionError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path}: is not the vocabulary of an imported model: {error}") from error


def _multilingual(tokenizers: Tokenizers, record: dict[str, Any]) -> Tokenizers:
    """Return the tokenizers with their languages, none of which is chosen yet."""
    source, target = ({str(code): str(piece) for code, piece in record[side].items()} for side in ("source", "target"))
    frame, start = (tuple(map(str, record[name])) for name in ("source_frame", "decoder_start"))
    for tokenizer in (tokenizers.source, tokenizers.target):
        cast(ImportedTokenizer, tokenizer).frame = None
    return replace(tokenizers, languages=LanguageTokens(source, target, frame, start))


@dataclass(frozen=True)
class Description:
    """The content of `config.yaml`: enough to build the model again."""

    arch: str
    size: str
    options: dict[str, Any]
    source_language: str
    target_language: str
    max_length: int  # source subwords the model was trained for; longer text is split

    def __post_init__(self) -> None:
        names = (self.arch, self.size, self.source_language, self.target_language)
        if not all(isinstance(name, str) for name in names) or type(self.max_length) is not int or self.max_length < 2:
            raise TypeError("arch, size and languages must be strings, and max_length an integer of at least 2")
        for name, value in self.options.items():  # the value is not shown: YAML can express one larger than any memory
            if not isinstance(value, str | int | float | None):
                raise TypeError(f"the option {name!r} must be a string or a number")

    def build(self, tokenizers: Tokenizers) -> "Seq2Seq":
        """Return the model with new weights."""
        from softgaze.models import RENAMED_OPTIONS, build_model

        return build_model(
            self.arch,
            self.size,
            source_vocabulary=len(tokenizers.source),
            target_vocabulary=len(tokenizers.target),
            **{RENAMED_OPTIONS.get(name, name): value for name, value in self.options.items()},
        )

    def build_empty(self, tokenizers: Tokenizers) -> "Seq2Seq":
        """Return the model without memory for its parameters, which `load_weights` adds."""
        import torch
        from torch.overrides import TorchFunctionMode

        class NoInit(TorchFunctionMode):
            """Leaves parameters undrawn: on the meta device drawing imports torch's compiler, for two seconds."""

            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                kwargs = kwargs or {}
                if getattr(func, "__module__", "") == "torch.nn.init":
                    return kwargs["tensor"] if "tensor" in kwargs else args[0]
                return func(*args, **kwargs)

        try:
            with torch.device("meta"), NoInit():
                return self.build(tokenizers)
        except SoftgazeError:
            raise
        except (OverflowError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).split("\n")[0][:200]
            raise DataError(f"{CONFIG}: the model cannot be built: {reason}") from error


@dataclass(frozen=True)
class Bundle:
    """A model directory whose files were verified when it was opened."""

    path: Path
    description: Description
    facts: dict[str, Any]  # how it was trained, and its scores
    files: dict[str, dict[str, Any]]  # name -> sha256, bytes
    engine: dict[str, Any] = field(default_factory=lambda: {"name": "torch"})  # of an exported model, and its facts

    @classmethod
    def open(cls, path: Path) -> "Bundle":
        """Open and verify a model directory; the weights themselves are read by `model`."""
        manifest = valid_manifest(path)
        try:
            description = Description(**yaml.safe_load(_read_text(path / CONFIG)))
        except (AttributeError, OSError, RecursionError, TypeError, ValueError, yaml.YAMLError) as error:
            raise DataError(f"{path / CONFIG}: does not describe a model: {' '.join(str(error).split())}") from error
        engine = {"engine": manifest["engine"]} if "engine" in manifest else {}
        return cls(path, description, manifest["facts"], manifest["files"], **engine)

    @property
    def has_weights(self) -> bool:
        """Whether torch can run it: an exported model may come without its torch weights."""
        return WEIGHTS in self.files or self.engine["name"] == "torch"

    @cached_property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers; of a multilingual model with the languages that its configuration names, if any."""
        tokenizers, own = Tokenizers.load(self.path), self.description
        languages = tokenizers.languages
        if languages is None or own.target_language not in languages.target:
            return tokenizers
        if languages.needs("source") and own.source_language not in languages.source:
            return tokenizers
        return tokenizers.with_languages(own.source_language, own.target_language)

    @property
    def alignment_head(self) -> tuple[int, int] | None:
        """Layer and head of the cross-attention that were trained on alignments, if known."""
        stored = self.facts.get(ALIGNMENT_HEAD)
        if stored is None:
            return None
        if not isinstance(stored, list) or [type(index) for index in stored] != [int, int]:
            raise DataError(f"{self.path / MANIFEST}: {ALIGNMENT_HEAD} must be a layer and a head")
        return stored[0], stored[1]

    @property
    def held_out(self) -> list[tuple[str, str]] | None:
        """Held-out sentence pairs, if the bundle is still in the directory of its training run."""
        path = self.path / HELD_OUT
        if not path.is_file():
            return None
        return [(source, target) for source, target in json.loads(path.read_text(encoding="utf-8"))]

    @cached_property
    def detector(self) -> LanguageDetector | None:
        """Language detector of the bundle's languages; None in old bundles."""
        path = self.path / DETECTOR
        try:
            return LanguageDetector.from_json(path.read_text(encoding="utf-8")) if path.exists() else None
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise DataError(f"{path}: is not a language detector: {error}") from error

    def with_languages(self, source: str | None, target: str | None) -> "Bundle":
        """Return this bundle of a multilingual model for one language pair; a code may be shortened to its start."""
        languages, own = self.tokenizers.languages, self.description
        if languages is None:
            if source in (None, own.source_language) and target in (None, own.target_language):
                return self
            raise UsageError(f"{self.path}: translates {own.source_language} → {own.target_language} only")
        source = languages.match("source", source or own.source_language or None)
        target = languages.match("target", target or own.target_language or None)
        tokenizers = self.tokenizers.with_languages(source, target)
        names = source or own.source_language, target or own.target_language
        description = replace(own, source_language=names[0], target_language=names[1])
        chosen = replace(self, description=description)
        chosen.__dict__["tokenizers"] = tokenizers  # the cached property of a frozen class
        return chosen

    def model(self, device: str = "cpu") -> "Seq2Seq":
        """Return the trained model in evaluation mode."""
        import torch

        path = self.path / WEIGHTS
        self.check_size()
        model = self.description.build_empty(self.tokenizers)
        if next(model.buffers(), None) is not None:  # computed when a model is built, which needs memory
            _compare_shapes(path, model, tensor_shapes(path))
            with torch.random.fork_rng(devices=[]):  # a new model draws weights; the caller's random state stays
                model = self.description.build(self.tokenizers)
        load_weights(model, path)
        return model.to(device).eval()

    def check_size(self) -> None:
        """Reject a configuration with more layers than there are tensors: building it would take forever.

        `load_weights` compares all shapes before memory is allocated.
        """
        path, shapes = self.path / WEIGHTS, tensor_shapes(self.path / WEIGHTS)
        numbers = {name: value for name, value in self.description.options.items() if isinstance(value, int)}
        for name, value in numbers.items():
            if "layers" in name and value > len(shapes):
                raise DataError(
                    f"{self.path / CONFIG}: {name} exceeds the number of tensors in {path} ({len(shapes):,})"
                )


# --- manifest ---------------------------------------------------------------------------------------------------


def valid_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest whose files are unchanged: the current one, or the next one if a save was killed."""
    manifest = read_manifest(path, MANIFEST)
    try:
        _check_files(path, manifest["files"])
    except DataError as error:
        try:
            manifest = read_manifest(path, NEXT_MANIFEST)
            _check_files(path, manifest["files"])
        except DataError:
            raise error from None
    return manifest


def search_defaults(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the search options that an imported model sets."""
    stored = facts.get(SEARCH, {})
    return {name: stored[name] for name in SEARCH_FIELDS if name in stored} if isinstance(stored, dict) else {}


def read_search_defaults(path: Path) -> dict[str, Any]:
    """Return the search options of a model directory without opening it; none if it cannot be read."""
    try:
        return search_defaults(read_manifest(path)["facts"])
    except DataError:  # reported when the model is opened
        return {}


def read_manifest(path: Path, name: str = MANIFEST) -> dict[str, Any]:
    """Return a manifest that is undamaged and of this format; its files are not checked."""
    if not path.is_dir():
        raise DataError(f"{path}: no such model directory")
    try:
        text = _read_text(path / name)
        if not text.endswith("}\n"):
            raise ValueError("it is truncated")
        manifest = dict(json.loads(text))
        if manifest["format"] == FORMAT:
            _check_manifest(manifest)
        _ = manifest.get("engine", {"name": ""})["name"]
    except FileNotFoundError:
        raise DataError(
            f"{path}: contains no {MANIFEST}, so it is not a model (a run has one after its first validation)"
        ) from None
    except (OSError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataError(f"{path / name}: is not a softgaze manifest: {error}") from error
    if manifest["format"] != FORMAT:
        version = manifest["format"]
        raise DataError(f"{path}: has bundle format {version}; softgaze {__version__} reads format {FORMAT}")
    return manifest


def _read_text(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_TEXT_BYTES:
        raise ValueError(f"it has {size:,} bytes, which is more than {MAX_TEXT_BYTES:,}")
    return path.read_text(encoding="utf-8")


def _check_manifest(manifest: dict[str, Any]) -> None:
    unknown = sorted(set(manifest) - MANIFEST_KEYS)
    if unknown:
        raise ValueError(f"it contains {unknown[0]!r}, which this version does not know")
    for key in ("files", "facts"):
        if not isinstance(manifest[key], dict):
            raise TypeError(f"{key} must be an object")
    if SELF_SHA256 in manifest and manifest[SELF_SHA256] != _manifest_sha256(manifest):
        raise ValueError("it does not match its own SHA-256: it was changed or damaged")


def _manifest_sha256(manifest: dict[str, Any]) -> str:
    content = {key: value for key, value in manifest.items() if key != SELF_SHA256}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_files(path: Path, files: dict[str, Any]) -> None:
    """Check that every listed file is unchanged, every required file is listed, and no unlisted file would be used."""
    check_listed_files(path, files)
    vocabulary = [JOINT] if JOINT in files else [PROCESSOR if PROCESSOR in files else SOURCE, TARGET]
    for name in (CONFIG, *vocabulary):
        if name not in files:
            raise DataError(f"{path / MANIFEST}: does not list {name}, which a bundle needs")
    for name in (WEIGHTS, DETECTOR, ALIGNER, JOINT, SOURCE, PROCESSOR, TARGET, VOCABULARY):
        if name not in files and (path / name).exists():
            raise DataError(f"{path / name}: is not listed in {MANIFEST}, so it is not part of this bundle")


def check_listed_files(path: Path, files: dict[str, Any]) -> None:
    """Check that every listed file is inside the directory and unchanged."""
    for name in files:
        _check_name(path, name)
    for name, entry in files.items():
        check_file(path / name, entry)


def _check_name(path: Path, name: str) -> None:
    """Reject names outside the bundle, names that leave it on Windows, and links."""
    parts = PurePosixPath(name).parts
    is_plain = "\\" not in name and not PureWindowsPath(name).drive and name.isprintable()
    if not parts or ".." in parts or PurePosixPath(name).is_absolute() or not is_plain:
        raise DataError(f"{path / MANIFEST}: lists {name!r}, which is not inside the bundle")
    for depth in range(1, len(parts) + 1):
        component = path.joinpath(*parts[:depth])
        if component.is_symlink():
            raise DataError(f"{component}: is a link; a bundle contains its files, so replace it by its target")


def check_file(path: Path, entry: Any, record: str = MANIFEST) -> None:
    """Check a file against its recorded size and SHA-256."""
    try:
        size, digest = int(entry["bytes"]), str(entry["sha256"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: {record} records no bytes and sha256 for it") from error
    if not path.is_file():
        raise DataError(f"{path}: is listed in {record} but is missing")
    if path.stat().st_size != size:
        raise DataError(f"{path}: has {path.stat().st_size:,} bytes, expected {size:,}: it is truncated or changed")
    if sha256_of(path) != digest:
        raise DataError(f"{path}: does not match its SHA-256 in {record}: it was changed or damaged")


def save_bundle(
    path: Path,
    model: "Seq2Seq",
    description: Description,
    tokenizers: Tokenizers,
    detector: LanguageDetector | None,
    facts: dict[str, Any],
    aligner: bytes | None = None,
) -> None:
    """Write or replace a bundle; `aligner` is the content of a statistical word aligner.

    The next manifest is written before the first file is replaced and renamed last. A training run replaces only the
    weights, so one of the two manifests is valid whenever it is killed.
    """
    from safetensors.torch import save

    path.mkdir(parents=True, exist_ok=True)
    contents = {
        CONFIG: yaml.safe_dump(vars(description), allow_unicode=True, sort_keys=False).encode(),
        WEIGHTS: save({name: value.detach().contiguous() for name, value in model.named_parameters()}),
        **tokenizers.files(),
    }
    if detector is not None:
        contents[DETECTOR] = detector.to_json().encode()
    if aligner is None and (path / ALIGNER).is_file():
        aligner = (path / ALIGNER).read_bytes()  # a user added it
    if aligner is not None:
        contents[ALIGNER] = aligner
    files = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in contents.items()
    }
    write_manifest(path, {"format": FORMAT, "softgaze": __version__, "files": files, "facts": facts}, NEXT_MANIFEST)
    for name, content in contents.items():
        if not (path / name).is_file() or sha256_of(path / name) != files[name]["sha256"]:
            write_bytes(path / name, content)
    rename(path / NEXT_MANIFEST, path / MANIFEST)


def seal(path: Path, names: Iterable[str], facts: dict[str, Any], **sections: Any) -> None:
    """Write the manifest of existing files."""
    files = {name: fingerprint(path / name) for name in names}
    write_manifest(path, {"format": FORMAT, "softgaze": __version__, **sections, "files": files, "facts": facts})


def add_aligner(path: Path, aligner: bytes) -> None:
    """Add a statistical word aligner to an existing bundle, or replace it; a killed call leaves a valid bundle."""
    manifest = valid_manifest(path)
    manifest["files"][ALIGNER] = {"sha256": hashlib.sha256(aligner).hexdigest(), "bytes": len(aligner)}
    write_manifest(path, manifest, NEXT_MANIFEST)
    write_bytes(path / ALIGNER, aligner)
    rename(path / NEXT_MANIFEST, path / MANIFEST)


def add_facts(path: Path, facts: dict[str, Any], section: str = "facts") -> None:
    manifest = valid_manifest(path)
    manifest[section] |= facts
    write_manifest(path, manifest)


def write_manifest(path: Path, manifest: dict[str, Any], name: str = MANIFEST) -> None:
    """Replace a manifest atomically, with its own SHA-256."""
    manifest = {**manifest, SELF_SHA256: _manifest_sha256(manifest)}
    write_text(path / name, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


# --- weights ----------------------------------------------------------------------------------------------------


def tensor_shapes(path: Path) -> dict[str, list[int]]:
    """Return the shape of each tensor; safetensors checks that header, offsets and file size agree."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118  not a dict
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as safetensors: {error}") from error


def load_weights(model: "Seq2Seq", path: Path) -> None:
    """Load all parameters; names and shapes must match exactly, and every value must be finite.

    float32 values are mapped from the file, so that processes share them; torch copies the pages it changes.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    shapes = tensor_shapes(path)
    _compare_shapes(path, model, shapes)
    owners: dict[Any, list[tuple[Any, str]]] = {}  # several of a tied parameter
    for module in model.modules():
        for attribute, parameter in module.named_parameters(recurse=False):
            owners.setdefault(parameter, []).append((module, attribute))
    try:
        with safe_open(path, framework="pt") as file:
            for name in shapes:
                parameter, values = model.get_parameter(model.current_name(name)), file.get_tensor(name).float()
                if not all_finite(values):
                    raise DataError(f"{path}: {name} contains NaN or infinite values")
                loaded = torch.nn.Parameter(values, parameter.requires_grad)
                for module, attribute in owners[parameter]:
                    setattr(module, attribute, loaded)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as safetensors: {error}") from error


def all_finite(values: "Tensor") -> bool:
    """Whether a tensor has no NaN, which its minimum would be, and no infinite value; nothing is copied."""
    return not values.numel() or all(math.isfinite(float(extreme)) for extreme in values.aminmax())


def _compare_shapes(path: Path, model: "Seq2Seq", stored: dict[str, list[int]]) -> None:
    expected = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    shapes = {model.current_name(name): shape for name, shape in stored.items()}
    if sorted(expected) != sorted(shapes):
        raise DataError(f"{path}: contains the weights of another model than {CONFIG} describes")
    for name, shape in expected.items():
        if shapes[name] != shape:
            raise DataError(f"{path}: {name} has shape {shapes[name]}, expected {shape} from {CONFIG}")
