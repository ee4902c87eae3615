"""Word alignments of given sentence pairs, from one model or from two that translate in opposite directions."""

from dataclasses import dataclass, replace

from softgaze.errors import UsageError, pick
from softgaze.gaze.alignment import METHODS, Alignment
from softgaze.gaze.attention import Attention
from softgaze.gaze.choice import Looker, Pairs, by_agreement, by_influence

METHOD = "grow-diag-final"


@dataclass(frozen=True)
class Aligner:
    """Links words by where a model looks; with a `reverse` model both have a say."""

    forward: Looker
    reverse: Looker | None = None
    method: str = METHOD  # how two directions are joined
    threshold: float | None = None  # None: each output word has the one link it looked at most

    def __post_init__(self) -> None:
        pick("method", self.method, METHODS)
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"a threshold is a share above 0 and at most 1, not {self.threshold}")

    def measured(self, sample: Pairs) -> "Aligner":
        """The same, with maps chosen on `sample`: by agreement of both directions, or where no choice was stored."""
        if self.reverse is not None:
            chosen = by_agreement(self.forward, self.reverse, sample)
            if chosen is None:
                return self
            one, other = chosen
            return replace(self, forward=replace(self.forward, choice=one), reverse=replace(self.reverse, choice=other))
        if self.forward.choice is None:
            return replace(self, forward=replace(self.forward, choice=by_influence(self.forward, sample)))
        return self

    def align(self, pairs: Pairs) -> list[Alignment]:
        """Links of each pair; none where a side is empty."""
        found = self.forward.look(pairs)
        own = [self.links(each) for each in found]
        if self.reverse is None:
            return own
        turned = self.reverse.look([(target, source) for source, target in pairs])
        for number, (one, other) in enumerate(zip(found, turned, strict=True), 1):
            check_same_words(one, other, number)
        theirs = [self.links(each).turned() for each in turned]
        return [one.joined(other, self.method) for one, other in zip(own, theirs, strict=True)]

    def links(self, attention: Attention | None) -> Alignment:
        """Of one map."""
        return Alignment() if attention is None else attention.alignment(self.threshold)


def check_same_words(forward: Attention | None, reverse: Attention | None, number: int) -> None:
    """Links by number can only be joined where both models count the same words."""
    if forward is None or reverse is None:
        return
    one, other = forward.recording, reverse.recording
    if (one.source.words, one.target.words) != (other.target.words, other.source.words):
        raise UsageError(
            f"pair {number:,}: the two models cut a text without spaces into different words; put spaces between words"
        )
