"""One search for every model: greedy, beam and sampling over `step(token, state)`. It knows only `models.base`."""

from softgaze.search.beam import beam_search, greedy
from softgaze.search.hypothesis import Hypothesis
from softgaze.search.rules import Rules
from softgaze.search.sampling import sample

__all__ = ["Hypothesis", "Rules", "beam_search", "greedy", "sample"]
