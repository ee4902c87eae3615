"""One search for every model: greedy, beam and sampling over `step(token, state)`. It knows only `models.base`.

What needs torch is imported on first use: what a search is asked, and what it returns, are known without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softgaze.search.hypothesis import Hypothesis
from softgaze.search.settings import Sampling, Search

if TYPE_CHECKING:
    from softgaze.search.beam import beam_search, greedy
    from softgaze.search.rules import Rules
    from softgaze.search.sampling import sample

LATER = {
    "Rules": "softgaze.search.rules",
    "beam_search": "softgaze.search.beam",
    "greedy": "softgaze.search.beam",
    "sample": "softgaze.search.sampling",
}

__all__ = ["Hypothesis", "Rules", "Sampling", "Search", "beam_search", "greedy", "sample"]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'softgaze.search' has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)
