"""Translating a file on Ray compared with one process on all cores: the same command with and without `--on ray`.

    python -m benchmarks.over_ray MODEL FILE      writes over_ray.json and with it a table of docs/scale.md

Three ways take turns: one process, a Ray that the command starts, a Ray that is running. Times are of whole commands
including loading, so for a short file starting dominates.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.report import Spread, circumstances
from benchmarks.scaling import PAGE, ROOT, between_marks

RECORD = Path(__file__).with_name("over_ray.json")
WAYS = {
    "one process": (),
    "a local Ray instance": ("--on", "ray"),
    "a running Ray cluster": ("--on", "ray", "--address"),
}


def seconds(words: list[str]) -> float:
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-m", "softgaze", "translate", *words], check=True, env=environment)
    return time.perf_counter() - began


def measure(model: str, text: Path, rounds: int) -> dict[str, Any]:
    """Return the lines per second of each way and round, and whether all wrote the same bytes."""
    import ray

    from softgaze.scale.ray_translate import ray_cluster

    count = text.read_bytes().count(b"\n")
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    with TemporaryDirectory() as folder, ray_cluster(None):
        address = ray.get_runtime_context().gcs_address
        for _ in range(rounds):
            for name, way in WAYS.items():
                where = [address] if "--address" in way else []
                words = [model, "--input", str(text), "--output", f"{folder}/{name}", *way, *where]
                rates[name].append(count / seconds(words))
        written = {Path(folder, name).read_bytes() for name in WAYS}
    return {"made": circumstances("over_ray"), "lines": count, "rates": rates, "same": len(written) == 1}


def table(record: dict[str, Any]) -> str:
    alone = record["rates"]["one process"]
    lines = ["| | lines a second: median (range) | over one process: median (range) |", "|---|--:|--:|"]
    for name, rates in record["rates"].items():
        ratio = Spread.of([rate / other for rate, other in zip(rates, alone, strict=True)])
        lines.append(f"| {name} | {Spread.of(rates).text(1)} | {ratio.text(2)} |")
    same = "all three wrote the same bytes" if record["same"] else "they did not write the same bytes"
    return "\n".join([f"{record['made']} {record['lines']:,} lines; {same}.", "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.over_ray", description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    record = measure(given.model, given.text, given.rounds)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between_marks(page, "over Ray", table(record)), encoding="utf-8")
    print(table(record))


if __name__ == "__main__":
    main()
