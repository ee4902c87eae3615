"""Contributions to each output word as data and as a map; by occlusion, which needs no torch."""

from dataclasses import dataclass, replace

import numpy as np

from softgaze.explain.attention_map import Attention, LinkReliability
from softgaze.explain.explanation import Translation, Translator, occlusions, tokenized_pair
from softgaze.explain.recording import Matrix, normalize_rows

GRADIENT_NORM = "gradient-norm"
OCCLUSION = "occlusion"
METHODS = {
    "gradient": "gradient × input",
    GRADIENT_NORM: "norm of gradient × input",
    "contribution": "L1 contribution to the cross-attention",
    OCCLUSION: "occlusion",
}


@dataclass(frozen=True)
class Attribution:
    """Contributions of the source words and of the earlier output words to each output word."""

    method: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    source: Matrix  # (T, S), signed: a negative word made the output word less likely
    prefix: Matrix | None = None  # (T, T) of earlier output words; None if the method has none
    source_share: Matrix | None = None  # (T,) of all contributions by size, BOS and EOS included
    reliability: LinkReliability | None = None  # of the selected attention map on this sentence

    def map(self) -> Attention:
        """Return the positive contributions as a map like any other: rows sum to 1."""
        shown = Attention.of(self.source_words, self.target_words, normalize_rows(self.source.clip(min=0)))
        method = METHODS[self.method]
        recording = replace(shown.recording, note=method, attribution=method)
        return replace(shown, recording=recording, reliability=self.reliability)


def attribute_by_occlusion(translator: Translator, translation: Translation) -> Attribution:
    """Return the log-probability that each output word loses without each source word; works with any engine."""
    source, target = tokenized_pair(translator, translation).texts(translator.bundle.tokenizers)
    [scores] = occlusions(translator, [translation])
    return Attribution(OCCLUSION, source.words, target.words, np.nan_to_num(scores[:-1]))
