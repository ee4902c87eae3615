"""Where a translation looked, for a page to draw: words, weights, links and what was ignored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from softgaze.errors import UsageError
from softgaze.gaze.difference import difference
from softgaze.gaze.plain import UNUSED
from softgaze.gaze.words import is_unspaced
from softgaze.search.settings import Search
from softgaze.serve.shelf import Model
from softgaze.serve.texts import brief, relined, told, translate_texts
from softgaze.translator import Translation

if TYPE_CHECKING:
    from softgaze.gaze import Attention
    from softgaze.gaze.what_if import Question

LONGEST = 2000  # characters of a text whose looks are told: of more, nobody can look at the picture
CELLS = 40_000  # weights that are told; beyond, only the links are
DIGITS = 4


@dataclass(frozen=True)
class Look:
    """Texts in, translations out, with where each looked: one pass more for the whole batch."""

    model: Model
    search: Search

    def run(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """As JSON has it."""
        found = translate_texts(self.model.translator, texts, self.search)
        every = [each for own in found for each in (own, *own.alternatives)]
        looks = iter(attentions(self.model, every))
        return [looked(own, looks) for own in found]


def looked(translation: Translation, looks: Any) -> dict[str, Any]:
    """A translation and its alternatives, each with the next of the looks."""
    best = next(looks)
    others = [{**brief(each), "attention": next(looks)} for each in translation.alternatives]
    return {**told(translation), "attention": best, "alternatives": others}


def attentions(model: Model, translations: Sequence[Translation]) -> list[dict[str, Any] | None]:
    """Where each looked; None where nothing did, or the text is too long to be drawn."""
    if not model.looks:
        return [None] * len(translations)
    translator = model.ready_to_look()
    short = [each for each in translations if len(each.source) <= LONGEST]
    found = iter(translator.attentions(short))
    return [described(next(found)) if len(each.source) <= LONGEST else None for each in translations]


def described(attention: "Attention | None") -> dict[str, Any] | None:
    """For JSON."""
    if attention is None or not attention.recording.parts:
        return None
    source, target = attention.recording.source.words, attention.recording.target.words
    weights = attention.words().word_weights()  # (T, S)
    links = sorted(attention.alignment().links)
    coverage = weights.sum(axis=0)
    unused = [word for word, text in enumerate(source) if coverage[word] < UNUSED and any(map(str.isalnum, text))]
    return {
        "source_words": [*source],
        "target_words": [*target],
        "source_spaced": not is_unspaced(source),
        "target_spaced": not is_unspaced(target),
        "weights": weights.round(DIGITS).tolist() if weights.size <= CELLS else None,
        "links": [[read, written, round(float(weights[written, read]), DIGITS)] for read, written in links],
        "coverage": coverage.round(DIGITS).tolist(),
        "warnings": [
            {"word": word, "text": source[word], "coverage": round(float(coverage[word]), DIGITS)} for word in unused
        ],
        "shows": attention.shows,
    }


@dataclass(eq=False)
class WhatIf:
    """One text in; what is written of it, and what would be if the model looked elsewhere. Never part of a batch."""

    model: Model
    search: Search
    asked: dict[str, Any] = field(repr=False)

    def run(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """As JSON has it."""
        return [self.answer(text) for text in texts]

    def answer(self, text: str) -> dict[str, Any]:
        """Before, after, and the difference."""
        if not self.model.looks_elsewhere:
            raise UsageError(
                f"{self.model.id} cannot be made to look elsewhere: it has no attention, or no torch weights"
            )
        translator = self.model.ready_to_look()
        [before] = translate_texts(translator, [text], self.search)
        [after] = before.what_ifs([self.question()])
        after = relined(before, after)
        both = [looked(each, iter(attentions(self.model, [each, *each.alternatives]))) for each in (before, after)]
        note = ", ".join(change.note for change in after.changes)
        pieces = [[*piece] for piece in difference(before.text, after.text)]
        return {"before": both[0], "after": both[1], "note": note, "diff": pieces}

    def question(self) -> "Question":
        """In the words of `what_if`."""
        from softgaze.gaze.what_if import Question

        heads = {name: [tuple(head) for head in self.asked[name]] for name in ("ablate", "where") if self.asked[name]}
        return Question(mask=self.asked["mask"], attend=self.asked["attend"], sharpen=self.asked["sharpen"], **heads)


@dataclass(eq=False)
class Gaze:
    """One text in; the page of everything it looked at, or None where there is no such page."""

    model: Model
    search: Search
    what_if: bool

    def run(self, texts: Sequence[str]) -> list[str | None]:
        """One page for each text."""
        return [self.page(text) for text in texts]

    def page(self, text: str) -> str | None:
        """The page that `softgaze explain` writes."""
        from softgaze.gaze.answers import answers
        from softgaze.gaze.page import page

        if not self.model.looks_elsewhere or len(text) > LONGEST:
            return None
        translator = self.model.ready_to_look()
        [found] = translate_texts(translator, [text], self.search)
        if found.attention is None or not found.parts:
            return None
        return page(
            found.attention, influence=found.influence, answers=answers(found, found.attention) if self.what_if else ()
        )
