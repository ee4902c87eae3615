"""softgaze: sequence models whose attention you can see, trust and ship."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Names are imported on first use, so that `import softgaze` and `softgaze --help` never wait for torch.
PUBLIC = {
    "Attended": "softgaze.attention",
    "MultiHead": "softgaze.attention",
    "attend": "softgaze.attention",
    "causal_mask": "softgaze.attention",
    "padding_mask": "softgaze.attention",
    "SoftDict": "softgaze.lookup",
    "MODELS": "softgaze.models",
    "Source": "softgaze.models",
    "build": "softgaze.models",
    "Hypothesis": "softgaze.search",
    "Rules": "softgaze.search",
    "beam_search": "softgaze.search",
    "greedy": "softgaze.search",
    "sample": "softgaze.search",
    "Sampling": "softgaze.search.settings",
    "Translation": "softgaze.translator",
    "Translator": "softgaze.translator",
    "load": "softgaze.translator",
}

__all__ = ["__version__", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'softgaze' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
