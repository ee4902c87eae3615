"""The warm start: a function of pairs and seed that puts a word next to its translation."""

import numpy as np
import pytest
import torch

from softgaze.data.shards import Shards, write_shards
from softgaze.errors import UsageError
from softgaze.models import build_model
from softgaze.special_tokens import EOS, SPECIAL_TOKENS
from softgaze.training import warm_start as module
from softgaze.training.validation import dev_loss
from softgaze.training.warm_start import (
    UNIGRAM_SCALE,
    Occurrences,
    copy_values,
    count_together,
    leading_directions,
    warm_start,
)

FIRST, WORDS = len(SPECIAL_TOKENS), 20
UNSEEN = FIRST + 2 * WORDS  # one token that never occurs
VOCABULARY = UNSEEN + 1
ARCHS = ["transformer", "conv", "rnn-luong", "rnn-bahdanau", "rnn"]
CPU = torch.device("cpu")


def write_pairs(path, count=300, *, joint=True):
    """Word-for-word translations: word w becomes w + WORDS, or w in a vocabulary of its own."""
    dice = np.random.default_rng(3)
    shift = WORDS if joint else 0
    rows = [FIRST + dice.choice(WORDS, dice.integers(2, 6), replace=False) for _ in range(count)]
    write_shards(path, [(row.tolist(), (row[::-1] + shift).tolist()) for row in rows], VOCABULARY)
    return Shards(path)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("pairs") / "joint")


def build(arch="transformer", seed=0, **options):
    torch.manual_seed(seed)
    width = {"width": 32} if arch != "transformer" else {"width": 32, "feed_forward_width": 32, "heads": 2}
    return build_model(arch, **{"source_vocabulary": VOCABULARY, "dropout": 0.0, **width, **options})


def started(shards, arch="transformer", seed=1, **options):
    model = build(arch, **options)
    warm_start(model, shards, seed)
    return model


def bits(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


# --- the whole model ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
def test_same_pairs_and_seed_give_the_same_start(shards, arch):
    first, second, other = (started(shards, arch, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(bits(first), bits(second))
    assert not torch.equal(bits(first), bits(other))


@pytest.mark.parametrize("arch", [arch for arch in ARCHS if arch != "rnn"])
def test_a_model_with_attention_starts_with_a_lower_loss(shards, arch):
    assert dev_loss(started(shards, arch).eval(), shards, CPU) < dev_loss(build(arch).eval(), shards, CPU) - 0.1


@pytest.mark.parametrize(
    "options",
    [{"residual": "post"}, {"norm": "rms"}, {"key_heads": 1}, {"tie": "none"}, {"feed_forward": "swiglu"}],
    ids=str,
)
def test_every_kind_of_transformer_has_a_start(shards, options):
    model = started(shards, **options).eval()
    assert bool(bits(model).isfinite().all())
    assert np.isfinite(dev_loss(model, shards, CPU))


def test_a_captioner_has_none(shards):
    model = build_model("captioner", source_vocabulary=48, target_vocabulary=9, width=16, layers=1)
    with pytest.raises(UsageError, match="none"):
        warm_start(model, shards, 1)


# --- embeddings ---------------------------------------------------------------------------------------------------


def nearest(queries, table):
    return (torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(table).T).argmax(1)


def test_the_nearest_target_of_a_word_is_its_translation(shards):
    rows = started(shards).target_embedding.weight.detach()[:, :-1]
    source, target = (rows[start : start + WORDS] for start in (FIRST, FIRST + WORDS))
    assert nearest(source, target).tolist() == list(range(WORDS))


def test_so_it_is_with_separate_vocabularies(tmp_path):
    shards = write_pairs(tmp_path / "separate", joint=False)
    model = started(shards, tie="output", target_vocabulary=VOCABULARY - 3)
    source, target = (
        table.weight.detach()[FIRST : FIRST + WORDS, :-1] for table in (model.source_embedding, model.target_embedding)
    )
    assert nearest(source, target).tolist() == list(range(WORDS))
    assert model.output.weight is model.target_embedding.weight


def test_rows_have_the_usual_norm_and_unseen_tokens_are_random(shards):
    rows = started(shards).target_embedding.weight.detach()[:, :-1]
    assert torch.allclose(rows.norm(dim=1), torch.ones(len(rows)))
    assert float((rows[UNSEEN] @ rows[FIRST : FIRST + WORDS].T).abs().max()) < 0.7


def test_the_unigram_dimension_gives_differences_of_log_counts(shards):
    model = started(shards)
    norm = model.decoder_norm.requires_grad_(False)
    offsets = model.output.weight.detach()[:, -1] * norm.bias[-1]
    _, target = shards.gather(np.arange(len(shards)))
    counts = np.bincount(target.tokens, minlength=VOCABULARY) + 0.5
    counts[EOS] = len(shards) + 0.5
    logs = torch.from_numpy(np.log(counts)).float()
    torch.testing.assert_close(offsets - offsets[EOS], logs - logs[EOS], atol=1e-4, rtol=0)
    assert float(norm.weight[-1]) == 0.0
    assert float(norm.bias[-1]) == 1 / UNIGRAM_SCALE


def test_a_large_corpus_is_sampled_evenly(shards, monkeypatch):
    monkeypatch.setattr(module, "MAX_PAIRS", 100)
    occurrences = Occurrences.of(shards, VOCABULARY, 0)
    assert occurrences.num_pairs == 100
    first = {*shards[0][0].tolist(), *shards[0][1].tolist()}
    third = {*shards[3][0].tolist(), *shards[3][1].tolist()}
    assert set(occurrences.token[occurrences.pair == 0].tolist()) == first
    assert set(occurrences.token[occurrences.pair == 1].tolist()) == third


@pytest.mark.parametrize("codes", [1, 50, 2**22])  # one occurrence at a time, some, all
def test_co_occurrences_are_counted_once_per_pair(shards, monkeypatch, codes):
    monkeypatch.setattr(module, "MAX_CODES", codes)
    occurrences = Occurrences.of(shards, VOCABULARY, 0)
    table = np.zeros((len(shards), VOCABULARY))
    for index in range(len(shards)):
        table[index, np.concatenate(shards[index])] = 1
    contexts = np.array([FIRST + 3, FIRST + WORDS, FIRST])
    counted = count_together(occurrences.pair, occurrences.token, contexts, VOCABULARY)
    assert np.array_equal(counted.numpy(), (table.T @ table)[:, contexts])


def test_the_subspace_iteration_finds_the_singular_vectors():
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(size, 4, generator=generator) for size in (30, 20))
    table = left @ torch.diag(torch.tensor([9.0, 5.0, 3.0, 1.0])) @ right.T
    rows = leading_directions(table, 4, generator)
    u, s, _ = torch.linalg.svd(table, full_matrices=False)
    torch.testing.assert_close(rows @ rows.T, u[:, :4] * s[:4] @ u[:, :4].T, atol=1e-3, rtol=1e-3)


# --- attention ----------------------------------------------------------------------------------------------------


def test_attention_to_one_vector_returns_a_multiple_of_it():
    [layer] = build(encoder_layers=1, decoder_layers=1).decoder
    with torch.no_grad():
        copy_values(layer.cross, -0.5)
    memory = torch.randn(2, 1, 32)
    context = layer.cross(torch.randn(2, 3, 32), memory).context
    torch.testing.assert_close(context, -0.5 * memory.expand(2, 3, 32))
