"""One server for all tests that only ask: two tiny models, there and back."""

from collections.abc import Iterator
from shutil import copytree

import pytest

from bundles import make_bundle
from engines.exported import exported, trained_bundle
from serving import Server, serving
from softgaze.translator import Translator, load


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Holds `tiny` (en to ko, though all it has learnt is to copy), `back` (ko to en) and `quick`, tiny exported."""
    folder = tmp_path_factory.mktemp("served")
    copytree(trained_bundle(), folder / "tiny")
    exported(trained_bundle(), folder / "quick", "ctranslate2")
    make_bundle(folder / "back", source_language="ko", target_language="en")
    return folder


@pytest.fixture(scope="session")
def server(folder) -> Iterator[Server]:
    with serving(folder / "tiny", folder / "back") as running:
        yield running


@pytest.fixture(scope="session")
def tiny(folder) -> Translator:
    """What the server translates with, here."""
    return load(folder / "tiny")
