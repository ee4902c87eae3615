"""The torch engine: any model on any device. The only engine that supports attention interventions."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from softgaze.bundle import ATTENTION, Bundle, Tokenizers
from softgaze.engines.base import EncodedSource, Engine, EngineFiles
from softgaze.models import AttentionHook, AttentionSite, Seq2Seq, Source
from softgaze.models.base import SingleSiteHook
from softgaze.runtime import parallel_map, pick_device
from softgaze.search import Hypothesis, SearchOptions, generate
from softgaze.search.decoder import BLOCK, IMPOSSIBLE, MIN_LOG_PROB, Array
from softgaze.special_tokens import BOS

if TYPE_CHECKING:
    from softgaze.explain.recorder import TorchScorer
    from softgaze.explain.recording import Matrix, PartAttention
    from softgaze.explain.scoring import IdPair
    from softgaze.search.beam import TraceCallback

# Parameters up to which one sentence is decoded by one thread: two took 1.7 times as long for 2.3 million.
SMALL_MODEL = 1 << 22
DIRECT_TOPK = 1 << 16  # log-probabilities up to which one top-k is faster than two levels


class TorchEngine(Engine):
    """A model with its tokenizers, on a device."""

    name = "torch"
    precision = "float32"
    batch_tokens: ClassVar = 8192
    selected_map: dict[str, Any] | None = None  # of the bundle
    trained_head: tuple[int, int] | None = None  # layer and head that were trained on alignments

    def __init__(self, model: Seq2Seq, tokenizers: Tokenizers, device: torch.device) -> None:
        self.model, self.tokenizers = model, tokenizers
        self.torch_device, self.device, self.num_positions = device, str(device), model.max_positions
        self.num_parameters = sum(parameter.numel() for parameter in model.parameters())

    @classmethod
    def open(cls, bundle: Bundle, device: str = "auto", files: EngineFiles | None = None) -> Self:
        torch_device = pick_device(device)
        engine = cls(bundle.model(str(torch_device)), bundle.tokenizers, torch_device)
        engine.selected_map, engine.trained_head = bundle.facts.get(ATTENTION), bundle.alignment_head
        return engine

    @cached_property
    def alignment_head(self) -> tuple[int | None, int | None]:
        """Layer and head whose attention tells where terms start; None: the mean."""
        from softgaze.explain.recording import SelectedMap

        view = SelectedMap.from_dict(self.selected_map).view if self.selected_map else None
        if view is not None and not view.is_shifted:  # a shifted map shows the attention of a word after that word
            return view.layer, view.head
        return self.trained_head or (None, None)

    def decode_batches(
        self, batches: Sequence[Sequence[EncodedSource]], options: SearchOptions
    ) -> Iterator[list[list[Hypothesis]]]:
        is_small = self.num_parameters <= SMALL_MODEL and sum(map(len, batches)) == 1
        return parallel_map(
            lambda batch: self.decode_batch(batch, options), batches, self.torch_device, is_small=is_small
        )

    def decode_batch(
        self, batch: Sequence[EncodedSource], options: SearchOptions, on_candidate: "TraceCallback | None" = None
    ) -> list[list[Hypothesis]]:
        model = self.model
        if any(source.interventions for source in batch):
            from softgaze.explain.interventions import apply_interventions

            model = apply_interventions(model, self.tokenizers.target, [source.interventions for source in batch])
        source = Source.of([source.ids for source in batch], self.torch_device)
        terms, attention = None, None
        if any(source.terms for source in batch):
            from softgaze.search.terms import TermConstraint

            terms = TermConstraint([source.terms for source in batch], np.array(self.tokenizers.target.inside_word))
            attention = StepAttention(*self.alignment_head) if model.has_cross_attention else None
        decoder = TorchDecoder(model, source, attention and attention.hook, self.tokenizers.target.start, attention)
        prefixes = [source.prefix for source in batch]
        return generate(decoder, options, prefixes, self.max_positions, on_candidate, terms)

    @property
    def cross_attention_shape(self) -> tuple[int, int]:
        return self.model.cross_attention_shape

    def record(self, pairs: "Sequence[IdPair]") -> "list[PartAttention]":
        return self._scorer.record(pairs)

    def log_probs(self, pairs: "Sequence[IdPair]") -> "list[Matrix]":
        return self._scorer.log_probs(pairs)

    @cached_property
    def _scorer(self) -> "TorchScorer":
        from softgaze.explain.recorder import TorchScorer

        return TorchScorer(self.model, self.tokenizers)


class TorchDecoder:
    """Steps of a torch model over one batch; the state is reordered only where rows move.

    Everything runs in inference mode: autograd's bookkeeping costs a tenth of the time of a single sentence.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: Seq2Seq,
        source: Source,
        hook: AttentionHook | None = None,
        start: Sequence[int] = (BOS,),
        reader: "StepAttention | None" = None,
    ) -> None:
        if model.training:
            raise ValueError(
                "the model is in training mode, where dropout is random; call model.eval() before a search"
            )
        self.model, self.hook, self.device = model, hook, source.values.device
        self.sources, self.lengths = source.values.cpu().numpy(), source.lengths.cpu().numpy()
        self.state: Any = model.start(model.encode(source, hook))
        self.search_step = model.search_step() if hook is None else self._observed_step
        self.reader = reader
        self.attention: Array | None = None
        self.rows = len(self.lengths)
        *before, self.start = start
        self.forced = len(before)
        if before:
            tokens = torch.tensor(before, device=self.device).expand(self.rows, -1)
            self.state = model.advance(tokens, self.state, hook).state
            if reader is not None:
                reader.read()

    @torch.inference_mode()
    def step(self, rows: Array, tokens: Array) -> "TensorLogProbs":
        """Continue `rows` (N, W) of the step before with one more token each."""
        if rows.ravel().tolist() != [*range(self.rows)]:
            self.state = self.state.reorder(torch.from_numpy(rows).to(self.device))
            self.rows = rows.size
        token = torch.from_numpy(tokens.ravel()).to(self.device)
        logits, self.state = self.search_step(token, self.state)
        if self.reader is not None:
            self.attention = self.reader.read()
        return TensorLogProbs(logits)

    def _observed_step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        return self.model.step(token, state, self.hook, need_weights=False)[:2]


class StepAttention:
    """A hook that reads the cross-attention of a layer and head, or of all of them, and changes nothing."""

    def __init__(self, layer: int | None, head: int | None) -> None:
        self.layer, self.head = layer, head
        self.weights: list[Tensor] = []  # of each layer (R, S)

    @property
    def hook(self) -> AttentionHook:
        """The hook; that of a single layer keeps the fast path of the others."""
        return self if self.layer is None else SingleSiteHook("cross", self.layer, self)

    def __call__(self, site: AttentionSite, weights: Tensor, values: Tensor) -> Tensor:
        if site.kind == "cross":
            last = weights[:, :, -1]
            self.weights.append(last.mean(1) if self.head is None else last[:, self.head])
        return weights

    def read(self) -> Array:
        """Return (R, S) the attention of the last step."""
        mean = torch.stack(self.weights).mean(0).float()
        self.weights.clear()
        return _array(mean)


class TensorLogProbs:
    """Next-token log-probabilities on a device.

    A pass over all of them costs as much as a layer of a small model, so there are few. Arrays that leave the device
    are as small as the beam.
    """

    def __init__(self, logits: Tensor) -> None:
        self.values = logits.float().log_softmax(-1).clamp_(min=MIN_LOG_PROB)  # (R, V)
        self.vocabulary = self.values.shape[1]

    @torch.inference_mode()
    def forbid(self, tokens: Array) -> None:
        self.values.index_fill_(1, self._tensor(tokens), IMPOSSIBLE)  # a third of the time of indexing

    @torch.inference_mode()
    def forbid_in(self, rows: Array, tokens: Array) -> None:
        self.values[self._tensor(rows), self._tensor(tokens)] = IMPOSSIBLE

    @torch.inference_mode()
    def force(self, rows: Array, tokens: Array) -> None:
        index = self._tensor(rows), self._tensor(tokens)
        forced = self.values[index]
        self.values[index[0]] = IMPOSSIBLE
        self.values[index] = forced

    @torch.inference_mode()
    def forbid_rows(self, rows: Array) -> None:
        self.values[self._tensor(rows)] = IMPOSSIBLE

    @torch.inference_mode()
    def gather(self, rows: Array, tokens: Array) -> Array:
        return _array(self.values[self._tensor(rows), self._tensor(tokens)])

    @torch.inference_mode()
    def count_others(self, token: int) -> Array:
        allowed = self.values > IMPOSSIBLE
        return _array(allowed.sum(1) - allowed[:, token].long())

    @torch.inference_mode()
    def topk(self, totals: Array, count: int) -> tuple[Array, Array]:
        before = self._tensor(totals)  # (N, W)
        if self.vocabulary < count * BLOCK or self.values.numel() <= DIRECT_TOPK:
            scores = (self.values.view(*before.shape, -1) + before[..., None]).flatten(1)  # (N, W · V)
            best = scores.topk(min(count, scores.shape[1]))
            return _array(best.values), _array(best.indices)
        scores, indices = self._block_topk(before, count)
        best = scores.topk(count)
        return _array(best.values), _array(indices.gather(1, best.indices))

    def _block_topk(self, before: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return scores and indices that contain the top `count`, as `ArrayLogProbs` does, per row of the beam."""
        width, device = before.shape[1], before.device
        blocked = self.vocabulary - self.vocabulary % BLOCK
        blocks = self.values[:, :blocked].view(*before.shape, -1, BLOCK)  # (N, W, b, BLOCK)
        best_blocks = (blocks.amax(-1) + before[..., None]).flatten(1).topk(count).indices  # (N, C) of W · b
        row, block = best_blocks // blocks.shape[2], best_blocks % blocks.shape[2]
        sentence = torch.arange(len(before), device=device)[:, None]
        inside = blocks[sentence, row, block] + before.gather(1, row)[..., None]  # (N, C, BLOCK)
        inside_indices = (row * self.vocabulary + block * BLOCK)[..., None] + torch.arange(BLOCK, device=device)

        rest = self.values[:, blocked:].view(*before.shape, -1) + before[..., None]  # (N, W, V − blocked)
        starts = torch.arange(width, device=device)[:, None] * self.vocabulary
        rest_indices = (starts + torch.arange(blocked, self.vocabulary, device=device)).expand_as(rest)
        return (
            torch.cat([inside.flatten(1), rest.flatten(1)], 1),
            torch.cat([inside_indices.flatten(1), rest_indices.flatten(1)], 1),
        )

    def array(self) -> Array:
        return _array(self.values)

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.values.device)


def _array(tensor: Tensor) -> Array:
    array: Array = tensor.cpu().numpy()  # on a CPU nothing is copied
    return array
