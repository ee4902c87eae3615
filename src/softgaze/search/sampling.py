"""Sampling: draw each next token from the model's distribution, sharpened or cut as asked.

The random numbers depend on the seed, the number of the sample and the place in the sentence, never on the batch: a
sentence gets the same samples alone and among others.
"""

import torch
from torch import Tensor

from softgaze.models.base import Seq2Seq, Source, Watch
from softgaze.search.hypothesis import Hypothesis, hypothesis
from softgaze.search.rules import Rules
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
    check_options(samples, temperature, top_k, top_p)
    count, device = len(source.lengths), source.lengths.device
    rows = torch.arange(count, device=device).repeat_interleave(samples)  # live row -> sentence
    number = torch.arange(samples, device=device).repeat(count)  # live row -> which sample
    state = model.start(model.encode(source, watch)).reorder(rows)
    longest, forced = rules.longest(source.lengths)[rows], rules.forced(count, device)[rows]
    written = torch.empty(len(rows), 0, dtype=torch.long, device=device)
    last, totals = torch.full_like(rows, BEGIN), torch.zeros(len(rows), device=device)
    noise = [torch.Generator().manual_seed(seed * 1_000_003 + each) for each in range(samples)]
    drawn: list[list[Hypothesis | None]] = [[None] * samples for _ in range(count)]

    while len(rows):
        logits, state, _ = model.step(last, state, watch)
        allowed = rules.apply(logits.float().log_softmax(-1), written, forced)
        luck = torch.cat([torch.rand(1, generator=each) for each in noise]).to(device)
        last = draw(allowed / temperature, top_k, top_p, luck[number])
        totals = totals + allowed.gather(1, last[:, None]).squeeze(1)
        written = torch.cat([written, last[:, None]], 1)
        ends = (last == END) | (longest <= written.shape[1])
        for row in ends.nonzero().flatten().tolist():
            found = hypothesis(written[row].tolist(), float(totals[row]), length_penalty)
            drawn[int(rows[row])][int(number[row])] = found
        live = (~ends).nonzero().flatten()
        rows, number, written, last, totals = (part[live] for part in (rows, number, written, last, totals))
        longest, forced = longest[live], forced[live]
        state = state.reorder(live) if len(live) else state
    return [[each for each in found if each is not None] for found in drawn]


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
    if temperature <= 0:
        raise ValueError(f"a temperature of {temperature} is not above zero; for the likeliest token use greedy")
    if top_k < 0 or not 0 < top_p <= 1:
        raise ValueError(f"top_k is 0 or more and top_p above 0 and at most 1, not {top_k} and {top_p}")
