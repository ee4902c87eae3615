"""eole, through its inference engine; the model is one that its own training has just written."""

from importlib.metadata import version
from pathlib import Path

import torch
from eole.bin.run.train import train
from eole.config.run import PredictConfig, TrainConfig
from eole.inference_engine import InferenceEnginePY

from benchmarks.peers.decode_job import Decode, Orders, Sentences, measure
from benchmarks.peers.eole import settings


def prepare(orders: Orders) -> Decode:
    """Train for a step, load what was saved."""
    torch.set_num_threads(orders.job.threads)
    wanted = settings(orders.job)
    wanted["training"] |= {"train_steps": 1, "save_checkpoint_steps": 1, "batch_size": 256, "bucket_size": 64}
    train(TrainConfig(**wanted))
    nothing = Path(orders.job.scratch("nothing"))
    nothing.write_text("")
    engine = InferenceEnginePY(
        PredictConfig(
            model_path=orders.job.scratch("model"),
            src=str(nothing),
            beam_size=orders.beam,
            min_length=orders.length,
            max_length=orders.length,
            max_length_ratio=0,
            batch_size=orders.batch,
            batch_type="sents",
            gpu_ranks=[],
            world_size=1,
            length_penalty="avg",
            alpha=1.0,
            transforms=[],
        )
    )

    def decode(sentences: Sentences) -> list[int]:
        _, _, found = engine.infer_list([" ".join(each) for each in sentences])
        return [len(best[0].split(" ")) for best in found]

    return decode


if __name__ == "__main__":
    measure(prepare, version("eole"))
