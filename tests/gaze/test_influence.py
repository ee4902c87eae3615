"""Leaving words out: one by one and batched give the same numbers, and a model with known reasons is found out."""

from dataclasses import replace

import numpy
import pytest
import torch

from bundles import tokenizer
from checks import TEXT
from planted import Planted
from softgaze.bundle import Tokenizers
from softgaze.gaze import Attention, Passage, View, record
from softgaze.gaze.edits import Heads, Mask
from softgaze.gaze.honesty import honesty
from softgaze.gaze.influence import Outline, influences, influences_and_end, log_probabilities
from softgaze.gaze.passages import Spoken
from softgaze.models import Source, build
from softgaze.symbols import BEGIN, END

TOKENIZERS = Tokenizers(tokenizer(), tokenizer())
PAIRS = [("the dog runs.", "개 달려요."), ("a small red cat sees the old tree", "작은 고양이 나무 봐요"), ("man", "개")]
LONG = PAIRS[1]


def passage(pair):
    return Passage.of(*pair, TOKENIZERS)


def make(arch):
    torch.manual_seed(0)
    return build(arch, source_vocabulary=len(TOKENIZERS.source), width=16).eval()


def by_hand(model, source, target):
    """Log-probability of each token, one step after the other."""
    state, total = model.start(model.encode(Source.of([[*source, END]]))), []
    for read, written in zip([BEGIN, *target], target, strict=False):
        step = model.step(torch.tensor([read]), state)
        state = step.state
        total.append(float(step.logits[0].detach().log_softmax(-1)[written]))
    return total


@pytest.mark.parametrize("arch", TEXT)
def test_log_probabilities_in_a_batch_are_those_of_the_steps(arch):
    model, parts = make(arch), [passage(pair).parts[0] for pair in PAIRS]
    for part, found in zip(parts, log_probabilities(model, TOKENIZERS, parts), strict=True):
        assert numpy.allclose(found, by_hand(model, *part[:2]), atol=1e-4)


@pytest.mark.parametrize("arch", TEXT)
def test_the_influence_of_a_word_is_what_is_lost_without_it(arch):
    """Word 1 of the source left out by hand; even a model without attention has influences.

    An output word does not answer for the punctuation attached to it, nor is that of a source word left out.
    """
    model = make(arch)
    found = influences(model, TOKENIZERS, [passage(pair) for pair in PAIRS])
    [spoken] = passage(PAIRS[0]).parts
    without = tokenizer().encode(["the runs."])[0]
    lost = numpy.array(by_hand(model, *spoken[:2])) - numpy.array(by_hand(model, without, spoken.target))
    sides = passage(PAIRS[0]).sides(TOKENIZERS)
    expected = [sum(lost[place] for place in label.places) for label in sides[1].cores()]
    assert found[0].shape == (2, 3)
    assert numpy.allclose(found[0][:, 1], expected, atol=1e-4)
    assert [each.shape for each in found] == [(2, 3), (4, 8), (1, 1)]
    stopped = tokenizer().encode(["the dog."])[0]
    lost = numpy.array(by_hand(model, *spoken[:2])) - numpy.array(by_hand(model, stopped, spoken.target))
    expected = [sum(lost[place] for place in label.places) for label in sides[1].cores()]
    assert numpy.allclose(found[0][:, 2], expected, atol=1e-4)


@pytest.mark.parametrize("arch", ["rnn-luong", "transformer"])
def test_one_more_row_is_that_of_end(arch):
    """The fall of the log-probability of END when word 1 is left out, by hand."""
    model = make(arch)
    pairs = [passage(pair) for pair in PAIRS]
    found = influences_and_end(model, TOKENIZERS, pairs)
    for one, other in zip(found, influences(model, TOKENIZERS, pairs), strict=True):
        assert numpy.array_equal(one[:-1], other)
    [spoken] = pairs[0].parts
    whole, without = [*spoken.target, END], tokenizer().encode(["the runs."])[0]
    expected = by_hand(model, spoken.source, whole)[-1] - by_hand(model, without, whole)[-1]
    assert found[0][-1, 1] == pytest.approx(expected, abs=1e-4)


def test_words_of_another_part_could_not_matter():
    one, two = passage(PAIRS[0]), passage(PAIRS[1])
    both = Passage(f"{one.source} {two.source}", f"{one.target} {two.target}", (*one.parts, *two.parts))
    whole, first, second = influences(make("transformer"), TOKENIZERS, [both, one, two])
    rows, columns = first.shape
    assert numpy.allclose(whole[:rows, :columns], first, atol=1e-4)
    assert numpy.allclose(whole[rows:, columns:], second, atol=1e-4)
    assert numpy.isnan(whole[:rows, columns:]).all()
    assert numpy.isnan(whole[rows:, :columns]).all()


def test_an_empty_side_has_no_influence():
    assert [each.size for each in influences(make("conv"), TOKENIZERS, [passage(("", "개")), passage(("a", ""))])] == [
        0,
        0,
    ]


def planted_map(model, view):
    [recording] = record(model, TOKENIZERS, [passage(LONG)])
    [influence] = influences(model, TOKENIZERS, [passage(LONG)])
    return honesty(Attention(recording, view), influence)


def test_a_planted_reason_is_found_and_a_lie_is_told_apart():
    model = Planted(passage(LONG), len(tokenizer()), honest=(1, 0))
    assert planted_map(model, View(layer=1, head=0)) > 0.95
    assert planted_map(model, View(layer=0, head=0)) < -0.95


def test_a_map_that_looks_one_step_late_is_honest_only_when_read_that_way():
    model = Planted(passage(LONG), len(tokenizer()), late=True)
    right, wrong = (planted_map(model, View(layer=1, head=0, rows=rows)) for rows in ("reading", "predicting"))
    assert right > 0.95
    assert wrong < 0.6


def test_a_change_stays_with_its_pieces_when_words_are_left_out():
    plain = passage(("the dog runs", "개"))
    [part] = plain.parts
    masked = replace(plain, parts=(part._replace(edits=(Mask((Heads(),), (1,)),)),))
    found = [[edit.places for edit in variant.edits] for variant in Outline(masked, TOKENIZERS).variants()]
    assert found == [[(1,)], [(0,)], [()], [(1,)]]  # as it is, then without each word


def test_spoken_tokens_without_a_target_have_no_probability():
    [found] = log_probabilities(make("transformer"), TOKENIZERS, [Spoken([5], [])])
    assert found.size == 0
