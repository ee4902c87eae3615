"""Our own engines: torch, CTranslate2 or ONNX Runtime, each from a bundle, batched as they do it themselves."""

import sys

import softgaze
from benchmarks.peers.decode_job import Decode, Orders, Sentences, Written, measure
from softgaze.engines.base import Reading
from softgaze.search.settings import Search
from softgaze.symbols import END


def prepare(orders: Orders) -> Decode:
    """From the bundle of one engine."""
    kind = sys.argv[2]
    if kind == "torch":
        import torch

        torch.set_num_threads(orders.job.threads)
    engine = softgaze.load(f"{orders.model}/{kind}", "cpu").engine
    search = Search(beam=orders.beam, min_length=orders.length, max_length=orders.length or None)

    def decode(sentences: Sentences) -> Written:
        readings = [Reading((*ids, END)) for ids in orders.ids(sentences)]
        found = dict(engine.search(readings, search))
        return [found[number][0].tokens for number in range(len(readings))]

    return decode


if __name__ == "__main__":
    measure(prepare, softgaze.__version__)
