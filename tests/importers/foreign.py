"""Small random models of other toolkits, saved in the layout that their users download."""

import io
import json
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

transformers = pytest.importorskip("transformers", reason="the reference implementation is not installed")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
}
SENTENCES = ("bad cafe", "a face, a bed!", "deaf dad fed a beige cab")


@cache
def spm(seed: int = 0, letters: str = "abcdefg") -> bytes:
    """A SentencePiece model of random words."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(letters, k=draw.randint(1, 5))) for _ in range(300)]
    lines = [" ".join(draw.choices(words, k=8)) + draw.choice((".", "!", "?", ",")) for _ in range(400)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=70, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    """The pieces of a SentencePiece model without its special ones."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(row) for row in range(3, processor.get_piece_size())]


def save(model: Any, directory: Path, files: Mapping[str, Any], seed: int, **arguments: Any) -> Any:
    """Draw every parameter and buffer of the output again, save the model, and add the files of its tokenizer."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name or parameter.requires_grad:
                parameter.normal_(0, 0.2, generator=generator)
            if "norm" in name and name.endswith("weight"):
                parameter.add_(1)
        if getattr(model, "final_logits_bias", None) is not None:
            model.final_logits_bias.normal_(0, 0.5, generator=generator)
            model.final_logits_bias[:, [1, model.config.pad_token_id]] -= (
                20  # <unk>, <pad>: no trained model writes them
            )
    model.eval().save_pretrained(directory, **arguments)
    for name, content in files.items():
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        (directory / name).write_bytes(content)
    return model


def marian(
    directory: Path, seed: int = 0, *, separate: bool = False, languages: tuple[str, ...] = (), **options: Any
) -> Any:
    """OPUS-MT: </s> 0, <unk> 1, pieces, language tokens, <pad> last."""
    source, target = spm(1), spm(2, "fghijkl")
    saving = {name: options.pop(name) for name in ("max_shard_size",) if name in options}
    sides = [pieces_of(source), pieces_of(target)]
    if not separate:
        sides = [[*dict.fromkeys([*sides[0], *sides[1]])]] * 2
    tags = [f">>{code}<<" for code in languages]
    tables = [{piece: row for row, piece in enumerate(["</s>", "<unk>", *side, *tags, "<pad>"])} for side in sides]
    if separate:  # one pad id serves both sides
        size = max(map(len, tables))
        for table in tables:
            last = table.pop("<pad>")
            table |= {f"<filler{row}>": row for row in range(last, size - 1)} | {"<pad>": size - 1}
    pad = tables[0]["<pad>"]
    config = transformers.MarianConfig(
        **{**SIZES, "activation_function": "swish", "scale_embedding": True, **options},
        vocab_size=len(tables[0]),
        decoder_vocab_size=len(tables[1]),
        share_encoder_decoder_embeddings=not separate,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
        bos_token_id=None,
    )
    files = {
        "source.spm": source,
        "target.spm": target,
        "vocab.json": tables[0],
        "tokenizer_config.json": {"source_lang": "en", "target_lang": "xx"},
    }
    if separate:
        files["target_vocab.json"] = tables[1]
    return save(transformers.MarianMTModel(config), directory, files, seed, **saving)


NLLB_CODES = ("deu_Latn", "eng_Latn", "fra_Latn", "kor_Hang", "zul_Latn")
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")


def multilingual(directory: Path, seed: int, kind: str, rows: int, files: Mapping[str, Any], options: Any) -> Any:
    """M2M100 and mBART: <s> 0, <pad> 1, </s> 2, <unk> 3."""
    saving = {name: options.pop(name) for name in ("max_shard_size",) if name in options}
    activation = "relu" if kind == "M2M100" else "gelu"
    config = getattr(transformers, f"{kind}Config")(
        **{**SIZES, "activation_function": activation, "scale_embedding": True, **options},
        vocab_size=rows,
        decoder_start_token_id=2,
        forced_eos_token_id=2,
    )
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config)
    return save(model, directory, files, seed, **saving)


def m2m(directory: Path, seed: int = 0, **options: Any) -> Any:
    """The 100 languages after the pieces of vocab.json, then rows that nothing uses; no file lists the languages."""
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    table = {piece: row for row, piece in enumerate([*FAIRSEQ, *pieces_of(spm())])}
    files = {"vocab.json": table, "sentencepiece.bpe.model": spm()}
    languages = len(FAIRSEQ_LANGUAGE_CODES["m2m100"])
    return multilingual(directory, seed, "M2M100", len(table) + languages + 8, files, options)


def nllb(directory: Path, seed: int = 0, legacy: bool = False, **options: Any) -> Any:
    """Row = SentencePiece id + 1, then languages and <mask>."""
    text = [*FAIRSEQ, *pieces_of(spm())]
    files = {
        "sentencepiece.bpe.model": spm(),
        "special_tokens_map.json": {"additional_special_tokens": list(NLLB_CODES)},
        "tokenizer_config.json": {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": legacy},
    }
    return multilingual(directory, seed, "M2M100", len(text) + len(NLLB_CODES) + 3, files, options)


def mbart(directory: Path, seed: int = 0, tokenizer: str = "MBart50Tokenizer", **options: Any) -> Any:
    """mBART-50, or mBART-25 by the name of its tokenizer."""
    text, languages = [*FAIRSEQ, *pieces_of(spm())], 52 if "50" in tokenizer else 25
    files = {"sentencepiece.bpe.model": spm(), "tokenizer_config.json": {"tokenizer_class": tokenizer}}
    return multilingual(directory, seed, "MBart", len(text) + languages + 1, files, options)


def load(directory: Path) -> Any:
    """The saved model, as its own library loads it."""
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(directory, dtype=torch.float32).eval()
