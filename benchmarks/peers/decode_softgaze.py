"""The engines of softgaze: torch, CTranslate2 or ONNX Runtime, each from a bundle, with their own batching.

The default is `load` and `Translator.translate`, from text to text; the others are ids to ids.
"""

import sys

import softgaze
from benchmarks.peers.decode_job import Decode, Orders, Sentences, Written, measure
from softgaze.engines.base import EncodedSource
from softgaze.search.options import SearchOptions
from softgaze.special_tokens import EOS


def prepare(orders: Orders) -> Decode:
    kind = sys.argv[2]
    if kind == "torch":
        import torch

        torch.set_num_threads(orders.job.threads)
    path = f"{orders.model}/{'torch' if kind == 'default' else kind}"
    translator = softgaze.load(path, "cpu", engine="torch" if kind == "torch" else "auto")
    engine = translator.engine
    search = SearchOptions(beam_size=orders.beam, min_length=orders.length, max_length=orders.length or None)

    def translate(sentences: Sentences) -> Written:
        """From text to text, as a user calls it; the pieces of the result are compared."""
        texts = ["".join(pieces).replace("▁", " ").strip() for pieces in sentences]
        if len(texts) == 1:
            return [translator.translate(texts[0], search).tokens]
        return [translation.tokens for translation in translator.translate(texts, search)]

    def decode(sentences: Sentences) -> Written:
        readings = [EncodedSource((*ids, EOS)) for ids in orders.ids(sentences)]
        [found] = engine.search([readings], search)
        return [hypotheses[0].tokens for hypotheses in found]

    return translate if kind == "default" else decode


if __name__ == "__main__":
    measure(prepare, softgaze.__version__)
