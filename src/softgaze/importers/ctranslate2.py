"""Read CTranslate2 directories of encoder–decoder Transformers, and the Argos packages that contain one."""

import json
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast

import torch
from torch import Tensor

from softgaze.data.tokenizer import ImportedTokenizer, LanguageTokens
from softgaze.errors import DataError
from softgaze.importers.base import (
    ImportedModel,
    LazyTensor,
    RowOrder,
    make_tokenizers,
    read_bytes,
    read_json,
    read_sentencepiece,
)
from softgaze.importers.binary_files import CTranslate2Binary, check_expansion, zip_errors
from softgaze.importers.recognise import ARGOS_FOLDER as FOLDER
from softgaze.importers.recognise import CTRANSLATE2_WEIGHTS as WEIGHTS
from softgaze.importers.recognise import ctranslate2_folder

CONFIG, METADATA = "config.json", "metadata.json"
SENTENCEPIECE = (("sentencepiece.model",) * 2, ("source.spm", "target.spm"), ("tokenizer.model",) * 2)
WANTED = {METADATA, WEIGHTS, CONFIG, *(name for names in SENTENCEPIECE for name in names), "README.md", "LICENSE"}
VOCABULARY = "vocabulary"  # in the names of vocabulary files
DEFAULT_TOKENS = {"unk": "<unk>", "eos": "</s>", "decoder_start": "<s>"}
ACTIVATIONS = {0: "relu", 2: "silu", 3: "gelu"}
DEFAULT_POSITIONS = 1024  # rows of the table that CTranslate2 computes if a model has none
DEFAULT_EPS = 1e-5
MAX_LAYERS = 1000


def read_model(path: Path) -> ImportedModel:
    """Open a directory or an Argos package; tensors are read later."""
    if path.is_dir():
        return open_directory(path).model()
    folder = Path(tempfile.mkdtemp(prefix="softgaze-import-"))
    try:
        unpack(path, folder)
        opened = open_directory(folder)
        weakref.finalize(opened.file, shutil.rmtree, folder, ignore_errors=True)
        return replace(opened.model(), files=(path,))
    except DataError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise DataError(str(error).replace(str(folder), str(path))) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the files of an Argos package that a model needs, and no others."""
    with zip_errors(archive), zipfile.ZipFile(archive) as file:
        check_expansion(archive, file)
        names: dict[PurePosixPath, zipfile.ZipInfo] = {}
        for member in file.infolist():
            name = PurePosixPath(member.filename)
            plain = "\\" not in member.filename and not PureWindowsPath(member.filename).drive
            if ".." in name.parts or name.is_absolute() or not plain:
                raise DataError(f"{archive}: contains {member.filename!r}, which is outside the package; rejected")
            if not member.is_dir() and (name.name in WANTED or VOCABULARY in name.name):
                names[name] = member
        top = next((name.parent for name in names if name.name == METADATA), None)
        if top is None:
            raise DataError(f"{archive}: has no {METADATA}, so it is not an Argos package")
        for name, member in names.items():
            if name.parent in (top, top / FOLDER):
                target = folder / name.relative_to(top)
                target.parent.mkdir(exist_ok=True)
                with file.open(member) as source, target.open("wb") as output:
                    shutil.copyfileobj(source, output)


def open_directory(path: Path) -> "CTranslate2Model":
    folder = ctranslate2_folder(path)
    if not (folder / WEIGHTS).is_file():
        raise DataError(f"{folder / WEIGHTS}: is missing")
    config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    metadata = read_json(path / METADATA) if (path / METADATA).is_file() else {}
    return CTranslate2Model(path, folder, config, metadata, CTranslate2Binary(folder / WEIGHTS))


@dataclass(frozen=True)
class CTranslate2Model:
    """A model directory with its configuration and the metadata of an Argos package."""

    path: Path
    folder: Path
    config: Mapping[str, Any]
    metadata: Mapping[str, Any]
    file: CTranslate2Binary

    def model(self) -> ImportedModel:
        """Return the model in our terms."""
        if self.file.spec != "TransformerSpec":
            raise DataError(
                f"{self.file.path}: has the specification {self.file.spec[:40]!r}; only encoder-decoder Transformers "
                "(TransformerSpec) can be imported"
            )
        orders = self.order("source"), self.order("target")
        options = self.options(orders)
        spm = self.sentencepiece_files()
        tokenizers = make_tokenizers([read_sentencepiece(path) for path in spm], orders)
        if not self.adds_eos:
            cast(ImportedTokenizer, tokenizers.source).frame = (), ()
        languages = self.languages(orders[1])
        return ImportedModel(
            family="Argos (CTranslate2)" if self.metadata else "CTranslate2",
            options=options,
            tensors=self.tensors(options, orders),
            tokenizers=tokenizers if languages is None else replace(tokenizers, languages=languages),
            source_order=orders[0],
            target_order=orders[1],
            files=(self.file.path, *dict.fromkeys(spm)),
            max_length=min(options["max_length"], 512) - 1,
            source_language=self.text("from_code"),
            target_language=self.text("to_code"),
            licence=self.licence(),
        )

    def text(self, key: str) -> str:
        value = self.metadata.get(key, "")
        if not isinstance(value, str) or len(value) > 40:
            raise DataError(f"{self.path / METADATA}: {key} must be a short string")
        return value

    @property
    def adds_eos(self) -> bool:
        return bool(self.config.get("add_source_eos", self.file.number("with_source_eos", 0)))

    def licence(self) -> str:
        for folder in (self.path, self.folder):
            if (folder / "LICENSE").is_file():
                return read_bytes(folder / "LICENSE", 1 << 20).decode(errors="replace")
        return str(self.metadata.get("license", ""))[:1000]

    def sentencepiece_files(self) -> tuple[Path, Path]:
        """Return the SentencePiece models of source and target, in the package or next to the weights."""
        for folder in (self.path, self.folder, self.folder.parent):
            for source, target in SENTENCEPIECE:
                if (folder / source).is_file() and (folder / target).is_file():
                    return folder / source, folder / target
        raise DataError(
            f"{self.path}: has no SentencePiece model; put sentencepiece.model, or source.spm and target.spm, into it"
        )

    def languages(self, order: RowOrder) -> LanguageTokens | None:
        """Return the target language of a package whose decoder starts with a language token."""
        prefix = self.text("target_prefix")
        if not prefix:
            return None
        if prefix not in order.pieces:
            raise DataError(f"{self.path / METADATA}: target_prefix {prefix!r} is not in the vocabulary")
        frame = ("text", "eos") if self.adds_eos else ("text",)
        return LanguageTokens({}, {self.text("to_code"): prefix}, frame, ("bos", "target"))

    # --- vocabulary

    def order(self, side: str) -> RowOrder:
        """Return our vocabulary of a side as rows of the file."""
        pieces = self.vocabulary(side)
        rows = self.shape(self.embedding(side))[0]
        if len(pieces) > rows:
            raise DataError(
                f"{self.folder}: the {side} vocabulary has {len(pieces):,} pieces, the weights {rows:,} rows"
            )
        pieces += [f"<unused {row}>" for row in range(len(pieces), rows)]
        found = {piece: row for row, piece in reversed([*enumerate(pieces)])}
        from_zero = bool(self.file.number("decoder/start_from_zero_embedding", 0))
        names = [name for name in DEFAULT_TOKENS if name != "decoder_start" or not from_zero]
        tokens = {name: self.config.get(f"{name}_token") or DEFAULT_TOKENS[name] for name in names}
        for token in tokens.values():
            if token not in found:
                raise DataError(f"{self.folder}: the {side} vocabulary has no {str(token)[:40]!r}")
        return RowOrder.of(
            pieces,
            unk=found[tokens["unk"]],
            eos=found[tokens["eos"]],
            pad=found.get("<blank>", found.get("<pad>")),
            start=None if from_zero else found[tokens["decoder_start"]],
        )

    def vocabulary(self, side: str) -> list[str]:
        """Return the pieces of a side in row order."""
        for name in (f"{side}_{VOCABULARY}", f"shared_{VOCABULARY}"):
            if (path := self.folder / f"{name}.json").is_file():
                return self.json_list(path)
            if (path := self.folder / f"{name}.txt").is_file():
                return read_bytes(path).decode(errors="replace").removesuffix("\n").split("\n")
        raise DataError(f"{self.folder / f'shared_{VOCABULARY}.json'}: is missing")

    def json_list(self, path: Path) -> list[str]:
        try:
            pieces = json.loads(read_bytes(path).decode())
        except (RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise DataError(f"{path}: is not JSON: {error}") from error
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise DataError(f"{path}: expected a list of pieces")
        return pieces

    # --- options

    def embedding(self, side: str) -> str:
        """Return the name of an embedding matrix; an encoder may have several."""
        if side == "target":
            return "decoder/embeddings/weight"
        if "encoder/embeddings_1/weight" in self.file.shapes:
            raise DataError(f"{self.file.path}: reads source features, which is not supported")
        name = "encoder/embeddings_0/weight"
        return name if name in self.file.shapes else "encoder/embeddings/weight"

    def shape(self, name: str, rank: int = 2) -> tuple[int, ...]:
        shape = self.file.shapes.get(name)
        if shape is None or len(shape) != rank:
            found = "is missing" if shape is None else f"has shape {list(shape)}"
            raise DataError(f"{self.file.path}: {name} {found}, expected a tensor with {rank} dimensions")
        return shape

    def attribute(self, name: str, default: int) -> int:
        """Return an attribute that encoder and decoder share; older files have it once."""
        common = self.file.number(name, default)
        values = {self.file.number(f"{side}/{name}", common) for side in ("encoder", "decoder")}
        if len(values) > 1:
            raise DataError(f"{self.file.path}: {name} differs between encoder and decoder, which is not supported")
        return values.pop()

    def options(self, orders: tuple[RowOrder, RowOrder]) -> dict[str, Any]:
        """Return the options of our Transformer."""
        width, heads = self.shape(self.embedding("target"))[1], self.attribute("num_heads", 8)
        activation, glu = (
            self.attribute("activation", 0),
            "encoder/layer_0/ffn/linear_0_noact/weight" in self.file.shapes,
        )
        first = "encoder/layer_0/self_attention"
        unsupported = {
            "relative positions": any("relative_" in name for name in self.file.shapes),
            "ALiBi": self.file.number("decoder/alibi", 0) != 0,
            f"activation {activation}": activation not in ACTIVATIONS or (glu and activation != 2),
            f"{heads} heads": heads < 1 or width % max(heads, 1) != 0,
            "projections of the embeddings": "decoder/project_in/weight" in self.file.shapes,
            "scaled queries": any(name.endswith("queries_scale") for name in self.file.shapes),
            "rotary positions of this kind": not self.plain_rotary(first, width // max(heads, 1)),
        }
        for feature, found in unsupported.items():
            if found:
                raise DataError(f"{self.file.path}: has {feature}, which is not supported")
        rotary = f"{first}/rotary_dim" in self.file.shapes
        key_heads = self.file.number(f"{first}/num_heads_kv", heads)
        return {
            "width": width,
            "feed_forward_width": self.shape("encoder/layer_0/ffn/linear_0/weight")[0],
            "heads": heads,
            **({} if key_heads == heads else {"key_heads": key_heads}),
            "encoder_layers": self.layers("encoder"),
            "decoder_layers": self.layers("decoder"),
            "positions": "rotary" if rotary else "frozen",
            "max_length": DEFAULT_POSITIONS
            if rotary
            else min(self.position_rows("encoder"), self.position_rows("decoder")),
            "residual": "pre" if self.attribute("pre_norm", 1) else "post",
            "norm": "layer" if f"{first}/layer_norm/beta" in self.file.shapes else "rms",
            "norm_eps": self.norm_eps(),
            "embedding_norm": "encoder/layernorm_embedding/gamma" in self.file.shapes,
            "scale_embeddings": self.scales_embeddings(width),
            "output_bias": True,
            "feed_forward": "swiglu" if glu else ACTIVATIONS[activation],
            "tie": self.tie(orders),
        }

    def plain_rotary(self, scope: str, head_width: int) -> bool:
        """Whether there are no rotary positions, or those of `positions.Rotary`."""
        number = self.file.number
        return f"{scope}/rotary_dim" not in self.file.shapes or (
            number(f"{scope}/rotary_dim", 0) in (0, head_width)
            and number(f"{scope}/rotary_interleave", 1) == 0
            and number(f"{scope}/rotary_base", 10000) == 10000
            and not any("rotary_scaling" in name for name in self.file.shapes)
        )

    def layers(self, side: str) -> int:
        """Return the number of consecutive layers."""
        count = 0
        while f"{side}/layer_{count}/ffn/linear_0/weight" in self.file.shapes and count < MAX_LAYERS:
            count += 1
        if not count:
            raise DataError(f"{self.file.path}: has no layers in the {side}")
        return count

    def position_rows(self, side: str) -> int:
        name = f"{side}/position_encodings/encodings"
        return self.shape(name)[0] if name in self.file.shapes else DEFAULT_POSITIONS

    def norm_eps(self) -> float:
        value = self.config.get("layer_norm_epsilon")
        if value is None:
            return DEFAULT_EPS
        if not isinstance(value, float) or not 0 < value < 1:
            raise DataError(f"{self.folder / CONFIG}: layer_norm_epsilon must be a number from 0 to 1, got {value!r}")
        return value

    def scales_embeddings(self, width: int) -> bool:
        """Return whether embeddings are multiplied by √D: a flag, or the factor itself."""
        scales = set()
        for side, embedding in (("encoder", "embeddings_0"), ("decoder", "embeddings")):
            names = (f"{side}/scale_embeddings", f"{side}/{embedding}/multiply_by_sqrt_depth")
            name = next((name for name in names if name in self.file.shapes), None)
            value = 1.0 if name is None else float(self.file.read(name).reshape(-1)[0])
            flag = name is None or self.file.entries[name].dtype == "i1"
            scales.add(bool(value) if flag else {1.0: False}.get(value, abs(value - width**0.5) < 1e-3))
            if not flag and value != 1 and abs(value - width**0.5) >= 1e-3:
                raise DataError(f"{self.file.path}: embeddings are scaled by {value}, which is not supported")
        if len(scales) > 1:
            raise DataError(f"{self.file.path}: only one of encoder and decoder scales its embeddings; not supported")
        return scales.pop()

    def tie(self, orders: tuple[RowOrder, RowOrder]) -> str:
        """Return which matrices are one variable."""
        names = (self.embedding("source"), self.embedding("target"), "decoder/projection/weight")
        for name in names:
            self.shape(name)
        source, target, output = (self.file.entries[name].offset for name in names)
        if source == target and orders[0] == orders[1]:
            return "all" if target == output else "source-target"
        return "output" if target == output else "none"

    # --- tensors

    def lazy(self, name: str, rows: slice = slice(None)) -> LazyTensor:
        def read() -> Tensor:
            if name not in self.file.shapes:
                raise DataError(f"{self.file.path}: has no variable {name}")
            return torch.from_numpy(self.file.read(name)[rows].copy())

        return LazyTensor(read)

    def linear(self, ours: str, theirs: str, part: int = 0, parts: int = 1) -> dict[str, LazyTensor]:
        """Return a linear layer, or one of several that are concatenated; its bias may be missing."""
        total = self.shape(f"{theirs}/weight")[0]
        rows = slice(part * (total // parts), (part + 1) * (total // parts))
        return self.linear_rows(ours, theirs, rows)

    def linear_rows(self, ours: str, theirs: str, rows: slice) -> dict[str, LazyTensor]:
        has_bias = f"{theirs}/bias" in self.file.shapes
        zeros = LazyTensor(partial(torch.zeros, rows.stop - rows.start))
        bias = self.lazy(f"{theirs}/bias", rows) if has_bias else zeros
        return {f"{ours}.weight": self.lazy(f"{theirs}/weight", rows), f"{ours}.bias": bias}

    def norm(self, ours: str, theirs: str) -> dict[str, LazyTensor]:
        return {f"{ours}.weight": self.lazy(f"{theirs}/gamma"), f"{ours}.bias": self.lazy(f"{theirs}/beta")}

    def tensors(self, options: Mapping[str, Any], orders: tuple[RowOrder, RowOrder]) -> dict[str, LazyTensor]:
        """Return every parameter of our model as a variable of the file."""
        source, target = orders
        bias = "decoder/projection/bias"
        tensors = {
            "source_embedding.weight": LazyTensor(self.lazy(self.embedding("source")).read, source),
            "target_embedding.weight": LazyTensor(self.lazy(self.embedding("target")).read, target),
            "output.weight": LazyTensor(self.lazy("decoder/projection/weight").read, target),
            "output.bias": LazyTensor(
                lambda: target.bias(self.lazy(bias).read() if bias in self.file.shapes else None)
            ),
        }
        for side, ours in (("encoder", "source"), ("decoder", "target")):
            tensors |= self.norm(f"{side}_norm", f"{side}/layer_norm")
            tensors |= self.norm(f"{ours}_embedding_norm", f"{side}/layernorm_embedding")
            tensors[f"{ours}_positions.table.weight"] = LazyTensor(
                partial(self.positions, side, options["max_length"], options["width"])
            )
            for index in range(options[f"{side}_layers"]):
                tensors |= self.layer(f"{side}.{index}", f"{side}/layer_{index}", options)
        return tensors

    def layer(self, ours: str, theirs: str, options: Mapping[str, Any]) -> dict[str, LazyTensor]:
        """Return the parameters of one layer."""
        query = options["width"]
        keys = query // options["heads"] * options.get("key_heads", options["heads"])
        stops = (0, query, query + keys, query + 2 * keys)
        tensors: dict[str, LazyTensor] = {}
        for index, name in enumerate(("query", "key", "value")):
            rows = slice(stops[index], stops[index + 1])
            tensors |= self.linear_rows(f"{ours}.attention.{name}", f"{theirs}/self_attention/linear_0", rows)
        tensors |= self.linear(f"{ours}.attention.output", f"{theirs}/self_attention/linear_1")
        tensors |= self.norm(f"{ours}.around_attention.norm", f"{theirs}/self_attention/layer_norm")
        if ours.startswith("decoder"):
            cross = f"{theirs}/attention"
            tensors |= self.linear(f"{ours}.cross.query", f"{cross}/linear_0")
            tensors |= self.linear(f"{ours}.cross.key", f"{cross}/linear_1", 0, 2)
            tensors |= self.linear(f"{ours}.cross.value", f"{cross}/linear_1", 1, 2)
            tensors |= self.linear(f"{ours}.cross.output", f"{cross}/linear_2")
            tensors |= self.norm(f"{ours}.around_cross.norm", f"{cross}/layer_norm")
        tensors |= self.linear(f"{ours}.feed_forward.inner", f"{theirs}/ffn/linear_0")
        tensors |= self.linear(f"{ours}.feed_forward.outer", f"{theirs}/ffn/linear_1")
        if options["feed_forward"] == "swiglu":
            tensors |= self.linear(f"{ours}.feed_forward.gate", f"{theirs}/ffn/linear_0_noact")
        return tensors | self.norm(f"{ours}.around_feed_forward.norm", f"{theirs}/ffn/layer_norm")

    def positions(self, side: str, rows: int, width: int) -> Tensor:
        """Return the stored positions of a side, or those that CTranslate2 computes: they start with 1."""
        name = f"{side}/position_encodings/encodings"
        if name in self.file.shapes:
            return self.lazy(name, slice(rows)).read()
        half = width // 2
        rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / max(half - 1, 1))
        angles = torch.arange(1, rows + 1, dtype=torch.float64)[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], 1).float()
