"""Learn word alignment from sentence pairs alone, and align with the result: NumPy only, about a minute.

Expectation–maximisation of IBM model 1 and of an HMM, both directions at once (`hmm`), over a lexicon that backs off
to stems and spelling (`lexicon`). A network may be trained on top (`mask_align`): its attention multiplies the lifts.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from softgaze.alignment.cooccurrence import (
    SIMILARITY_BINS,
    Cooccurrences,
    Floats,
    Values,
    Vocabulary,
    blocks_of_cells,
    sum_by_id,
)
from softgaze.alignment.hmm import JUMPS, JumpCounts, hmm_posteriors, ibm1_posteriors
from softgaze.alignment.lexicon import Lexicon, LinkCounts
from softgaze.alignment.words import Pairs, WordParts, split_words
from softgaze.atomic_io import write_bytes
from softgaze.errors import DataError, UsageError
from softgaze.explain.alignment import Alignment
from softgaze.runtime import has_torch

if TYPE_CHECKING:
    from softgaze.alignment.mask_align import MaskedAttention

IBM1_ITERATIONS, HMM_ITERATIONS = 5, 5
THRESHOLD = 0.1  # of the geometric mean of both posteriors; chosen on the development text of benchmarks/aligners.md
AGREEMENT = np.float32(0.6)  # exponent of the product of both posteriors in the HMM: 1 favours one link per word
NETWORK_WEIGHT = np.float32(0.1)  # of the agreement of a network with one direction; 1: of both directions
MIN_FACTOR = 0.1  # of a pair of words or parts without any attention
MAX_PARTS = 1000  # of a sentence; longer ones are not aligned
MAX_TRAINING_CELLS = 150_000_000  # source × target parts that training holds: about 2.5 GB
BLOCK_CELLS = 2_000_000  # aligned at once
FORMAT = 1

MAX_FILE_BYTES = 2**30  # of an aligner file, unpacked; a corpus of 160,000 pairs needs a hundredth

SentencePairs = Iterable[tuple[str, str]]
Report = Callable[[str, float], None]  # what is being done, and the share that is done


@dataclass(frozen=True)
class StatisticalAligner:
    """Aligns the words of any sentence pair by a lexicon and an HMM of each direction."""

    lexicon: Lexicon
    jumps: tuple[Floats, Floats]  # target given source, source given target

    threshold: float = THRESHOLD
    network: "MaskedAttention | None" = None

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise UsageError(f"threshold must be above 0 and below 1, got {self.threshold}")

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
        """Return the links of each pair: those whose score is above the threshold; none if a side is empty."""
        return [links_above(scores, self.threshold) for scores in self.scores(pairs)]

    def scores(
        self, pairs: Sequence[tuple[str, str]], factors: Sequence[tuple[Values, Values] | None] | None = None
    ) -> list[Values]:
        """Return (target words, source words) of each pair: how far both directions and the network agree.

        A word has the score of its best part; punctuation that is attached to a word does not count. `factors` multiply
        the lifts of the parts of each pair, in both directions.
        """
        parts = [(split_words(source), split_words(target)) for source, target in pairs]
        maps = network_attention(self.network, parts)
        combined = [
            product(factor, own and relative_attention(*own))
            for factor, own in zip(factors or [None] * len(parts), maps, strict=True)
        ]
        posteriors = self.part_posteriors(parts, combined)
        return [
            word_scores(agreement(*both, own), *pair) for pair, both, own in zip(parts, posteriors, maps, strict=True)
        ]

    def part_posteriors(
        self, pairs: Pairs, factors: Sequence[tuple[Values, Values] | None]
    ) -> list[tuple[Values, Values]]:
        """Return the link posteriors of each pair in both directions, (target parts, source parts) each."""
        results: list[tuple[Values, Values]] = [empty_posteriors(*pair) for pair in pairs]
        fitting = [n for n, pair in enumerate(pairs) if max(len(side.parts) for side in pair) <= MAX_PARTS]
        for block in blocks_of_cells([pairs[number] for number in fitting], BLOCK_CELLS):
            index = Cooccurrences.of([pairs[fitting[number]] for number in block])
            lifts = self.lexicon.lifts(self.lexicon.find(index))
            for group in index.groups:
                numbers = [fitting[block[row]] for row in group.numbers]
                both = [values[index.pair_of[group.cells]].reshape(group.shape) for values in lifts]
                for row, number in enumerate(numbers):
                    for lift, factor in zip(both, factors[number] or (), strict=False):
                        lift[row] *= factor
                forward = hmm_posteriors(both[0], self.jumps[0])
                reverse = hmm_posteriors(np.ascontiguousarray(both[1].swapaxes(1, 2)), self.jumps[1])
                for row, number in enumerate(numbers):
                    results[number] = forward[row], reverse[row].T
        return results

    # --- a file

    def to_bytes(self) -> bytes:
        """Return the content of an aligner file: arrays without code, equal bytes for an equal aligner."""
        words, file = self.lexicon.words, BytesIO()
        network: dict[str, Any] = self.network.arrays() if self.network else {}
        np.savez_compressed(
            file,
            format=np.array([FORMAT]),
            source=encode_words(self.lexicon.source),
            target=encode_words(self.lexicon.target),
            source_share=words.source_share.astype(np.float32),
            target_share=words.target_share.astype(np.float32),
            keys=np.diff(words.keys, prepend=0),  # small numbers compress well
            links=words.links.astype(np.float32),
            spelling=self.lexicon.spelling,
            jumps=np.stack(self.jumps),
            **network,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "StatisticalAligner":
        """Read an aligner file; raise a `DataError` with its name if it is not one."""
        try:
            with ZipFile(BytesIO(content)) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > MAX_FILE_BYTES:
                    raise ValueError(f"it unpacks to more than {MAX_FILE_BYTES:,} bytes")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                if int(arrays["format"][0]) != FORMAT:
                    raise ValueError(f"it has format {int(arrays['format'][0])}, expected {FORMAT}")
                source, target = (
                    Vocabulary(arrays[name].tobytes().decode().split("\n")) for name in ("source", "target")
                )
                words = LinkCounts(
                    np.cumsum(arrays["keys"].astype(np.int64)),
                    arrays["links"].astype(np.float64),
                    arrays["source_share"].astype(np.float64),
                    arrays["target_share"].astype(np.float64),
                )
                spelling, jumps = arrays["spelling"].astype(np.float64), arrays["jumps"].astype(np.float64)
                network = read_network(arrays)
            check_arrays(source, target, words, spelling, jumps)
        except (BadZipFile, EOFError, KeyError, MemoryError, OSError, TypeError, ValueError, zlib.error) as error:
            raise DataError(f"{name}: is not a word aligner of softgaze: {error}") from error
        return cls(Lexicon(source, target, words, spelling), (jumps[0], jumps[1]), network=network)

    def save(self, path: Path) -> None:
        write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> "StatisticalAligner":
        try:
            return cls.from_bytes(path.read_bytes(), str(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def train_aligner(pairs: SentencePairs, report: Report = lambda message, share: None) -> StatisticalAligner:
    """Learn an aligner from sentence pairs.

    Memory is bounded: of a corpus with more cells than `MAX_TRAINING_CELLS`, evenly spaced pairs are used.
    """
    sample = sample_pairs(pairs)
    if not sample:
        raise DataError(f"there are no sentence pairs to learn from (both sides with 1 to {MAX_PARTS:,} words)")
    report(f"counting the words of {len(sample):,} pairs", 0.0)
    index = Cooccurrences.of(sample)
    lexicon = Lexicon.uninformed(index)
    found = lexicon.find(index)
    jumps = np.ones(JUMPS), np.ones(JUMPS)
    total = IBM1_ITERATIONS + HMM_ITERATIONS
    for iteration in range(total):
        is_hmm = iteration >= IBM1_ITERATIONS
        lifts = lexicon.lifts(found)
        links, counts = expected_links(index, lifts, jumps if is_hmm else None)
        lexicon = lexicon.with_links(links, index)
        if is_hmm:
            jumps = counts[0].weights(), counts[1].weights()
        name = "HMM" if is_hmm else "IBM model 1"
        report(f"iteration {iteration + 1} of {total} ({name})", (iteration + 1) / total)
    return StatisticalAligner(lexicon.pruned(), jumps)


def sample_pairs(pairs: SentencePairs) -> list[tuple[WordParts, WordParts]]:
    """Return the parts of the pairs; of evenly spaced pairs if all have too many cells."""
    kept: list[tuple[WordParts, WordParts]] = []
    cells, stride = 0, 1
    for number, (source, target) in enumerate(pairs):
        if number % stride:
            continue
        pair = split_words(source), split_words(target)
        if not all(0 < len(side.parts) <= MAX_PARTS for side in pair):
            continue
        kept.append(pair)
        cells += len(pair[0].parts) * len(pair[1].parts)
        if cells > MAX_TRAINING_CELLS:
            stride, kept = 2 * stride, list(islice(kept, 0, None, 2))
            cells = sum(len(one.parts) * len(other.parts) for one, other in kept)
    return kept


def expected_links(
    index: Cooccurrences, lifts: tuple[Values, Values], jumps: tuple[Floats, Floats] | None
) -> tuple[Floats, tuple[JumpCounts, JumpCounts]]:
    """Return the expected links of each pair of parts, where both directions agree, and the expected jumps."""
    products = np.empty(len(index.pair_of), np.float32)
    counts = JumpCounts(), JumpCounts()
    for group in index.groups:
        forward, reverse = (values[index.pair_of[group.cells]].reshape(group.shape) for values in lifts)
        reverse = np.ascontiguousarray(reverse.swapaxes(1, 2))
        if jumps is None:
            product = ibm1_posteriors(forward) * ibm1_posteriors(reverse).swapaxes(1, 2)
        else:
            forward = hmm_posteriors(forward, jumps[0], counts[0])
            reverse = hmm_posteriors(reverse, jumps[1], counts[1])
            product = (forward * reverse.swapaxes(1, 2)) ** AGREEMENT
        products[group.cells] = product.ravel()
    return sum_by_id(index.pair_of, products, len(index.keys)), counts


def links_above(scores: Values, threshold: float) -> Alignment:
    """Link the words whose score is above the threshold."""
    return Alignment(frozenset((int(source), int(target)) for target, source in np.argwhere(scores > threshold)))


# --- a network --------------------------------------------------------------------------------------------------


def network_attention(network: "MaskedAttention | None", pairs: Pairs) -> list[tuple[Values, Values] | None]:
    """Return the attention of both directions; None for pairs that are too long or empty on one side."""
    maps: list[tuple[Values, Values] | None] = [None] * len(pairs)
    if network is not None:
        found = [n for n, pair in enumerate(pairs) if all(0 < len(side.parts) <= MAX_PARTS for side in pair)]
        for number, own in zip(found, network.attention([pairs[n] for n in found]), strict=True):
            maps[number] = own
    return maps


def relative_attention(forward: Values, reverse: Values) -> tuple[Values, Values]:
    """Return (target parts, source parts) of both directions relative to equal attention, as factors of the lifts."""
    return np.maximum(forward * forward.shape[1], MIN_FACTOR), np.maximum(reverse * reverse.shape[0], MIN_FACTOR)


def product(one: tuple[Values, Values] | None, other: tuple[Values, Values] | None) -> tuple[Values, Values] | None:
    return (one[0] * other[0], one[1] * other[1]) if one and other else one or other


def agreement(forward: Values, reverse: Values, attention: tuple[Values, Values] | None) -> Values:
    """Return √(fr), with a network √ of the weighted mean of fr and of each direction times its attention.

    A word that shares its translation has a low posterior in one direction. The network may know the other.
    """
    if attention is None:
        return geometric_mean(forward, reverse)
    one_direction = forward * attention[0] + reverse * attention[1]
    scores: Values = np.sqrt((forward * reverse + NETWORK_WEIGHT * one_direction) / (1 + 2 * NETWORK_WEIGHT))
    return scores


def read_network(arrays: Mapping[str, "np.ndarray[Any, Any]"]) -> "MaskedAttention | None":
    """Return the network of an aligner file; without torch, its statistics align alone."""
    if "network.bias" not in arrays or not has_torch():
        return None
    from softgaze.alignment.mask_align import MaskedAttention

    return MaskedAttention.of(arrays)


# --- from parts to words ----------------------------------------------------------------------------------------


def geometric_mean(forward: Values, reverse: Values) -> Values:
    """Return √(fr): a word that shares its translation has a low posterior in one direction only."""
    mean: Values = np.sqrt(forward * reverse)
    return mean


def empty_posteriors(source: WordParts, target: WordParts) -> tuple[Values, Values]:
    shape = len(target.parts), len(source.parts)
    if max(shape) > MAX_PARTS:  # the words alone, so that a very long line costs no memory
        shape = 0, 0
    return np.zeros(shape, np.float32), np.zeros(shape, np.float32)


def word_scores(scores: Values, source: WordParts, target: WordParts) -> Values:
    """Return (target words, source words): the largest score of their core parts."""
    if not scores.size:
        return np.zeros((0, 0), np.float32)
    words = np.zeros((target.word_of[-1] + 1, source.word_of[-1] + 1), np.float32)
    rows, columns = np.array(target.word_of), np.array(source.word_of)
    core = np.outer(target.is_core, source.is_core)
    np.maximum.at(words, (rows[:, None], columns[None, :]), np.where(core, scores, 0))
    return words


# --- arrays of an aligner file ----------------------------------------------------------------------------------


def encode_words(words: Iterable[str]) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def check_arrays(source: Vocabulary, target: Vocabulary, words: LinkCounts, spelling: Floats, jumps: Floats) -> None:
    """Raise a `ValueError` if arrays do not fit each other."""
    keys = words.keys
    fitting = {
        "source words": len(source) == len(words.source_share),
        "target words": len(target) == len(words.target_share),
        "keys": len(keys) == len(words.links) and bool((np.diff(keys) > 0).all()),
        "range of keys": not len(keys) or (keys[0] >= 0 and keys[-1] < len(source) * len(target)),
        "spelling": spelling.shape == (SIMILARITY_BINS,),
        "jumps": jumps.shape == (2, JUMPS),
    }
    for name, fits in fitting.items():
        if not fits:
            raise ValueError(f"its {name} do not fit the other arrays")
    for values in (words.links, words.source_share, words.target_share, spelling, jumps):
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError("it contains negative or infinite numbers")
