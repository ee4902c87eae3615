"""Attribute given sentence pairs with Inseq.

    python benchmarks/peers/attribute_inseq.py MODEL pairs.json -o inseq.json
    python benchmarks/peers/attribute_inseq.py MODEL pairs.json -o inseq.json --methods occlusion --every 5

Runs in an environment with inseq; it needs no softgaze. `pairs.json` has `pairs`, a list of [source, target]. The
output has, for each method, the CPU seconds of all pairs, and for each pair the source tokens, the target tokens and
the matrix (target tokens, source tokens) as Inseq aggregates it by default. `--every N` takes every Nth pair, for slow
methods. Methods that the output file has already are kept.
"""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import inseq
import torch

METHODS = ("attention", "input_x_gradient", "integrated_gradients", "occlusion")


def attributions(model: Any, pairs: list[list[str]]) -> tuple[float, list[dict[str, Any]]]:
    start, found = time.process_time(), []
    for source, target in pairs:
        output = model.attribute(source, target, show_progress=False, pretty_progress=False)
        one = output.sequence_attributions[0].aggregate()
        found.append(
            {
                "source": [token.token for token in one.source],
                "target": [token.token for token in one.target],
                "matrix": torch.nan_to_num(one.source_attributions).T.tolist(),
            }
        )
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pairs = json.loads(given.pairs.read_text(encoding="utf-8"))["pairs"]
    results: dict[str, Any] = json.loads(given.output.read_text(encoding="utf-8")) if given.output.is_file() else {}
    results["versions"] = {name: version(name) for name in ("inseq", "transformers", "torch")}
    for method in given.methods:
        model = inseq.load_model(given.model, method, device="cpu")
        attributions(model, pairs[:1])  # warm-up
        seconds, maps = attributions(model, pairs[:: given.every])
        results[method] = {"seconds": seconds, "every": given.every, "maps": maps}
        print(f"{method}: {seconds:.1f} s", flush=True)
        given.output.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
