"""Operations per target token, counted, and the peak speed of the machine, measured.

python -m benchmarks.operations count JOB     operations of softgaze's model on the batches of a job
python -m benchmarks.operations peak THREADS  the fastest matrix product, float32 and bfloat16
"""

import json
import sys
import time
from itertools import islice

import torch
import torch.nn.functional as F

from benchmarks.peers.job import Job
from softgaze.evaluation.complexity.layers import count_flops
from softgaze.models.base import Seq2Seq
from softgaze.special_tokens import PAD
from softgaze.training.collate import PaddedBatch, collate

COUNTED = 8  # batches; operations per token hardly differ between them
SIZES = (256, 512, 1024, 2048, 4096)
REPEATS = 5
PATIENCE = 0.5  # seconds for one product


def operations(model: Seq2Seq, batch: PaddedBatch) -> int:
    """Count multiplications and additions of the matrix products in a forward and backward pass over a batch."""

    def run() -> None:
        features = model.decode(model.encode(batch.source), batch.decoder_input)
        real = batch.labels != PAD
        loss = F.cross_entropy(model.output(features[real]), batch.labels[real])
        loss.backward()  # type: ignore[no-untyped-call]

    counted = count_flops(run)
    model.zero_grad(set_to_none=True)
    return sum(counted.values())


def per_token(job: Job) -> float:
    """Return the operations per real target token over the first batches of a job."""
    from benchmarks.peers.softgaze import trainer_of

    trainer = trainer_of(job)
    total = tokens = 0
    for pairs in islice(trainer.batches.batches_from(0), COUNTED):
        batch = collate(trainer.data.train, pairs, trainer.device)
        total += operations(trainer.model, batch)
        tokens += batch.num_tokens
    return total / tokens


def peak(kind: torch.dtype) -> float:
    """Return the operations per second of the fastest square matrix product over all sizes and repeats.

    A processor that has to emulate bfloat16 is a hundred times slower: sizes stop growing once one takes that long.
    """
    best = 0.0
    for size in SIZES:
        rate = product_rate(size, kind)
        best = max(best, rate)
        if 2 * size**3 / rate > PATIENCE:
            break
    return best


def product_rate(size: int, kind: torch.dtype) -> float:
    """Return the operations per second of one size, best of some repeats."""
    left, right = (torch.randn(size, size).to(kind) for _ in range(2))
    best = 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        left @ right
        seconds = time.perf_counter() - start
        best = max(best, 2 * size**3 / seconds)
        if seconds > PATIENCE:
            break
    return best


def main() -> None:
    task, argument = sys.argv[1:]
    if task == "count":
        print(json.dumps({"operations_per_token": round(per_token(Job.read(argument)))}))
    else:
        torch.set_num_threads(int(argument))
        print(json.dumps({"float32": peak(torch.float32), "bfloat16": peak(torch.bfloat16)}))


if __name__ == "__main__":
    main()
