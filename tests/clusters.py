"""A Ray of the tests' own, started once."""

import os
from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session")
def ray():
    """As `translate --on ray` starts one: on loopback, with a CPU more than there are."""
    if find_spec("ray") is None:
        pytest.skip("needs softgaze[scale]")
    from softgaze.scale.on_ray import joined

    before = dict(os.environ)
    with joined(None):
        import ray

        yield ray
    os.environ.clear()
    os.environ.update(before)
