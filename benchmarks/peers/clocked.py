"""The command line of softgaze with a watch: `python -m benchmarks.peers.clocked translate MODEL …`.

When it is done it prints, as a line of JSON on stderr, when the model was loaded and the last line written (by the
clock that all processes share), and the most memory it had resident.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import softgaze.translator
from softgaze.cli import main

seen: dict[str, float] = {}
load = softgaze.translator.load


def timed(*given: Any, **named: Any) -> Any:
    """`load`, and when it had."""
    found = load(*given, **named)
    seen["loaded"] = time.monotonic()
    return found


def peak() -> int:
    """The most memory this process had resident, in bytes; `ru_maxrss` would begin with that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    softgaze.translator.load = timed
    try:
        main()
    finally:
        print(json.dumps({**seen, "done": time.monotonic(), "peak": peak()}), file=sys.stderr)
