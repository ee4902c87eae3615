"""Train on a Ray cluster: Ray Train starts the workers and joins them, softgaze finds that it is one of many.

    python examples/train_on_ray.py --train data/train.en data/train.de --out /shared/runs/mine --workers 8 --gpu

Text and --out must lie on storage that all machines share. A worker that dies is replaced together with the others, and
the run goes on from its last checkpoint; so does this command when it is run again. Needs softgaze[train,scale].
"""

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray counts its users unless told not to


def train_one_rank(given: dict[str, Any]) -> None:
    """What each worker does: the same call as in a process by itself."""
    from softgaze.config import merged, parse_assignments, validated
    from softgaze.data.corpus import Corpus
    from softgaze.training import train

    settings = {"model": {"arch": given["arch"], "size": given["size"]}, "budget": {"steps": given["steps"]}}
    config = validated(merged(settings, parse_assignments(given["set"])))
    train(config, Corpus.of([given["train"]]), None, given["out"], device="cuda" if given["gpu"] else "cpu")


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs=2, type=Path, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--out", type=Path, required=True, help="run directory; the same command resumes it")
    parser.add_argument("--arch", default="transformer")
    parser.add_argument("--size", default="base")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="any setting")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="a graphics card for each worker")
    parser.add_argument("--address", help="of a running Ray; without it one is started here")
    return parser.parse_args()


def main() -> None:
    """Ask Ray for workers, and wait for them."""
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    given = arguments()
    given.train, given.out = tuple(path.absolute() for path in given.train), given.out.absolute()
    own = {} if given.address else {"include_dashboard": False}
    ray.init(given.address or "local", log_to_driver=False, **own)  # how it goes is told by metrics.jsonl in --out
    TorchTrainer(
        train_one_rank,
        train_loop_config=vars(given),
        torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if given.gpu else "gloo"),
        scaling_config=ScalingConfig(num_workers=given.workers, use_gpu=given.gpu),
        # Checkpoints are softgaze's own, in --out; Ray keeps only its notes.
        run_config=RunConfig(
            name=given.out.name,
            storage_path=str(given.out.parent / "ray"),
            failure_config=FailureConfig(max_failures=3),
        ),
    ).fit()
    print(f"trained: {given.out}")


if __name__ == "__main__":
    main()
