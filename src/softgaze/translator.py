"""The facade: text in, Translation out, whatever the architecture.

Text longer than the model was trained for is split, translated in parts and joined again, never cut. Importing this
file does not import torch; `load` does.
"""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, overload

from softgaze.bundle import ATTENTION, Bundle
from softgaze.data.languages import is_unspaced
from softgaze.data.readers import Reader
from softgaze.data.tokens import normalise
from softgaze.devices import has_torch, need_torch
from softgaze.engines import Engine, Reading, open_engine
from softgaze.engines.base import Ids, Items
from softgaze.errors import SoftgazeError, UsageError
from softgaze.search.hypothesis import Hypothesis, hypothesis
from softgaze.search.settings import Sampling, Search
from softgaze.symbols import END

if TYPE_CHECKING:
    from softgaze.engines.torch import TorchEngine
    from softgaze.gaze import Alignment, Attention, Choice, Passage
    from softgaze.gaze.aligner import Aligner
    from softgaze.gaze.difference import Difference
    from softgaze.gaze.edits import Edit
    from softgaze.gaze.recording import Matrix
    from softgaze.gaze.tree import Beam, Log, Tried
    from softgaze.gaze.what_if import Change, HeadName, Question, Word
    from softgaze.models import Seq2Seq
    from softgaze.search.hypothesis import Considered

WINDOW = 2048  # lines of a stream sorted by length together: enough for little padding, little enough to wait for

CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")  # not text: line ends, NUL, terminal escapes

NOTHING_LOOKED = "the text is empty, or the model has no attention (arch rnn keeps the source in one vector)"

Progress = Callable[[int], None]  # told how many more texts are done


# --- what can be asked for --------------------------------------------------------------------------------------


class Options(TypedDict, total=False):
    """The keywords of `translate`; meanings and defaults are those of `Search`."""

    beam: int
    nbest: int
    length_penalty: float
    sampling: Sampling | None
    max_length: int | None
    min_length: int
    no_repeat: int
    prefix: str
    batch_tokens: int | None


# --- what comes back --------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """What the model read and wrote in one go; a text that was not split has one."""

    source_ids: Items  # as read, END included
    target_ids: Ids  # as written, without BEGIN and END
    source_tokens: tuple[str, ...]  # how the ids are written; the source's END too
    target_tokens: tuple[str, ...]
    log_probability: float
    finished: bool  # False: cut at the maximum length

    @property
    def length(self) -> int:
        """Tokens that were predicted, END among them."""
        return len(self.target_ids) + self.finished


@dataclass(frozen=True)
class Translation:
    """One text, translated."""

    source: str  # as it was given
    text: str
    score: float  # what alternatives are ranked by: log-probability / length^α; higher is better, 0 is certain
    parts: tuple[Part, ...] = field(repr=False)  # what the model read and wrote; none for empty text
    alternatives: tuple["Translation", ...] = ()  # the next best, best first; of samples, in the order drawn
    translator: "Translator | None" = field(default=None, repr=False, compare=False)  # who can look once more
    search: Search = field(default=Search(), repr=False, compare=False)  # how it was looked for
    changes: tuple["Change", ...] = field(default=(), repr=False)  # what `what_if` changed, first to last
    before: "Translation | None" = field(default=None, repr=False, compare=False)  # what `what_if` was asked of

    @cached_property
    def attention(self) -> "Attention | None":
        """Where each word looked, on the picture if it is one; recorded when first asked for, which changes nothing.

        None where nothing looked at anything: empty text, or a model without attention (arch rnn).
        """
        return self.asked().attention(self)

    @cached_property
    def beam(self) -> "Beam":
        """Everything the beam search considered, losing hypotheses too: searched once more, which changes nothing."""
        return self.asked().beam(self)

    @property
    def influence(self) -> "Matrix":
        """(target words, source words): how much less likely each word becomes when a source word is left out."""
        return self.influence_and_end[:-1]

    @cached_property
    def influence_and_end(self) -> "Matrix":
        """The same with one more row, for the end: whether it would rather have gone on."""
        return self.asked().influences([self])[0]

    def honesty(self) -> float:
        """Rank correlation of the attention with the influence: 1, it shows what mattered; 0, it tells nothing."""
        from softgaze.gaze.honesty import honesty

        if self.attention is None:
            raise UsageError(f"there is no attention to be honest: {NOTHING_LOOKED}")
        return honesty(self.attention, self.influence)

    def what_if(
        self,
        *,
        mask: "Word | Sequence[Word]" = (),
        attend: "Mapping[int, Word] | None" = None,
        ablate: "Sequence[HeadName]" = (),
        sharpen: float = 1.0,
        where: "Sequence[HeadName] | None" = None,
    ) -> "Translation":
        """What would be written if the model looked elsewhere: searched anew in the same way; `diff` says what changed.

        `mask`: source words that may not be looked at, as text or, where repeated, by number. `attend`: {number of an
        output word: the source word that has all weight while it is written}; whether the word before is over is
        decided as ever. `ablate`: heads that look nowhere. `sharpen`: weights to this power, above 1 sharper. `where`:
        the heads that mask, attend and sharpen are for; all of the cross-attention unless named. A head is (layer,
        head), or (kind, layer, head) for another kind of attention; None is all of them.

        Words are counted from 0. What is changed comes on top of what was changed already, and what comes later wins.
        """
        from softgaze.gaze.what_if import Question

        return self.what_ifs([Question(mask, attend, ablate, sharpen, where)])[0]

    def what_ifs(self, questions: "Sequence[Question]") -> "list[Translation]":
        """Many `what_if`s of their own, in one search."""
        if self.attention is None:
            raise UsageError(f"there is no attention to change: {NOTHING_LOOKED}")
        return self.asked().what_ifs(self, [question.change(self.attention.recording) for question in questions])

    def diff(self) -> "Difference":
        """From the translation that `what_if` was asked of to this one."""
        from softgaze.gaze.difference import Difference, difference

        if self.before is None:
            raise UsageError("only what `what_if` gives has something to differ from")
        return Difference(difference(self.before.text, self.text), self.before.score, self.score)

    def asked(self) -> "Translator":
        """The translator that wrote this."""
        if self.translator is None:
            raise UsageError("this translation knows no model to look with; give it to Translator.attention")
        return self.translator

    @property
    def tokens(self) -> tuple[str, ...]:
        """Subwords of the translation."""
        return tuple(token for part in self.parts for token in part.target_tokens)

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """Subwords of the source as the model read them, with the END of each part."""
        return tuple(token for part in self.parts for token in part.source_tokens)

    @property
    def log_probability(self) -> float:
        """Of the whole translation: the sum over its parts."""
        return sum((part.log_probability for part in self.parts), 0.0)

    @property
    def finished(self) -> bool:
        """False when a part was cut at the maximum length."""
        return all(part.finished for part in self.parts)

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """For notebooks: both texts, and where each word looked."""
        from softgaze.gaze.notebook import bundle

        if self.translator is None or self.attention is None:
            return {"text/plain": repr(self)}
        return bundle(self.attention, self.source, self.text)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        facts = {
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            "finished": self.finished,
            "tokens": list(self.tokens),
        }
        others = [
            {name: value for name, value in each.to_dict().items() if name in facts} for each in self.alternatives
        ]
        return {"source": self.source, **facts, "alternatives": others}


# --- the translator ---------------------------------------------------------------------------------------------


def load(path: str | Path, device: str = "auto", *, full: bool = True) -> "Translator":
    """Open a model directory: checked file by file, and nothing in it is executed.

    An exported model runs without torch. Where its torch weights are beside it, `full` has them show all layers and
    heads when asked where it looked; else the engine tells its own map.
    """
    bundle = Bundle.open(Path(path))  # what is wrong with the path is said before anything slow is imported
    return Translator(bundle, open_engine(bundle, device), full=full)


class Translator:
    """A trained model with its tokenizers. Holds no state between calls, so one serves many."""

    def __init__(self, bundle: Bundle, engine: Engine, measured: "Choice | None" = None, *, full: bool = True) -> None:
        self.bundle, self.engine, self.newly_measured, self.full = bundle, engine, measured, full

    @property
    def device(self) -> str:
        """Where the model runs."""
        return self.engine.device

    @property
    def model(self) -> "Seq2Seq":
        """The model of torch."""
        return self.torch.model

    @property
    def places(self) -> int | None:
        """How many tokens the model has places for; None where there is no such limit."""
        return self.engine.places

    @property
    def can_look_elsewhere(self) -> bool:
        """Whether `what_if` can be asked: not of an exported model, unless torch and its weights are there."""
        return self.bundle.has_weights and has_torch()

    @cached_property
    def torch(self) -> "TorchEngine":
        """The engine that can be made to look elsewhere; of an exported model, by the weights beside it."""
        if not self.bundle.has_weights:
            raise UsageError(
                f"{self.bundle.path}: this was exported to {self.engine.name}, which cannot be watched so closely; "
                "ask the model it was made from, or export it once more with --with-weights"
            )
        need_torch()
        from softgaze.engines.torch import TorchEngine

        if isinstance(self.engine, TorchEngine):
            return self.engine
        beside = TorchEngine.open(self.bundle)
        beside.note = f"told by the torch weights, not by {self.engine.name}"
        return beside

    @cached_property
    def eyes(self) -> Engine:
        """Who says where the model looked: torch, if it may and its weights are there, else the engine itself."""
        return self.torch if self.full and self.can_look_elsewhere else self.engine

    @overload
    def translate(self, text: str, **options: Unpack[Options]) -> Translation: ...

    @overload
    def translate(self, text: list[str], **options: Unpack[Options]) -> list[Translation]: ...

    def translate(self, text: str | list[str], **options: Unpack[Options]) -> Translation | list[Translation]:
        """Translate a text, or a list of them in order; the keywords are the fields of `Search`.

        Empty text stays empty. White space of any kind counts as one space. A text with more subwords than the model
        was trained for is split at its sentences; the score is then that of all parts together.
        """
        if isinstance(text, str):
            return next(self.translate_lines([text], **options))
        return list(self.translate_lines(text, ahead=True, **options))

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        window: int = WINDOW,
        progress: Progress | None = None,
        ahead: bool = False,
        **options: Unpack[Options],
    ) -> Iterator[Translation]:
        """Translate a stream: one translation for each line, in order, read `window` lines at a time.

        With `ahead` the engine may begin the next windows before this one is done, as many as keep its workers busy:
        for lines that are all there, since whoever sends lines only after an answer would wait for ever. Where a line
        cannot be read, those before it are translated before the error is raised.
        """
        search = Search(**options)
        search.check()
        blocks = Windows(lines, window)
        for together in [blocks] if ahead else ([block] for block in blocks):
            yield from self.translate_blocks(together, search, progress)
        if blocks.mistake is not None:
            raise blocks.mistake

    def translate_block(self, texts: Sequence[str], search: Search) -> Iterator[Translation]:
        """Translate texts together, batched by length."""
        return self.translate_blocks([texts], search)

    def translate_blocks(
        self, blocks: Iterable[Sequence[str]], search: Search, progress: Progress | None = None
    ) -> Iterator[Translation]:
        """One block after another, as the engine asks for them; what is found is spelled out while it goes on."""
        begun: deque[Block] = deque()
        at = 0  # the number of the first of them

        def readings() -> Iterator[Sequence[Reading]]:
            for texts in blocks:
                begun.append(Block(texts, self.readings(texts, search), progress or (lambda count: None)))
                yield begun[-1].readings

        for place, found in self.engine.search_on(readings(), search):
            if place > at:  # all of the one before is found
                yield from self.assembled(begun.popleft(), search)
                at = place
            for number, hypotheses in found:
                begun[0].take(number, [self.part(begun[0].readings[number].ids, each) for each in hypotheses])
        for block in begun:
            yield from self.assembled(block, search)

    def assembled(self, block: "Block", search: Search) -> Iterator[Translation]:
        """The translations of a block of which all is found."""
        found = iter(block.found)
        for text, readings in zip(block.texts, block.split, strict=True):
            yield self.assemble(text, [next(found) for _ in readings], search)

    def translate_aloud(self, text: str, tell: Callable[[str], None]) -> Translation:
        """Translate with a beam of 1, and tell every word as soon as the next one begins.

        What was told, put together, is the translation, unless an engine had to think again.
        """
        search = Search(beam=1)
        speaker = Speaker(self.written, tell, self.space)
        parts: list[list[Part]] = []
        for reading in self.readings([text], search)[0]:
            [best] = self.engine.search_aloud(reading, search, speaker.hear)
            speaker.finish(best.tokens)
            parts.append([self.part(reading.ids, best)])
        return self.assemble(text, parts, search)

    # --- looking once more

    @cached_property
    def choice(self) -> "Choice | None":
        """The map that was measured to show best what this model looks at; None in a bundle that nobody measured."""
        from softgaze.gaze import Choice

        stored = (self.bundle.facts if self.eyes.name == "torch" else self.bundle.engine).get(ATTENTION)
        return Choice.from_dict(stored) if stored else self.newly_measured

    def measured(self, pairs: Iterable[tuple[str, str]]) -> "Translator":
        """The same; where nobody measured which map to show, it is chosen on these sentence pairs, for all texts."""
        from softgaze.gaze.choice import by_influence

        if self.choice is not None:
            return self
        return Translator(self.bundle, self.engine, by_influence(self.aligner().forward, pairs), full=self.full)

    def attention(self, translation: Translation) -> "Attention | None":
        """Where a translation looked: the model is run once more over its own output, and only watches.

        A look at a picture comes with its photo, and with how sure the model was of each word.
        """
        [attention] = self.attentions([translation])
        photo = self.bundle.tokenizers.source.photo(translation.source)
        if attention is None or photo is None:
            return attention
        recording = replace(attention.recording, photo=photo, chances=self.chances(translation))
        return replace(attention, recording=recording)

    def chances(self, translation: Translation) -> tuple[float, ...]:
        """The probability of each subword that was written, with the END of each part."""
        from softgaze.gaze.influence import log_probabilities

        tokenizers = self.bundle.tokenizers
        parts = passage_of(translation, tokenizers.source).parts
        asked = [part._replace(target=(*part.target, END)) for part in parts]
        return tuple(math.exp(each) for found in log_probabilities(self.eyes, tokenizers, asked) for each in found)

    def attentions(self, translations: Sequence[Translation]) -> "list[Attention | None]":
        """The same for many, batched. What was changed by `what_if` is shown as it was before: layer, head and all."""
        from softgaze.gaze.passages import record, shown

        passages = [passage_of(each, self.bundle.tokenizers.source) for each in translations]
        recordings = record(self.eyes, self.bundle.tokenizers, passages)
        shows = (each.before.attention if each.before else None for each in translations)
        return [
            replace(like, recording=recording) if like and "cross" in recording.kinds else shown(recording, self.choice)
            for like, recording in zip(shows, recordings, strict=True)
        ]

    def what_ifs(self, translation: Translation, changes: "Sequence[Change]") -> list[Translation]:
        """A translation searched anew with each of the changes on top of its own, all in one search."""
        all_changes = [(*translation.changes, *([] if change.is_none else [change])) for change in changes]
        asked = [own for own in all_changes if own != translation.changes]  # without a change nothing is searched
        readings = [each for own in asked for each in self.changed_readings(translation, own)]
        found = iter(self.searched_by_torch(readings, translation.search))
        return [
            self.changed(translation, own, found)
            if own != translation.changes
            else replace(translation, before=translation)
            for own in all_changes
        ]

    def changed(self, before: Translation, changes: "tuple[Change, ...]", found: Iterator[list[Part]]) -> Translation:
        """From the hypotheses of its parts; the alternatives are changed alike."""
        parts = [next(found) for _ in before.parts]
        best = self.assemble(before.source, parts, before.search)
        others = tuple(replace(each, changes=changes, before=before) for each in best.alternatives)
        return replace(best, alternatives=others, changes=changes, before=before)

    def influences(self, translations: Sequence[Translation]) -> "list[Matrix]":
        """(target words + end, source words) of each: the log-probability that is lost when a source word is left out.

        All in one go.
        """
        from softgaze.gaze.influence import influences_and_end

        tokenizers = self.bundle.tokenizers
        return influences_and_end(self.eyes, tokenizers, [passage_of(each, tokenizers.source) for each in translations])

    def beam(self, translation: Translation) -> "Beam":
        """The search of a translation once more, part by part, with a witness."""
        from softgaze.gaze.tree import Beam, ranked

        if translation.search.sampling is not None:
            raise UsageError("a translation that was sampled had no beam; translate without sampling to see one")
        logs = [self.witnessed(translation, number) for number in range(len(translation.parts))]
        tried = [
            self.tried(translation, number, log, each) for number, log in enumerate(logs) for each in log.stopped()
        ]
        return Beam(tuple(log.root() for log in logs), ranked(tried))

    def witnessed(self, translation: Translation, number: int) -> "Log":
        """Everything that is considered for one part."""
        from softgaze.gaze.tree import Log
        from softgaze.gaze.words import END_MARK

        considered: dict[Ids, tuple[float, bool]] = {}

        def witness(_: int, told: "Considered") -> None:
            considered[told.tokens] = told.log_probability, told.ended

        def piece(token: int) -> str:
            return END_MARK if token == END else self.bundle.tokenizers.target.pieces([token])[0]

        reading = self.changed_readings(translation, translation.changes)[number]
        [[best, *_]] = self.torch.run([reading], translation.search, witness)
        return Log(considered, (*best.tokens, *[END] * best.finished), piece, self.written)

    def tried(self, translation: Translation, number: int, log: "Log", tokens: Ids) -> "Tried":
        """A hypothesis where it stopped, with the part of the text it is a translation of."""
        from softgaze.gaze.tree import Tried

        found = hypothesis(list(tokens), log.considered[tokens][0], translation.search.length_penalty)
        part = self.part(translation.parts[number].source_ids, found)
        source = translation.source if len(translation.parts) == 1 else self.bundle.tokenizers.source.decode(part[0])
        changes = tuple(replace(change, parts=(change.parts[number],)) for change in translation.changes)
        alone = self.translation(source, (part,), translation.search)
        alone = replace(alone, changes=changes, before=translation)
        status = log.status(tokens)
        return Tried(
            alone.text, alone.tokens, alone.score, alone.log_probability, status, number, lambda: alone.attention
        )

    def given(self, source: str, text: str) -> Translation:
        """A translation that somebody else wrote, as if this model had: how likely it is, and where its words look."""
        from softgaze.gaze.influence import log_probabilities
        from softgaze.gaze.passages import Passage, Spoken, check_places

        tokenizers = self.bundle.tokenizers
        check_places(Passage.of(source, text, tokenizers), self.places)
        [read], [written] = tokenizers.source.encode([source]), tokenizers.target.encode([text])
        if not len(read) or not written:
            return Translation(source, normalise(text), 0.0, (), translator=self)
        whole = [*written, END]  # the END is predicted like any token
        [chances] = log_probabilities(self.eyes, tokenizers, [Spoken(read, whole)])
        part = self.part(tokenizers.source.closed(read), hypothesis(whole, float(chances.sum()), 1.0))
        return Translation(source, normalise(text), combined_score([part], 1.0), (part,), translator=self)

    def aligner(self, reverse: "Translator | None" = None, **options: Any) -> "Aligner":
        """What links the words of given pairs, with the `reverse` model if there is one; options are `Aligner`'s."""
        from softgaze.gaze.aligner import Aligner
        from softgaze.gaze.choice import Looker

        both = [Looker(each.eyes, each.bundle.tokenizers, each.choice, each.places) for each in (self, reverse) if each]
        return Aligner(both[0], both[1] if reverse else None, **options)

    def align(
        self, sources: Sequence[str], targets: Sequence[str], reverse: "Translator | None" = None, **options: Any
    ) -> "list[Alignment]":
        """Which words of each source mean which of its target; the map is chosen on these pairs if none is stored."""
        pairs = list(zip(sources, targets, strict=True))
        return self.aligner(reverse, **options).measured(pairs).align(pairs)

    # --- before the model

    @cached_property
    def limit(self) -> int:
        """Subwords of a source that the model takes at once, END not counted."""
        trained = self.bundle.tokenizers.source.most(self.bundle.description.max_length)
        return trained if self.places is None else min(trained, self.places - 1)

    def readings(self, texts: Sequence[str], search: Search) -> list[list[Reading]]:
        """What the model will read of each text: nothing if it is empty, several parts if it is too long."""
        tokenizer, prefix = self.bundle.tokenizers.source, self.prefix(search)
        readings = []
        for text, ids in zip(texts, tokenizer.encode(texts), strict=True):
            parts = [ids] if len(ids) <= self.limit else tokenizer.encode(split_text(text, tokenizer, self.limit))
            readings.append(
                [
                    Reading(tokenizer.closed(part), () if number else prefix)
                    for number, part in enumerate(filter(len, parts))
                ]
            )
        return readings

    def changed_readings(self, translation: Translation, changes: "Iterable[Change]") -> list[Reading]:
        """What was read, to be read once more while looking elsewhere."""
        prefix = self.prefix(translation.search)
        return [
            Reading(part.source_ids, () if number else prefix, edits_of(changes, number))
            for number, part in enumerate(translation.parts)
        ]

    def prefix(self, search: Search) -> Ids:
        """The forced beginning of a text."""
        [ids] = self.bundle.tokenizers.target.encode([search.prefix])
        return tuple(ids)

    def searched_by_torch(self, readings: Sequence[Reading], search: Search) -> list[list[Part]]:
        """What is found for each reading, in order."""
        found = dict(self.torch.search(readings, search))
        return [[self.part(each.ids, best) for best in found[number]] for number, each in enumerate(readings)]

    # --- after the model

    def assemble(self, text: str, parts: list[list[Part]], search: Search) -> Translation:
        """The translation of a text from what was found for its parts, the alternatives attached to the best."""
        choose = best_combinations if search.sampling is None else same_draws
        best, *others = [self.translation(text, chosen, search) for chosen in choose(parts, search)]
        return replace(best, alternatives=tuple(others))

    def part(self, ids: Items, found: Hypothesis) -> Part:
        """What one hypothesis says."""
        source, target = self.bundle.tokenizers.source, self.bundle.tokenizers.target
        pieces = tuple(source.pieces(ids)), tuple(target.pieces(found.tokens))
        return Part(ids, found.tokens, *pieces, found.log_probability, found.finished)

    def translation(self, text: str, parts: tuple[Part, ...], search: Search) -> Translation:
        """Parts joined to one text."""
        written = self.space.join(filter(None, (self.written(part.target_ids) for part in parts)))
        score = combined_score(parts, search.length_penalty)
        return Translation(text, written, score, parts, translator=self, search=search)

    @property
    def space(self) -> str:
        """What stands between two parts of a text."""
        return "" if is_unspaced(self.bundle.description.target_language) else " "

    def written(self, ids: Ids) -> str:
        """The text of target ids: one line, safe to print, whatever bytes a model spells that has learnt little."""
        return normalise(self.bundle.tokenizers.target.decode(ids).translate(CONTROLS))


class Speaker:
    """Tells a text word by word while it is written, or character by character where no spaces divide words."""

    def __init__(self, written: Callable[[Ids], str], tell: Callable[[str], None], space: str) -> None:
        self.written, self.tell, self.space = written, tell, space
        self.told = 0  # characters of this part
        self.before = ""  # what stands before it

    def hear(self, tokens: Sequence[int]) -> None:
        """All but the last word, which may go on."""
        text = self.written(tuple(tokens))
        self.say(text[: text.rfind(" ") + 1] if self.space else text[:-1])

    def finish(self, tokens: Sequence[int]) -> None:
        """The rest of a part."""
        self.say(self.written(tuple(tokens)))
        self.before, self.told = self.before if not self.told else self.space, 0

    def say(self, text: str) -> None:
        """What was not told yet."""
        if len(text) > self.told:
            self.tell(f"{'' if self.told else self.before}{text[self.told :]}")
            self.told = len(text)


class Windows:
    """A stream, up to `size` lines at a time. It ends where a line cannot be read; `mistake` says why."""

    def __init__(self, lines: Iterable[str], size: int) -> None:
        self.stream, self.size = iter(lines), size
        self.mistake: SoftgazeError | None = None

    def __iter__(self) -> Iterator[list[str]]:
        while self.mistake is None and (block := self.read()):
            yield block

    def read(self) -> list[str]:
        """The next lines, those before a mistake among them."""
        block: list[str] = []
        try:
            block.extend(islice(self.stream, self.size))
        except SoftgazeError as mistake:
            self.mistake = mistake
        return block


class Block:
    """Texts on their way through the engine."""

    def __init__(self, texts: Sequence[str], split: Sequence[Sequence[Reading]], tell: Progress) -> None:
        self.texts, self.split, self.tell = texts, split, tell
        self.readings = [each for readings in split for each in readings]
        self.found: list[list[Part]] = [[] for _ in self.readings]
        self.firsts = {0, *accumulate(map(len, split))}  # a text counts as done with its first part
        tell(sum(not readings for readings in split))

    def take(self, number: int, found: list[Part]) -> None:
        """What was found for one reading, best first."""
        self.found[number] = found
        self.tell(number in self.firsts)


def passage_of(translation: Translation, reader: Reader) -> "Passage":
    """A translation as `gaze` records it."""
    from softgaze.gaze.passages import Passage, Spoken

    parts = tuple(
        Spoken(reader.opened(part.source_ids), part.target_ids, edits_of(translation.changes, number))
        for number, part in enumerate(translation.parts)
    )
    return Passage(translation.source, translation.text, parts, ", ".join(each.note for each in translation.changes))


def edits_of(changes: "Iterable[Change]", part: int) -> "tuple[Edit, ...]":
    """What is changed of one part, first to last."""
    return tuple(edit for change in changes for edit in change.parts[part])


def combined_score(parts: Sequence[Part], length_penalty: float) -> float:
    """log-probability / length^α over all parts at once, so that a split text is ranked as if it were one."""
    length = sum(part.length for part in parts)
    return sum(part.log_probability for part in parts) / length**length_penalty if length else 0.0


def best_combinations(parts: Sequence[Sequence[Part]], search: Search) -> list[tuple[Part, ...]]:
    """The best `nbest` ways to take one hypothesis of each part; parts are translated independently."""
    kept: list[tuple[Part, ...]] = [()]
    for hypotheses in parts:
        longer = ((*before, each) for before in kept for each in hypotheses)
        kept = nlargest(search.nbest, longer, key=lambda chosen: combined_score(chosen, search.length_penalty))
    return kept


def same_draws(parts: Sequence[Sequence[Part]], search: Search) -> list[tuple[Part, ...]]:
    """Draw n of each part together; samples have an order, not a rank."""
    return list(zip(*parts, strict=True)) or [()]


# --- splitting --------------------------------------------------------------------------------------------------

# A sentence ends at its mark before a space, closing quotes and brackets included; but not at the full stop of a number
# or of one or two letters that begin with a capital (Mr., U.S.), nor before a small letter. 。！？ need no space.
SENTENCE_END = re.compile(
    r"""(?: [!?…]+ | (?<!\d) (?<!\b[A-Z]) (?<!\b[A-Z]\w) \.+ ) ["'”’»)\]]* (?=\s)
        | [。！？｡]+ ["'”’」』）]*""",
    re.VERBOSE,
)
# Where to cut a sentence that is itself too long: near its middle at the first of these, else at any space.
WEAKER_ENDS = (re.compile(r"[.!?…;:]+(?=\s)|[；：]"), re.compile(r",(?=\s)|[、，،]"))
SPACE = re.compile(r"(?=\s)")
ATTACHED = ("Mn", "Mc", "Me", "Cf")  # Unicode categories of what belongs to the character before it
JOINER = "\u200d"  # and of what follows it, too


def split_text(text: str, tokenizer: Reader, limit: int) -> list[str]:
    """Cut a text into its sentences, and sentences of more than `limit` subwords into smaller parts."""
    return [part for sentence in sentences(normalise(text)) for part in halves(sentence, tokenizer, limit)]


def sentences(text: str) -> list[str]:
    """The sentences of a normalised text."""
    ends = [found.end() for found in SENTENCE_END.finditer(text)]
    cuts = [0, *(end for end in ends if not text[end : end + 2].lstrip()[:1].islower()), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(cuts))
    return [part for part in parts if part]


def halves(text: str, tokenizer: Reader, limit: int) -> list[str]:
    """`text` if it fits, else its two halves, each treated alike. A single character is never cut."""
    [ids] = tokenizer.encode([text])
    if len(ids) <= limit or len(text) < 2:
        return [text]
    cut = middle(text)
    sides = (side for side in (text[:cut].strip(), text[cut:].strip()) if side)
    return [part for side in sides for part in halves(side, tokenizer, limit)]


def middle(text: str) -> int:
    """The best place to cut: marks in the middle half of the text, then spaces anywhere, then between characters."""
    edge = max(1, len(text) // 4)
    for mark, first, last in (*((mark, edge, len(text) - edge) for mark in WEAKER_ENDS), (SPACE, 1, len(text) - 1)):
        places = [found.end() for found in mark.finditer(text) if first <= found.end() <= last]
        if places:
            return min(places, key=lambda place: abs(2 * place - len(text)))
    return whole_character(text, len(text) // 2)


def whole_character(text: str, place: int) -> int:
    """`place`, or the next one that does not tear an accent, a joiner or an emoji's variation off its character."""
    for later in range(place, len(text)):
        if unicodedata.category(text[later]) not in ATTACHED and text[later - 1] != JOINER:
            return later
    return place
