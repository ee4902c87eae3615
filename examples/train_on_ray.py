"""Train on a Ray cluster: Ray Train starts the workers and the process group, softgaze joins it.

    python examples/train_on_ray.py --train data/train.en data/train.de --out /shared/runs/mine --workers 8 --gpu

Text and --out must be on storage that all machines share. If a worker dies, all workers restart and the run resumes
from its last checkpoint; so does this command when it runs again. Needs softgaze[train,scale].
"""

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports usage by default


def train_one_rank(options: dict[str, Any]) -> None:
    """Train on one worker: the same call as in a single process."""
    from softgaze.config import merge_settings, parse_assignments, parse_config
    from softgaze.data.corpus import Corpus
    from softgaze.training.train import train

    settings = {"model": {"arch": options["arch"], "size": options["size"]}, "budget": {"steps": options["steps"]}}
    config = parse_config(merge_settings(settings, parse_assignments(options["set"])))
    train(config, Corpus.of([options["train"]]), None, options["out"], device="cuda" if options["gpu"] else "cpu")


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs=2, type=Path, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--out", type=Path, required=True, help="run directory; the same command resumes it")
    parser.add_argument("--arch", default="transformer")
    parser.add_argument("--size", default="base")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="any setting")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="use one GPU per worker")
    parser.add_argument("--address", help="address of a running Ray cluster; default: start one here")
    return parser.parse_args()


def main() -> None:
    """Train on Ray workers and wait for them."""
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    options = parse_arguments()
    options.train, options.out = tuple(path.absolute() for path in options.train), options.out.absolute()
    local = {} if options.address else {"include_dashboard": False}
    ray.init(options.address or "local", log_to_driver=False, **local)  # metrics.jsonl in --out shows the progress
    TorchTrainer(
        train_one_rank,
        train_loop_config=vars(options),
        torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if options.gpu else "gloo"),
        scaling_config=ScalingConfig(num_workers=options.workers, use_gpu=options.gpu),
        # softgaze writes its checkpoints to --out; Ray stores only the state of its run.
        run_config=RunConfig(
            name=options.out.name,
            storage_path=str(options.out.parent / "ray"),
            failure_config=FailureConfig(max_failures=3),
        ),
    ).fit()
    print(f"trained: {options.out}")


if __name__ == "__main__":
    main()
