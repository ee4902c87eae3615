"""Validation: the mean loss over tokens, translations in order, which scores are better, and the attention history."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from bundles import Copier, lines, tokenizer
from corpora import small
from runs import EventLog, complete, preprocessed, spoil_weights, trainer
from softgaze.bundle import Tokenizers
from softgaze.data.shards import Shards, write_shards
from softgaze.explain.map_selection import SENTENCE_LENGTHS
from softgaze.explain.serialization import HISTORY_FILE, read_history
from softgaze.models import Source, build_model
from softgaze.special_tokens import BOS, EOS
from softgaze.training import trainer as trainer_module
from softgaze.training import validation
from softgaze.training.signals import StopRequest
from softgaze.training.validation import (
    AttentionHistory,
    choose_pair,
    dev_loss,
    metric_value,
    translate_greedy,
    validate,
)

CPU = torch.device("cpu")
PAIRS = [([5, 6, 7], [8, 9]), ([5], [9, 8, 7, 6]), ([4, 4], [5]), ([7, 8, 9, 10, 11], [12])]


@pytest.mark.parametrize("tokens", [1, 8, 4096])  # one pair per batch, some, all
def test_the_dev_loss_is_the_mean_over_tokens(tmp_path, monkeypatch, tokens):
    monkeypatch.setattr(validation, "BATCH_TOKENS", tokens)
    write_shards(tmp_path / "dev", PAIRS, 20)
    torch.manual_seed(0)
    model = build_model("rnn-luong", source_vocabulary=20, width=8).double().eval()
    losses = []
    for source, target in PAIRS:
        logits = model(Source.of([[*source, EOS]]), torch.tensor([[BOS, *target]]))
        losses += F.cross_entropy(logits[0], torch.tensor([*target, EOS]), reduction="none").tolist()
    loss = dev_loss(model, Shards(tmp_path / "dev"), CPU)
    assert loss == pytest.approx(sum(losses) / len(losses), abs=1e-10)
    first = sum(len(target) + 1 for _, target in PAIRS[:2])
    loss = dev_loss(model, Shards(tmp_path / "dev"), CPU, limit=2)
    assert loss == pytest.approx(sum(losses[:first]) / first, abs=1e-10)


@pytest.mark.parametrize(("tokens", "batches"), [(1, 12), (40, None), (4096, 1)])
def test_translations_keep_their_order_for_every_batch_size(monkeypatch, tokens, batches):
    monkeypatch.setattr(validation, "BATCH_TOKENS", tokens)
    texts, model = lines("en", 12), Copier(len(tokenizer()))
    assert translate_greedy(model, Tokenizers(tokenizer(), tokenizer()), texts, CPU) == texts
    assert sum(rows for rows, _ in model.batches) == 12
    assert batches in (None, len(model.batches))
    assert all(rows == 1 or rows * longest <= tokens for rows, longest in model.batches)


@pytest.mark.parametrize("positions", [5, 12])  # fewer than a source has, and fewer than twice as many
def test_learned_positions_are_never_exceeded(positions):
    torch.manual_seed(0)
    sizes = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    options = {"positions": "learned", "max_length": positions, **sizes}
    model = build_model("transformer", source_vocabulary=len(tokenizer()), **options).eval()
    texts = [f"{line} {line} {line}" for line in lines("en", 3)]
    assert all(len(ids) >= 5 for ids in tokenizer().encode(texts))
    with torch.no_grad():
        assert len(translate_greedy(model, Tokenizers(tokenizer(), tokenizer()), texts, CPU)) == 3


@pytest.mark.parametrize("training", [True, False])
def test_validation_restores_the_mode_and_repeats_its_scores(tmp_path, training):
    model = trainer(tmp_path / "run").model.train(training)
    settings = small(validation={"sentences": 3, "samples": 2}).validation
    first, second = (validate(model, preprocessed(), settings, CPU) for _ in range(2))
    assert first == second  # no dropout
    assert model.training is training
    scores, samples = first
    assert {*scores} == {"loss", "bleu", "chrf"}
    assert [sample[:2] for sample in samples] == [tuple(pair) for pair in preprocessed().dev_text[:2]]


finite = st.floats(0, 100)


@given(finite, finite, finite)
def test_the_loss_breaks_a_tie(bleu, one, other):
    values = [metric_value({"loss": loss, "bleu": bleu, "chrf": 0.0}, "bleu") for loss in (one, other)]
    if one + 1e-6 < other:
        assert values[0] > values[1]


@given(st.sampled_from(["bleu", "chrf"]), finite, finite, st.floats(0, 50), st.floats(0, 50))
def test_a_visible_difference_of_scores_outweighs_any_loss(metric, one, other, loss, other_loss):
    pairs = ((one, loss), (other, other_loss))
    values = [metric_value({"loss": loss, metric: score}, metric) for score, loss in pairs]
    if one > other + 0.1:
        assert values[0] > values[1]


@given(finite, finite)
def test_a_lower_loss_is_better(one, other):
    values = [metric_value({"loss": loss, "bleu": 0.0}, "loss") for loss in (one, other)]
    assert (values[0] > values[1]) == (one < other)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "loss"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_the_worst(metric, bad):
    scores = {"loss": 1.0, "bleu": 0.0, "chrf": 0.0}
    for name in {"loss", metric}:
        assert metric_value(scores | {name: bad}, metric) == -math.inf < metric_value(scores, metric)


# --- attention history --------------------------------------------------------------------------------------------


def with_history(arch="transformer", **sections):
    return small(arch, **{"validation": {"attention_history": True}, **sections})


def same_history(one, other):
    for first, second in zip(read_history(one), read_history(other), strict=True):
        assert (first.step, first.scores, first.text) == (second.step, second.scores, second.text)
        weights = [snapshot.attention.recording.parts[0].cross.weights for snapshot in (first, second)]
        assert np.array_equal(*weights)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """An undisturbed run of ten updates: it saves at 0, 4, 8, at its end, and after its last validation."""
    path = tmp_path_factory.mktemp("history") / "straight"
    complete(trainer(path, with_history(budget={"steps": 10})))
    return path


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong"])
def test_a_history_does_not_change_the_weights(tmp_path, arch):
    complete(trainer(tmp_path / "plain", small(arch)))
    complete(trainer(tmp_path / "recorded", with_history(arch)))
    for name in ("checkpoints/step-00000008/weights.safetensors", "model.safetensors"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "recorded" / name).read_bytes()
    assert not (tmp_path / "plain" / HISTORY_FILE).exists()


def test_there_is_a_snapshot_before_the_first_update_and_at_each_validation(straight):
    snapshots = read_history(straight)
    assert [snapshot.step for snapshot in snapshots] == [0, 4, 8, 10]
    assert [set(snapshot.scores) for snapshot in snapshots] == [set()] + [{"loss", "bleu", "chrf"}] * 3
    minutes = [snapshot.minutes for snapshot in snapshots]
    assert minutes == sorted(minutes)
    assert {snapshot.attention.recording.kinds for snapshot in snapshots} == {("cross",)}


def test_all_snapshots_show_the_same_pair(straight):
    recordings = [snapshot.attention.recording for snapshot in read_history(straight)]
    [(source, target)] = {(recording.source.words, recording.target.words) for recording in recordings}
    assert (" ".join(source), " ".join(target)) in preprocessed().dev_text
    assert len(source) in SENTENCE_LENGTHS


@pytest.mark.parametrize("training", [True, False])
def test_a_snapshot_leaves_the_model_as_it_was(tmp_path, training):
    model = trainer(tmp_path / "run").model.train(training)
    history = AttentionHistory.for_run(tmp_path / HISTORY_FILE, preprocessed(), CPU)
    history.append(model, 3, 60.0, {"loss": 1.23456})
    assert model.training is training
    assert all(parameter.grad is None for parameter in model.parameters())
    [snapshot] = read_history(tmp_path / HISTORY_FILE)
    assert (snapshot.step, snapshot.minutes, snapshot.scores) == (3, 1.0, {"loss": 1.2346})


GOOD, SHORT, LONG = ("a b c d e f g h", "x y"), ("a b c", "x"), (" ".join("ab" * 20), "x")


@pytest.mark.parametrize(
    ("pairs", "chosen"),
    [
        ([SHORT, LONG, GOOD], GOOD),
        ([LONG, SHORT], SHORT),
        ([LONG], LONG),
        ([("", "x"), ("a", ""), (GOOD[0], " ")], None),
        ([], None),
    ],
)
def test_a_pair_of_readable_length_is_preferred(pairs, chosen):
    assert choose_pair(pairs) == chosen


def test_without_a_usable_pair_there_is_a_message_and_no_history(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "choose_pair", lambda pairs: None)
    run = trainer(tmp_path / "run", with_history(), log := EventLog())
    run.resume()
    assert run.history is None
    assert "no attention history" in log.messages[0]
    assert not (tmp_path / "run" / HISTORY_FILE).exists()


@pytest.mark.parametrize(("save", "cut"), [(1, 0), (2, 0), (3, 7), (4, 0), (5, 0), (5, 7)])
def test_killed_before_a_save_every_snapshot_is_there_once_and_complete(tmp_path, monkeypatch, straight, save, cut):
    original, saves = trainer_module.save_checkpoint, iter(range(1, save))

    def save_or_die(*arguments):
        if next(saves, None) is None:
            raise KeyboardInterrupt
        return original(*arguments)

    config = with_history(budget={"steps": 10})
    with monkeypatch.context() as patch:
        patch.setattr(trainer_module, "save_checkpoint", save_or_die)
        with pytest.raises(KeyboardInterrupt):
            complete(trainer(tmp_path / "killed", config))
    if cut:
        path = tmp_path / "killed" / HISTORY_FILE
        path.write_bytes(path.read_bytes()[:-cut])
    complete(trainer(tmp_path / "killed", config))
    same_history(straight, tmp_path / "killed")


def test_a_stopped_and_resumed_run_has_one_history(tmp_path, straight):
    config = with_history(budget={"steps": 10})
    first = trainer(tmp_path / "stopped", config)
    first.resume()
    stop = StopRequest()
    stop.handle(15)
    assert not first.train(stop)
    complete(trainer(tmp_path / "stopped", config))
    same_history(straight, tmp_path / "stopped")


@pytest.mark.parametrize("step", [2, 8])
def test_a_rollback_drops_the_snapshots_it_repeats(tmp_path, monkeypatch, step):
    spoiled = spoil_weights(monkeypatch, step)
    complete(trainer(tmp_path / "run", with_history()))
    assert spoiled
    assert [snapshot.step for snapshot in read_history(tmp_path / "run")] == [0, 4, 8]
