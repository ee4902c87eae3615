"""How often each fault strikes: a few times in `make test`, often in `make soak` (SOFTGAZE_SOAK=1)."""

import os

LONG = os.environ.get("SOFTGAZE_SOAK") == "1"


def times(short: int, long: int) -> int:
    """The amount of the form that runs."""
    return long if LONG else short
