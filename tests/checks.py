"""The checks that every model family must pass.

A new model gets all of them in ten lines: one `Case` in `SMALL`, and in its test file

    CASES = {"plain": checks.SMALL["mine"], "wide": checks.SMALL["mine"].but(width=16)}

    @pytest.mark.parametrize(("check", "case"), checks.every(CASES))
    def test_every_check(check, case):
        check(case)

Models run in float64, so that "the same" means 1e-10 and a wrong formula cannot hide behind rounding.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from torch.export import Dim, export
from torch.utils import _pytree as pytree

from softgaze.attention import causal_mask, padding_mask
from softgaze.models import MODELS, AttentionSite, Memory, Seq2Seq, Source, Step, build_model

VOCABULARY = 11
quick = settings(max_examples=4, deadline=None, derandomize=True, database=None)
thorough = settings(quick, max_examples=30)  # for what takes a millisecond


def same(actual: Tensor, expected: Tensor, within: float = 1e-10) -> None:
    """Assert equal shape and dtype, no NaN, and a difference of at most `within`."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=within)


def same_tree(actual: Any, expected: Any) -> None:
    """`same` for every tensor of nested tuples."""
    leaves, others = pytree.tree_leaves(actual), pytree.tree_leaves(expected)
    for leaf, other in zip(leaves, others, strict=True):
        same(leaf, other)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Draw float64 numbers from a seed, so that tests are independent."""
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def randomize(module: nn.Module, seed: int = 0) -> nn.Module:
    """Redraw every parameter, biases and norms too: a forgotten bias shows only where it is not zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-0.6, 0.6, generator=generator)
    return module


@dataclass(frozen=True)
class Case:
    """One configuration of one model, and the expectations of the checks."""

    arch: str
    options: Mapping[str, Any]
    attentions: Mapping[str, int] = field(default_factory=dict)  # kind -> how many layers have it
    memory_is_a_set: bool = True  # False for location scores and windows, which depend on positions
    sums_to_one: bool = True  # local-p multiplies by a Gaussian after the softmax; local-m may leave the sentence

    def but(self, **options: Any) -> "Case":
        """The same with other options; expectations named here change, too."""
        expected = {name: options.pop(name) for name in [*options] if name in self.__dataclass_fields__}
        return replace(self, options={**self.options, **options}, **expected)

    def make(self, seed: int = 0) -> Seq2Seq:
        """A fresh float32 model with random weights."""
        model = build_model(self.arch, source_vocabulary=VOCABULARY, **self.options)
        return randomize(model, seed).eval()

    def batch(self, lengths: list[int], target_length: int) -> "Batch":
        """Random token ids or, for a model that reads features, vectors."""
        batch = batch_of(lengths, target_length)
        if not MODELS[self.arch].reads_features:
            return batch
        return batch._replace(source=Source(VECTORS[batch.source.values], batch.source.lengths))

    @cached_property
    def ragged(self) -> "Batch":
        """Sources of different lengths."""
        return self.batch([5, 1, 3], 4)

    @cached_property
    def model(self) -> Seq2Seq:
        """The float64 model that checks share and never change."""
        return self.make().double()


LAYERS = {"encoder_layers": 2, "decoder_layers": 2}
SMALL = {
    "rnn": Case("rnn", {"width": 8}),
    "rnn-bahdanau": Case("rnn-bahdanau", {"width": 8}, {"cross": 1}),
    "rnn-luong": Case("rnn-luong", {"width": 8}, {"cross": 1}),
    "conv": Case("conv", {"width": 8, **LAYERS}, {"cross": 2}),
    "transformer": Case(
        "transformer",
        {"width": 8, "feed_forward_width": 12, "heads": 2, **LAYERS},
        {"encoder": 2, "decoder": 2, "cross": 2},
    ),
    "captioner": Case(
        "captioner",
        {"width": 16, "layers": 1, "encoder_layers": 2, "heads": 1, "encoder": "frames"},
        {"cross": 1},
    ),
}


class Batch(NamedTuple):
    source: Source
    target: Tensor  # (B, T)


def batch_of(lengths: list[int], target_length: int, seed: int = 0) -> Batch:
    """Random sentences of the given lengths."""
    draw = torch.Generator().manual_seed(seed)
    sentences = [torch.randint(4, VOCABULARY, (length,), generator=draw).tolist() for length in lengths]
    return Batch(Source.of(sentences), torch.randint(2, VOCABULARY, (len(lengths), target_length), generator=draw))


RAGGED = batch_of([5, 1, 3], 4)
VECTORS = normal(VOCABULARY, VOCABULARY, seed=5).float()  # one item per id
TEXT = [arch for arch, model in MODELS.items() if not model.reads_features]
source_lengths, target_lengths = st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 4)


def for_any_batch(check: Callable[[Case, Batch], None]) -> Callable[[Case], None]:
    """Run `check` on drawn batches, the smallest and a ragged one always among them."""

    @wraps(check)
    def run(case: Case) -> None:
        @quick
        @example([1], 1)
        @example([5, 1, 3], 4)
        @given(source_lengths, target_lengths)
        def run_once(lengths: list[int], target_length: int) -> None:
            with torch.no_grad():
                check(case, case.batch(lengths, target_length))

        run_once()

    return run


def steps(model: Seq2Seq, batch: Batch, hook: Any = None) -> Iterator[Step]:
    """The target read token by token."""
    state = model.start(model.encode(batch.source, hook))
    for token in batch.target.unbind(1):
        step = model.step(token, state, hook)
        yield step
        state = step.state


# --- the protocol -----------------------------------------------------------------------------------------------


@for_any_batch
def steps_equal_the_parallel_pass(case: Case, batch: Batch) -> None:
    memory = case.model.encode(batch.source)
    parallel = case.model.advance(batch.target, case.model.start(memory), need_weights=True)
    one_by_one = [*steps(case.model, batch)]
    same(torch.stack([step.logits for step in one_by_one], 1), case.model(*batch))
    same(torch.stack([step.weights for step in one_by_one], 2), parallel.weights)


@for_any_batch
def chunks_equal_the_parallel_pass(case: Case, batch: Batch) -> None:
    state, features = case.model.start(case.model.encode(batch.source)), []
    for chunk in batch.target.split(3, dim=1):
        advanced = case.model.advance(chunk, state)
        state = advanced.state
        features.append(advanced.features)
    same(case.model.output(torch.cat(features, 1)), case.model(*batch))


@for_any_batch
def padding_changes_nothing(case: Case, batch: Batch) -> None:
    """Neither its amount nor the ids in it change anything, nor do the other sentences of the batch."""
    (values, lengths), logits = batch.source, case.model(*batch)
    wide = torch.cat([values, torch.zeros_like(values)], 1)
    real = padding_mask(lengths, wide.shape[1])[:, 0, 0].view(*wide.shape[:2], *[1] * (wide.ndim - 2))
    same(case.model(Source(wide.where(real, VOCABULARY - 1), lengths), batch.target), logits)
    for row, length in enumerate(lengths.tolist()):
        alone = Source(values[row : row + 1, :length], lengths[row : row + 1])
        same(case.model(alone, batch.target[row : row + 1]), logits[row : row + 1])


@for_any_batch
def reordering_before_or_after_a_step_is_the_same(case: Case, batch: Batch) -> None:
    rows = len(batch.target)
    index = torch.arange(rows + 1).flip(0) % rows  # permuted, and one row twice
    state = case.model.start(case.model.encode(batch.source))
    chosen = state.reorder(index)
    for token in batch.target.unbind(1):
        step, other = case.model.step(token, state), case.model.step(token[index], chosen)
        same(other.logits, step.logits[index])
        same(other.weights, step.weights[index])
        same_tree(other.state, step.state.reorder(index))
        state, chosen = step.state, other.state


@for_any_batch
def rows_may_share_a_memory(case: Case, batch: Batch) -> None:
    """A memory stored once for three rows equals one per row, while rows are permuted and dropped."""
    state = case.model.start(case.model.encode(batch.source))
    beams = torch.arange(len(batch.target))[:, None].expand(-1, 3)
    for token in batch.target[0]:
        shared, apart = state.reorder(beams), state.reorder(beams.flatten())
        tokens = (token + torch.arange(beams.numel())) % VOCABULARY
        for hook in (None, Recorder()):
            one, other = (case.model.step(tokens, each, hook) for each in (shared, apart))
            same(one.logits, other.logits)
            same(one.weights, other.weights)
        same(case.model.step(tokens, shared, need_weights=False).logits, other.logits)
        left = max(1, len(beams) - 1)
        state, beams = one.state, torch.arange(beams.numel()).view(-1, 3).flip(1)[-left:]
        same_tree(state.reorder(beams.flatten()), other.state.reorder(beams.flatten()))


@for_any_batch
def the_future_never_leaks(case: Case, batch: Batch) -> None:
    """∂ output t / ∂ input > t is exactly zero, and ∂ output t / ∂ input t is not."""
    memory, inputs = case.model.encode(batch.source), []

    def cut(module: nn.Module, arguments: Any, embedded: Tensor) -> Tensor:
        inputs.append(embedded.detach().requires_grad_())
        return inputs[0]

    probe = torch.linspace(-1, 1, VOCABULARY, dtype=memory.values.dtype)
    embedding = (case.model.decoder if case.arch == "captioner" else case.model).target_embedding
    with torch.enable_grad(), embedding.register_forward_hook(cut):
        logits = case.model.output(case.model.decode(memory, batch.target))
        outputs = (logits @ probe).sum(0).unbind()  # one number per target position
    for position, output in enumerate(outputs):
        (gradient,) = torch.autograd.grad(output, inputs[0], retain_graph=True)
        assert not gradient[:, position + 1 :].any()
        assert gradient[:, position].any(-1).all()


# --- attention --------------------------------------------------------------------------------------------------


class Recorder:
    """A hook that records attention weights, and replaces those of one site if requested."""

    def __init__(self, replaced: tuple[str, int] | None = None) -> None:
        self.seen: dict[tuple[str, int], list[tuple[int, Tensor, Tensor]]] = {}
        self.replaced = replaced

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        key = (site.kind, site.layer)
        self.seen.setdefault(key, []).append((site.step, weights, values))
        return torch.eye(weights.shape[-1]).to(weights)[0].expand_as(weights) if key == self.replaced else weights


def expected_sites(case: Case) -> list[tuple[str, int]]:
    return [(kind, layer) for kind, layers in case.attentions.items() for layer in range(layers)]


def allowed(kind: str, weights: Tensor, lengths: Tensor) -> Tensor:
    """The mask of this kind of attention."""
    queries, keys = weights.shape[-2:]
    return causal_mask(queries, keys) if kind == "decoder" else padding_mask(lengths, keys)


@for_any_batch
def weights_are_weights(case: Case, batch: Batch) -> None:
    """Not negative, 0 where masked, and of sum 1 (at most 1 for windows: see `Case.sums_to_one`)."""
    hook = Recorder()
    case.model(*batch, hook)
    shown = [(kind, weights) for (kind, _), calls in hook.seen.items() for _, weights, _ in calls]
    shown += [("cross", step.weights[:, :, None]) for step in steps(case.model, batch)]
    for kind, weights in shown:
        assert (weights >= 0).all()
        assert not weights.masked_fill(allowed(kind, weights, batch.source.lengths), 0).any()
        sums = weights.sum(-1)
        assert (sums <= 1 + 1e-12).all()
        if case.sums_to_one:
            same(sums, torch.ones_like(sums))


@for_any_batch
def a_hook_sees_every_attention(case: Case, batch: Batch) -> None:
    """Kinds, layers, shapes and first rows, in parallel and step by step."""
    lengths = {
        "encoder": batch.source.values.shape[1],
        "decoder": batch.target.shape[1],
        "cross": batch.target.shape[1],
    }
    parallel, stepping = Recorder(), Recorder()
    case.model(*batch, parallel)
    assert [*steps(case.model, batch, stepping)]
    for hook in (parallel, stepping):
        assert sorted(hook.seen) == sorted(expected_sites(case))
        for (kind, _), calls in hook.seen.items():
            read = 0
            for first, weights, seen in calls:
                assert first == read
                read += weights.shape[2]
                keys = read if kind == "decoder" else lengths["encoder"]
                assert weights.shape[:2] == seen.shape[:2] == (len(batch.target), case.options.get("heads", 1))
                assert weights.shape[3] == seen.shape[2] == keys
            assert read == lengths[kind]
    for site in (site for site in expected_sites(case) if site[0] == "cross"):
        by_step, at_once = (torch.cat([call[1] for call in hook.seen[site]], 2) for hook in (stepping, parallel))
        same(by_step, at_once)


@for_any_batch
def a_hook_that_changes_nothing_changes_nothing(case: Case, batch: Batch) -> None:
    hook = Recorder()
    same(case.model(*batch, hook), case.model(*batch))
    for hooked, plain in zip(steps(case.model, batch, hook), steps(case.model, batch), strict=True):
        same(hooked.logits, plain.logits)
        same(hooked.weights, plain.weights)


@torch.no_grad()
def a_hook_can_replace_weights(case: Case) -> None:
    """Each attention by itself, in both modes alike."""
    logits = case.model(*case.ragged)
    for site in expected_sites(case):
        hook = Recorder(site)
        changed = case.model(*case.ragged, hook)
        assert (changed - logits).abs().max() > 1e-4, site
        same(torch.stack([step.logits for step in steps(case.model, case.ragged, hook)], 1), changed)


@for_any_batch
def a_query_without_keys_gives_zeros_and_no_nan(case: Case, batch: Batch) -> None:
    """A memory whose mask hides everything from row 0: finite logits and gradients, weights of 0."""
    memory = case.model.encode(batch.source)
    mask = memory.mask.clone()
    mask[0] = False
    with torch.enable_grad():
        logits = case.model.output(case.model.decode(memory._replace(mask=mask), batch.target))
        trained = [parameter for parameter in case.model.parameters() if parameter.requires_grad]
        found = torch.autograd.grad(logits.square().sum(), trained, allow_unused=True)
    assert logits.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in found if gradient is not None)
    step = case.model.step(batch.target[:, 0], case.model.start(memory._replace(mask=mask)))
    assert not step.weights[0].any()


@for_any_batch
def the_memory_is_a_set(case: Case, batch: Batch) -> None:
    """Permuting it permutes the weights and leaves what is said."""
    memory = case.model.encode(batch.source)
    order = torch.arange(memory.values.shape[1]).roll(1).flip(0)
    extra = tuple(part[:, order] if part.ndim == 3 else part for part in memory.extra)
    mixed = Memory(memory.values[:, order], memory.mask[..., order], extra)
    one, other = (
        case.model.advance(batch.target, case.model.start(each), need_weights=True) for each in (memory, mixed)
    )
    same(other.features, one.features)
    same(other.weights, one.weights[..., order])


# --- what is done with a whole model ----------------------------------------------------------------------------


def saving_and_loading_gives_the_same_bits(case: Case) -> None:
    model, other = case.make(seed=0), case.make(seed=1)
    assert not torch.equal(model(*case.ragged), other(*case.ragged))
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, str(Path(folder) / "model.safetensors"))
        load_model(other, Path(folder) / "model.safetensors")
    assert torch.equal(model(*case.ragged), other(*case.ragged))


def autocast_to_bfloat16_works(case: Case) -> None:
    """Finite and near, forwards and backwards, in parallel and by steps."""
    model = case.make()
    expected = model(*case.ragged)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(*case.ragged)
        stepped = torch.stack([step.logits for step in steps(model, case.ragged)], 1)
    scale = expected.abs().max().item()
    same(logits.float(), expected, within=0.1 * scale)
    same(stepped.float(), expected, within=0.1 * scale)
    logits.float().logsumexp(-1).sum().backward()
    assert all(part.grad.isfinite().all() for part in model.parameters() if part.grad is not None)


def dropout_is_for_training_only(case: Case) -> None:
    model = case.make()
    assert torch.equal(model(*case.ragged), model(*case.ragged))
    assert not torch.equal(model.train()(*case.ragged), model(*case.ragged))


class Encode(nn.Module):
    """`encode` as a module of its own, for export."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, values: Tensor, lengths: Tensor) -> Memory:
        return self.model.encode(Source(values, lengths))


class TakeStep(Encode):
    """`step` as a module of its own, for export."""

    def forward(self, token: Tensor, state: Any) -> Step:
        return self.model.step(token, state)


def inputs_of_a_step(model: Seq2Seq, batch: Batch) -> tuple[Tensor, Any]:
    """Of the step after the whole target was read."""
    state = model.advance(batch.target, model.start(model.encode(batch.source))).state
    return batch.target[:, 0], state


def exported(module: nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any = None) -> nn.Module:
    with warnings.catch_warnings():
        # torch's own LSTM and GRU touch their list of weights while they are traced.
        warnings.filterwarnings("ignore", message="The tensor attributes .*_flat_weights")
        return export(module, inputs, dynamic_shapes=dynamic_shapes).module()


@torch.no_grad()
def encoder_and_step_can_be_exported(case: Case) -> None:
    step = inputs_of_a_step(case.model, case.ragged)
    jobs = [(Encode(case.model), tuple(case.ragged.source)), (TakeStep(case.model), step)]
    for module, inputs in jobs:
        same_tree(exported(module, inputs)(*inputs), module(*inputs))


@torch.no_grad()
def an_exported_step_serves_any_batch(case: Case) -> None:
    """Other batches, sources and pasts than it was exported with. Slow: not part of `every`."""
    inputs, others = (inputs_of_a_step(case.model, batch) for batch in (case.ragged, case.batch([2, 4], 3)))
    free = pytree.tree_map(lambda part: {axis: Dim.AUTO for axis, size in enumerate(part.shape) if size > 1}, inputs)
    module = TakeStep(case.model)
    same_tree(exported(module, inputs, free)(*others), module(*others))


def every(cases: Mapping[str, Case]) -> list[Any]:
    """All that applies to each case, as parameters of a test."""
    return [
        pytest.param(check, case, id=f"{name}-{check.__name__}")
        for name, case in cases.items()
        for check in (*FOR_ALL, *(FOR_ATTENTIVE if case.attentions else ()))
        if case.memory_is_a_set or check is not the_memory_is_a_set
    ]


FOR_ALL = (
    steps_equal_the_parallel_pass,
    chunks_equal_the_parallel_pass,
    padding_changes_nothing,
    reordering_before_or_after_a_step_is_the_same,
    rows_may_share_a_memory,
    the_future_never_leaks,
    a_hook_sees_every_attention,
    a_query_without_keys_gives_zeros_and_no_nan,
    saving_and_loading_gives_the_same_bits,
    autocast_to_bfloat16_works,
    dropout_is_for_training_only,
    encoder_and_step_can_be_exported,
)
FOR_ATTENTIVE = (
    weights_are_weights,
    a_hook_that_changes_nothing_changes_nothing,
    a_hook_can_replace_weights,
    the_memory_is_a_set,
)
