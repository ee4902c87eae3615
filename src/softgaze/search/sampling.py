"""Sampling: draw each next token from the model's distribution, sharpened or cut as asked.

The random numbers depend on the seed, the source, the number of the sample and the place in the sentence, never on the
batch: a sentence gets the same samples alone and among others, and different sentences share no luck.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq, Source, Watch
from softgaze.search.hypothesis import Hypothesis, hypothesis
from softgaze.search.rules import Rules, check_ready
from softgaze.search.settings import check_penalty, check_sampling
from softgaze.symbols import BEGIN, END


@torch.no_grad()
def sample(
    model: Seq2Seq,
    source: Source,
    *,
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    length_penalty: float = 1.0,
    rules: Rules = Rules(),
    watch: Watch | None = None,
) -> list[list[Hypothesis]]:
    """`samples` hypotheses for each sentence, in the order drawn; `top_k` 0 and `top_p` 1 cut nothing."""
    check_sampling(samples, temperature, top_k, top_p)
    check_penalty(length_penalty)
    rows = first_rows(model, source, samples, seed, rules, watch)
    drawn: dict[tuple[int, int], Hypothesis] = {}
    while len(rows.sentence):
        logits, rows.state, _ = model.step(rows.last, rows.state, watch)
        allowed = rules.apply(logits, rows.written, rows.forced)
        luck = torch.cat([torch.rand(1, generator=each) for each in rows.noise]).to(allowed.device)
        rows.last = draw(allowed / temperature, top_k, top_p, luck)
        rows.totals = rows.totals + allowed.gather(1, rows.last[:, None]).squeeze(1)
        rows.written = torch.cat([rows.written, rows.last[:, None]], 1)
        ends = (rows.last == END) | (rows.longest <= rows.written.shape[1])
        for row in ends.nonzero().flatten().tolist():
            place = int(rows.sentence[row]), int(rows.number[row])
            drawn[place] = hypothesis(rows.written[row].tolist(), float(rows.totals[row]), length_penalty)
        rows = rows.only(~ends)
    return [[drawn[sentence, number] for number in range(samples)] for sentence in range(len(source.lengths))]


@dataclass
class Rows:
    """The samples still being written."""

    sentence: Tensor  # (R,) which sentence of the batch
    number: Tensor  # (R,) which of its samples
    written: Tensor  # (R, t) tokens so far
    totals: Tensor  # (R,) their log-probability
    last: Tensor  # (R,) the token to read next
    longest: Tensor  # (R,) maximum length
    forced: Tensor  # (R, P) prefix, −1 where free
    noise: list[torch.Generator]
    state: Any

    def only(self, kept: Tensor) -> "Rows":
        """The rows where `kept` is True."""
        index = kept.nonzero().flatten()
        names = ("sentence", "number", "written", "totals", "last", "longest", "forced")
        tensors: dict[str, Any] = {name: getattr(self, name)[index] for name in names}
        noise = [self.noise[row] for row in index.tolist()]
        return Rows(**tensors, noise=noise, state=self.state.reorder(index) if len(index) else self.state)


def first_rows(model: Seq2Seq, source: Source, samples: int, seed: int, rules: Rules, watch: Watch | None) -> Rows:
    """Every sentence `samples` times, with nothing written."""
    check_ready(model)
    state = model.start(model.encode(source, watch))
    count, device = len(source.lengths), source.lengths.device
    sentence = torch.arange(count, device=device).repeat_interleave(samples)
    return Rows(
        sentence=sentence,
        number=torch.arange(samples, device=device).repeat(count),
        written=torch.empty(len(sentence), 0, dtype=torch.long, device=device),
        totals=torch.zeros(len(sentence), device=device),
        last=torch.full_like(sentence, BEGIN),
        longest=rules.longest(source.lengths)[sentence],
        forced=rules.forced(count, device)[sentence],
        noise=generators(source, samples, seed),
        state=state.reorder(sentence),
    )


def generators(source: Source, samples: int, seed: int) -> list[torch.Generator]:
    """One source of luck for each sample of each sentence, seeded by what the sentence says."""
    values, lengths = source.values.cpu(), source.lengths.tolist()
    texts = [row[:length].contiguous().numpy().tobytes() for row, length in zip(values, lengths, strict=True)]
    return [random_numbers(f"{seed} {number} ".encode() + text) for text in texts for number in range(samples)]


def random_numbers(key: bytes) -> torch.Generator:
    """A generator of its own for every key."""
    return torch.Generator().manual_seed(int.from_bytes(blake2b(key, digest_size=8).digest()) >> 1)


def draw(scores: Tensor, top_k: int, top_p: float, luck: Tensor) -> Tensor:
    """One token (R,) for each row of unnormalised log-probabilities (R, V): the one at `luck` (R,) of what is kept."""
    probabilities, tokens = scores.softmax(-1).sort(dim=-1, descending=True, stable=True)
    if top_k:
        probabilities[:, top_k:] = 0.0
    reached = probabilities.cumsum(-1)
    probabilities = probabilities.masked_fill(reached - probabilities >= top_p * reached[:, -1:], 0.0)
    reached = probabilities.cumsum(-1)
    place = torch.searchsorted(reached, luck[:, None] * reached[:, -1:], right=True)
    kept = (probabilities > 0).sum(-1, keepdim=True)
    return tokens.gather(1, torch.minimum(place, kept - 1)).squeeze(1)
