"""One server for all tests that only ask: two tiny models, there and back."""

from collections.abc import Iterator

import pytest

from bundles import make_bundle
from serving import Server, serving
from softgaze.translator import Translator, load


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Holds `tiny` (en to ko) and `back` (ko to en)."""
    folder = tmp_path_factory.mktemp("served")
    make_bundle(folder / "tiny")
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
