"""A Ray of the tests' own, started once; and what `softgaze translate --on ray` makes of files."""

import os

import pytest


@pytest.fixture(scope="session")
def ray():
    """On loopback, with two workers' worth of CPUs and one to read; its address is for processes of their own."""
    pytest.importorskip("ray", reason="needs softgaze[scale]")
    from softgaze.scale.on_ray import joined

    before = dict(os.environ)
    with joined(None):
        import ray

        yield ray
    os.environ.clear()
    os.environ.update(before)
