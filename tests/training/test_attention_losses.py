"""Attention losses: their gradients are those of the formulas, and a guided head learns the gold alignment."""

import json

import pytest
import torch
import yaml

from checks import SMALL as CASES
from corpora import corpus, small, write_links
from softgaze.alignment import StatisticalAligner, statistical, train_aligner
from softgaze.bundle import ALIGNER, Bundle
from softgaze.config import TrainingSettings, resolve
from softgaze.data.batching import Batch
from softgaze.data.shards import Shards, write_shards
from softgaze.errors import DataError, UsageError
from softgaze.explain.map_selection import BY_GUIDING
from softgaze.explain.word_spans import assign_words
from softgaze.models import build_model
from softgaze.models.base import AttentionSite, SingleSiteHook, Source
from softgaze.special_tokens import EOS, PAD
from softgaze.training import callbacks
from softgaze.training.alignment_data import AlignmentFiles, LearnedAlignments, token_links
from softgaze.training.attention_losses import (
    DEFAULT_WEIGHT,
    MIN_PROBABILITY,
    SMOOTHING,
    AlignmentLoss,
    CoverageLoss,
    GuidedHead,
)
from softgaze.training.callbacks import read_metrics
from softgaze.training.collate import AlignmentTargets, PaddedBatch, collate
from softgaze.training.dry_run import estimate
from softgaze.training.gradients import GradientAccumulator, TokenCounts, thread_pool
from softgaze.training.loss import summed_loss
from softgaze.training.preprocess import preprocess
from softgaze.training.run_directory import RunDirectory
from softgaze.training.train import alignment_files, complete_settings, train

SMALLER = {"transformer": {"width": 32, "heads": 2, "decoder_layers": 2}, "rnn-luong": {"width": 32}}
CPU = torch.device("cpu")
VOCABULARY = 30
ARCHS = {
    "rnn-luong": {},
    "rnn-luong fed": {"input_feeding": True},
    "rnn-luong local": {"window": "local-p", "window_size": 2},
    "rnn-bahdanau": {},
    "conv": {},
    "transformer": {},
    "transformer shared": {"key_heads": 2},
}


def make_model(name, **options):
    torch.manual_seed(0)
    arch = name.split(" ")[0]
    return (
        build_model(arch, source_vocabulary=VOCABULARY, **{"dropout": 0.0, **ARCHS[name], **options}).double().train()
    )


# --- gradients ----------------------------------------------------------------------------------------------------


def random_pairs(count=11):
    """Return token ids of both sides and token links; every third pair has no links."""
    generator = torch.Generator().manual_seed(3)
    rows = []
    for index in range(count):
        sizes = 2 + index % 5, 1 + index % 7
        source, target = (torch.randint(4, VOCABULARY, (size,), generator=generator).tolist() for size in sizes)
        linked = torch.randint(0, 2, sizes, generator=generator).bool() if index % 3 else torch.zeros(sizes)
        links = frozenset(map(tuple, linked.nonzero().tolist()))
        words = [position // 2 for position in range(sizes[0])]
        rows.append((source, target, token_links(links, words, range(sizes[1]))))
    return rows


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    path = tmp_path_factory.mktemp("shards") / "new"
    write_shards(path, random_pairs(), VOCABULARY, 99)
    return Shards(path)


def first_rows(rows):
    return Batch(torch.arange(rows).numpy(), 0)


def reference_objective(model, shards, rows, guided):
    """Compute the formula pair by pair: the mean loss over tokens, and over aligned target tokens."""
    losses, alignment_losses = [], []
    for index in range(rows):
        batch = collate(shards, Batch(torch.tensor([index]).numpy(), 0), CPU)
        recorded = []

        def record(site, weights, values, recorded=recorded):
            if (site.kind, site.layer) == ("cross", guided.layer):
                recorded.append(weights)
            return weights

        logits = model.output(model.decode(model.encode(batch.source), batch.decoder_input, record))[0]
        losses += torch.nn.functional.cross_entropy(logits, batch.labels[0], reduction="none", label_smoothing=0.1)
        weights = torch.cat(recorded, 2)[0, guided.head]  # (T, S)
        gold = torch.zeros_like(weights)
        for target, source, divisor in shards.links(index).tolist():
            gold[target + (guided.rows == "reading"), source] += 1 / divisor
        aligned = gold.sum(1) > 0
        assert torch.allclose(gold.sum(1)[aligned], torch.ones(()).double())
        in_window = (weights > MIN_PROBABILITY).double()
        gold = (1 - SMOOTHING) * gold + SMOOTHING * in_window / in_window.sum(1, keepdim=True)
        alignment_losses += -(gold * weights.clamp(min=MIN_PROBABILITY).log()).sum(1)[aligned]
    return torch.stack(losses).mean() + guided.weight * torch.stack(alignment_losses).mean()


def compute(model, shards, rows, guided, *, fast=True, in_parallel=False):
    """Return the summed losses, the token counts and the gradients of the first rows."""
    settings = TrainingSettings(seed=1, label_smoothing=0.1, fast=fast, precision="float32")
    accumulator = GradientAccumulator(model, settings, CPU, guided)
    accumulator.pool = thread_pool(2, 1) if fast else None
    batch = first_rows(rows)
    parts = [collate(shards, part, CPU) for part, _ in accumulator.split(batch, shards.lengths(batch.pairs))]
    accumulator.pool = accumulator.pool if in_parallel else None
    counts = TokenCounts.of(parts)
    losses = accumulator.add(parts, counts, 7, 0)
    gradients = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    return losses, counts, gradients


@pytest.mark.parametrize("rows", ["predicting", "reading"])
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("arch", ARCHS)
def test_the_gradient_is_that_of_the_formula(shards, arch, fast, rows):
    model = make_model(arch)
    layers, heads = model.cross_attention_shape
    guided = GuidedHead(layers - 1, heads - 1, 0.3, rows)
    expected = reference_objective(model, shards, 11, guided)
    reference = torch.autograd.grad(expected, list(model.parameters()), allow_unused=True)
    losses, counts, gradients = compute(model, shards, 11, guided, fast=fast)
    total = losses.tokens / counts.tokens + guided.weight * losses.alignment / counts.aligned
    assert total == pytest.approx(float(expected.detach()))
    for one, other in zip(gradients, reference, strict=True):
        torch.testing.assert_close(one, other)


def test_pairs_without_links_have_no_alignment_loss(shards):
    model = make_model("transformer")
    losses, counts, gradients = compute(model, shards, 1, GuidedHead(0, 0, 5.0))  # the first pair has no links
    _, _, plain = compute(model, shards, 1, None)
    assert (losses.alignment, counts.aligned) == (0.0, 0)
    assert all(torch.equal(one, other) for one, other in zip(gradients, plain, strict=True))


def test_in_parallel_or_in_sequence_the_bits_are_the_same(shards):
    torch.set_num_threads(1)
    model = make_model("transformer", dropout=0.3, attention_dropout=0.2)
    runs = [compute(model, shards, 11, GuidedHead(1, 0, 0.5), in_parallel=each)[2] for each in (False, True, True)]
    for again in runs[1:]:
        assert all(torch.equal(one, other) for one, other in zip(runs[0], again, strict=True))


def test_the_loss_sees_the_weights_before_dropout(shards):
    model, alignment = make_model("transformer", attention_dropout=0.5), AlignmentLoss(0)
    summed_loss(model, collate(shards, first_rows(11), CPU), 0.0, SingleSiteHook("cross", 1, alignment))
    [weights] = alignment.weights
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_link_without_attention_still_learns(dtype):
    """Attention that is sure of another word must not forget a link for good."""
    share = SMOOTHING / 3
    assert gradient_of([0.0, 60.0, 1.0], dtype) == pytest.approx([2 * share - 1, 1 - share, -share], abs=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_scores_of_a_sure_link_do_not_grow_for_ever(dtype):
    linked, *others = gradient_of([40.0, 0.0, 1.0], dtype)
    assert linked == pytest.approx(SMOOTHING * 2 / 3, abs=0.01)  # descent lowers it
    assert all(other < -0.01 for other in others)


def gradient_of(scores, dtype):
    """Return the gradient of the scores of one row, whose first position is linked."""
    scores = torch.tensor([[[scores]]], dtype=dtype, requires_grad=True)
    loss = AlignmentLoss(0)
    loss(AttentionSite("cross", 0, 0), scores.softmax(-1), scores)
    first = torch.zeros(1, dtype=torch.long)
    loss.summed(AlignmentTargets((first, first, first), torch.ones(1), 1)).backward()
    return scores.grad.flatten().tolist()


def test_a_row_without_attention_has_a_finite_loss():
    weights = torch.zeros(1, 1, 1, 3, requires_grad=True)
    loss, first = AlignmentLoss(0), torch.zeros(1, dtype=torch.long)
    loss(AttentionSite("cross", 0, 0), weights * 1.0, weights)
    summed = loss.summed(AlignmentTargets((first, first, first), torch.ones(1), 1))
    summed.backward()
    assert summed.isfinite()
    assert weights.grad.isfinite().all()


def test_a_gold_position_outside_the_window_has_a_finite_loss(shards):
    model = make_model("rnn-luong local", window_size=1)
    losses, _, gradients = compute(model, shards, 11, GuidedHead(0, 0, 1.0))
    assert torch.tensor(losses.alignment).isfinite()
    assert all(bool(gradient.isfinite().all()) for gradient in gradients if gradient is not None)


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong"])
def test_the_guided_head_and_no_other_learns_the_alignment(tmp_path, arch):
    """Every target token is aligned to the first source token, which no translation would teach."""
    rows = []
    for source, target, _ in random_pairs():
        links = frozenset((0, position) for position in range(len(target)))
        rows.append((source, target, token_links(links, range(len(source)), range(len(target)))))
    write_shards(tmp_path / "new", rows, VOCABULARY, 99)
    batch = collate(Shards(tmp_path / "new"), first_rows(11), CPU)
    model = make_model(arch, **SMALLER[arch])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    accumulator = GradientAccumulator(
        model, TrainingSettings(label_smoothing=0.1, precision="float32"), CPU, GuidedHead(0, 0, 1.0)
    )
    for step in range(60):
        optimizer.zero_grad()
        accumulator.add([batch], TokenCounts.of([batch]), step)
        optimizer.step()
    model.eval()
    weights = []
    for head in range(model.cross_attention_shape[1]):
        recorder = AlignmentLoss(head)
        summed_loss(model, batch, 0.0, SingleSiteHook("cross", 0, recorder))
        weights.append(float(recorder.weights[0][..., 0][batch.labels > EOS].detach().mean()))
    assert weights[0] > 0.8
    assert all(weight < 0.6 for weight in weights[1:])


# --- coverage -----------------------------------------------------------------------------------------------------


def two_rows(source=None):
    source = source or Source(torch.full((2, 4), 5), torch.tensor([4, 2]))
    return PaddedBatch(source, torch.full((2, 3), 2), torch.tensor([[5, 6, 3], [7, 3, PAD]]), 5)


def test_coverage_is_the_formula_of_the_paper_for_steps_at_once_or_one_by_one():
    weights = torch.rand(2, 2, 3, 4)  # (B, H, T, S)
    expected = 0.0
    for row, (steps, positions) in enumerate(((3, 4), (2, 2))):
        coverage = weights[row].mean(0)[:steps, :positions].sum(0)
        expected += float(((1 - coverage) ** 2).sum())
    at_once, one_by_one = CoverageLoss(), CoverageLoss()
    assert at_once(AttentionSite("cross", 0, 0), weights, weights) is weights
    at_once(AttentionSite("encoder", 0, 0), weights[:, :, :1], weights)
    for step in range(3):
        one_by_one(AttentionSite("cross", 0, step), weights[:, :, step : step + 1], weights)
    assert float(at_once.summed(two_rows())) == pytest.approx(expected)
    assert float(one_by_one.summed(two_rows())) == pytest.approx(expected)


def test_coverage_changes_the_gradient_and_not_the_reported_loss():
    case = CASES["captioner"]
    batch, model = two_rows(case.batch([4, 2], 3).source), case.make().train()
    results = []
    for weight in (None, 1.0):
        settings = resolve(small(training={"doubly_stochastic": weight, "fast": False})).training
        accumulator = GradientAccumulator(model, settings, CPU)
        results.append(accumulator.losses_and_gradients(batch, TokenCounts(5, 0), 1))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    changes = [
        (one - other).abs().max() for one, other in zip(results[0][1], results[1][1], strict=True) if one is not None
    ]
    assert max(changes) > 1e-6


def test_coverage_is_that_of_the_first_pass_of_r_drop():
    case = CASES["captioner"]
    batch, model = two_rows(case.batch([4, 2], 3).source), case.make().eval()  # without dropout, passes are equal
    results = []
    for r_drop in (0.0, 5.0):
        training = {"doubly_stochastic": 1.0, "r_drop": r_drop, "precision": "float32", "fast": False}
        settings = resolve(small(training=training)).training
        results.append(GradientAccumulator(model, settings, CPU).losses_and_gradients(batch, TokenCounts(5, 0), 1))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    for one, other in zip(*(gradients for _, gradients in results), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


# --- settings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "settings", "expected"),
    [
        ("transformer", {}, (2, 0, DEFAULT_WEIGHT, "reading")),
        ("transformer", {"guided_layer": 3, "guided_head": 1, "guided_weight": 2}, (3, 1, 2.0, "reading")),
        ("transformer", {"guided_layer": 0, "guided_rows": "predicting"}, (0, 0, DEFAULT_WEIGHT, "predicting")),
        ("conv", {}, (2, 0, DEFAULT_WEIGHT, "predicting")),
        ("rnn-luong", {}, (0, 0, DEFAULT_WEIGHT, "predicting")),
        ("rnn-bahdanau", {}, (0, 0, DEFAULT_WEIGHT, "predicting")),
    ],
)
def test_the_penultimate_layer_is_the_default_and_a_lone_head_predicts(arch, settings, expected):
    assert GuidedHead.choose(TrainingSettings(**settings), build_model(arch, source_vocabulary=9)) == expected


def test_a_model_of_one_layer_guides_that_layer():
    model = build_model("transformer", source_vocabulary=9, decoder_layers=1)
    assert GuidedHead.choose(TrainingSettings(), model) == (0, 0, DEFAULT_WEIGHT, "reading")


@pytest.fixture
def text(tmp_path):
    return corpus(tmp_path)


@pytest.fixture
def links(text):
    return write_links(text.paths[0])


def complete_and_align(config, text, guided):
    run = RunDirectory(text.paths[0].parent / "new")
    return alignment_files(complete_settings(config, text, run, CPU, guided=guided)[0], text, guided)


def rnn(**sections):
    return small("rnn-luong", model={"arch": "rnn"}, **sections)


@pytest.mark.parametrize(
    ("config", "guided", "message"),
    [
        (rnn(), True, "--guided .* rnn has none"),
        (rnn(validation={"attention_history": True}), False, "--attention-history .* rnn has none"),
        (rnn(training={"doubly_stochastic": 1.0}), False, "doubly_stochastic .* rnn has none"),
        (small(training={"guided_weight": 0.5}), False, "training.guided_weight .* --guided"),
        (small(training={"guided_head": 9}), True, "guided_head is 9; .* 0 to 1"),
        (small(training={"guided_layer": 1}), True, "guided_layer is 1; .* 0 to 0"),
        (small(training={"doubly_stochastic": 1.0}), True, "doubly_stochastic and --guided"),
    ],
)
def test_impossible_settings_are_errors_before_the_text_is_read(text, links, config, guided, message):
    with pytest.raises(UsageError, match=message) as caught:
        complete_and_align(config, text, [links] if guided else [])
    assert "\n" not in str(caught.value)


# --- runs ---------------------------------------------------------------------------------------------------------


def decoded_words(data, index):
    """Return the word of each token of a training pair, and its token links."""
    ids = [side.tolist() for side in data.train[index]]
    tokenizers = data.tokenizers.source, data.tokenizers.target
    texts = [tokenizer.decode(side) for tokenizer, side in zip(tokenizers, ids, strict=True)]
    words = [
        assign_words(text, tokenizer.pieces(side))[0]
        for text, tokenizer, side in zip(texts, tokenizers, ids, strict=True)
    ]
    return words, data.train.links(index).tolist()


@pytest.mark.parametrize("held_out", [True, False])
def test_links_stay_with_their_pairs(tmp_path, text, links, held_out):
    """Each word is aligned to the one at its position, so any shift of lines would show."""
    config = small(data={"held_out": 5, "max_length": 6})
    dev = None if held_out else corpus(tmp_path, name="dev", pairs=5)
    data = preprocess(tmp_path / "encoded", text, dev, config.data, 1, guided=AlignmentFiles(text, (links,)))
    assert data.facts["linked"] == data.facts["pairs"] == 60 - 5 * held_out - data.facts["left_out"]
    assert data.facts["left_out"]
    plain = preprocess(tmp_path / "plain", text, dev, config.data, 1)
    assert plain.dev_text == data.dev_text
    for index in range(len(data.train)):
        assert [side.tolist() for side in plain.train[index]] == [side.tolist() for side in data.train[index]]
        (source, target), triples = decoded_words(data, index)
        assert {position for position, _, _ in triples} == {*range(len(target))}
        assert all(source[other] == target[position] for position, other, _ in triples)


def test_a_link_outside_the_pair_leaves_no_run_behind(tmp_path, text, links):
    links.write_text(links.read_text().replace("1-1", "1-99", 1))
    with pytest.raises(DataError, match=r"line 1: .*1-99"):
        train(small(), text, None, tmp_path / "run", guided=[links])
    assert not (tmp_path / "run").exists()


def test_files_without_links_are_an_error(tmp_path, text, links):
    links.write_text("\n" * 60)
    with pytest.raises(DataError, match="no training pair has a sure link"):
        train(small(), text, None, tmp_path / "run", guided=[links])


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, text, links):
    config = small(training={"schedule": "constant"})
    train(config, text, None, tmp_path / "straight", guided=[links])
    for steps in (3, 8):
        shorter = config.model_copy(update={"budget": config.budget.model_copy(update={"steps": steps})})
        train(shorter, text, None, tmp_path / "resumed", guided=[links])
    last = [max((tmp_path / run / "checkpoints").glob("step-*")) for run in ("straight", "resumed")]
    assert (last[0] / "weights.safetensors").read_bytes() == (last[1] / "weights.safetensors").read_bytes()


@pytest.mark.parametrize("change", ["other links", "no links"])
def test_a_run_does_not_resume_with_other_links(tmp_path, text, links, change):
    train(small(budget={"steps": 1}), text, None, tmp_path / "run", guided=[links])
    if change == "other links":
        links.write_text(links.read_text().replace("1-1", "1-0"))
    error, message = (DataError, "--guided files") if change == "other links" else (UsageError, "--guided LINKS")
    with pytest.raises(error, match=message):
        train(small(training={"guided": None}), text, None, tmp_path / "run", guided=[links] * (error is DataError))


def test_metrics_facts_and_estimate_report_guided_runs_only(tmp_path, text, links, monkeypatch):
    monkeypatch.setattr(callbacks, "LOG_SECONDS", 1e-9)
    for name, guided in (("guided", [links]), ("plain", [])):
        train(small(), text, None, tmp_path / name, guided=guided)
        lines = read_metrics(tmp_path / name / "metrics.jsonl")
        assert all(("alignment_loss" in line) == bool(guided) for line in lines if line["kind"] == "update")
        assert ("guided" in Bundle.open(tmp_path / name).facts) == bool(guided)
        assert ("guided  " in estimate(small(), text, None, "cpu", guided)) == bool(guided)
    facts = Bundle.open(tmp_path / "guided").facts["guided"]
    assert (facts["layer"], facts["head"], facts["weight"], facts["pairs"]) == (0, 0, DEFAULT_WEIGHT, 54)
    json.dumps(facts)
    assert yaml.safe_load((tmp_path / "guided" / "training.yaml").read_text())["training"]["guided_weight"] is None


# --- learned alignments -------------------------------------------------------------------------------------------


def test_learned_links_are_those_of_a_file_with_the_same_links(tmp_path, text):
    aligner = train_aligner(text)
    (tmp_path / "links").write_text("".join(f"{links}\n" for links in aligner.align(list(text))))
    config = small(data={"held_out": 5})
    sources = LearnedAlignments(text), AlignmentFiles(text, (tmp_path / "links",))
    learned, given = (
        preprocess(tmp_path / f"encoded-{name}", text, None, config.data, 1, guided=alignments)
        for name, alignments in zip(("learned", "given"), sources, strict=True)
    )
    assert learned.facts["linked"] == given.facts["linked"] > 0
    for index in range(len(given.train)):
        assert learned.train.links(index).tolist() == given.train.links(index).tolist()
    assert learned.aligner == aligner.to_bytes()
    assert given.aligner is None


def test_a_run_that_learns_its_links_keeps_the_aligner_and_shows_the_guided_head(tmp_path, text):
    config = small(training={"guided": "auto", "guided_head": 1}, budget={"steps": 4})
    train(config, text, None, tmp_path / "run")
    bundle = Bundle.open(tmp_path / "run")
    assert StatisticalAligner.load(bundle.path / ALIGNER).align(list(text)) == train_aligner(text).align(list(text))
    selected = bundle.facts["attention"]
    assert (selected["layer"], selected["head"], selected["by"]) == (0, 1, BY_GUIDING)
    longer = config.model_copy(update={"budget": config.budget.model_copy(update={"steps": 6})})
    open_settings = longer.model_copy(update={"training": longer.training.model_copy(update={"guided": None})})
    assert train(open_settings, text, None, tmp_path / "run")["step"] == 6  # a resumed run keeps its choice


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (small(training={"guided": None}), "auto"),
        (small(training={"guided": None, "doubly_stochastic": 1.0}), "none"),
        (small("rnn-luong", training={"guided": None}), "none"),
        (small("rnn-luong", training={"guided": "auto"}), "auto"),
    ],
)
def test_transformers_learn_alignments_by_default(config, expected):
    assert resolve(config).training.guided == expected
    assert resolve(config, trained=True).training.guided == (config.training.guided or "none")


def test_a_text_without_links_trains_without_a_guided_head(tmp_path, text, monkeypatch):
    monkeypatch.setattr(statistical, "MAX_PARTS", 0)  # of a sentence that is aligned
    train(small(training={"guided": "auto"}, budget={"steps": 1}), text, None, tmp_path / "run")
    assert "guided" not in Bundle.open(tmp_path / "run").facts


def test_a_setting_that_needs_files_asks_for_them(tmp_path, text):
    with pytest.raises(UsageError, match="--guided LINKS"):
        train(small(training={"guided": "files"}), text, None, tmp_path / "run")
