"""softgaze: sequence models whose attention you can see, trust and ship.

The names below are the public interface; everything else is internal and may change.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Imported on first use, so that `import softgaze` and `softgaze --help` do not wait for torch.
PUBLIC = {
    "load": "softgaze.translator",
    "Translator": "softgaze.translator",
    "Translation": "softgaze.translation",
    "SearchOptions": "softgaze.search.options",
    "Attention": "softgaze.explain.attention_map",
    "Alignment": "softgaze.explain.alignment",
    "train": "softgaze.training.train",
    "MODELS": "softgaze.models",
    "build_model": "softgaze.models",
    "Source": "softgaze.models",
    "attend": "softgaze.attention",
    "MultiHeadAttention": "softgaze.attention",
    "padding_mask": "softgaze.attention",
    "causal_mask": "softgaze.attention",
    "SoftDict": "softgaze.soft_dict",
    "tune_cpu": "softgaze.runtime",
}

__all__ = ["__version__", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'softgaze' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
