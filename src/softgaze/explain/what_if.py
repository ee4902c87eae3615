"""What-if requests: from source and output words to interventions, the requests of a page, and text differences.

Source words are given as text, or by index if they are repeated; indices count from 0 over the whole text. Does not
import torch before a request is resolved.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from softgaze.errors import UsageError, did_you_mean
from softgaze.explain.attention_map import Attention
from softgaze.explain.recording import KINDS, HeadSelector, Recording
from softgaze.explain.word_spans import (
    EDGE_PUNCTUATION,
    NO_WORD,
    TokenizedText,
    find_word,
    is_unspaced_text,
    words_by_character,
    words_by_space,
)

if TYPE_CHECKING:
    from softgaze.explain.interventions import Intervention

Word = str | int
HeadName = tuple[int | None, int | None] | tuple[str, int | None, int | None]  # (layer, head) or (kind, layer, head)

SOURCE_KINDS = ("cross", "encoder")  # kinds of attention whose keys are source words
MAX_COUNTERFACTUALS = 64  # of one page; of a long text those about its first words
FACTORS = (2.0, 0.5)
Run = tuple[str, str]  # ("same", "removed" or "added", words)
MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}  # the notation of wdiff


@dataclass(frozen=True)
class Change:
    """The interventions in each part of a text, with a description for captions."""

    note: str
    parts: tuple[tuple["Intervention", ...], ...]


@dataclass(frozen=True)
class ChangeRequest:
    """A what-if question. A head is (layer, head) of the cross-attention or (kind, layer, head); None means all."""

    mask: Word | Sequence[Word] = ()  # source words that get no attention
    attend: Mapping[int, Word] | None = None  # {output word: the source word that gets all its attention}
    ablate: Sequence[HeadName] = ()  # heads whose weights are set to zero
    sharpen: float = 1.0  # power of the weights: above 1 sharper, below 1 flatter
    where: Sequence[HeadName] | None = None  # heads to mask, force and sharpen; None: the cross-attention

    def resolve(self, recording: Recording) -> Change:
        """Translate the request into interventions for the recorded translation."""
        from softgaze.explain.interventions import AblateHeads, ForceAttention, MaskTokens, Sharpen

        heads = _parse_heads(recording, "where", self.where or [(None, None)])
        ablated = _parse_heads(recording, "ablate", self.ablate)
        masked = self._masked_words(recording.source)
        forced = self._forced_words(recording, masked)
        factor = self.sharpen
        for head in heads:
            if (masked and head.kind not in SOURCE_KINDS) or (forced and head.kind != "cross"):
                raise UsageError(
                    f"where: the {KINDS[head.kind]} does not go from output words to source words; "
                    "name heads of the cross-attention"
                )
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not math.isfinite(factor) or factor <= 0:
            raise UsageError(f"sharpen must be a number above 0 (2 is sharper, 0.5 is flatter), got {factor!r}")
        spaced = is_spaced(recording.target)
        parts = []
        for words, output in zip(*_words_of_parts(recording), strict=True):
            interventions: list[Intervention] = []
            if positions := tuple(position for position, word in enumerate(words) if word in masked):
                interventions.append(MaskTokens(heads, positions))
            if factor != 1:
                interventions.append(Sharpen(heads, float(factor)))
            index_of = {word: index for index, word in enumerate(dict.fromkeys(output))}  # within the part
            targets = [
                (index_of[step], tuple(position for position, word in enumerate(words) if word == source))
                for step, source in forced.items()
                if step in index_of and source in words
            ]
            if targets:
                interventions.append(ForceAttention(heads, tuple(targets), spaced))
            if ablated:
                interventions.append(AblateHeads(ablated))
            parts.append(tuple(interventions))
        return Change(self._describe(recording, masked, forced, heads, ablated), tuple(parts))

    def _masked_words(self, source: TokenizedText) -> list[int]:
        if not isinstance(self.mask, str | int | Iterable):
            raise UsageError(f"mask must be a source word or a list of them, as text or index, got {self.mask!r}")
        words = [self.mask] if isinstance(self.mask, str | int) else self.mask
        return [word_index(source, word) for word in words]

    def _forced_words(self, recording: Recording, masked: Sequence[int]) -> dict[int, int]:
        """Return {output word: source word}; both must be in the same part, the source word not masked."""
        if not isinstance(self.attend, Mapping | None):
            raise UsageError(f"attend must be {{index of an output word: source word}}, got {self.attend!r}")
        forced = {}
        for step, word in (self.attend or {}).items():
            count = len(recording.target.words)
            if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < count:
                raise UsageError(f"attend: there is no output word {step!r}; the output has words 0 to {count - 1}")
            source = forced[step] = word_index(recording.source, word)
            if source in masked:
                raise UsageError(f"{word!r} cannot be both masked and attended to")
            if not any(
                source in words and step in output for words, output in zip(*_words_of_parts(recording), strict=True)
            ):
                raise UsageError(
                    f"output word {step} cannot attend to source word {source}: "
                    "they are in different parts of a text that was split"
                )
        return forced

    def _describe(
        self,
        recording: Recording,
        masked: Sequence[int],
        forced: Mapping[int, int],
        heads: Sequence[HeadSelector],
        ablated: Sequence[HeadSelector],
    ) -> str:
        words = [quote(word) for word in recording.source.words]
        parts = [f"with {_enumerate(words[index] for index in masked)} masked"] if masked else []
        parts += [f"with word {step} attending to {words[index]}" for step, index in forced.items()]
        if self.sharpen != 1:
            parts.append(f"with weights {'sharpened' if self.sharpen > 1 else 'flattened'} ×{self.sharpen:g}")
        if parts and self.where:
            parts[-1] += f" in {_enumerate(map(_head_name, heads))}"
        if ablated:
            parts.append(f"without {_enumerate(map(_head_name, ablated))}")
        return ", ".join(parts)


def word_index(text: TokenizedText, word: Word) -> int:
    """Return the index of a source word given by index, or by text if it is unique; edge punctuation is ignored."""
    if isinstance(word, int) and not isinstance(word, bool):
        index = word
        if not 0 <= index < len(text.words):
            raise UsageError(f"there is no source word {word}; the source has words 0 to {len(text.words) - 1}")
    elif isinstance(word, str):
        indices = find_word(word, text.words)
        if not indices:
            raise UsageError(f"{word!r} is not in the source; {did_you_mean(word, text.words)}")
        if len(indices) > 1:
            raise UsageError(f"{word!r} occurs {len(indices)} times in the source; give its index, one of {indices}")
        [index] = indices
    else:
        raise UsageError(f"expected a source word as text or index, got {word!r}")
    if index not in text.word_of:
        raise UsageError(f"the tokenizer drops {text.words[index]!r} (source word {index}), so it has no attention")
    return index


def is_spaced(text: TokenizedText) -> bool:
    """Whether spaces separate the words of a text, or every token is a word."""
    tokens = [token for token, word in zip(text.tokens, text.word_of, strict=True) if word != NO_WORD]
    word_of = [word for word in text.word_of if word != NO_WORD]
    return words_by_space(tokens)[0] == word_of or words_by_character(tokens)[0] != word_of


def _words_of_parts(recording: Recording) -> tuple[list[list[int]], list[list[int]]]:
    """Return the word index of each token, part by part, of source and target."""
    source, target = recording.source, recording.target
    sizes = [part.cross.weights.shape[-1] for part in recording.parts if part.cross is not None]
    return list(source.split_parts(source.word_of, sizes)), list(target.split_parts(target.word_of))


def _parse_heads(recording: Recording, argument: str, names: Sequence[HeadName]) -> tuple[HeadSelector, ...]:
    if isinstance(names, str) or not all(isinstance(name, tuple) and len(name) in (2, 3) for name in names):
        raise UsageError(f"{argument} must be a list of (layer, head) or (kind, layer, head), got {names!r}")
    heads = tuple(HeadSelector(*name) if len(name) == 3 else HeadSelector("cross", *name) for name in names)
    for head in heads:
        if head.kind not in recording.kinds:
            hint = did_you_mean(str(head.kind), recording.kinds)
            raise UsageError(f"{argument}: this model has no {head.kind!r} attention; {hint}")
        for name, index, count in zip(("layer", "head"), head[1:], recording.size(head.kind), strict=True):
            if index is not None and (not isinstance(index, int) or not 0 <= index < count):
                raise UsageError(
                    f"{argument}: the {KINDS[head.kind]} has no {name} {index}; it has {name}s 0 to {count - 1}"
                )
    return heads


def _head_name(head: HeadSelector) -> str:
    layer = "all layers" if head.layer is None else f"layer {head.layer}"
    name = f"all heads of {layer}" if head.head is None else f"head {head.head} of {layer}"
    return name if head.kind == "cross" else f"{name} ({KINDS[head.kind]})"


def quote(word: str) -> str:
    """Return a word in quotation marks, without edge punctuation."""
    return f"“{word.strip(EDGE_PUNCTUATION) or word}”"


def _enumerate(names: Iterable[str]) -> str:
    """Join names as in "a, b and c"."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


# --- counterfactuals for a page ---------------------------------------------------------------------------------


class Counterfactual(NamedTuple):
    """The translation under one change, computed in advance for a page that has no model."""

    kind: str  # "mask", "ablate" or "sharpen"
    values: Mapping[str, str | float]  # of the question: the word; the layer and head; or the factor
    source_word: int | None  # the masked word
    text: str
    score: float
    diff: tuple[tuple[str, str], ...]  # from the original to this text: ("same" | "removed" | "added", words)
    attention: Attention | None
    before: float = math.nan  # the original score


class Question(NamedTuple):
    kind: str
    values: Mapping[str, str | float]
    source_word: int | None
    request: ChangeRequest


def candidate_questions(attention: Attention, limit: int) -> list[Question]:
    """Return the questions in the order of the page; if there are too many, words and heads share the room."""

    def words() -> Iterator[Question]:
        source = attention.recording.source
        for index in sorted(set(source.word_of) & set(range(len(source.words)))):
            yield Question("mask", {"word": quote(source.words[index])}, index, ChangeRequest(mask=index))

    def heads() -> Iterator[Question]:  # of the layer that is shown, or of all layers
        layers, count = attention.recording.size("cross")
        shown = attention.view.layer if attention.view.kind == "cross" else None
        for layer, head in product(range(layers) if shown is None else [shown], range(count)):
            yield Question("ablate", {"layer": layer, "head": head}, None, ChangeRequest(ablate=[(layer, head)]))

    def factors() -> Iterator[Question]:
        for factor in FACTORS:
            yield Question("sharpen", {"factor": factor}, None, ChangeRequest(sharpen=factor))

    about_factors, about_heads, about_words = list(factors())[:limit], list(heads()), list(words())
    room = limit - len(about_factors)
    about_words = about_words[: max(room - len(about_heads), (room + 1) // 2)]
    return [*about_words, *about_heads[: room - len(about_words)], *about_factors]


# --- differences of texts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextDiff:
    """The difference from one translation to another, with both scores."""

    runs: tuple[Run, ...]
    before: float
    after: float

    @property
    def score(self) -> float:
        return self.after - self.before

    @property
    def is_same(self) -> bool:
        return all(kind == "same" for kind, _ in self.runs)

    def __str__(self) -> str:
        marked = " ".join(MARKS[kind].format(text) for kind, text in self.runs)
        return f"{marked}\nscore {self.before:.2f} → {self.after:.2f} ({self.score:+.2f})".lstrip()


def word_diff(before: str, after: str) -> tuple[Run, ...]:
    """Return runs of equal, removed and added words; of characters in a script without spaces."""

    def runs() -> Iterator[Run]:
        texts = [text.split() for text in (before, after) if text]
        space = "" if texts and all(map(is_unspaced_text, texts)) else " "
        old, new = (text.split() if space else list(text) for text in (before, after))
        for change, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if change == "equal":
                yield "same", space.join(old[start:end])
                continue
            if start < end:
                yield "removed", space.join(old[start:end])
            if new_start < new_end:
                yield "added", space.join(new[new_start:new_end])

    return tuple(runs())
