"""What every test shares: how Hypothesis looks for counterexamples, how many threads torch takes, and a browser."""

import os
import signal

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
