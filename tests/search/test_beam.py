import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import TEXT
from search.scripted import (
    LETTERS,
    SEARCHES,
    VOCABULARY,
    A,
    B,
    C,
    Script,
    drawn,
    every_sentence,
    greedy,
    log_softmax,
    plain_beam,
    same_hypotheses,
    search,
    spelling,
    telling,
)
from softgaze.models import Source, build_model
from softgaze.search.beam import stream_tokens
from softgaze.search.options import Hypothesis
from softgaze.special_tokens import EOS, PAD

ONE = Source.of([[9]])
SEEDS = st.integers(0, 2**32)
SENTENCES = st.lists(st.lists(st.integers(4, 9), min_size=1, max_size=5).map(tuple), min_size=1, max_size=6)
PENALTIES = (0.0, 0.6, 1.0, 2.0)


# --- what is found ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam", [1, 2, 5, 50])
def test_the_scripted_words_are_spelt(beam):
    words = {(7,): (C, A, B), (8, 8): (A,), (9,): (B, B, A, C, C), (7, 9): ()}
    found = search(Script(spelling(words)), Source.of(list(words)), beam_size=beam)
    assert [best.tokens for (best,) in found] == list(words.values())
    assert all(best.finished for (best,) in found)


@given(seed=SEEDS)
def test_a_beam_of_one_is_greedy(seed):
    """Greedy as written here: the likeliest allowed token, again and again."""
    follow, prefix = drawn(seed), ()
    while len(prefix) < 6:
        logits = follow((9,), prefix)
        likeliest = max((EOS, *LETTERS), key=lambda token: logits[token])
        if likeliest == EOS:
            break
        prefix = (*prefix, likeliest)
    limits = {"max_length": 6}
    (best,) = greedy(Script(follow), ONE, **limits)
    assert (best.tokens, best.finished) == (prefix, len(prefix) < 6)
    assert search(Script(follow), ONE, beam_size=1, **limits) == [[best]]


GARDEN_PATH = telling({(): {A: 0.6, B: 0.4}, (A,): {A: 0.35, B: 0.33, C: 0.32}, (B,): {C: 1.0}})


def test_a_beam_finds_what_greedy_misses():
    (missed,) = greedy(Script(GARDEN_PATH), ONE)
    ((found,),) = search(Script(GARDEN_PATH), ONE, beam_size=2)
    assert (missed.tokens, found.tokens) == ((A, A), (B, C))
    assert found.score > missed.score
    assert found.log_prob == pytest.approx(math.log(0.4), abs=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES)
@settings(max_examples=20)
@given(seed=SEEDS)
def test_a_wide_enough_beam_finds_all_that_trying_everything_finds(penalty, seed):
    """Three letters, at most four tokens: 40 sentences that end and 81 that are cut."""
    follow = drawn(seed)
    found = search(Script(follow), ONE, beam_size=125, num_hypotheses=125, length_penalty=penalty, max_length=4)
    same_hypotheses(found[0], every_sentence(follow, (9,), 4, penalty))


@given(seed=SEEDS, beam=st.integers(1, 8), penalty=st.sampled_from(PENALTIES), longest=st.integers(1, 6))
def test_the_batched_search_is_the_plain_one(seed, beam, penalty, longest):
    follow, sentences = drawn(seed), [(7,), (8, 9), (9,)]
    limits = {"max_length": longest}
    found = search(
        Script(follow), Source.of(sentences), beam_size=beam, num_hypotheses=beam, length_penalty=penalty, **limits
    )
    for sentence, hypotheses in zip(sentences, found, strict=True):
        same_hypotheses(hypotheses, plain_beam(follow, sentence, beam, longest, penalty)[:beam])


@given(seed=SEEDS, beam=st.integers(1, 8), data=st.data())
def test_n_best_is_sorted_distinct_and_the_head_of_a_longer_list(seed, beam, data):
    nbest = data.draw(st.integers(1, beam))
    model, limits = Script(drawn(seed)), {"max_length": 5}
    (some,) = search(model, ONE, beam_size=beam, num_hypotheses=nbest, **limits)
    (most,) = search(model, ONE, beam_size=beam, num_hypotheses=beam, **limits)
    scores = [each.score for each in most]
    assert scores == sorted(scores, reverse=True)
    assert len({each.tokens for each in most}) == len(most) == beam
    assert some == most[:nbest]


# --- finishing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam", [2, 3, 5])
def test_a_finished_hypothesis_is_never_dropped_for_an_unfinished_worse_one(beam):
    """One sentence ends early with the best score; all others ramble on until they are cut."""
    rambling = {prefix: {A: 0.4, B: 0.3, C: 0.3} for prefix in prefixes(6) if prefix}
    follow = telling({(): {EOS: 0.5, A: 0.5}, **rambling})
    ((best, *others),) = search(Script(follow), ONE, beam_size=beam, num_hypotheses=beam, max_length=7)
    assert best.tokens == ()
    assert best.finished
    assert others
    assert all(not each.finished and len(each.tokens) == 7 for each in others)


def prefixes(longest):
    found = [()]
    for prefix in found:
        if len(prefix) < longest:
            found.extend((*prefix, letter) for letter in LETTERS)
    return found


def test_a_better_cut_hypothesis_ranks_above_a_finished_one_and_says_that_it_was_cut():
    mostly = {A: 0.9, B: 0.1}
    follow = telling({(): {EOS: 0.55, A: 0.45}, (A,): mostly, (A, A): mostly, (A, B): mostly})
    ((first, second),) = search(Script(follow), ONE, beam_size=2, num_hypotheses=2, max_length=3)
    assert (first.tokens, first.finished) == ((A, A, A), False)
    assert (second.tokens, second.finished) == ((), True)


def test_sentences_that_are_done_leave_the_batch():
    words = {(7,): (), (8,): (A,), (9,): (A, B, C)}
    script = Script(spelling(words))
    greedy(script, Source.of(list(words)))
    assert script.rows == [3, 2, 1, 1]


def test_only_the_beams_of_live_sentences_are_stepped():
    script = Script(spelling({(7,): (), (8,): (A, B, C, A, B, C)}, certainty=4.0))
    search(script, Source.of([(7,), (8,)]), beam_size=2)
    assert script.rows[:2] == [2, 4]  # a row for each sentence, then one for each of its beams
    assert script.rows[-1] == 2  # the short sentence is gone


# --- a sentence is an island ------------------------------------------------------------------------------------


def padded(sentences, extra):
    """The same batch with `extra` more columns of padding."""
    source = Source.of(sentences)
    return source._replace(values=torch.nn.functional.pad(source.values, (0, extra), value=PAD))


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@settings(max_examples=30)
@given(seed=SEEDS, sentences=SENTENCES, extra=st.integers(0, 3), shuffle=st.randoms(use_true_random=False))
def test_neighbours_order_and_padding_change_nothing(search, seed, sentences, extra, shuffle):
    model, limits = Script(drawn(seed)), {"max_length": 5}
    alone = {sentence: search(model, Source.of([sentence]), **limits)[0] for sentence in sentences}
    shuffle.shuffle(sentences)
    assert search(model, padded(sentences, extra), **limits) == [alone[sentence] for sentence in sentences]


def real_model(arch):
    """Random and opinionated: logits far enough apart that rounding decides no tie."""
    torch.manual_seed(3)
    model = build_model(arch, source_vocabulary=12, width=16, tie="none").double().eval()
    for matrix in (each for each in model.parameters() if each.ndim > 1):
        torch.nn.init.normal_(matrix, std=0.5)
    return model


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("arch", TEXT)
def test_neighbours_order_and_padding_change_nothing_for_real_models(arch, search):
    model, limits = real_model(arch), {"min_length": 3, "max_length": 8, "no_repeat_ngram_size": 2}
    sentences = [(4, 5, 6, 7, 8, 9, 10, 11), (5,), (11, 10, 9), (6, 6, 6, 6, 6), (5, 4)]
    alone = [search(model, Source.of([sentence]), **limits)[0] for sentence in sentences]
    together = search(model, padded(sentences[::-1], 3), **limits)[::-1]
    scores = sorted(found[0].score for found in alone)
    assert min(later - earlier for earlier, later in pairwise(scores)) > 1e-4  # the model does read its source
    for found, expected in zip(together, alone, strict=True):
        same_hypotheses(found, expected, within=1e-6)


# --- a witness --------------------------------------------------------------------------------------------------


@given(seed=SEEDS, beam=st.integers(1, 4), longest=st.integers(1, 5))
def test_a_witness_hears_of_everything_and_changes_nothing(seed, beam, longest):
    follow, sentences = drawn(seed), [(7,), (8, 9)]
    fields = {"beam_size": beam, "num_hypotheses": beam, "max_length": longest}
    told = {number: [] for number in range(len(sentences))}
    found = search(
        Script(follow), Source.of(sentences), **fields, on_candidate=lambda number, each: told[number].append(each)
    )
    assert found == search(Script(follow), Source.of(sentences), **fields)
    for number, sentence in enumerate(sentences):
        assert len({each.tokens for each in told[number]}) == len(told[number])
        for each in told[number]:
            chances = [log_softmax(follow(sentence, each.tokens[:place])) for place in range(len(each.tokens))]
            total = sum(own[token] for own, token in zip(chances, each.tokens, strict=True))
            assert each.log_prob == pytest.approx(total, abs=1e-4)
        ended = {each.tokens for each in told[number] if each.ended}
        assert ended >= {(*each.tokens, *[EOS] * each.finished) for each in found[number]}
        parents = {each.tokens[:-1] for each in told[number]}
        assert parents - {()} <= {each.tokens for each in told[number] if each.tokens[-1] != EOS}


# --- bad options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_model_that_is_still_training_is_refused(search):
    """Dropout would make every search find something else."""
    with pytest.raises(ValueError, match=r"^the model is in training mode, [^\n]*model\.eval\(\)"):
        search(Script(drawn(0)).train(), ONE)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_logits_that_are_not_numbers_are_refused(search):
    with pytest.raises(ValueError, match=r"logits are NaN"):
        search(Script(lambda sentence, prefix: [math.nan] * VOCABULARY), ONE)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_an_empty_batch_is_refused(search):
    nothing = Source(torch.empty(0, 1, dtype=torch.long), torch.empty(0, dtype=torch.long))
    with pytest.raises(ValueError, match=r"^a batch needs at least one source$"):
        search(Script(drawn(0)), nothing)


@given(seed=SEEDS)
def test_a_beam_of_one_is_told_token_by_token(seed):
    heard = []
    [[best]] = search(
        Script(drawn(seed)),
        ONE,
        beam_size=1,
        max_length=6,
        on_candidate=stream_tokens(lambda so_far: heard.append(tuple(so_far))),
    )
    steps = [best.tokens[: length + 1] for length in range(len(best.tokens))]
    assert heard == [*steps, *([best.tokens] if best.finished else [])]


# --- scores -----------------------------------------------------------------------------------------------------


def test_eos_counts_in_the_score_but_is_not_among_the_tokens():
    assert Hypothesis.of([A, B, EOS], -6.0, 1.0) == ((A, B), -2.0, -6.0, True)
    assert Hypothesis.of([EOS], -1.5, 0.6) == ((), -1.5, -1.5, True)


def test_a_cut_hypothesis_keeps_its_last_token_and_is_not_finished():
    assert Hypothesis.of([A, B], -6.0, 1.0) == ((A, B), -3.0, -6.0, False)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0, 2.0])
def test_the_length_penalty_is_an_exponent(penalty):
    assert Hypothesis.of([A] * 7 + [EOS], -3.0, penalty).score == pytest.approx(-3.0 / 8**penalty)
