"""Imported by Python at startup when this directory is on PYTHONPATH: slow down fsync and rename.

Tests that kill a process use it, so that some kills strike between two steps of an atomic write.
"""

import os
import time

SECONDS = float(os.environ.get("SLOW_WRITES", "0"))


def slowed(call):
    def slow(*arguments, **options):
        time.sleep(SECONDS)
        result = call(*arguments, **options)
        time.sleep(SECONDS)
        return result

    return slow


os.fsync, os.replace = slowed(os.fsync), slowed(os.replace)
