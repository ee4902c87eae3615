"""A tiny real bundle on disk, and a model that copies: what tests of the facade and the command line need."""

import atexit
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from softgaze.bundle import Bundle, Description, Tokenizers, save_bundle
from softgaze.data.language_id import LanguageDetector
from softgaze.data.tokenizer import Tokenizer, train_tokenizer
from softgaze.engines.torch_engine import TorchEngine
from softgaze.models.base import Advance, AttentionHook, Memory, Seq2Seq, Source, select_rows
from softgaze.translator import Translator

WORDS = {
    "en": ["the", "a", "dog", "cat", "man", "tree", "runs", "sleeps", "sees", "red", "small", "old"],
    "ko": ["개", "고양이", "나무", "달려요", "자요", "봐요", "작은", "빨간"],
}
SMALL = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


def lines(language: str, count: int = 200) -> list[str]:
    dice = random.Random(count)
    return [" ".join(dice.choices(WORDS[language], k=dice.randint(2, 8))) + "." for _ in range(count)]


@cache
def tokenizer() -> Tokenizer:
    return train_tokenizer([*lines("en"), *lines("ko")])


def describe(**changes: Any) -> Description:
    plain = {"arch": "transformer", "size": "tiny", "options": SMALL, "max_length": 12}
    return Description(**{**plain, "source_language": "en", "target_language": "ko", **changes})


def make_bundle(path: Path, **changes: Any) -> Path:
    """An untrained model of the usual shape."""
    torch.manual_seed(1)
    description, both = describe(**changes), Tokenizers(tokenizer(), tokenizer())
    detector = LanguageDetector.train({language: lines(language) for language in WORDS})
    facts = {"steps": 12_345, "scores": {"bleu": 12.5}, "left_out": None}
    save_bundle(path, description.build(both), description, both, detector, facts)
    return path


@cache
def tiny_bundle() -> Path:
    """A bundle for all tests to read, not to be changed; removed when they are done."""
    directory = Path(tempfile.mkdtemp(prefix="softgaze-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return make_bundle(directory / "tiny")


class CopierState(NamedTuple):
    """The source and the position of the copier."""

    source: Tensor  # (B, S)
    position: Tensor  # (B,)

    def reorder(self, index: Tensor) -> Self:
        chosen: Self = select_rows(self, index)
        return chosen


class Copier(Seq2Seq):
    """Writes what it reads, END included; counts what it was given, so that tests see the batches."""

    has_cross_attention = False

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.eval()
        self.vocabulary, self.output = vocabulary, nn.Identity()
        self.batches: list[tuple[int, int]] = []

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        self.batches.append((source.values.shape[0], source.values.shape[1]))
        return Memory(source.values[..., None].float(), torch.ones(len(source.lengths), 1, 1, 1, dtype=torch.bool))

    def start(self, memory: Memory) -> CopierState:
        ids = memory.values[..., 0].long()
        return CopierState(ids, torch.zeros(len(ids), dtype=torch.long))

    def advance(
        self, tokens: Tensor, state: Any, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        positions = (state.position[:, None] + torch.arange(tokens.shape[1])).clamp(max=state.source.shape[1] - 1)
        wanted = state.source.gather(1, positions)
        features = 20.0 * nn.functional.one_hot(wanted, self.vocabulary).float()
        weights = torch.zeros(len(wanted), 0, tokens.shape[1], state.source.shape[1])
        return Advance(features, CopierState(state.source, state.position + tokens.shape[1]), weights)


def copier(path: Path, **changes: Any) -> Translator:
    """A translator that gives back normalised text, around a bundle that need not exist."""
    both = Tokenizers(tokenizer(), tokenizer())
    bundle = Bundle(path, describe(**changes), {}, {})
    bundle.__dict__["tokenizers"] = both  # where cached_property keeps what it would read from the disk
    return Translator(bundle, TorchEngine(Copier(len(tokenizer())), both, torch.device("cpu")))
