"""Interventions equal attention computed from changed scores; an intervened model obeys the model protocol."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bundles import tokenizer
from softgaze.attention import attend
from softgaze.engines.torch_engine import TorchDecoder
from softgaze.explain.interventions import (
    AblateHeads,
    ForceAttention,
    IntervenedModel,
    Intervention,
    MaskTokens,
    Sharpen,
    apply_interventions,
    merge_logits,
    shift_positions,
)
from softgaze.explain.recorder import AttentionRecorder
from softgaze.explain.recording import HeadSelector
from softgaze.models import Source, build_model
from softgaze.models.base import AttentionSite
from softgaze.search import SearchOptions
from softgaze.search.beam import beam_search
from softgaze.special_tokens import BOS, EOS, SPECIAL_TOKENS

ALL_CROSS = (HeadSelector(),)
SITE = AttentionSite("cross", 1, 0)
NO_WORD = torch.full((2, 4), -1)
POSITIONS = st.sets(st.integers(0, 5), min_size=1, max_size=5).map(lambda positions: tuple(sorted(positions)))


def vectors(seed, keys=6):
    """Queries, keys and values of 2 rows and 3 heads."""
    dice = torch.Generator().manual_seed(seed)
    return (torch.randn(2, 3, size, 8, generator=dice, dtype=torch.double) for size in (4, keys, keys))


def attended(seed, intervention=None, mask=None, factor=1.0):
    query, keys, values = vectors(seed)

    def change(weights, values):
        return weights if intervention is None else intervention.apply(SITE, weights, NO_WORD)

    return attend(query * factor, keys, values, mask, need_weights=True, hook=change)


@given(seed=st.integers(0, 2**32), positions=POSITIONS)
def test_masking_after_the_softmax_is_masking_before_it(seed, positions):
    allowed = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    allowed[..., positions] = False
    for actual, expected in zip(
        attended(seed, MaskTokens(ALL_CROSS, positions)), attended(seed, mask=allowed), strict=True
    ):
        torch.testing.assert_close(actual, expected)


@given(seed=st.integers(0, 2**32), factor=st.floats(0.1, 8))
def test_sharpening_the_weights_is_multiplying_the_scores(seed, factor):
    for actual, expected in zip(attended(seed, Sharpen(ALL_CROSS, factor)), attended(seed, factor=factor), strict=True):
        torch.testing.assert_close(actual, expected)


def test_nothing_is_left_when_everything_is_masked():
    context, weights = attended(0, MaskTokens(ALL_CROSS, tuple(range(6))))
    assert not weights.any()
    assert not context.any()


def test_an_extreme_factor_gives_finite_weights():
    weights = torch.tensor([0.6, 0.4, 0.0, 1e-40]).expand(1, 1, 1, 4)
    sharp, flat = (Sharpen(ALL_CROSS, factor).apply(SITE, weights, NO_WORD[:1, :1]) for factor in (1e6, 1e-6))
    torch.testing.assert_close(sharp.flatten(), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    assert flat[..., 2].item() == 0  # a masked position stays masked
    assert flat.sum().item() == pytest.approx(1)


def test_an_ablated_head_has_no_context():
    context, weights = attended(0, AblateHeads((HeadSelector("cross", 1, 2),)))
    plain = attended(0)
    assert not context[:, 2].any()
    assert torch.equal(weights[:, :2], plain.weights[:, :2])


def test_all_weight_goes_to_the_forced_positions_in_proportion():
    weights = torch.tensor([0.5, 0.2, 0.3]).expand(1, 1, 2, 3)
    forced = ForceAttention(ALL_CROSS, ((7, (1, 2)),)).apply(SITE, weights, torch.tensor([[6, 7]]))
    torch.testing.assert_close(forced[0, 0], torch.tensor([[0.5, 0.2, 0.3], [0.0, 0.4, 0.6]]))


def test_forced_positions_without_weight_share_evenly_and_a_zero_row_stays_zero():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).expand(1, 1, 2, 3)
    forced = ForceAttention(ALL_CROSS, ((0, (1, 2)),)).apply(SITE, weights, torch.zeros(1, 2))
    assert forced[0, 0].tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ((HeadSelector(),), [0, 1, 2]),
        ((HeadSelector("cross", 1),), [0, 1, 2]),
        ((HeadSelector("cross", 1, 2), HeadSelector("cross", None, 0)), [0, 2]),
        ((HeadSelector("cross", 0),), []),
        ((HeadSelector("encoder"),), []),
    ],
)
def test_only_the_named_heads_are_changed(heads, expected):
    assert AblateHeads(heads).heads_at(SITE, 3) == expected
    _, weights = attended(0, AblateHeads(heads))
    assert [head for head in range(3) if not weights[:, head].any()] == expected


@given(positions=POSITIONS, removed=POSITIONS)
def test_positions_follow_their_tokens_when_others_are_removed(positions, removed):
    kept = [i for i in range(6) if i not in removed]
    assert [kept[i] for i in shift_positions(positions, removed)] == [i for i in positions if i not in removed]


def test_an_intervention_loses_its_removed_tokens():
    force = ForceAttention(ALL_CROSS, ((0, (1,)), (2, (4, 5))))
    assert force.without([1, 4]).targets == ((2, (3,)),)
    assert MaskTokens(ALL_CROSS, (0, 3)).without([0, 1]).positions == (1,)
    assert isinstance(AblateHeads(ALL_CROSS).without([0]), Intervention)


# --- a model with interventions

CASES = {
    "rnn-bahdanau": ("rnn-bahdanau", {}),
    "rnn-luong": ("rnn-luong", {}),
    "rnn-luong, fed back": ("rnn-luong", {"input_feeding": True}),
    "conv": ("conv", {}),
    "transformer": ("transformer", {"heads": 2, "decoder_layers": 2, "encoder_layers": 1}),
}
INTERVENTIONS = {
    "mask": (MaskTokens(ALL_CROSS, (1, 2)),),
    "sharpen": (Sharpen((HeadSelector(), HeadSelector("encoder"), HeadSelector("decoder")), 2.0),),
    "ablate": (AblateHeads((HeadSelector("cross", 0, 0),)),),
    "force": (ForceAttention(ALL_CROSS, ((1, (2,)), (3, (0, 1)))),),
    "force, without spaces": (ForceAttention(ALL_CROSS, ((1, (2,)), (3, (0, 1))), is_spaced=False),),
    "all of them": (
        MaskTokens(ALL_CROSS, (3,)),
        ForceAttention(ALL_CROSS, ((0, (2,)), (1, (1,)))),
        Sharpen(ALL_CROSS, 0.5),
    ),
}
SOURCE, LENGTHS = [20, 30, 40, 50, EOS], {"min_length": 8, "max_length": 14}


@pytest.fixture(params=CASES.values(), ids=CASES, scope="module")
def model(request):
    arch, options = request.param
    torch.manual_seed(3)
    model = build_model(arch, source_vocabulary=len(tokenizer()), width=16, tie="none", **options).double().eval()
    for matrix in (parameter for parameter in model.parameters() if parameter.ndim > 1):
        torch.nn.init.normal_(matrix, std=0.5)
    return model


@pytest.fixture(params=INTERVENTIONS.values(), ids=INTERVENTIONS)
def interventions(request):
    return request.param


def intervened(model, *rows):
    return IntervenedModel(model, tokenizer(), rows)


def search(model, sources, beam_size=1, hook=None):
    options = SearchOptions(beam_size=beam_size, num_hypotheses=beam_size, **LENGTHS)
    return beam_search(TorchDecoder(model, Source.of(sources), hook), options)


@torch.no_grad()
def test_steps_agree_with_the_parallel_pass(model, interventions):
    """Given the next token, the probabilities agree within its class: tokens that start a word, or the others."""
    changed = intervened(model, interventions)
    [[hypothesis]] = search(changed, [SOURCE])
    target = torch.tensor([[BOS, *hypothesis.tokens]])
    parallel = changed(Source.of([SOURCE]), target).log_softmax(-1)
    state, branched = changed.start(changed.encode(Source.of([SOURCE]))), 0
    for position, (token, following) in enumerate(zip(target[0], [*hypothesis.tokens, EOS], strict=True)):
        step = changed.step(token[None], state)
        state, starts = step.state, step.state.starts
        if len(state.branches) == 1:
            torch.testing.assert_close(step.logits.log_softmax(-1), parallel[:, position])
            continue
        same_class = starts == starts[0, following]
        one, other = (
            logits.masked_fill(~same_class, -torch.inf).log_softmax(-1)
            for logits in (step.logits, parallel[:, position])
        )
        torch.testing.assert_close(one, other)
        branched += 1
    assert (branched > 0) == any(isinstance(each, ForceAttention) for each in interventions)


@torch.no_grad()
@pytest.mark.parametrize("name", ["mask", "sharpen", "ablate"])
def test_the_search_uses_the_weights_of_the_parallel_pass(model, name):
    searched, parallel = AttentionRecorder(), AttentionRecorder()
    changed = intervened(model, INTERVENTIONS[name])
    [[hypothesis]] = search(changed, [SOURCE], hook=searched)
    changed(Source.of([SOURCE]), torch.tensor([[BOS, *hypothesis.tokens]]), parallel)
    size = len(hypothesis.tokens) + hypothesis.finished, len(SOURCE)
    one, other = (recorder.stack("cross", 0, *size).weights for recorder in (searched, parallel))
    torch.testing.assert_close(torch.tensor(one), torch.tensor(other))


def test_batch_rows_are_independent(model):
    """All interventions in one batch under beam search, with one row without any."""
    rows = [*INTERVENTIONS.values(), ()]
    sources = [[*SOURCE[: 3 + row % 3], 60 + row, EOS] for row in range(len(rows))]
    together = search(intervened(model, *rows), sources, 3)
    for row, source, batched in zip(rows, sources, together, strict=True):
        [alone] = search(apply_interventions(model, tokenizer(), [row]), [source], 3)
        assert [each.tokens for each in batched] == [each.tokens for each in alone]
        assert [each.score for each in batched] == pytest.approx([each.score for each in alone], abs=1e-4)


def test_an_intervention_without_effect_changes_nothing(model):
    assert apply_interventions(model, tokenizer(), [(), ()]) is model
    [plain] = search(model, [SOURCE], 3)
    for idle in (Sharpen(ALL_CROSS, 1.0), ForceAttention(ALL_CROSS, ((99, (1,)),)), MaskTokens(ALL_CROSS, ())):
        [hypotheses] = search(intervened(model, (idle,)), [SOURCE], 3)
        assert [each.tokens for each in hypotheses] == [each.tokens for each in plain]
        assert [each.score for each in hypotheses] == pytest.approx([each.score for each in plain], abs=1e-5)


def test_merged_logits_are_a_distribution():
    dice = torch.Generator().manual_seed(0)
    same_word, next_word = (torch.randn(5, 9, generator=dice) for _ in range(2))
    starts = torch.rand(5, 9, generator=dice) < 0.5
    starts[0] = False
    probs = merge_logits(same_word, next_word, starts).exp()
    torch.testing.assert_close(probs.sum(-1), torch.ones(5))
    torch.testing.assert_close((probs * starts).sum(-1), (same_word.softmax(-1) * starts).sum(-1))
    torch.testing.assert_close(probs[0], same_word[0].softmax(-1))


def test_special_tokens_start_no_word(model):
    changed = intervened(model, (ForceAttention(ALL_CROSS, ((1, (2,)),), is_spaced=False),))
    read = torch.tensor([[BOS, *tokenizer().encode(["개"])[0]]])
    assert not changed._word_starts(read, torch.tensor([0]))[:, list(SPECIAL_TOKENS)].any()
