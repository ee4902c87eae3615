import pytest
import torch
import torch.nn.functional as F
from torch import nn

import checks
from checks import RAGGED, SMALL, batch_of, normal, randomize, same
from softgaze.attention import MultiHeadAttention, causal_mask, padding_mask
from softgaze.kv_cache import KVCache
from softgaze.models import Source, build_model
from softgaze.models.ssru import SSRU
from softgaze.models.transformer import (
    FEED_FORWARDS,
    RESIDUALS,
    CachedMemory,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from softgaze.positions import POSITIONS

TRANSFORMER = SMALL["transformer"]
RECURRENT = TRANSFORMER.but(decoder_self="ssru", attentions={"encoder": 2, "cross": 2})
CASES = {
    "pre-layer-relu": TRANSFORMER,
    "post": TRANSFORMER.but(residual="post"),
    "rms-tie-output": TRANSFORMER.but(norm="rms", tie="output"),
    "gelu-tie-none": TRANSFORMER.but(feed_forward="gelu", tie="none"),
    "silu-output-bias": TRANSFORMER.but(feed_forward="silu", output_bias=True),
    "embedding-norm-eps": TRANSFORMER.but(embedding_norm=True, norm_eps=1e-9, scale_embeddings=False),
    "frozen-tie-source-target": TRANSFORMER.but(positions="frozen", max_length=16, tie="source-target"),
    "swiglu": TRANSFORMER.but(feed_forward="swiglu"),
    "no-positions": TRANSFORMER.but(positions="none"),
    "learned": TRANSFORMER.but(positions="learned", max_length=16),
    "rotary": TRANSFORMER.but(positions="rotary"),
    "multi-query": TRANSFORMER.but(key_heads=1),
    "ssru": RECURRENT,
    "ssru-post-learned": RECURRENT.but(residual="post", positions="learned", max_length=16),
    "local": TRANSFORMER.but(window_size=1, sums_to_one=False),  # padding far from any word sees nothing
    "grouped-query-rotary-swiglu-rms": TRANSFORMER.but(
        width=16, heads=4, key_heads=2, positions="rotary", feed_forward="swiglu", norm="rms"
    ),
}


@pytest.mark.parametrize(("check", "case"), checks.every(CASES))
def test_every_check(check, case):
    check(case)


# --- the step of a search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@torch.inference_mode()
def test_a_search_step_is_a_step(case):
    """Of ragged sources, after their hypotheses were repeated, permuted and dropped."""
    model = case.model
    search_step, state = model.search_step(), model.start(model.encode(RAGGED.source))
    expected = state
    for token, rows in ((2, None), (4, [[0, 0], [1, 1], [2, 2]]), (5, [[1, 0], [2, 2], [4, 5]]), (6, [[3, 2]])):
        if rows is not None:
            state, expected = (each.reorder(torch.tensor(rows)) for each in (state, expected))
        tokens = torch.full((expected.caches[0].rows,), token)
        logits, state = search_step(tokens, state)
        step = model.step(tokens, expected)
        expected = step.state
        same(logits, step.logits)


@torch.inference_mode()
def test_a_search_calls_the_hooks_of_modules():
    model, calls = TRANSFORMER.model, []
    memory, tokens = model.encode(RAGGED.source), torch.tensor([2, 2, 2])
    handle = model.decoder[0].cross.query.register_forward_hook(lambda *_: calls.append(1))
    model.search_step()(tokens, model.start(memory))
    handle.remove()
    model.search_step()(tokens, model.start(memory))
    assert len(calls) == 1


# --- torch's own Transformer, with our parameters ---------------------------------------------------------------


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    projections = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in projections]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in projections]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


@torch.no_grad()
def copy_layer(ours: TransformerEncoderLayer | TransformerDecoderLayer, theirs: nn.Module) -> None:
    copy_attention(ours.attention, theirs.self_attn)
    around = [ours.around_attention, ours.around_feed_forward]
    if isinstance(ours, TransformerDecoderLayer):
        copy_attention(ours.cross, theirs.multihead_attn)
        around.insert(1, ours.around_cross)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for number, each in enumerate(around, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(each.norm.state_dict())


def torch_layer(kind: type[nn.Module], residual: str, activation: str) -> nn.Module:
    """In training mode, without dropout: the fused inference path of torch's encoder is not what we compare with."""
    order = {"norm_first": residual == "pre", "activation": activation, "batch_first": True, "dtype": torch.float64}
    return kind(8, 2, 12, 0.0, **order)


def our_layer(kind: type[nn.Module], attentions: int, residual: str, activation: str) -> nn.Module:
    parts = [MultiHeadAttention(8, 2) for _ in range(attentions)]
    layer = kind(*parts, FEED_FORWARDS[activation](8, 12, 0.0), lambda: RESIDUALS[residual](nn.LayerNorm(8), 0.0))
    return randomize(layer).double()


VARIANTS = pytest.mark.parametrize(("residual", "activation"), [("pre", "relu"), ("post", "relu"), ("pre", "gelu")])


@VARIANTS
def test_an_encoder_layer_is_torchs_own(residual, activation):
    ours = our_layer(TransformerEncoderLayer, 1, residual, activation)
    theirs = torch_layer(nn.TransformerEncoderLayer, residual, activation)
    copy_layer(ours, theirs)
    vectors, mask = normal(3, 5, 8), padding_mask(torch.tensor([5, 1, 3]), 5)
    actual = ours(vectors, mask)
    same(actual, theirs(vectors, src_key_padding_mask=~mask[:, 0, 0]))


@VARIANTS
def test_a_decoder_layer_is_torchs_own(residual, activation):
    ours = our_layer(TransformerDecoderLayer, 2, residual, activation)
    theirs = torch_layer(nn.TransformerDecoderLayer, residual, activation)
    copy_layer(ours, theirs)
    vectors, memory = (normal(3, size, 8) for size in (4, 5))
    mask = padding_mask(torch.tensor([5, 1, 3]), 5)
    kv = ours.cross.project_kv(memory)
    empty = KVCache(*(part[:, :, :0] for part in kv))
    actual, _, _ = ours(vectors, empty, CachedMemory(kv, mask), causal_mask(4), None)
    hidden = {"tgt_mask": ~causal_mask(4)[0, 0], "memory_key_padding_mask": ~mask[:, 0, 0]}
    same(actual, theirs(vectors, memory, **hidden))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch's, about a path neither side takes
@pytest.mark.parametrize("residual", RESIDUALS)
def test_the_whole_model_is_torchs_own(residual):
    model = TRANSFORMER.but(residual=residual).model
    order = {"norm_first": residual == "pre", "batch_first": True, "dtype": torch.float64}
    theirs = nn.Transformer(8, 2, 2, 2, 12, 0.0, **order)
    twins = (model.encoder, model.encoder_norm, theirs.encoder), (model.decoder, model.decoder_norm, theirs.decoder)
    for stack, norm, twin in twins:
        for layer, other in zip(stack, twin.layers, strict=True):
            copy_layer(layer, other)
        if residual == "pre":
            twin.norm.load_state_dict(norm.state_dict())
        else:
            twin.norm = None  # torch norms once more after a post-norm stack; the paper does not

    (values, lengths), target = RAGGED
    source, read = (
        positions.add(embed(tokens) * 8**0.5, torch.arange(tokens.shape[1]))
        for positions, embed, tokens in (
            (model.source_positions, model.source_embedding, values),
            (model.target_positions, model.target_embedding, target),
        )
    )
    hidden = ~padding_mask(lengths, values.shape[1])[:, 0, 0]
    masks = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
    features = theirs(source, read, tgt_mask=~causal_mask(target.shape[1])[0, 0], **masks)
    same(model.decode(model.encode(RAGGED.source), target), features)


# --- what the parts promise -------------------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("positions", POSITIONS)
def test_self_attention_sees_order_only_through_positions(positions):
    model, source = TRANSFORMER.but(positions=positions).model, batch_of([5, 5], 1).source
    order = torch.tensor([3, 0, 4, 1, 2])
    memory = model.encode(source).values
    mixed = model.encode(Source(source.values[:, order], source.lengths)).values
    if positions == "none":
        same(mixed, memory[:, order])
    else:
        assert (mixed - memory[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize(("size", "paper"), [("base", 65e6), ("big", 213e6)])
def test_base_and_big_have_the_papers_parameters(size, paper):
    with torch.device("meta"):
        model = build_model("transformer", size, source_vocabulary=37_000)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert abs(count / paper - 1) < 0.05


@pytest.mark.parametrize("tie", ["all", "output", "none"])
def test_tied_matrices_are_one(tie):
    model = TRANSFORMER.but(tie=tie).make()
    source, target, output = model.source_embedding.weight, model.target_embedding.weight, model.output.weight
    assert (source is target, target is output) == (tie == "all", tie != "none")


def test_keys_and_values_of_the_source_are_computed_once(monkeypatch):
    model, calls = TRANSFORMER.make(), []
    cross = model.decoder[0].cross
    project = cross.project_kv
    monkeypatch.setattr(cross, "project_kv", lambda memory: calls.append(1) or project(memory))
    assert [*checks.steps(model, RAGGED)]
    assert len(calls) == 1


def test_a_cache_of_shared_heads_is_smaller():
    model = TRANSFORMER.but(key_heads=1).model
    _, state = checks.inputs_of_a_step(model, RAGGED)
    assert all(isinstance(cache, KVCache) and cache.keys.shape == (3, 1, 4, 4) for cache in state.caches)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"heads": 3}, "width 8 is not divisible by 3 heads"),
        ({"heads": 4, "key_heads": 3}, "4 heads are not divisible by 3 key heads"),
        ({"heads": 8, "positions": "rotary"}, "even head width, got 1"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TRANSFORMER.but(**options).make()


def test_a_sentence_past_the_learned_positions_is_refused():
    model = TRANSFORMER.but(positions="learned", max_length=3).make()
    with pytest.raises(ValueError, match="learned positions are 0 to 2, got 0 to 4"):
        model(*RAGGED)


@pytest.mark.parametrize(("name", "activate"), [("relu", F.relu), ("gelu", F.gelu), ("swiglu", F.silu)])
def test_a_feed_forward_block_is_its_formula(name, activate):
    block = checks.randomize(FEED_FORWARDS[name](4, 6, 0.0)).double()
    vectors = normal(2, 3, 4)
    gate = block.gate(vectors) if name == "swiglu" else 1.0
    same(block(vectors), block.outer(activate(block.inner(vectors)) * gate))


@torch.no_grad()
def test_a_recurrent_layer_is_its_formula():
    layer, vectors = randomize(SSRU(4)).double(), normal(2, 5, 4)
    output, _, cache = layer(vectors, cache=layer.empty_cache(vectors))
    cell = torch.zeros(2, 4, dtype=torch.float64)
    for position in range(5):
        x = vectors[:, position]
        gate = torch.sigmoid(x @ layer.forget.weight.T + layer.forget.bias)
        cell = gate * cell + (1 - gate) * (x @ layer.candidate.weight.T)
        same(output[:, position], cell.clamp(min=0))
    same(cache.cell, cell)


def test_the_state_of_a_recurrent_decoder_does_not_grow():
    model = RECURRENT.model
    sizes = [
        sum(cache.cell.numel() + cache.read.numel() for cache in step.state.caches)
        for step in checks.steps(model, RAGGED)
    ]
    assert sizes == [2 * 3 * 8] * RAGGED.target.shape[1]
