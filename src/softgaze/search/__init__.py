"""Beam search and sampling over any decoder, without torch."""

from typing import TYPE_CHECKING

from softgaze.search.options import Hypothesis, SearchOptions

if TYPE_CHECKING:
    from softgaze.search.beam import TraceCallback
    from softgaze.search.decoder import Decoder, Prefixes
    from softgaze.search.terms import TermConstraint

__all__ = ["Hypothesis", "SearchOptions", "generate"]


def generate(
    decoder: "Decoder",
    options: SearchOptions,
    prefixes: "Prefixes | None" = None,
    max_positions: int | None = None,
    on_candidate: "TraceCallback | None" = None,
    terms: "TermConstraint | None" = None,
) -> list[list[Hypothesis]]:
    """Decode one batch by beam search, or by sampling, which ignores `terms`, if `options` has a temperature."""
    if options.is_sampling:
        from softgaze.search.sampling import sample

        return sample(decoder, options, prefixes, max_positions)
    from softgaze.search.beam import beam_search

    return beam_search(decoder, options, prefixes, max_positions, on_candidate, terms)
