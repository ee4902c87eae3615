"""Validation on held-out pairs: loss, BLEU, chrF, and the attention map of one fixed sentence."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import torch
from sacrebleu.metrics.chrf import CHRF

from softgaze.alignment import train_aligner
from softgaze.atomic_io import write_bytes, write_errors
from softgaze.bundle import FAITHFULNESS, Tokenizers, add_facts
from softgaze.caption_metrics import score_captions
from softgaze.config import ValidationSettings
from softgaze.data.batching import Batch, batch_by_length
from softgaze.data.shards import Shards
from softgaze.data.tokenizer import Frame
from softgaze.engines.torch_engine import TorchDecoder
from softgaze.errors import DataError
from softgaze.explain.attention_map import Attention
from softgaze.explain.confidence import calibrate
from softgaze.explain.erasure import compare_maps
from softgaze.explain.map_selection import SentencePairs, longer_pairs, sample_pairs
from softgaze.explain.recording import PartAttention, View
from softgaze.explain.reliability import calibrate_reliability
from softgaze.explain.scoring import TokenizedPair, record_attention
from softgaze.explain.serialization import Snapshot, history_lines
from softgaze.metrics import score
from softgaze.models.base import Seq2Seq, Source
from softgaze.search import SearchOptions
from softgaze.search.beam import beam_search
from softgaze.training.collate import collate
from softgaze.training.loss import summed_loss
from softgaze.training.preprocess import PreprocessedData
from softgaze.translator import load

Samples = tuple[tuple[str, str, str], ...]  # source, reference, translation

BATCH_TOKENS = 4096  # small enough to fit wherever training fits
ALIGNER_PAIRS = 10_000  # pairs that an aligner learns from, if training has none: seconds
CONFIDENCE_PAIRS = 250  # held-out pairs: some thousand words for seven weights, in seconds
ERASURE_PAIRS, ERASURE_TEXTS, MAX_ERASURE_WORDS = 8, 3, 60  # held-out pairs, longer texts, words of a text
HISTORY_WORDS = range(8, 15)  # source words of a sentence that fits a screen


def validate(
    model: Seq2Seq, data: PreprocessedData, settings: ValidationSettings, device: torch.device
) -> tuple[dict[str, float], Samples]:
    """Return loss, BLEU and chrF on the held-out pairs, of captions also CIDEr-D, and sample translations."""
    is_text, language = data.tokenizers.source.is_text, data.facts["languages"][1]
    references: dict[str, list[str]] = {}  # of each file; pairs of text are never joined
    for pair in () if is_text else data.dev_text:
        references.setdefault(pair.source, []).append(pair.target)
    entries = [([pair.target], pair.source) for pair in data.dev_text] if is_text else []
    entries = (entries or [(texts, source) for source, texts in references.items()])[: settings.sentences]
    captions_scored = None if is_text else sum(len(texts) for texts, _ in entries)  # the loss of more takes minutes
    with evaluating(model):
        outputs = translate_greedy(model, data.tokenizers, [source for _, source in entries], device)
        loss = dev_loss(model, data.dev, device, data.tokenizers.frame, captions_scored)
    samples = tuple((source, texts[0], output) for (texts, source), output in zip(entries, outputs, strict=True))
    expected = [texts for texts, _ in entries]
    if is_text:
        scores = score(outputs, [text for [text] in expected], language=language, ter=False)
        return {"loss": loss, "bleu": scores.bleu, "chrf": scores.chrf}, samples[: settings.samples]
    captions = score_captions(outputs, expected, language=language).values
    chrf = CHRF().corpus_score(outputs, [list(texts) for texts in zip_longest(*expected)]).score
    scores_of_captions = {"bleu": captions["bleu_4"], "chrf": float(chrf), "cider": captions["cider"]}
    return {"loss": loss, **scores_of_captions}, samples[: settings.samples]


def calibrate_confidence(path: Path, data: PreprocessedData, device: torch.device) -> None:
    """Fit the confidence of words on held-out pairs; store it in the bundle at `path`."""
    if not data.tokenizers.source.is_text:
        return  # captions have several references
    pairs = data.dev_text[:CONFIDENCE_PAIRS]
    translator = load(path, str(device), engine="torch")
    translations = translator.translate([source for source, _ in pairs])
    fitted = calibrate(translator, translations, [target for _, target in pairs])
    if fitted is not None:
        add_facts(path, fitted.to_facts())


def calibrate_links(path: Path, data: PreprocessedData, device: torch.device) -> None:
    """Fit the reliability of the selected map on held-out pairs; store it in the bundle at `path`.

    The links to compare with are those of the bundle's word aligner, or of one that learns from a sample of the text.
    """
    translator = load(path, str(device), engine="torch")
    if translator.selected_map is None or not data.tokenizers.source.is_text:
        return
    aligner = translator.statistical_aligner
    if aligner is None:
        source, target = data.tokenizers.source, data.tokenizers.target
        step = data.segmentations * max(1, data.facts["pairs"] // ALIGNER_PAIRS)  # the first is the most probable one
        rows = [data.train[index] for index in range(0, len(data.train), step)]
        texts = [(source.decode(own.tolist()), target.decode(other.tolist())) for own, other in rows]
        try:
            aligner = train_aligner(texts)
        except DataError:  # no sentence is short enough to align
            return
    fitted = calibrate_reliability(translator, aligner, data.dev_text)
    if fitted is not None:
        add_facts(path, fitted.to_facts())


def compare_measures(path: Path, data: PreprocessedData, device: torch.device) -> None:
    """Test the selected map and other measures by erasing words; store the scores in the bundle at `path`.

    Held-out pairs and longer texts of several pairs are used, so that `explain` shows the most faithful measure.
    """
    translator = load(path, str(device), engine="torch")
    if translator.selected_map is None or not data.tokenizers.source.is_text:
        return
    sample = sample_pairs(data.dev_text)
    longer = translator.aligner().forward.fitting(longer_pairs(sample))
    pairs = [*sample[:ERASURE_PAIRS], *longer[:ERASURE_TEXTS]]
    translations = [translator.score(*pair) for pair in pairs]
    scores = compare_maps(translator, translations, range(2, MAX_ERASURE_WORDS + 1))
    if scores:
        add_facts(path, {FAITHFULNESS: {name: each.to_dict() for name, each in scores.items()}})


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[None]:
    """Put the model into evaluation mode for the block."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@torch.no_grad()
def dev_loss(
    model: Seq2Seq, shards: Shards, device: torch.device, frame: Frame = Frame(), limit: int | None = None
) -> float:
    """Return the loss per token of the first `limit` pairs without label smoothing; its exponential is perplexity."""
    longest = shards.lengths(np.arange(len(shards))[:limit]).max(axis=1) + 1
    total, tokens = 0.0, 0
    for pairs in batch_by_length(longest, BATCH_TOKENS):
        batch = collate(shards, Batch(pairs, 0), device, frame=frame)
        total += float(summed_loss(model, batch, label_smoothing=0.0))
        tokens += batch.num_tokens
    return total / tokens


def translate_greedy(model: Seq2Seq, tokenizers: Tokenizers, texts: Sequence[str], device: torch.device) -> list[str]:
    """Return greedy translations of `texts`, in order; a source is cut to the positions that the model has."""
    positions = model.max_positions
    longest = None if positions is None or model.reads_features else positions - 1  # and EOS
    sources = [tokenizers.source.add_eos(items[:longest]) for items in tokenizers.source.encode(texts)]
    outputs = [""] * len(texts)
    for indices in batch_by_length([len(source) for source in sources], BATCH_TOKENS):
        batch = Source.of([sources[index] for index in indices], device)
        decoder = TorchDecoder(model, batch, start=tokenizers.target.start)
        hypotheses = beam_search(decoder, SearchOptions(beam_size=1), max_positions=positions)
        for index, [hypothesis] in zip(indices, hypotheses, strict=True):
            outputs[index] = tokenizers.target.decode(hypothesis.tokens)
    return outputs


def metric_value(scores: dict[str, float], metric: str) -> float:
    """Return the chosen metric such that higher is better; a value that is not finite is worse than any other.

    Early BLEU is often 0.0 twice in a row: a thousandth of the loss breaks such ties.
    """
    value = -scores["loss"] if metric == "loss" else scores[metric] - scores["loss"] / 1000
    return value if math.isfinite(value) else -math.inf


class AttentionHistory:
    """Appends the cross-attention of one held-out sentence at each validation to a file."""

    def __init__(self, path: Path, tokenizers: Tokenizers, device: torch.device, pair: tuple[str, str]) -> None:
        self.path, self.tokenizers, self.device = path, tokenizers, device
        self.pair = TokenizedPair.of(*pair, tokenizers)

    @classmethod
    def for_run(cls, path: Path, data: PreprocessedData, device: torch.device) -> "AttentionHistory | None":
        """Return the history of a readable held-out pair, or None if no pair has words on both sides."""
        pair = choose_pair(data.dev_text)
        return cls(path, data.tokenizers, device, pair) if pair else None

    def truncate(self, step: int) -> int:
        """Drop the snapshots after `step` and a line cut by a crash; return how many remain."""
        lines = [line for line in history_lines(self.path) if json.loads(line)["step"] <= step]
        write_bytes(self.path, b"".join(line + b"\n" for line in lines))
        return len(lines)

    def append(self, model: Seq2Seq, step: int, elapsed: float, scores: dict[str, float]) -> None:
        """Append a snapshot of the model."""
        with evaluating(model):
            [text] = translate_greedy(model, self.tokenizers, [self.pair.source], self.device)
            [recording] = record_attention(model, self.tokenizers, [self.pair])
        # Without the self-attentions, which would triple the size.
        recording = replace(recording, parts=tuple(PartAttention(part.cross) for part in recording.parts))
        rounded = {name: round(value, 4) for name, value in scores.items()}
        snapshot = Snapshot(step, round(elapsed / 60, 3), rounded, text, Attention(recording, View()))
        with write_errors(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(snapshot.to_line() + "\n")


def choose_pair(pairs: SentencePairs) -> tuple[str, str] | None:
    """Return the first pair of a readable length, else the first usable pair."""
    readable = (pair for pair in pairs if len(pair[0].split()) in HISTORY_WORDS and pair[1].strip())
    return next(readable, None) or next(iter(sample_pairs(pairs, 1)), None)
