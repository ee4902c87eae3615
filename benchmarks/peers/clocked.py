"""The command line of softgaze with a clock: `python -m benchmarks.peers.clocked translate MODEL …`.

At the end it prints a line of JSON on stderr: when the model was loaded and the last line written (on the clock that
all processes share), and the peak resident memory.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import softgaze.translator
from softgaze.cli import main

times: dict[str, float] = {}
load = softgaze.translator.load


def timed(*given: Any, **named: Any) -> Any:
    """Call `load` and record when it returned."""
    translator = load(*given, **named)
    times["loaded"] = time.monotonic()
    return translator


def peak() -> int:
    """Return the peak resident bytes of this process; `ru_maxrss` would start with those of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    softgaze.translator.load = timed
    try:
        main()
    finally:
        print(json.dumps({**times, "done": time.monotonic(), "peak": peak()}), file=sys.stderr)
