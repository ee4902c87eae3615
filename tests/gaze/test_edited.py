"""A model that looks elsewhere is a model: steps agree with the parallel pass, and rows do not disturb each other."""

import pytest
import torch

from bundles import tokenizer
from softgaze.gaze.edited import Edited, edited, joined
from softgaze.gaze.edits import Ablate, Force, Heads, Mask, Sharpen
from softgaze.gaze.watching import Recorder
from softgaze.models import Source, build
from softgaze.search import Rules, beam_search, greedy
from softgaze.symbols import BEGIN, END, SPECIAL

CROSS = (Heads(),)
CASES = {
    "rnn-bahdanau": ("rnn-bahdanau", {}),
    "rnn-luong": ("rnn-luong", {}),
    "rnn-luong, fed back": ("rnn-luong", {"input_feeding": True}),
    "conv": ("conv", {}),
    "transformer": ("transformer", {"heads": 2, "decoder_layers": 2, "encoder_layers": 1}),
}
EDITS = {
    "mask": (Mask(CROSS, (1, 2)),),
    "sharpen": (Sharpen((Heads(), Heads("encoder"), Heads("decoder")), 2.0),),
    "ablate": (Ablate((Heads("cross", 0, 0),)),),
    "force": (Force(CROSS, ((1, (2,)), (3, (0, 1)))),),
    "force, without spaces": (Force(CROSS, ((1, (2,)), (3, (0, 1))), is_spaced=False),),
    "all of them": (Mask(CROSS, (3,)), Force(CROSS, ((0, (2,)), (1, (1,)))), Sharpen(CROSS, 0.5)),
}
SOURCE, RULES = [20, 30, 40, 50, END], Rules(min_length=8, max_length=14)


@pytest.fixture(params=CASES.values(), ids=CASES, scope="module")
def model(request):
    arch, options = request.param
    torch.manual_seed(3)
    found = build(arch, source_vocabulary=len(tokenizer()), width=16, tie="none", **options).double().eval()
    for matrix in (each for each in found.parameters() if each.ndim > 1):
        torch.nn.init.normal_(matrix, std=0.5)
    return found


@pytest.fixture(params=EDITS.values(), ids=EDITS)
def edits(request):
    return request.param


def changed(model, *rows):
    return Edited(model, tokenizer(), rows)


@torch.no_grad()
def test_steps_agree_with_the_parallel_pass(model, edits):
    """Given the next token: the same chances within its class, tokens that begin a word or tokens that do not."""
    looking = changed(model, edits)
    (found,) = greedy(looking, Source.of([SOURCE]), rules=RULES)
    target = torch.tensor([[BEGIN, *found.tokens]])
    parallel = looking(Source.of([SOURCE]), target).log_softmax(-1)
    state, met = looking.start(looking.encode(Source.of([SOURCE]))), 0
    for place, (token, following) in enumerate(zip(target[0], [*found.tokens, END], strict=True)):
        step = looking.step(token[None], state)
        state, begins = step.state, step.state.begins
        if len(state.ways) == 1:
            torch.testing.assert_close(step.logits.log_softmax(-1), parallel[:, place])
            continue
        alike = begins == begins[0, following]  # the class of what follows
        one, other = (
            each.masked_fill(~alike, -torch.inf).log_softmax(-1) for each in (step.logits, parallel[:, place])
        )
        torch.testing.assert_close(one, other)
        met += 1
    assert (met > 0) == any(isinstance(edit, Force) for edit in edits)  # two ways were tried where they differ


@torch.no_grad()
@pytest.mark.parametrize("name", ["mask", "sharpen", "ablate"])
def test_the_search_looks_where_the_parallel_pass_shows(model, name):
    seen, again = Recorder(), Recorder()
    looking = changed(model, EDITS[name])
    (found,) = greedy(looking, Source.of([SOURCE]), rules=RULES, watch=seen)
    looking(Source.of([SOURCE]), torch.tensor([[BEGIN, *found.tokens]]), again)
    size = len(found.tokens) + found.finished, len(SOURCE)
    one, other = (recorder.stack("cross", 0, *size).weights for recorder in (seen, again))
    torch.testing.assert_close(torch.tensor(one), torch.tensor(other))


def test_rows_are_changed_as_if_alone(model):
    """All edits at once, in one batch under beam search, with a row that is left as it is."""
    rows = [*EDITS.values(), ()]
    sources = [[*SOURCE[: 3 + row % 3], 60 + row, END] for row in range(len(rows))]
    together = beam_search(changed(model, *rows), Source.of(sources), beam=3, nbest=3, rules=RULES)
    for own, source, found in zip(rows, sources, together, strict=True):
        [alone] = beam_search(edited(model, tokenizer(), [own]), Source.of([source]), beam=3, nbest=3, rules=RULES)
        assert [each.tokens for each in found] == [each.tokens for each in alone]
        assert [each.score for each in found] == pytest.approx([each.score for each in alone], abs=1e-4)


def test_an_edit_that_changes_nothing_changes_nothing(model):
    [plain] = beam_search(model, Source.of([SOURCE]), beam=3, nbest=3, rules=RULES)
    for idle in (Sharpen(CROSS, 1.0), Force(CROSS, ((99, (1,)),)), Mask(CROSS, ())):
        [found] = beam_search(changed(model, (idle,)), Source.of([SOURCE]), beam=3, nbest=3, rules=RULES)
        assert [each.tokens for each in found] == [each.tokens for each in plain]
        assert [each.score for each in found] == pytest.approx([each.score for each in plain], abs=1e-5)


def test_nothing_to_change_is_the_model_itself(model):
    assert edited(model, tokenizer(), [(), ()]) is model


def test_two_ways_make_one_distribution():
    dice = torch.Generator().manual_seed(0)
    goes_on, another = (torch.randn(5, 9, generator=dice) for _ in range(2))
    begins = torch.rand(5, 9, generator=dice) < 0.5
    begins[0] = False
    chances = joined(goes_on, another, begins).exp()
    torch.testing.assert_close(chances.sum(-1), torch.ones(5))
    torch.testing.assert_close((chances * begins).sum(-1), (goes_on.softmax(-1) * begins).sum(-1))
    torch.testing.assert_close(chances[0], goes_on[0].softmax(-1))


def test_special_tokens_begin_no_word(model):
    looking = changed(model, (Force(CROSS, ((1, (2,)),), is_spaced=False),))
    read = torch.tensor([[BEGIN, *tokenizer().encode(["개"])[0]]])
    assert not looking.beginnings(read, torch.tensor([0]))[:, list(SPECIAL)].any()
