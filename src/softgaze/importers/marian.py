"""Read Marian models: `.npz` of OPUS-MT, and `.bin` of Bergamot and Firefox (int8 weights, SSRU decoders).

The vocabularies are in the same directory: SentencePiece files, whose ids are the rows, or `vocab.yml` files with
SentencePiece files for the segmentation.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import yaml
from torch import Tensor

from softgaze.errors import DataError
from softgaze.importers.base import (
    ImportedModel,
    LazyTensor,
    RowOrder,
    make_tokenizers,
    read_bytes,
    read_sentencepiece,
)
from softgaze.importers.binary_files import MarianBinary, MarianNpz, open_marian
from softgaze.importers.recognise import compressed_files, marian_files

MAX_POSITIONS = 1024  # rows of the position table; Marian computes any position
MAX_LAYERS, MAX_SIZE = 1000, 1 << 24
MAX_CONFIG = 1 << 16  # bytes of a decoder's configuration
NORM_EPS = 1e-9
ACTIVATIONS = {"relu": "relu", "swish": "silu"}
RESIDUALS = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}  # preprocess, postprocess, postprocess-top
UNSUPPORTED: dict[
    str, tuple[Any, ...]
] = {  # settings that change the model in ways ours does not have, and the values that leave it unchanged
    "transformer-no-projection": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-tied-layers": ([],),
    "layer-normalization": (False,),
    "lemma-dim-emb": (0,),
    "ulr": (False,),
    "right-left": (False,),
}
CODES = re.compile(r"^model\.([a-z]{2})([a-z]{2})\.")  # of the languages, in names such as model.enpt.bin
PAIR = re.compile(r"(?:^|-)([a-z]{2,3})-([a-z]{2,3})$")  # in names of directories, such as opus-mt-en-de


def read_model(path: Path) -> ImportedModel:
    """Open a weights file, or the directory of one; tensors are read later."""
    files = marian_files(path)
    if not files and (compressed := compressed_files(path)):
        raise DataError(
            f"{compressed[0]}: is compressed; run gunzip on it and on the vocabularies, and import the result"
        )
    if not files:
        raise DataError(f"{path}: contains no Marian weights")
    if len(files) != 1:
        names = ", ".join(file.name for file in files)
        raise DataError(f"{path}: contains several models ({names}); name the file of one")
    return MarianModel(files[0], open_marian(files[0])).model()


@dataclass(frozen=True)
class MarianModel:
    """A weights file and its settings."""

    path: Path
    file: MarianBinary | MarianNpz

    @cached_property
    def settings(self) -> dict[str, Any]:
        return self.file.settings()

    def model(self) -> ImportedModel:
        """Return the model in our terms."""
        options = self.options()
        vocabularies = Vocabularies.find(self.path)
        orders = self.order(vocabularies, 0), self.order(vocabularies, 1)
        source_language, target_language = languages(self.path)
        decoder = decoder_settings(self.path)
        search = {
            ours: decoder[theirs]
            for theirs, ours in (("beam-size", "beam_size"), ("normalize", "length_penalty"))
            if isinstance(decoder.get(theirs), int | float) and not isinstance(decoder[theirs], bool)
        }
        return ImportedModel(
            family="Marian",
            options=options,
            tensors=self.tensors(options, orders),
            tokenizers=make_tokenizers([read_sentencepiece(path) for path in vocabularies.spm], orders),
            source_order=orders[0],
            target_order=orders[1],
            files=(self.path, *dict.fromkeys((*vocabularies.spm, *(vocabularies.tables or ())))),
            max_length=min(options["max_length"], 512) - 1,
            source_language=source_language,
            target_language=target_language,
            search=search,
            licence=licence(self.path.parent),
            alignment_head=self.alignment_head(options["decoder_layers"]),
        )

    def order(self, vocabularies: "Vocabularies", side: int) -> RowOrder:
        """Return our vocabulary of a side as rows of the file."""
        pieces, unk, eos = vocabularies.pieces(side)
        names = ("encoder_Wemb", "Wemb") if side == 0 else ("decoder_Wemb", "Wemb")
        rows = self.file.shapes[self.first(*names)][0]
        if len(pieces) > rows:
            source = vocabularies.tables[side] if vocabularies.tables else vocabularies.spm[side]
            raise DataError(f"{source}: has {len(pieces):,} pieces, but {self.path} has {rows:,} rows for them")
        pieces += [f"<unused {row}>" for row in range(len(pieces), rows)]
        return RowOrder.of(pieces, unk=unk, eos=eos)

    # --- options

    def integer(self, name: str, limit: int) -> int:
        value = self.settings.get(name)
        if type(value) is not int or not 0 < value <= limit:
            raise DataError(f"{self.path}: {name} must be an integer from 1 to {limit:,}, got {str(value)[:40]!r}")
        return value

    def choice(self, name: str, value: Any, known: Mapping[Any, str]) -> str:
        if value not in known:
            raise DataError(
                f"{self.path}: {name} {value!r} is not supported; supported are {', '.join(map(repr, known))}"
            )
        return known[value]

    def options(self) -> dict[str, Any]:
        """Return the options of our Transformer."""
        settings = self.settings
        for name, plain in UNSUPPORTED.items():
            if settings.get(name, plain[0]) not in plain:
                raise DataError(f"{self.path}: {name} {str(settings[name])[:40]} is not supported")
        self.choice("type", str(settings.get("type")), {"transformer": ""})
        width, heads = self.integer("dim-emb", MAX_SIZE), self.integer("transformer-heads", MAX_SIZE)
        if width % heads:
            raise DataError(f"{self.path}: dim-emb {width} is not a multiple of {heads} transformer-heads")
        orders = [
            str(settings.get(f"transformer-{name}", "")) for name in ("preprocess", "postprocess", "postprocess-top")
        ]
        trained = self.trains_positions
        return {
            "width": width,
            "feed_forward_width": self.integer("transformer-dim-ffn", MAX_SIZE),
            "heads": heads,
            "encoder_layers": self.integer("enc-depth", MAX_LAYERS),
            "decoder_layers": self.integer("dec-depth", MAX_LAYERS),
            "positions": "learned" if trained else "frozen",
            "max_length": self.shape("Wpos")[0] if trained else MAX_POSITIONS,
            "residual": self.choice("the order of transformer-preprocess and -postprocess", tuple(orders), RESIDUALS),
            "norm_eps": NORM_EPS,
            "embedding_norm": "n" in str(settings.get("transformer-postprocess-emb", "")),
            "scale_embeddings": not trained,
            "output_bias": True,
            "feed_forward": self.choice(
                "transformer-ffn-activation", str(settings.get("transformer-ffn-activation")), ACTIVATIONS
            ),
            "decoder_self": self.decoder_self(),
            "tie": self.tie(),
        }

    @property
    def trains_positions(self) -> bool:
        names = ("transformer-train-position-embeddings", "transformer-train-positions")
        return any(self.settings.get(name) is True for name in names)

    def decoder_self(self) -> str:
        """Return the kind of layer that reads the target."""
        kind = str(self.settings.get("transformer-decoder-autoreg", "self-attention"))
        cell = f" with {self.settings.get('dec-cell')}" if kind == "rnn" else ""
        known = {"self-attention": "attention", "rnn with ssru": "ssru"}
        return self.choice("transformer-decoder-autoreg", f"{kind}{cell}"[:60], known)

    def alignment_head(self, layers: int) -> tuple[int, int] | None:
        """Return the head that Marian trains on alignments, if it does: the first of the layer in the settings."""
        layer = self.settings.get("transformer-guided-alignment-layer", "last")
        if layer == "last":
            return layers - 1, 0
        return (int(layer) - 1, 0) if str(layer).isdecimal() and 1 <= int(layer) <= layers else None

    def tie(self) -> str:
        """Return which matrices are shared, from their names."""
        shapes = self.file.shapes
        output = self.has_output
        if "Wemb" in shapes:
            return "source-target" if output else "all"
        return "none" if output else "output"

    @property
    def has_output(self) -> bool:
        return "decoder_ff_logit_out_W" in self.file.shapes or "decoder_ff_logit_out_Wt" in self.file.shapes

    # --- tensors

    def first(self, *names: str) -> str:
        """Return the first of several names that the file has."""
        for name in names:
            if name in self.file.shapes:
                return name
        raise DataError(f"{self.path}: has no tensor {names[-1]}")

    def shape(self, name: str) -> tuple[int, ...]:
        shape = self.file.shapes[self.first(name)]
        if len(shape) != 2:
            raise DataError(f"{self.path}: {name} has shape {list(shape)}, expected a matrix")
        return shape

    def vector(self, *names: str) -> LazyTensor:
        """Return a bias or norm, stored as one row."""
        return LazyTensor(lambda: torch.from_numpy(self.file.read(self.first(*names)).reshape(-1)))

    def matrix(self, *names: str) -> LazyTensor:
        """Return a weight, which Marian stores as (in, out)."""
        return LazyTensor(lambda: torch.from_numpy(self.file.read(self.first(*names)).T.copy()))

    def table(self, order: RowOrder | None, *names: str) -> LazyTensor:
        """Return a matrix with one row for each piece or position."""
        return LazyTensor(lambda: torch.from_numpy(self.file.read(self.first(*names))), order)

    def tensors(self, options: Mapping[str, Any], orders: tuple[RowOrder, RowOrder]) -> dict[str, LazyTensor]:
        """Return every parameter of our model as a tensor of the file."""
        source, target = orders
        tensors = {
            "source_embedding.weight": self.table(source, "encoder_Wemb", "Wemb"),
            "target_embedding.weight": self.table(target, "decoder_Wemb", "Wemb"),
            "output.weight": LazyTensor(self.output_matrix, target),
            "output.bias": LazyTensor(partial(self.output_bias, target)),
        }
        for side, ours in (("encoder", "source"), ("decoder", "target")):
            tensors |= self.norm(f"{side}_norm", f"{side}_top")
            tensors |= self.norm(f"{ours}_embedding_norm", f"{side}_emb")
            tensors[f"{ours}_positions.table.weight"] = (
                self.table(None, "Wpos") if self.trains_positions else LazyTensor(partial(sinusoids, options["width"]))
            )
            for index in range(options[f"{side}_layers"]):
                tensors |= self.layer(f"{side}.{index}", f"{side}_l{index + 1}", options["decoder_self"])
        return tensors

    def layer(self, ours: str, theirs: str, decoder_self: str) -> dict[str, LazyTensor]:
        """Return the parameters of one layer."""
        is_decoder = ours.startswith("decoder")
        tensors = self.norm(f"{ours}.around_feed_forward.norm", f"{theirs}_ffn_ffn")
        for name, number in (("inner", 1), ("outer", 2)):
            tensors[f"{ours}.feed_forward.{name}.weight"] = self.matrix(f"{theirs}_ffn_W{number}")
            tensors[f"{ours}.feed_forward.{name}.bias"] = self.vector(f"{theirs}_ffn_b{number}")
        if is_decoder:
            tensors |= self.attention(f"{ours}.cross", f"{theirs}_context")
            tensors |= self.norm(f"{ours}.around_cross.norm", f"{theirs}_context_Wo")
        if is_decoder and decoder_self == "ssru":
            tensors[f"{ours}.attention.forget.weight"] = self.matrix(f"{theirs}_rnn_Wf")
            tensors[f"{ours}.attention.forget.bias"] = self.vector(f"{theirs}_rnn_bf")
            tensors[f"{ours}.attention.candidate.weight"] = self.matrix(f"{theirs}_rnn_W")
            return tensors | self.norm(f"{ours}.around_attention.norm", f"{theirs}_rnn_ffn")
        tensors |= self.attention(f"{ours}.attention", f"{theirs}_self")
        return tensors | self.norm(f"{ours}.around_attention.norm", f"{theirs}_self_Wo")

    def attention(self, ours: str, theirs: str) -> dict[str, LazyTensor]:
        tensors = {}
        for name in ("query", "key", "value", "output"):
            tensors[f"{ours}.{name}.weight"] = self.matrix(f"{theirs}_W{name[0]}")
            tensors[f"{ours}.{name}.bias"] = self.vector(f"{theirs}_b{name[0]}")
        return tensors

    def norm(self, ours: str, theirs: str) -> dict[str, LazyTensor]:
        """Return a LayerNorm, whose name ends with `_pre` if it comes before its layer."""
        return {
            f"{ours}.{name}": self.vector(f"{theirs}_ln_{their}_pre", f"{theirs}_ln_{their}")
            for name, their in (("weight", "scale"), ("bias", "bias"))
        }

    def output_matrix(self) -> Tensor:
        """Return the output layer (V, D): its own, or the embeddings of the target."""
        if "decoder_ff_logit_out_W" in self.file.shapes:
            return self.matrix("decoder_ff_logit_out_W").read()
        return self.table(None, "decoder_ff_logit_out_Wt", "decoder_Wemb", "Wemb").read()

    def output_bias(self, order: RowOrder) -> Tensor:
        name = "decoder_ff_logit_out_b"
        return order.bias(self.vector(name).read() if name in self.file.shapes else None)


def sinusoids(width: int) -> Tensor:
    """Return Marian's positions: [sin ‖ cos] of p · 10000^(−i / (D/2 − 1))."""
    half = width // 2
    rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / max(half - 1, 1))
    angles = torch.arange(MAX_POSITIONS, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1).float()


# --- files next to the weights -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vocabularies:
    """The vocabulary files of source and target."""

    spm: tuple[Path, Path]  # SentencePiece models
    tables: tuple[Path, Path] | None  # {piece: row}; None: the row of a piece is its SentencePiece id

    @classmethod
    def find(cls, weights: Path) -> "Vocabularies":
        """Return the files that a decoder's configuration names, or the only ones that there are."""
        directory = weights.parent
        named = decoder_settings(weights).get("vocabs")
        if isinstance(named, list) and named and all(isinstance(name, str) for name in named):
            files = [directory / Path(name).name for name in (named[0], named[-1])]
        else:
            files = pair_of([*directory.glob("*.spm"), *directory.glob("*vocab*.yml"), *directory.glob("*vocab*.yaml")])
        if not files:
            raise DataError(f"{directory}: has no vocabulary; expected SentencePiece files (*.spm) or *vocab*.yml")
        if all(file.suffix == ".spm" for file in files):
            return cls((files[0], files[1]), None)
        spm = [directory / f"{side}.spm" for side in ("source", "target")]
        missing = [path for path in (*files, *spm) if not path.is_file()]
        if missing:
            raise DataError(f"{missing[0]}: is missing; {files[0].name} needs SentencePiece files for the segmentation")
        return cls((spm[0], spm[1]), (files[0], files[1]))

    def pieces(self, side: int) -> tuple[list[str], int, int]:
        """Return the pieces of a side in row order, and the rows of `<unk>` and `</s>`."""
        if self.tables is not None:
            pieces = read_table(self.tables[side])
            try:
                return pieces, pieces.index("<unk>"), pieces.index("</s>")
            except ValueError:
                raise DataError(f"{self.tables[side]}: has no <unk> or no </s>") from None
        processor = sentencepiece.SentencePieceProcessor(model_proto=read_sentencepiece(self.spm[side]))
        if processor.eos_id() < 0 or processor.unk_id() < 0:
            raise DataError(f"{self.spm[side]}: has no <unk> or no </s>")
        count = processor.get_piece_size()
        return [processor.id_to_piece(row) for row in range(count)], processor.unk_id(), processor.eos_id()


def pair_of(files: Sequence[Path]) -> list[Path]:
    """Return the source and target file: one table for both, or one each, assigned by their names."""
    tables = [file for file in files if file.suffix != ".spm"] or list(files)
    if len(tables) == 1:
        return [tables[0], tables[0]]
    sides = [
        [file for file in tables if file.name.startswith(prefixes)]
        for prefixes in (("src", "source"), ("trg", "target"))
    ]
    return [side[0] for side in sides] if all(len(side) == 1 for side in sides) else []


def read_table(path: Path) -> list[str]:
    """Read a {piece: row} file in YAML, line by line: a YAML parser would take a minute and drop some pieces."""
    rows: dict[int, str] = {}
    key: str | None = None
    for number, line in enumerate(read_bytes(path).decode(errors="replace").split("\n"), start=1):
        text = line.rstrip("\r")
        if not text or text == "---":
            continue
        if text.startswith("? "):
            key = text[2:]
            continue
        piece, _, row = text.rpartition(":") if key is None else (key, "", text.removeprefix(":"))
        key = None
        if not row.strip().isdecimal() or not piece or int(row) >= MAX_SIZE:
            raise DataError(f"{path}: line {number} is not a piece with its row")
        rows[int(row)] = unquote(piece)
    if not rows:
        raise DataError(f"{path}: is empty")
    if max(rows) >= 2 * len(rows) + 1000:
        raise DataError(f"{path}: has {len(rows):,} pieces, but one of them has the row {max(rows):,}")
    return [rows.get(row, f"<unused {row}>") for row in range(max(rows) + 1)]


def unquote(piece: str) -> str:
    """Return the string that a YAML scalar stands for."""
    if piece[:1] not in ("'", '"'):
        return piece
    try:
        return str(yaml.safe_load(piece))
    except yaml.YAMLError:
        return piece[1:-1]


def decoder_settings(weights: Path) -> dict[str, Any]:
    """Return the configuration of Marian's decoder that names this file; empty if there is none."""
    for path in sorted((*weights.parent.glob("*.yml"), *weights.parent.glob("*.yaml"))):
        if path.stat().st_size > MAX_CONFIG:
            continue
        try:
            settings = yaml.safe_load(read_bytes(path, MAX_CONFIG).decode())
        except (RecursionError, UnicodeDecodeError, yaml.YAMLError):
            continue
        models = settings.get("models") if isinstance(settings, dict) else None
        if isinstance(models, list) and any(Path(str(name)).name == weights.name for name in models):
            return dict(settings)
    return {}


def languages(weights: Path) -> tuple[str, str]:
    """Return the language codes in the name of the file, such as model.enpt.bin, or of its directory."""
    match = CODES.search(weights.name) or PAIR.search(weights.resolve().parent.name)
    return (match[1], match[2]) if match else ("", "")


def licence(directory: Path) -> str:
    """Return the text of a licence file."""
    for name in ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE"):
        if (directory / name).is_file():
            return read_bytes(directory / name, 1 << 20).decode(errors="replace")
    return ""
