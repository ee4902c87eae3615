import inspect
from pathlib import Path

import pytest

import softgaze

NAMES = [
    "Alignment",
    "Attention",
    "MODELS",
    "MultiHeadAttention",
    "SearchOptions",
    "SoftDict",
    "Source",
    "Translation",
    "Translator",
    "__version__",
    "attend",
    "build_model",
    "causal_mask",
    "load",
    "padding_mask",
    "train",
    "tune_cpu",
]


def test_the_public_names_are_exactly_these():
    assert dir(softgaze) == sorted(softgaze.__all__) == sorted(NAMES)
    imported: dict[str, object] = {}
    exec("from softgaze import *", imported)
    assert all(imported[name] is getattr(softgaze, name) for name in NAMES)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"MODELS", "__version__"}))
def test_every_name_has_its_own_docstring(name):
    """A dataclass or NamedTuple without one would get its signature, such as `Point(x, y)`."""
    text = inspect.getdoc(getattr(softgaze, name))
    assert text
    assert not text.startswith(f"{name}(")


@pytest.mark.parametrize("arch", sorted(softgaze.MODELS))
def test_every_model_has_its_own_docstring(arch):
    assert vars(softgaze.MODELS[arch])["__doc__"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'softgaze' has no attribute 'gaze_softly'$"):
        softgaze.gaze_softly  # noqa: B018


def test_the_package_says_that_it_is_typed():
    assert Path(softgaze.__file__).with_name("py.typed").is_file()
