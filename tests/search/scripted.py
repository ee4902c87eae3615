"""A model without a network: what may follow each prefix is written down by the test, so the best sentence is known.

Beside it the two ways to search that need no cleverness: try every sentence, and beam search for one sentence in plain
Python. They share no code with the package.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from softgaze.attention import padding_mask
from softgaze.engines.torch_engine import TorchDecoder
from softgaze.models.base import Advance, AttentionHook, Memory, Seq2Seq, Source, check_source, select_rows
from softgaze.search import Hypothesis, SearchOptions, generate
from softgaze.special_tokens import EOS

A, B, C = LETTERS = (4, 5, 6)
VOCABULARY = 7

Tokens = tuple[int, ...]
Follow = Callable[[Tokens, Tokens], Sequence[float]]  # (sentence, prefix) -> a logit for each token
Allowed = Callable[[Tokens, int], bool]  # (prefix, token): may the token follow?


class ScriptState(NamedTuple):
    """Which sentence each row translates, and what it has read, BEGIN first."""

    memory: Memory
    prefix: Tensor  # (B, t)

    def reorder(self, index: Tensor) -> Self:
        return select_rows(self, index)


class Script(Seq2Seq):
    """Says what `follow` says; counts the rows of every step."""

    def __init__(self, follow: Follow) -> None:
        super().__init__()
        self.eval()
        self.follow, self.output = follow, nn.Identity()
        self.rows: list[int] = []

    def encode(self, source: Source, hook: AttentionHook | None = None) -> Memory:
        check_source(source, 1000)
        return Memory(source.values, padding_mask(source.lengths, source.values.shape[1]), (source.lengths,))

    def start(self, memory: Memory) -> ScriptState:
        return ScriptState(memory, memory.values[:, :0])

    def advance(
        self, tokens: Tensor, state: Any, hook: AttentionHook | None = None, *, need_weights: bool = False
    ) -> Advance:
        self.rows.append(len(tokens))
        state = state._replace(prefix=torch.cat([state.prefix, tokens], 1))
        sentences = zip(state.memory.values.tolist(), state.memory.extra[0].tolist(), strict=True)
        logits = [
            self.follow(tuple(sentence[:length]), tuple(prefix[1:]))
            for (sentence, length), prefix in zip(sentences, state.prefix.tolist(), strict=True)
        ]
        nowhere = torch.zeros(len(tokens), 0, 1, state.memory.values.shape[1])
        return Advance(torch.tensor(logits)[:, None], state, nowhere)


def drawn(seed: int, spread: float = 2.0) -> Follow:
    """A table of random logits, special tokens included: every prefix of every sentence has its own."""

    def follow(sentence: Tokens, prefix: Tokens) -> list[float]:
        dice = random.Random(f"{seed} {sentence} {prefix}")
        return [dice.gauss(0.0, spread) for _ in range(VOCABULARY)]

    return follow


def spelling(words: dict[Tokens, Tokens], certainty: float = 8.0) -> Follow:
    """Each sentence becomes its word, almost surely: the next letter, then END."""

    def follow(sentence: Tokens, prefix: Tokens) -> list[float]:
        rest = (*words[sentence], EOS)[len(prefix) :] or (EOS,)
        return [certainty * (token == rest[0]) for token in range(VOCABULARY)]

    return follow


def telling(table: dict[Tokens, dict[int, float]]) -> Follow:
    """The same for every sentence: probabilities of what follows each prefix; a prefix not listed ends for sure."""

    def follow(sentence: Tokens, prefix: Tokens) -> list[float]:
        chances = table.get(prefix, {EOS: 1.0})
        return [math.log(chances.get(token, 1e-9)) for token in range(VOCABULARY)]

    return follow


def log_softmax(logits: Sequence[float]) -> list[float]:
    total = math.log(sum(math.exp(each) for each in logits))
    return [each - total for each in logits]


def anything(prefix: Tokens, token: int) -> bool:
    return True


def continuations(follow: Follow, sentence: Tokens, prefix: Tokens, allowed: Allowed) -> list[tuple[int, float]]:
    """What may follow, with its log-probability."""
    chances = log_softmax(follow(sentence, prefix))
    return [(token, chances[token]) for token in (EOS, *LETTERS) if allowed(prefix, token)]


def judged(written: Tokens, total: float, penalty: float) -> Hypothesis:
    ended = written[-1] == EOS
    return Hypothesis(written[:-1] if ended else written, total / len(written) ** penalty, total, ended)


def ranked(found: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(found, key=lambda each: -each.score)


def every_sentence(
    follow: Follow, sentence: Tokens, longest: int, penalty: float = 1.0, allowed: Allowed = anything
) -> list[Hypothesis]:
    """All that can be written, best first."""

    def grow(prefix: Tokens, total: float) -> Iterator[Hypothesis]:
        for token, chance in continuations(follow, sentence, prefix, allowed):
            written = (*prefix, token)
            if token == EOS or len(written) == longest:
                yield judged(written, total + chance, penalty)
            else:
                yield from grow(written, total + chance)

    return ranked(list(grow((), 0.0)))


def plain_beam(
    follow: Follow, sentence: Tokens, beam: int, longest: int, penalty: float = 1.0, allowed: Allowed = anything
) -> list[Hypothesis]:
    """Beam search as one would explain it, for one sentence."""
    live, ended = [((), 0.0)], []
    for place in range(longest):
        grown = [
            ((*prefix, token), total + chance)
            for prefix, total in live
            for token, chance in continuations(follow, sentence, prefix, allowed)
        ]
        grown.sort(key=lambda each: -each[1])
        last = place + 1 == longest
        ended += [judged(*each, penalty) for each in grown[:beam] if last or each[0][-1] == EOS]
        live = [each for each in grown if each[0][-1] != EOS][:beam]
        if len(ended) >= beam:
            break
    return ranked(ended)


def same_hypotheses(found: Sequence[Hypothesis], expected: Sequence[Hypothesis], within: float = 1e-5) -> None:
    """The same sentences in the same order, with the same scores within `within`."""
    assert [(each.tokens, each.finished) for each in found] == [(each.tokens, each.finished) for each in expected]
    for name in ("score", "log_prob"):
        actual, wanted = (
            torch.tensor([getattr(each, name) for each in side], dtype=torch.float64) for side in (found, expected)
        )
        torch.testing.assert_close(actual, wanted, rtol=within, atol=within)


def search(
    model: Seq2Seq, source: Source, *, prefixes: Any = None, on_candidate: Any = None, **fields: Any
) -> list[list[Hypothesis]]:
    """Search with a torch model; the other keywords are those of `SearchOptions`."""
    return generate(TorchDecoder(model, source), SearchOptions(**fields), prefixes, on_candidate=on_candidate)


def greedy(model: Seq2Seq, source: Source, **fields: Any) -> list[Hypothesis]:
    return [best for [best] in search(model, source, beam_size=1, **fields)]


# Every kind of search as (model, source, **fields) -> hypotheses of each sentence.
SEARCHES: dict[str, Callable[..., list[list[Hypothesis]]]] = {
    "greedy": lambda model, source, **fields: search(model, source, beam_size=1, **fields),
    "beam": lambda model, source, **fields: search(model, source, beam_size=3, num_hypotheses=3, **fields),
    "sample": lambda model, source, **fields: search(model, source, temperature=1.0, num_hypotheses=3, **fields),
}
