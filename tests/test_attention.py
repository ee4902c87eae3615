import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor, nn

from checks import normal, randomize, same, same_tree, thorough
from softgaze.attention import (
    FUSED_MIN_KEYS,
    MultiHeadAttention,
    attend,
    causal_mask,
    faster_kernel,
    masked_softmax,
    padding_mask,
)
from softgaze.kv_cache import KVCache
from softgaze.positions import Rotary
from softgaze.scores import SCORES, WINDOWS, Dot, Location, Score, cosine, dot, scaled_dot

B, H, Q, K, D = 3, 2, 4, 5, 6
sizes = st.integers(1, 5)


def triple(batch: int = B, heads: int = H, queries: int = Q, keys: int = K, width: int = D) -> list[Tensor]:
    """Query, keys and values that want gradients."""
    shapes = [(batch, heads, queries, width), (batch, heads, keys, width), (batch, heads, keys, width)]
    return [normal(*shape, seed=number).requires_grad_() for number, shape in enumerate(shapes)]


def some(*shape: int) -> Tensor:
    """A random mask that hides everything from every third query, or from all queries of the first row."""
    mask = normal(*shape, seed=5) > -0.3
    nowhere = mask[..., ::3, :] if shape[-2] > 1 else mask[0]
    nowhere.fill_(False)
    return mask


MASK_SHAPES = {
    "none": None,
    "padding": (B, 1, 1, K),
    "all-rows-alike": (1, 1, Q, K),
    "one-for-all-heads": (B, 1, Q, K),
    "full": (B, H, Q, K),
    "two-dimensions": (Q, K),
    "three-dimensions": (H, Q, K),
    "one-for-all": (1, 1, 1, K),
    "all-queries-alike": (B, H, 1, K),
    "all-keys-alike": (B, H, Q, 1),
}
every_mask = pytest.mark.parametrize("shape", MASK_SHAPES.values(), ids=MASK_SHAPES)


def gradients(outcome: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad((outcome * normal(*outcome.shape, seed=9)).sum(), inputs)


# --- attend, against torch's kernel -----------------------------------------------------------------------------


def both_paths(inputs: list[Tensor], mask: Tensor) -> tuple[Tensor, Tensor]:
    """The fused kernel and the plain products."""
    return attend(*inputs, mask, kernel="fused").context, attend(*inputs, mask, kernel="plain").context


@pytest.mark.parametrize(
    ("queries", "keys", "kernel"),
    [(1, 5, "fused"), (2, 5, "plain"), (2, FUSED_MIN_KEYS - 1, "plain"), (2, FUSED_MIN_KEYS, "fused")],
)
def test_a_cpu_uses_the_fused_kernel_where_it_is_the_faster_one(queries, keys, kernel):
    query, memory = normal(1, 1, queries, 4), normal(1, 1, keys, 4)
    assert faster_kernel(query, memory) == kernel
    assert faster_kernel(query.to("meta"), memory.to("meta")) == "fused"


@every_mask
@pytest.mark.parametrize(("score", "scale"), [(scaled_dot, None), (dot, 1.0)])
def test_both_paths_are_torchs_attention_forwards_and_backwards(shape, score, scale):
    inputs, mask = triple(), None if shape is None else some(*shape)
    expected = F.scaled_dot_product_attention(*inputs, attn_mask=mask, scale=scale)
    wanted = gradients(expected, inputs)
    for need_weights, kernel in ((False, "fused"), (False, "plain"), (True, None)):
        context, weights = attend(*inputs, mask, score=score, need_weights=need_weights, kernel=kernel)
        assert (weights is not None) == need_weights
        same(context, expected)
        same_tree(gradients(context, inputs), wanted)


@thorough
@example(1, 1, 1, 1, 1)
@given(sizes, sizes, sizes, sizes, sizes)
def test_both_paths_agree_on_any_shape(batch, heads, queries, keys, width):
    inputs, mask = triple(batch, heads, queries, keys, width), some(batch, 1, queries, keys)
    fused, plain = both_paths(inputs, mask)
    same(fused, plain)
    same_tree(gradients(fused, inputs), gradients(plain, inputs))


def test_both_paths_agree_in_float32():
    inputs, mask = [part.detach().float() for part in triple()], some(B, 1, Q, K)
    fused, plain = both_paths(inputs, mask)
    same(fused, plain, within=1e-5)


# --- scores, against their formulas -----------------------------------------------------------------------------


def formula(name: str, score: Score, q: np.ndarray, k: np.ndarray, place: int) -> float:
    """The papers' formulas, one query and one key at a time."""
    own = {key: value.detach().numpy() for key, value in score.state_dict().items()}
    match name:
        case "dot":
            return q @ k
        case "scaled-dot":
            return q @ k / np.sqrt(len(q))
        case "cosine":
            return q @ k / np.linalg.norm(q) / np.linalg.norm(k)
        case "general":
            return q @ own["bilinear.weight"] @ k
        case "additive":
            return own["vector.weight"][0] @ np.tanh(own["query_part.weight"] @ q + own["key_part.weight"] @ k)
        case "concat":
            both = np.concatenate([own["query_part.weight"], own["key_part.weight"]], 1)
            return own["vector.weight"][0] @ np.tanh(both @ np.concatenate([q, k]))
        case "location":
            return own["positions.weight"][place] @ q
    raise AssertionError(f"write down the formula of {name}")


def make_score(name: str, query_width: int = D, key_width: int = D) -> Score:
    return randomize(SCORES[name](query_width, key_width)).double()


@pytest.mark.parametrize("name", SCORES)
def test_a_score_is_its_formula(name):
    score, query, keys = make_score(name), normal(Q, D), normal(K, D, seed=1)
    expected = [[formula(name, score, q, k, place) for place, k in enumerate(keys.numpy())] for q in query.numpy()]
    same(score(query, keys).detach(), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("name", ["general", "additive", "concat", "location"])
def test_learned_scores_compare_different_widths(name):
    score = make_score(name, query_width=3, key_width=7)
    query, keys = normal(2, Q, 3), normal(2, K, 7)
    expected = [
        [[formula(name, score, q, k, place) for place, k in enumerate(row_keys)] for q in row]
        for row, row_keys in zip(query.numpy(), keys.numpy(), strict=True)
    ]
    same(score(query, keys).detach(), torch.tensor(np.array(expected)))


@pytest.mark.parametrize("name", sorted({*SCORES} - {"location"}))  # which knows of places
def test_a_shuffled_memory_gives_the_same_and_shuffles_the_weights(name):
    score, (query, keys, values), order = make_score(name), triple(), torch.randperm(K)
    plain = attend(query, score.keys(keys), values, score=score.compare, need_weights=True)
    shuffled = attend(query, score.keys(keys[:, :, order]), values[:, :, order], score=score.compare, need_weights=True)
    same(shuffled.context, plain.context)
    same(shuffled.weights, plain.weights[..., order])


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("need_weights", [False, True])
def test_a_query_that_may_look_nowhere_gives_zeros_and_no_nan(name, need_weights):
    score, inputs, mask = make_score(name), triple(), some(B, 1, Q, K)
    query, keys, values = inputs
    with torch.autograd.set_detect_anomaly(True, check_nan=True):  # a NaN that is covered up later counts, too
        options = {"score": score.compare, "need_weights": need_weights}
        context, weights = attend(query, score.keys(keys), values, mask, **options)
        found = torch.autograd.grad(context.square().sum(), [*inputs, *score.parameters()], allow_unused=True)
    nowhere = ~mask.any(-1).expand(B, H, Q)
    assert nowhere.any()
    assert not context[nowhere].any()
    assert weights is None or not weights[nowhere].any()
    assert all(gradient.isfinite().all() for gradient in found if gradient is not None)
    assert not found[0][nowhere].any()


@pytest.mark.parametrize("name", SCORES)
@every_mask
def test_weights_sum_to_one_and_are_exactly_zero_where_masked(name, shape):
    mask = torch.ones(Q, K, dtype=torch.bool) if shape is None else some(*shape)
    weights = attend(*triple(), mask, score=make_score(name), need_weights=True).weights
    full = mask.expand(B, H, Q, K)
    assert not weights[~full].any()
    same(weights.sum(-1), full.any(-1).double())


@pytest.mark.parametrize("lowest", [-1e30, -1e4, 0.0])
def test_hidden_scores_never_count_however_low_the_others_are(lowest):
    scores = torch.tensor([[lowest, lowest, 1e30]], dtype=torch.float32)
    same(masked_softmax(scores, torch.tensor([[True, True, False]])), torch.tensor([[0.5, 0.5, 0.0]]))


def test_a_new_score_is_a_few_lines_and_one_entry(monkeypatch):
    class Distance(Score):
        """−|q − k|²."""

        def compare(self, query: Tensor, keys: Tensor) -> Tensor:
            return -torch.cdist(query, keys).square()

    monkeypatch.setitem(SCORES, "distance", Distance)
    from softgaze.models import build_model

    model = build_model("rnn-luong", source_vocabulary=9, width=8, score="distance")
    assert isinstance(model.score, Distance)
    query, keys, values = triple()
    weights = attend(query, keys, values, score=SCORES["distance"](D, D), need_weights=True).weights
    nearest = torch.cdist(query, keys).argmin(-1)
    assert torch.equal(weights.argmax(-1), nearest)


# --- masks and windows ------------------------------------------------------------------------------------------


@thorough
@example([1], 1)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(1, 6))
def test_a_padding_mask_shows_the_real_items(lengths, size):
    mask = padding_mask(torch.tensor(lengths), size)
    assert mask.shape == (len(lengths), 1, 1, size)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[place < length for place in range(size)] for length in lengths]


@thorough
@example(1, 0)
@given(st.integers(1, 5), st.integers(0, 4))
def test_a_causal_mask_shows_the_past_and_the_present(queries, earlier):
    mask = causal_mask(queries, earlier + queries)
    expected = [[key <= earlier + query for key in range(earlier + queries)] for query in range(queries)]
    assert mask.shape == (1, 1, queries, earlier + queries)
    assert mask[0, 0].tolist() == expected
    assert earlier or torch.equal(causal_mask(queries), mask)


def window(name: str, window_size: int = 2) -> nn.Module:
    return randomize(WINDOWS[name](D, window_size)).double()


def test_the_global_window_is_the_mask_itself():
    mask = padding_mask(torch.tensor([5, 1, 3]), K)
    assert window("global")(normal(B, 1, Q, D), torch.arange(Q).expand(B, Q), mask) == (mask, None)


def test_local_m_looks_around_the_place_of_the_word():
    mask = padding_mask(torch.tensor([5, 2, 3]), K)
    found = window("local-m", window_size=1)(normal(B, 1, Q, D), torch.arange(Q).expand(B, Q) + 1, mask)
    lengths, places = [5, 2, 3], range(K)
    expected = [[[abs(k - (q + 1)) <= 1 and k < length for k in places] for q in range(Q)] for length in lengths]
    assert found.mask[:, 0].tolist() == expected
    assert found.prior is None


def test_local_p_lowers_the_weights_by_a_gaussian_around_a_learned_centre():
    module, lengths, reach = window("local-p"), [5, 2, 3], 2
    query, mask = normal(B, 1, Q, D), padding_mask(torch.tensor(lengths), K)
    found = module(query, torch.zeros(B, Q), mask)
    first, _, second = (
        part.weight.detach().numpy() if isinstance(part, nn.Linear) else None for part in module.predict
    )
    for row, length in enumerate(lengths):
        for number, q in enumerate(query[row, 0].numpy()):
            centre = length / (1 + np.exp(-(second @ np.tanh(first @ q))[0]))
            offsets = np.arange(K) - centre
            visible = (np.abs(offsets) <= reach) & (np.arange(K) < length)
            assert found.mask[row, 0, number].tolist() == visible.tolist()
            bell = np.exp(-(offsets**2) / (2 * (reach / 2) ** 2))
            same(found.prior[row, 0, number].detach(), torch.tensor(bell))


def test_the_centre_of_local_p_learns_through_the_gaussian():
    module, (query, keys, values) = window("local-p"), triple(heads=1)
    mask, prior = module(query, torch.zeros(B, Q), padding_mask(torch.tensor([5, 2, 3]), K))
    attended = attend(query, keys, values, mask, prior=prior, need_weights=True)
    assert (attended.weights.sum(-1) < 1).all()
    found = torch.autograd.grad(attended.context.square().sum(), [*module.parameters()])
    assert all(gradient.any() for gradient in found)


# --- hooks and dropout ------------------------------------------------------------------------------------------


@every_mask
def test_a_hook_that_returns_its_input_changes_nothing(shape):
    inputs, mask, seen = triple(), None if shape is None else some(*shape), []

    def hook(weights: Tensor, values: Tensor) -> Tensor:
        seen.append((weights, values))
        return weights

    hooked, plain = attend(*inputs, mask, hook=hook), attend(*inputs, mask, need_weights=True)
    same(hooked.context, attend(*inputs, mask).context)
    same(seen[0][0], plain.weights)
    assert seen[0][1] is inputs[2]


def test_a_hook_replaces_the_weights():
    query, keys, values = triple()
    second = F.one_hot(torch.tensor(1), K).double().expand(B, H, Q, K)
    context, weights = attend(query, keys, values, hook=lambda *_: second)
    same(context, values[:, :, 1:2].expand(B, H, Q, D))
    assert weights is second


def test_a_hook_sees_the_prior_and_not_the_dropout():
    inputs, seen = triple(), []
    halves = torch.full((Q, K), 0.5, dtype=torch.float64)
    attend(*inputs, prior=halves, dropout=0.5, hook=lambda weights, _: seen.append(weights) or weights)
    same(seen[0], attend(*inputs, need_weights=True).weights / 2)


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_keeps_the_mean(need_weights):
    query, keys, _ = (part.detach() for part in triple(1, 1, 2000, 4, 3))
    values = torch.ones(1, 1, 4, 1, dtype=torch.float64)
    torch.manual_seed(0)
    context = attend(query, keys, values, dropout=0.5, need_weights=need_weights).context
    assert context.std() > 0.1
    assert context.mean().item() == pytest.approx(1, abs=0.05)


def test_heads_drop_only_in_training():
    torch.manual_seed(0)
    heads, vectors = MultiHeadAttention(8, 2, dropout=0.5).double(), normal(2, 5, 8)
    memory = heads.project_kv(vectors)
    assert not torch.equal(heads(vectors, memory).context, heads(vectors, memory).context)
    heads.eval()
    same(heads(vectors, memory).context, heads(vectors, memory, need_weights=True).context)


# --- many heads, against torch's module -------------------------------------------------------------------------


def twins(width: int = 8, heads: int = 2) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Ours and torch's, with the same parameters."""
    ours = randomize(MultiHeadAttention(width, heads)).double()
    theirs = nn.MultiheadAttention(width, heads, batch_first=True, dtype=torch.float64)
    parts = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    return ours, theirs


@thorough
@example(1, 1, 1, 1)
@given(st.integers(1, 3), sizes, sizes, st.sampled_from([1, 2, 4]))
def test_many_heads_are_torchs_own(batch, queries, keys, heads):
    ours, theirs = twins(8, heads)
    query, memory = normal(batch, queries, 8), normal(batch, keys, 8, seed=1)
    lengths = torch.arange(batch) % keys + 1
    mask = padding_mask(lengths, keys)
    options = {"key_padding_mask": ~mask[:, 0, 0], "average_attn_weights": False}
    context, weights = theirs(query, memory, memory, **options)
    found = ours(query, ours.project_kv(memory), mask, need_weights=True)
    same(found.context, context)
    same(found.weights, weights)
    same(ours(query, ours.project_kv(memory), mask).context, context)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_shared_key_heads_are_repeated_key_heads(key_heads):
    """Grouped-query attention equals full attention whose key and value matrices repeat each shared head."""
    width, heads = 8, 4
    shared = randomize(MultiHeadAttention(width, heads, key_heads)).double()
    full = MultiHeadAttention(width, heads).double()
    repeat = heads // key_heads
    state = dict(shared.state_dict())
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        per_head = state[name].unflatten(0, (key_heads, -1))
        state[name] = torch.cat([per_head[head // repeat] for head in range(heads)])
    full.load_state_dict(state)
    query, memory = normal(B, Q, width), normal(B, K, width, seed=1)
    found, wanted = (each(query, each.project_kv(memory), need_weights=True) for each in (shared, full))
    same(found.context, wanted.context)
    same(found.weights, wanted.weights)
    assert shared.project_kv(memory).keys.shape == (B, key_heads, K, width // heads)


@pytest.mark.parametrize("key_heads", [1, 2])
def test_keys_and_values_appended_are_those_computed_at_once(key_heads):
    heads, memory = randomize(MultiHeadAttention(8, 2, key_heads)).double(), normal(B, K, 8)
    whole = heads.project_kv(memory)
    grown = heads.project_kv(memory[:, :2])
    for place in range(2, K):
        grown = grown.append(heads.project_kv(memory[:, place : place + 1]))
    same(grown.keys, whole.keys)
    same(grown.values, whole.values)


def test_a_cached_step_is_a_row_of_the_causal_whole():
    heads, vectors = randomize(MultiHeadAttention(8, 2)).double(), normal(B, K, 8)
    memory = heads.project_kv(vectors)
    whole = heads(vectors, memory, causal_mask(K)).context
    same(heads(vectors[:, 3:], memory, causal_mask(2, K)).context, whole[:, 3:])


@pytest.mark.parametrize("key_heads", [1, 2])
def test_one_product_for_queries_keys_and_values_is_three(key_heads):
    heads, vectors = randomize(MultiHeadAttention(8, 2, key_heads)).double(), normal(B, K, 8)
    results = []
    for training in (True, False):  # in training, one product
        found = heads.train(training)(vectors)
        loss = (found.context * found.context.detach().cos()).sum()
        results.append([found.context, *found.cache, *torch.autograd.grad(loss, list(heads.parameters()))])
    for one, three in zip(*results, strict=True):
        same(one, three)


@pytest.mark.parametrize("training", [True, False])
def test_hooks_and_replaced_layers_take_part_in_every_projection(training):
    heads, vectors = randomize(MultiHeadAttention(8, 2)).train(training), normal(B, K, 8).float()
    before = heads(vectors).context
    handle = heads.key.register_forward_hook(lambda layer, inputs, output: output * 2)
    hooked = heads(vectors).context
    handle.remove()
    heads.key = torch.nn.utils.parametrizations.spectral_norm(heads.key)
    assert not torch.allclose(before, hooked)
    assert not torch.allclose(before, heads(vectors).context)


# --- bad input --------------------------------------------------------------------------------------------------


def some_inputs(**changes):
    """Query, keys and values that fit, except for `changes`."""
    return {"query": normal(1, 1, 2, 4), "keys": normal(1, 1, 3, 4), "values": normal(1, 1, 3, 4)} | changes


def kv(batch):
    return KVCache(normal(batch, 2, 3, 4), normal(batch, 2, 3, 4))


def vectors(count, width):
    return torch.ones(1, count, width)


def heads_of(*sizes, **options):
    return lambda: MultiHeadAttention(*sizes, **options)


def attends(*inputs, **options):
    return lambda: attend(*inputs, **options)


QUERY, KEYS, VALUES = normal(Q, D), normal(K, D), normal(K, D)
BROADCAST = "the mask must broadcast to .* = "
MISTAKES = {
    "one-dimension": (attends(normal(D), KEYS, VALUES), "at least two dimensions"),
    "values-missing": (attends(QUERY, KEYS, normal(2, D)), "one value per key, got 5 keys and 2 values"),
    "widths": (attends(QUERY, normal(K, 4), VALUES), "expected vectors of width 4, got 6"),
    "widths-plain": (attends(QUERY, normal(K, 4), VALUES, need_weights=True), "expected vectors of width 4, got 6"),
    "widths-cosine": (attends(QUERY, normal(K, 4), VALUES, score=cosine), "expected vectors of width 4, got 6"),
    "batches": (attends(normal(2, Q, D), normal(3, K, D), normal(3, K, D)), "must share batch and heads"),
    "integers": (attends(**some_inputs(keys=torch.ones(1, 1, 3, 4, dtype=torch.long))), "floating-point vectors"),
    "number-mask": (attends(QUERY, KEYS, VALUES, normal(Q, K)), "a mask is boolean .*, got torch.float64"),
    "mask-of-other-keys": (attends(QUERY, KEYS, VALUES, causal_mask(Q)[0, 0]), BROADCAST + ".4, 5., got .4, 4."),
    "mask-of-another-batch": (attends(*triple(), some(2, 1, Q, K)), BROADCAST + ".3, 2, 4, 5., got .2, 1, 4, 5."),
    "mask-dimensions": (attends(QUERY, KEYS, VALUES, some(B, 1, Q, K)), BROADCAST + ".4, 5., got .3, 1, 4, 5."),
    "prior": (attends(**some_inputs(), prior=normal(7, 1, 2, 3)), "the prior must broadcast"),
    "dropout-above": (attends(**some_inputs(), dropout=1.5), "dropout must be .* got 1.5"),
    "dropout-below": (attends(**some_inputs(), dropout=-1), "dropout must be .* got -1"),
    "hook-none": (attends(**some_inputs(), hook=lambda weights, values: None), "must return weights of shape"),
    "hook-shape": (attends(**some_inputs(), hook=lambda weights, _: weights[..., :1]), "must return weights of shape"),
    "cache-rows": (lambda: kv(1).append(kv(3)), "cannot append keys"),
    "heads": (heads_of(10, 4), "width 10 is not divisible by 4 heads"),
    "key-heads": (heads_of(8, 4, 3), "4 heads are not divisible by 3 key heads"),
    "no-heads": (heads_of(8, 0), "at least 1"),
    "negative-heads": (heads_of(8, -2), "at least 1"),
    "no-width": (heads_of(0, 1), "at least 1"),
    "no-key-heads": (heads_of(8, 2, key_heads=0), "at least 1"),
    "query-width": (
        lambda: MultiHeadAttention(8, 2)(vectors(2, 9), MultiHeadAttention(8, 2).project_kv(vectors(2, 8))),
        "expected vectors of width 8, got 9",
    ),
    "memory-width": (lambda: MultiHeadAttention(8, 2).project_kv(vectors(2, 9)), "expected vectors of width 8, got 9"),
    "memory-shape": (lambda: MultiHeadAttention(8, 2).project_kv(torch.ones(3, 8)), r"shape \(B, N, D\)"),
    "no-positions": (
        lambda: MultiHeadAttention(8, 2, rotate=Rotary(8, 4, 9).rotate).project_kv(vectors(3, 8)),
        "needs the positions",
    ),
    "dot-widths": (lambda: Dot(3, 4), "Dot needs queries and keys of one width, got 3 and 4"),
    "too-many-positions": (
        lambda: Location(D, D, max_positions=3)(torch.ones(Q, D), torch.ones(K, D)),
        "the location score has 3 positions, got 5 keys",
    ),
    "additive-keys": (lambda: SCORES["additive"](4, 4)(vectors(2, 4), vectors(3, 5)), "width"),
    "additive-query": (lambda: SCORES["additive"](4, 4)(vectors(2, 5), vectors(3, 4)), "width"),
    "general-keys": (lambda: SCORES["general"](4, 4)(vectors(2, 4), vectors(3, 5)), "width"),
    "location-query": (lambda: SCORES["location"](4, 4)(vectors(2, 5), vectors(3, 4)), "width"),
}


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_rejected_in_one_line(mistake, message, inference):
    with torch.inference_mode(inference), pytest.raises(ValueError, match=message) as caught:
        mistake()
    assert "\n" not in str(caught.value)


def test_a_memory_without_keys_gives_zeros():
    layer = MultiHeadAttention(8, 2)
    out = layer(torch.randn(1, 3, 8), torch.empty(1, 0, 8), need_weights=True)
    assert out.weights.shape == (1, 2, 3, 0)
    assert torch.isfinite(out.context).all()
