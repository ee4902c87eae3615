"""Sampling: draw each next token from the model's distribution, sharpened or cut as asked.

The random numbers depend on the seed, the source, the number of the sample and the place in the sentence, never on the
batch: a sentence gets the same samples alone and among others, and different sentences share no luck.
"""

import math
from hashlib import blake2b

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq, Source, Watch
from softgaze.search.hypothesis import Hypothesis, check_penalty, hypothesis
from softgaze.search.rules import Rules
from softgaze.symbols import BEGIN, END

COLDEST = 1e-6  # below this, dividing by the temperature overflows


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
    check_options(samples, temperature, top_k, top_p)
    check_penalty(length_penalty)
    count, device = len(source.lengths), source.lengths.device
    rows = torch.arange(count, device=device).repeat_interleave(samples)  # live row -> sentence
    number = torch.arange(samples, device=device).repeat(count)  # live row -> which sample
    state = model.start(model.encode(source, watch)).reorder(rows)
    longest, forced = rules.longest(source.lengths)[rows], rules.forced(count, device)[rows]
    written = torch.empty(len(rows), 0, dtype=torch.long, device=device)
    last, totals = torch.full_like(rows, BEGIN), torch.zeros(len(rows), device=device)
    noise = generators(source, samples, seed)
    drawn: list[list[Hypothesis | None]] = [[None] * samples for _ in range(count)]

    while len(rows):
        logits, state, _ = model.step(last, state, watch)
        allowed = rules.apply(logits, written, forced)
        luck = torch.cat([torch.rand(1, generator=each) for each in noise]).to(device)
        last = draw(allowed / temperature, top_k, top_p, luck)
        totals = totals + allowed.gather(1, last[:, None]).squeeze(1)
        written = torch.cat([written, last[:, None]], 1)
        ends = (last == END) | (longest <= written.shape[1])
        for row in ends.nonzero().flatten().tolist():
            found = hypothesis(written[row].tolist(), float(totals[row]), length_penalty)
            drawn[int(rows[row])][int(number[row])] = found
        live = (~ends).nonzero().flatten()
        rows, number, written, last, totals = (part[live] for part in (rows, number, written, last, totals))
        longest, forced, noise = longest[live], forced[live], [noise[row] for row in live.tolist()]
        state = state.reorder(live) if len(live) else state
    return [[each for each in found if each is not None] for found in drawn]


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


def check_options(samples: int, temperature: float, top_k: int, top_p: float) -> None:
    """Refuse what cannot be drawn from."""
    if samples < 1:
        raise ValueError(f"cannot draw {samples} samples")
    if not COLDEST <= temperature < math.inf:
        raise ValueError(
            f"a temperature of {temperature} is not a number from {COLDEST} up; for the likeliest token use greedy"
        )
    if top_k < 0 or not 0 < top_p <= 1:
        raise ValueError(f"top_k is 0 or more and top_p above 0 and at most 1, not {top_k} and {top_p}")
