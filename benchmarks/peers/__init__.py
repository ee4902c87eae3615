"""One file a contender, each run by the interpreter of its own environment: `python -m benchmarks.peers.NAME JOB`."""
