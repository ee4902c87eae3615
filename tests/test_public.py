from pathlib import Path

import pytest

import softgaze

NAMES = [
    "MODELS",
    "Attended",
    "Hypothesis",
    "MultiHead",
    "Rules",
    "Sampling",
    "SoftDict",
    "Source",
    "Translation",
    "Translator",
    "__version__",
    "attend",
    "beam_search",
    "build",
    "causal_mask",
    "greedy",
    "load",
    "padding_mask",
    "sample",
]


def test_the_public_names_are_exactly_these():
    assert sorted(softgaze.__all__) == sorted(NAMES)
    assert len(set(softgaze.__all__)) == len(softgaze.__all__)


def test_dir_shows_the_public_names():
    assert dir(softgaze) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_resolves(name):
    assert getattr(softgaze, name) is not None


def test_star_import_brings_all_of_them():
    brought: dict[str, object] = {}
    exec("from softgaze import *", brought)
    assert set(NAMES) <= set(brought)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'softgaze' has no attribute 'gaze_softly'$"):
        softgaze.gaze_softly  # noqa: B018


def test_the_package_says_that_it_is_typed():
    assert Path(softgaze.__file__).with_name("py.typed").is_file()
