"""Read Hugging Face directories of Marian (OPUS-MT), M2M100, NLLB-200, mBART-50 and mBART-25 models.

The families share one layer, with the same names. They differ in norms, positions, special tokens and tokenizers.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

import sentencepiece
import torch
from torch import Tensor

from softgaze.data.tokenizer import LanguageTokens
from softgaze.errors import DataError
from softgaze.importers.base import (
    ImportedModel,
    LazyTensor,
    Reference,
    RowOrder,
    make_tokenizers,
    read_bytes,
    read_json,
    read_sentencepiece,
)
from softgaze.importers.tensor_files import TensorFiles

CONFIG = "config.json"
MAX_LAYERS, MAX_POSITIONS, MAX_SIZE = 1000, 1 << 16, 1 << 24  # of a configuration that is still plausible
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
DEFAULT_MAX_LENGTH = 20  # of the library, where a model has none
POSITION_OFFSET = 2  # first row of a position table in fairseq's models
SPM, M2M_SPM = "source.spm", "sentencepiece.bpe.model"

M2M_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
MBART_LANGUAGES = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
)
MBART50_LANGUAGES = (
    f"{MBART_LANGUAGES} af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF "
    "pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)


def read_model(path: Path) -> ImportedModel:
    """Open a directory; tensors are read later."""
    config = read_json(path / CONFIG)
    kind = config.get("model_type")
    if kind not in FAMILIES:
        known = "Marian (OPUS-MT), M2M100, NLLB-200 and mBART"
        raise DataError(f"{path / CONFIG}: model_type {kind!r} cannot be imported; importable are {known}")
    return FAMILIES[kind](Directory(path, config)).model()


@dataclass(frozen=True)
class Directory:
    """A model directory with its configuration."""

    path: Path
    config: Mapping[str, Any]

    def integer(self, name: str, limit: int = MAX_SIZE) -> int:
        """Return a positive integer of the configuration."""
        value = self.config.get(name)
        if type(value) is not int or not 0 < value <= limit:
            raise DataError(f"{self.path / CONFIG}: {name} must be an integer from 1 to {limit:,}, got {value!r}")
        return value

    def token_id(self, name: str, default: int | None = None) -> int:
        """Return the id of a special token."""
        value = self.config.get(name, default)
        if type(value) is not int or not 0 <= value < MAX_SIZE:
            raise DataError(f"{self.path / CONFIG}: {name} must be a token id, got {value!r}")
        return value

    def sentencepiece(self, name: str) -> bytes:
        path = self.path / name
        if not path.is_file() and (self.path / "tokenizer.json").is_file():
            raise DataError(f"{path}: is missing; tokenizer.json cannot replace it: copy it from the original model")
        return read_sentencepiece(path)

    def optional_json(self, name: str) -> dict[str, Any]:
        return read_json(self.path / name) if (self.path / name).is_file() else {}

    def vocabulary(self, name: str, size: int) -> list[str]:
        """Return the pieces of a {piece: row} file in row order; a row without a piece gets a name of its own."""
        table = read_json(self.path / name)
        pieces = [f"<unused {row}>" for row in range(size)]
        for piece, row in table.items():
            if type(row) is not int or not 0 <= row < size:
                raise DataError(f"{self.path / name}: {piece!r} has the row {row!r}, expected 0 to {size - 1:,}")
            pieces[row] = piece
        return pieces

    def added_tokens(self) -> list[dict[str, Any]]:
        """Return the added tokens of a tokenizer.json."""
        added = self.optional_json("tokenizer.json").get("added_tokens", [])
        return [token for token in added if isinstance(token, dict)] if isinstance(added, list) else []

    def licence(self) -> str:
        """Return the text of a licence file, or the licence that the model card states."""
        for name in ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE"):
            if (self.path / name).is_file():
                return read_bytes(self.path / name, 1 << 20).decode(errors="replace")
        card = self.path / "README.md"
        text = read_bytes(card, 1 << 20).decode(errors="replace") if card.is_file() else ""
        stated = re.search(r"^license:\s*(\S.*)$", text, re.MULTILINE)
        return stated[1].strip() if stated else ""


class Family:
    """Base class of all families; subclasses have the differences."""

    name = ""
    reference_class = ""
    residual, positions, embedding_norm = "pre", "frozen", False

    def __init__(self, directory: Directory) -> None:
        self.directory, self.config = directory, directory.config
        self.weights = TensorFiles.open(directory.path)
        self.width = directory.integer("d_model")
        self.max_positions = directory.integer("max_position_embeddings", MAX_POSITIONS)
        self.source_size = directory.integer("vocab_size")
        self.target_size = self.source_size

    def model(self) -> ImportedModel:
        """Return the model in our terms."""
        directory, (source, target) = self.directory, self.orders()
        models = [directory.sentencepiece(name) for name in self.spm_files()]
        tokenizers = make_tokenizers(models, (source, target), self.special())
        languages = self.languages(source)
        own = directory.optional_json("tokenizer_config.json")
        pair = {f"{side}_language": str(own.get(f"{side}_lang") or "") for side in ("source", "target")}
        return ImportedModel(
            family=self.name,
            options=self.options(),
            tensors=self.tensors(source, target),
            tokenizers=tokenizers if languages is None else replace(tokenizers, languages=languages),
            source_order=source,
            target_order=target,
            files=(directory.path / CONFIG, *self.weights.paths, *(directory.path / name for name in self.spm_files())),
            max_length=self.max_length(),
            search=self.search(),
            licence=directory.licence(),
            alignment_head=self.alignment_head(),
            reference=self.reference if find_spec("transformers") else None,
            **(pair if languages is None else {"source_language": "" if languages.source else pair["source_language"]}),
        )

    # --- differences between families

    def orders(self) -> tuple[RowOrder, RowOrder]:
        """Return our source and target vocabularies as rows of the file."""
        raise NotImplementedError

    def spm_files(self) -> tuple[str, str]:
        """Return the SentencePiece files of source and target."""
        return M2M_SPM, M2M_SPM

    def languages(self, order: RowOrder) -> LanguageTokens | None:
        """Return the languages of a multilingual model."""
        return None

    def special(self) -> Sequence[str]:
        """Return pieces that text never becomes."""
        return ()

    def alignment_head(self) -> tuple[int, int] | None:
        """Return the layer and head of the cross-attention that are trained on alignments."""
        return None

    def position_table(self) -> Tensor:
        """Return the fixed positions (N, D), position 0 first."""
        raise NotImplementedError

    def tie(self) -> str:
        """Return which matrices are shared."""
        if self.config.get("tie_word_embeddings", True):
            return "all"
        own = {f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
        return "none" if own <= self.weights.shapes.keys() else "source-target"

    def embedding_names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return the names that the source, target and output matrix may have."""
        shared = "model.shared.weight"
        if self.tie() == "all":
            both = (shared, "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight", "lm_head.weight")
            return both, both, both
        source, target = ((f"model.{side}.embed_tokens.weight", shared) for side in ("encoder", "decoder"))
        return source, target, ("lm_head.weight",)

    # --- options

    def options(self) -> dict[str, Any]:
        """Return the options of our Transformer."""
        directory, config = self.directory, self.config
        activation = config.get("activation_function")
        if activation not in ACTIVATIONS:
            raise DataError(f"{directory.path / CONFIG}: activation {activation!r} is not supported")
        sizes = {
            name: (directory.integer(f"encoder_{name}"), directory.integer(f"decoder_{name}"))
            for name in ("ffn_dim", "attention_heads")
        }
        for name, (encoder, decoder) in sizes.items():
            if encoder != decoder:
                raise DataError(f"{directory.path / CONFIG}: {name} differs between encoder and decoder: not supported")
        layers = {f"{side}_layers": directory.integer(f"{side}_layers", MAX_LAYERS) for side in ("encoder", "decoder")}
        if self.width % sizes["attention_heads"][0]:
            raise DataError(f"{directory.path / CONFIG}: d_model is not a multiple of the attention heads")
        return {
            "width": self.width,
            "feed_forward_width": sizes["ffn_dim"][0],
            "heads": sizes["attention_heads"][0],
            **layers,
            "positions": self.positions,
            "max_length": self.max_positions,
            "residual": self.residual,
            "embedding_norm": self.embedding_norm,
            "scale_embeddings": bool(config.get("scale_embedding", False)),
            "output_bias": True,
            "feed_forward": ACTIVATIONS[activation],
            "dropout": float(config.get("dropout", 0.1)),
            "attention_dropout": float(config.get("attention_dropout", 0.0)),
            "tie": self.tie(),
        }

    def search(self) -> dict[str, Any]:
        """Return the search options that the files set; older ones are in the configuration."""
        stored = {**self.config, **self.directory.optional_json("generation_config.json")}
        names = {"num_beams": "beam_size", "length_penalty": "length_penalty"}
        return {ours: stored[theirs] for theirs, ours in names.items() if is_number(stored.get(theirs))}

    def max_length(self) -> int:
        """Return the longest source; longer text is split, where the original cuts its translation at max_length."""
        stated = {**self.config, **self.directory.optional_json("generation_config.json")}.get("max_length")
        if is_number(stated) and stated > DEFAULT_MAX_LENGTH:
            return min(int(stated) - 1, self.max_positions)
        return self.max_positions

    # --- tensors

    def tensors(self, source: RowOrder, target: RowOrder) -> dict[str, LazyTensor]:
        """Return every parameter of our model as a tensor of the file."""
        weights, tensors = self.weights, {}
        for side in ("encoder", "decoder"):
            for index in range(self.directory.integer(f"{side}_layers", MAX_LAYERS)):
                theirs = f"model.{side}.layers.{index}"
                for ours, their in layer_names(side).items():
                    for kind in ("weight", "bias"):
                        tensors[f"{side}.{index}.{ours}.{kind}"] = weights.lazy(f"{theirs}.{their}.{kind}")
        for kind in ("weight", "bias"):
            for side, ours in (("encoder", "source"), ("decoder", "target")):
                tensors[f"{side}_norm.{kind}"] = weights.lazy(f"model.{side}.layer_norm.{kind}")
                tensors[f"{ours}_embedding_norm.{kind}"] = weights.lazy(f"model.{side}.layernorm_embedding.{kind}")
        sources, targets, outputs = self.embedding_names()
        tensors["source_embedding.weight"] = LazyTensor(weights.lazy(*sources).read, source)
        tensors["target_embedding.weight"] = LazyTensor(weights.lazy(*targets).read, target)
        tensors["output.weight"] = LazyTensor(weights.lazy(*outputs).read, target)
        bias = "final_logits_bias"
        tensors["output.bias"] = LazyTensor(lambda: target.bias(weights.read(bias) if bias in weights.shapes else None))
        for side, ours in (("encoder", "source"), ("decoder", "target")):
            tensors[f"{ours}_positions.table.weight"] = LazyTensor(partial(self.positions_of, side))
        return tensors

    def positions_of(self, side: str) -> Tensor:
        """Return the positions of a side: stored ones, or the family's fixed ones."""
        return self.position_table()

    # --- comparison

    def reference(self) -> Reference:
        """Load the model with the library that wrote it."""
        import transformers

        cls = getattr(transformers, self.reference_class)
        level = transformers.utils.logging.get_verbosity()
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        try:
            model = cls.from_pretrained(self.directory.path, dtype=torch.float32, local_files_only=True).eval()
        finally:
            transformers.utils.logging.set_verbosity(level)
            transformers.utils.logging.enable_progress_bar()

        @torch.inference_mode()
        def logits(sources: list[list[int]], targets: list[list[int]]) -> Tensor:
            rows = [
                model(input_ids=torch.tensor([s]), decoder_input_ids=torch.tensor([t])).logits[0]
                for s, t in zip(sources, targets, strict=True)
            ]
            return torch.stack(rows)

        return Reference(f"{self.reference_class} of transformers {version('transformers')}", logits)


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def layer_names(side: str) -> dict[str, str]:
    """Return {our name: their name} of the linear layers and norms of one layer."""
    projections = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    attentions = {"attention": "self_attn"} | ({"cross": "encoder_attn"} if side == "decoder" else {})
    names = {
        f"{ours}.{projection}": f"{theirs}.{their_projection}"
        for ours, theirs in attentions.items()
        for projection, their_projection in projections.items()
    }
    names |= {f"around_{ours}.norm": f"{theirs}_layer_norm" for ours, theirs in attentions.items()}
    return names | {
        "feed_forward.inner": "fc1",
        "feed_forward.outer": "fc2",
        "around_feed_forward.norm": "final_layer_norm",
    }


# --- Marian -----------------------------------------------------------------------------------------------------


class MarianFamily(Family):
    """OPUS-MT: post-norm, sinusoids in halves, pieces in vocab.json, target languages as >>xxx<< before the source."""

    name, reference_class, residual = "Marian (Hugging Face)", "MarianMTModel", "post"
    language = re.compile(r">>(.+)<<")

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        self.separate = not self.config.get("share_encoder_decoder_embeddings", True)
        if self.separate:
            self.target_size = directory.integer("decoder_vocab_size")

    def orders(self) -> tuple[RowOrder, RowOrder]:
        directory = self.directory
        start, eos = directory.token_id("decoder_start_token_id"), directory.token_id("eos_token_id")
        pad = directory.token_id("pad_token_id", start)
        two_files = (directory.path / "target_vocab.json").is_file()
        source = directory.vocabulary("vocab.json", self.source_size)
        target = directory.vocabulary("target_vocab.json", self.target_size) if two_files else source
        orders = [
            RowOrder.of(pieces, unk=pieces.index("<unk>") if "<unk>" in pieces else eos, eos=eos, pad=pad, start=start)
            for pieces in (source, target)
        ]
        return orders[0], orders[1]

    def spm_files(self) -> tuple[str, str]:
        return SPM, "target.spm"

    def languages(self, order: RowOrder) -> LanguageTokens | None:
        found = {match[1]: piece for piece in order.pieces if (match := self.language.fullmatch(piece))}
        if not found:
            return None
        return LanguageTokens({}, found, source_frame=("target", "text", "eos"))

    def special(self) -> Sequence[str]:
        return [
            piece
            for piece in self.directory.vocabulary("vocab.json", self.source_size)
            if self.language.fullmatch(piece)
        ]

    def tie(self) -> str:
        tied = bool(self.config.get("tie_word_embeddings", True))
        if self.separate:
            return "output" if tied else "none"
        return super().tie()

    def embedding_names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        if not self.separate:
            return super().embedding_names()
        target = ("model.decoder.embed_tokens.weight",)
        output = ("lm_head.weight", *target) if self.tie() == "output" else ("lm_head.weight",)
        return ("model.encoder.embed_tokens.weight",), target, output

    def alignment_head(self) -> tuple[int, int]:
        """OPUS-MT models are trained with Marian's default: the first head of the last layer."""
        return self.directory.integer("decoder_layers", MAX_LAYERS) - 1, 0

    def position_table(self) -> Tensor:
        """[sin ‖ cos] of p / 10000^(2i/D)."""
        pairs = torch.arange(0, self.width, 2, dtype=torch.float64)
        angles = torch.arange(self.max_positions, dtype=torch.float64)[:, None] / 10000 ** (pairs / self.width)
        return torch.cat([angles.sin(), angles.cos()], 1)[:, : self.width].float()

    def positions_of(self, side: str) -> Tensor:
        name = f"model.{side}.embed_positions.weight"
        return self.weights.read(name) if name in self.weights.shapes else self.position_table()


# --- fairseq's multilingual models ------------------------------------------------------------------------------


class M2MFamily(Family):
    """M2M100: pre-norm, sinusoids from row 2, [source] before the text, the target starts from </s> [target]."""

    name, reference_class = "M2M100 (Hugging Face)", "M2M100ForConditionalGeneration"
    language, known = re.compile(r"__(.+)__"), M2M_LANGUAGES
    source_frame: tuple[str, ...] = ("source", "text", "eos")
    decoder_start: tuple[str, ...] = ("bos", "target")

    def orders(self) -> tuple[RowOrder, RowOrder]:
        directory = self.directory
        eos, pad = directory.token_id("eos_token_id", 2), directory.token_id("pad_token_id", 1)
        pieces = self.pieces()
        if "<unk>" not in pieces:
            raise DataError(f"{directory.path}: its vocabulary has no <unk>")
        start = directory.token_id("decoder_start_token_id", eos) if "bos" in self.decoder_start else None
        order = RowOrder.of(pieces, unk=pieces.index("<unk>"), eos=eos, pad=pad, start=start)
        return order, order

    @cached_property
    def text_pieces(self) -> list[str]:
        """Pieces in row order, without languages."""
        table = read_json(self.directory.path / "vocab.json")
        return self.directory.vocabulary("vocab.json", len(table))

    def pieces(self) -> list[str]:
        """Return the piece of every row; rows after the languages have none."""
        pieces = [f"<unused {row}>" for row in range(self.source_size)]
        placed = {**{piece: row for row, piece in enumerate(self.text_pieces)}, **self.language_rows}
        if len(placed) > len(pieces) or max(placed.values()) >= len(pieces):
            raise DataError(
                f"{self.directory.path / CONFIG}: vocab_size is {len(pieces):,}, but the tokenizer has "
                f"{max(placed.values()) + 1:,} rows"
            )
        for piece, row in placed.items():
            pieces[row] = piece
        return pieces

    @cached_property
    def language_rows(self) -> dict[str, int]:
        """The row of each language token: as the tokenizer's files state, else after the text in a known order."""
        directory = self.directory
        own = directory.optional_json("tokenizer_config.json")
        stated = {
            **{str(token.get("content")): token.get("id") for token in directory.added_tokens()},
            **{str(token.get("content")): int(row) for row, token in dict(own.get("added_tokens_decoder", {})).items()},
            **directory.optional_json("added_tokens.json"),
        }
        rows = {piece: row for piece, row in stated.items() if type(row) is int and self.language.fullmatch(piece)}
        if rows:
            return rows
        special = directory.optional_json("special_tokens_map.json")
        listed = [*special.get("additional_special_tokens", ()), *own.get("additional_special_tokens", ())]
        names = [*dict.fromkeys(piece for piece in listed if self.language.fullmatch(str(piece)))]
        names = names or [self.token_of(code) for code in self.known.split()]
        if not names:
            raise DataError(f"{directory.path}: special_tokens_map.json, which lists the languages, is missing")
        return {piece: len(self.text_pieces) + index for index, piece in enumerate(names)}

    def token_of(self, code: str) -> str:
        return f"__{code}__"

    def code_of(self, piece: str) -> str:
        match = self.language.fullmatch(piece)
        return match[1] if match else piece

    def languages(self, order: RowOrder) -> LanguageTokens | None:
        table = {self.code_of(piece): piece for piece in sorted(self.language_rows, key=self.language_rows.__getitem__)}
        return LanguageTokens(table, table, self.source_frame, self.decoder_start)

    def special(self) -> Sequence[str]:
        return [*self.language_rows, "<mask>", *(piece for piece in self.pieces() if piece.startswith("<unused "))]

    def position_table(self) -> Tensor:
        """[sin ‖ cos] of p · 10000^(−i/(D/2−1)), in float32 as the original computes them; p counts from row 2."""
        half = self.width // 2
        frequencies = torch.exp(torch.arange(half).float() * -(math.log(10000) / max(half - 1, 1)))
        angles = torch.arange(POSITION_OFFSET, POSITION_OFFSET + self.max_positions).float()[:, None] * frequencies
        table = torch.cat([angles.sin(), angles.cos()], 1)
        return torch.nn.functional.pad(table, (0, self.width - 2 * half))


class NLLBFamily(M2MFamily):
    """NLLB-200: as M2M100, but a row is the SentencePiece id plus 1."""

    name = "NLLB-200 (Hugging Face)"
    language, known = re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"), ""

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        if directory.optional_json("tokenizer_config.json").get("legacy_behaviour"):
            self.source_frame = ("text", "eos", "source")

    @cached_property
    def text_pieces(self) -> list[str]:
        return ["<s>", "<pad>", "</s>", "<unk>", *spm_pieces(self.directory.sentencepiece(M2M_SPM))]

    def token_of(self, code: str) -> str:
        return code


class MBart50Family(NLLBFamily):
    """mBART-50: GELU, learned positions from row 2, and a norm of the embeddings."""

    name, reference_class = "mBART-50 (Hugging Face)", "MBartForConditionalGeneration"
    language, known = re.compile(r"([a-z]{2}_[A-Z]{2})"), MBART50_LANGUAGES
    positions, embedding_norm = "learned", True

    def positions_of(self, side: str) -> Tensor:
        return self.weights.read(f"model.{side}.embed_positions.weight")[POSITION_OFFSET:]


class MBartFamily(MBart50Family):
    """mBART-25: the source language follows the text, and the target starts from its language."""

    name, known = "mBART-25 (Hugging Face)", MBART_LANGUAGES
    source_frame, decoder_start = ("text", "eos", "source"), ("target",)


def spm_pieces(model: bytes) -> list[str]:
    """Return the pieces after the three special ones of fairseq's SentencePiece models."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(row) for row in range(3, processor.get_piece_size())]


def m2m_or_nllb(directory: Directory) -> Family:
    """M2M100 has a vocabulary file; in NLLB the SentencePiece model determines the rows."""
    return M2MFamily(directory) if (directory.path / "vocab.json").is_file() else NLLBFamily(directory)


def mbart_25_or_50(directory: Directory) -> Family:
    """Detect the version by the tokenizer's name or, without it, by the number of languages."""
    name = str(directory.optional_json("tokenizer_config.json").get("tokenizer_class", ""))
    rows = directory.integer("vocab_size") - 1 - len(spm_pieces(directory.sentencepiece(M2M_SPM)))
    is_50 = "50" in name if name.startswith("MBart") else rows > len(MBART_LANGUAGES.split()) + 4
    return MBart50Family(directory) if is_50 else MBartFamily(directory)


FAMILIES: dict[str, Callable[[Directory], Family]] = {
    "marian": MarianFamily,
    "m2m_100": m2m_or_nllb,
    "mbart": mbart_25_or_50,
}
