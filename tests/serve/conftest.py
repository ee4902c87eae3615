"""One server with two tiny models, one per direction, for all tests that only send requests."""

from collections.abc import Iterator
from shutil import copytree

import pytest
from deepl import http_client

from bundles import make_bundle
from engines.exported import exported, trained_bundle
from serving import Server, serving
from softgaze.translator import Translator, load


@pytest.fixture(scope="session", autouse=True)
def patient_deepl_client():
    """Let the client wait for a server on a busy machine; its default is 10 seconds."""
    http_client.min_connection_timeout = 60.0


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Contains `tiny` (en to ko, trained to copy), `back` (ko to en), and `quick` (tiny exported to CTranslate2)."""
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
    """The first model of the server, loaded in this process."""
    return load(folder / "tiny")
