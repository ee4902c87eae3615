"""What every test shares: how Hypothesis looks for counterexamples, threads of torch, a poor device, and a browser."""

import os
import signal

import pytest
import torch
from hypothesis import settings

from browser import chromium, open_page, visit  # noqa: F401
from clusters import ray  # noqa: F401

# A shell that starts the suite in the background has it ignore Ctrl-C, and every program it starts after it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# On tensors this small a second thread costs more than it gives, and sums come out the same on every machine.
torch.set_num_threads(1)

settings.register_profile("softgaze", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "softgaze")


@pytest.fixture
def without_doubles(monkeypatch):
    """As on a device that has no float64 (Apple's): only what was fetched from it can be made double."""
    fetch, double = torch.Tensor.cpu, torch.Tensor.double

    def fetched(tensor):
        here = fetch(tensor).clone()
        here.is_here = True
        return here

    def doubled(tensor):
        assert getattr(tensor, "is_here", False), "a device without float64"
        return double(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", fetched)
    monkeypatch.setattr(torch.Tensor, "double", doubled)
