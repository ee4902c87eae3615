"""One book for all tests of the grammar: it takes seconds to draw, and nothing changes it."""

import pytest

from softgaze.data.phrasebook import SPLITS, generate


@pytest.fixture(scope="session")
def book():
    return generate(20_000, seed=0)


@pytest.fixture(scope="session")
def everything(book):
    return [sentence for split in SPLITS for sentence in getattr(book, split)]
