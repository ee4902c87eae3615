"""One set of scenes for all tests here."""

import pytest

from softgaze.data.scenes import Scenes, generate


@pytest.fixture(scope="session")
def scenes() -> Scenes:
    return generate(2_000, seed=0)
