"""A local Ray for the tests, started once."""

import os
from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session")
def ray():
    """Start Ray as `translate --on ray` does: on loopback, with one CPU more than there are."""
    if find_spec("ray") is None:
        pytest.skip("needs softgaze[scale]")
    from softgaze.scale.ray_translate import ray_cluster

    before = dict(os.environ)
    with ray_cluster(None):
        import ray

        yield ray
    os.environ.clear()
    os.environ.update(before)
