"""CTranslate2 called directly on pieces, with one worker of one thread per core, its fastest setting here."""

import sys

import ctranslate2

from benchmarks.peers.batching import EOS
from benchmarks.peers.decode_job import Decode, Orders, Sentences, Written, measure


def prepare(orders: Orders) -> Decode:
    """Load the export that softgaze runs."""
    translator = ctranslate2.Translator(
        f"{orders.model}/{PRECISION}/ctranslate2", inter_threads=orders.job.threads, intra_threads=1
    )
    end = orders.vocabulary[EOS]

    def decode(sentences: Sentences) -> Written:
        found = translator.translate_batch(
            [[*each, end] for each in sentences],
            max_batch_size=orders.batch,
            beam_size=orders.beam,
            min_decoding_length=orders.length,
            max_decoding_length=orders.most(sentences),
        )
        return [each.hypotheses[0] for each in found]

    return decode


PRECISION = sys.argv[2] if len(sys.argv) > 2 else "float32"

if __name__ == "__main__":
    measure(prepare, ctranslate2.__version__)
