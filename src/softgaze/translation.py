"""`Translation`: a translated text with its tokens and scores; explanations are computed when they are used.

This module does not import torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from softgaze.engines.base import Ids, Items
from softgaze.errors import UsageError
from softgaze.search import SearchOptions

if TYPE_CHECKING:
    from softgaze.explain import Attention
    from softgaze.explain.attribution import Contrast
    from softgaze.explain.attribution_map import Attribution
    from softgaze.explain.beam_tree import BeamTrace
    from softgaze.explain.confidence import Confidence, WordAlternative
    from softgaze.explain.explanation import Explanation
    from softgaze.explain.recording import Matrix
    from softgaze.explain.what_if import Change, ChangeRequest, HeadName, TextDiff, Word
    from softgaze.search.terms import SourceTerm
    from softgaze.term_placement import PlacedTerm
    from softgaze.translator import Translator


class TranslatedPart(NamedTuple):
    """The source and the target of one pass through the model; a text that was not split has one part."""

    source_ids: Items  # EOS included
    target_ids: Ids  # without BOS and EOS
    source_tokens: tuple[str, ...]  # the source's EOS included
    target_tokens: tuple[str, ...]
    log_prob: float
    finished: bool  # False: cut at the maximum length
    forced: int = 0  # language tokens that the target starts with
    terms: "tuple[SourceTerm, ...]" = ()  # of the glossary, that the search placed

    @property
    def length(self) -> int:
        """Number of target tokens, EOS and forced language tokens included."""
        return len(self.target_ids) + self.finished + self.forced


@dataclass(frozen=True)
class Translation:
    """A translated text. The explanations are computed by `Translator.explain` when first used."""

    source: str
    text: str
    score: float  # alternatives are ranked by log-probability / length^α; higher is better, 0 is certain
    parts: tuple[TranslatedPart, ...] = field(repr=False)  # empty for empty text
    alternatives: tuple["Translation", ...] = ()  # the next best, best first; samples in the order drawn
    translator: "Translator | None" = field(default=None, repr=False, compare=False)
    options: SearchOptions = field(default=SearchOptions(), repr=False, compare=False)
    changes: tuple["Change", ...] = field(default=(), repr=False)  # made by `what_if`, first to last
    original: "Translation | None" = field(default=None, repr=False, compare=False)  # that `what_if` started from
    terms: tuple["PlacedTerm", ...] = ()  # of the glossary
    engine: str = field(default="", compare=False)  # that searched

    @property
    def tokens(self) -> tuple[str, ...]:
        """Subwords of the translation."""
        return tuple(token for part in self.parts for token in part.target_tokens)

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """Subwords of the source, with the EOS of each part."""
        return tuple(token for part in self.parts for token in part.source_tokens)

    @property
    def log_prob(self) -> float:
        """Log-probability of the whole translation."""
        return sum((part.log_prob for part in self.parts), 0.0)

    @property
    def finished(self) -> bool:
        """False if a part was cut at the maximum length."""
        return all(part.finished for part in self.parts)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return the translation and its alternatives as JSON types."""
        own = {
            "text": self.text,
            "score": self.score,
            "log_prob": self.log_prob,
            "finished": self.finished,
            "tokens": list(self.tokens),
        }
        if self.options.glossary is not None:
            own |= {"engine": self.engine, "terms": [term._asdict() for term in self.terms]}
        alternatives = [
            {name: value for name, value in alternative.to_dict().items() if name in own}
            for alternative in self.alternatives
        ]
        return {"source": self.source, **own, "alternatives": alternatives}

    # --- shortcuts to the explanation

    @cached_property
    def explanation(self) -> "Explanation":
        """The explanation of this translation by its translator."""
        if self.translator is None:
            raise UsageError("this translation has no translator; use Translator.explain(translation)")
        return self.translator.explain(self)

    @property
    def attention(self) -> "Attention | None":
        """Attention of each target word over the source; None for empty text or a model without attention."""
        return self.explanation.attention

    @property
    def occlusion(self) -> "Matrix":
        """(target words, source words): the log-probability each target word loses without a source word."""
        return self.explanation.occlusion

    @property
    def beam(self) -> "BeamTrace":
        """Every hypothesis the beam search considered."""
        return self.explanation.beam

    def faithfulness(self) -> float:
        """Return the rank correlation of attention and occlusion: 1 agrees fully, 0 not at all."""
        return self.explanation.faithfulness()

    @property
    def confidence(self) -> "Confidence":
        """The probability that each word is right."""
        return self.explanation.confidence

    def alternatives_at(self, word: int, count: int = 5) -> "list[WordAlternative]":
        """Return the likeliest words in the position of a word, each with the translation that continues from it."""
        return self.explanation.alternatives_at(word, count)

    def attribution(self, method: str = "gradient") -> "Attribution":
        """Attribute each output word to source words: by a method of `attribution_map.METHODS`."""
        return self.explanation.attribution(method)

    def why(self, word: str | int, instead_of: str) -> "Contrast":
        """Explain a word against another one in its position; needs torch."""
        return self.explanation.why(word, instead_of)

    def what_if(
        self,
        *,
        mask: "Word | Sequence[Word]" = (),
        attend: "Mapping[int, Word] | None" = None,
        ablate: "Sequence[HeadName]" = (),
        sharpen: float = 1.0,
        where: "Sequence[HeadName] | None" = None,
    ) -> "Translation":
        """Translate again with changed attention, by the same search; needs torch. `diff` compares the two.

        Word indices start at 0. Changes add to earlier changes of the translation; the later one wins. A head is
        (layer, head) or (kind, layer, head); None selects all.

        Parameters
        ----------
        mask
            Source words that get no attention, as text or, where a word is repeated, by index.
        attend
            {index of an output word: the source word that gets all weight while it is generated}.
        ablate
            Heads whose output is zero.
        sharpen
            Power of the weights: 2 is sharper, 0.5 is flatter.
        where
            Heads that `mask`, `attend` and `sharpen` apply to; by default all cross-attention.
        """
        changed: Translation = self.explanation.what_if(
            mask=mask, attend=attend, ablate=ablate, sharpen=sharpen, where=where
        )
        return changed

    def what_ifs(self, requests: "Sequence[ChangeRequest]") -> "list[Translation]":
        """Return one changed translation for each request, all from one search."""
        return self.explanation.what_ifs(requests)

    def diff(self) -> "TextDiff":
        """Return the differences from the translation that `what_if` started from."""
        from softgaze.explain.explanation import Explanation

        return Explanation(self.translator, self).diff()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Show both texts and the attention map in a notebook."""
        from softgaze.explain.render.pages import notebook_mimebundle

        if self.translator is None or self.attention is None:
            return {"text/plain": repr(self)}
        return notebook_mimebundle(self.attention, self.source, self.text)


def combined_score(parts: Sequence[TranslatedPart], length_penalty: float) -> float:
    """Return log-probability / length^α over all parts at once, so that a split text is ranked as if it were one."""
    length = sum(part.length for part in parts)
    return sum(part.log_prob for part in parts) / length**length_penalty if length else 0.0


def best_combinations(
    parts: Sequence[Sequence[TranslatedPart]], options: SearchOptions
) -> list[tuple[TranslatedPart, ...]]:
    """Return the best `num_hypotheses` ways to take one hypothesis of each part; parts are independent."""
    best: list[tuple[TranslatedPart, ...]] = [()]
    for hypotheses in parts:
        longer = ((*before, hypothesis) for before in best for hypothesis in hypotheses)
        best = nlargest(
            options.num_hypotheses, longer, key=lambda chosen: combined_score(chosen, options.length_penalty)
        )
    return best
