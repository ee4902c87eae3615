"""Guided attention: its gradient is that of the plain formula, and a guided head looks where the links say."""

import json

import pytest
import torch
import yaml

from corpora import corpus, small, write_corpus, write_links
from softgaze.bundle import Bundle
from softgaze.config import TrainingSettings, resolve
from softgaze.data.batches import Batch
from softgaze.data.corpus import Corpus
from softgaze.data.shards import Shards, write_shards
from softgaze.devices import using_threads
from softgaze.errors import DataError, UsageError
from softgaze.gaze.words import words_of
from softgaze.models import build
from softgaze.models.base import OneWatch
from softgaze.symbols import END
from softgaze.training import journal, train
from softgaze.training.gradients import Amount, Gradients
from softgaze.training.guided import TINY, WEIGHT, Guidance, Guide, looks_of, small_likeness
from softgaze.training.journal import read_journal
from softgaze.training.launch import link_files
from softgaze.training.links import LinkFiles, piece_links
from softgaze.training.loss import collate, summed_loss
from softgaze.training.prepare import prepare
from softgaze.training.rehearsal import rehearse

SMALLER = {"transformer": {"width": 32, "heads": 2, "decoder_layers": 2}, "rnn-luong": {"width": 32}}
CPU = torch.device("cpu")
VOCABULARY = 30
ARCHS = {
    "rnn-luong": {},
    "rnn-luong fed": {"input_feeding": True},
    "rnn-luong local": {"window": "local-p", "reach": 2},
    "rnn-bahdanau": {},
    "conv": {},
    "transformer": {},
    "transformer shared": {"key_heads": 2},
}


def made(name, **options):
    torch.manual_seed(0)
    arch = name.split(" ")[0]
    return build(arch, source_vocabulary=VOCABULARY, **{"dropout": 0.0, **ARCHS[name], **options}).double().train()


# --- the gradient -----------------------------------------------------------------------------------------------


def random_pairs(count=11):
    """Ids of both sides, and links of pieces; every third pair has none."""
    dice = torch.Generator().manual_seed(3)
    rows = []
    for number in range(count):
        sizes = 2 + number % 5, 1 + number % 7
        source, target = (torch.randint(4, VOCABULARY, (size,), generator=dice).tolist() for size in sizes)
        linked = torch.randint(0, 2, sizes, generator=dice).bool() if number % 3 else torch.zeros(sizes)
        links = frozenset(map(tuple, linked.nonzero().tolist()))
        rows.append((source, target, piece_links(links, [place // 2 for place in range(sizes[0])], range(sizes[1]))))
    return rows


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    place = tmp_path_factory.mktemp("shards") / "new"
    write_shards(place, random_pairs(), VOCABULARY, 99)
    return Shards(place)


def batch_of(rows):
    return Batch(torch.arange(rows).numpy(), 0)


def plain_objective(model, shards, rows, guidance):
    """The formula, pair by pair: the mean loss of tokens, and of target pieces that have links."""
    losses, links = [], []
    for number in range(rows):
        pairs = collate(shards, Batch(torch.tensor([number]).numpy(), 0), CPU)
        seen = []
        memory = model.encode(pairs.source)

        def keep(place, weights, values, seen=seen):
            if (place.kind, place.layer) == ("cross", guidance.layer):
                seen.append(weights)
            return weights

        logits = model.output(model.decode(memory, pairs.target, keep))[0]
        losses += torch.nn.functional.cross_entropy(logits, pairs.wanted[0], reduction="none", label_smoothing=0.1)
        weights = torch.cat(seen, 2)[0, guidance.head]  # (T, S)
        wanted = torch.zeros_like(weights)
        for target, source, parts in shards.links(number).tolist():
            wanted[target, source] += 1 / parts
        rows_with_links = wanted.sum(1) > 0
        assert torch.allclose(wanted.sum(1)[rows_with_links], torch.ones(()).double())
        links += -(wanted * weights.clamp(min=TINY).log()).sum(1)[rows_with_links]
    mean = torch.stack(losses).mean()
    return mean + guidance.weight * torch.stack(links).mean() if links else mean


def guided_gradients(model, shards, rows, guidance, *, fast=True, threads=2, **settings):
    adder = Gradients(model, TrainingSettings(seed=1, fast=fast, **settings), CPU, guidance)
    parts = [collate(shards, part, CPU) for part in adder.divide(batch_of(rows), shards.lengths(batch_of(rows).pairs))]
    amount = Amount.of(parts)
    with using_threads(threads):
        losses = adder.add(parts, amount, 7, 0)
    found = [each.grad for each in model.parameters()]
    model.zero_grad()
    return losses, amount, found


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("arch", ARCHS)
def test_the_gradient_is_that_of_the_plain_formula(shards, arch, fast):
    model = made(arch)
    layers, heads = looks_of(model)
    guidance = Guidance(layers - 1, heads - 1, 0.3)
    expected = plain_objective(model, shards, 11, guidance)
    wanted = torch.autograd.grad(expected, list(model.parameters()), allow_unused=True)
    losses, amount, found = guided_gradients(model, shards, 11, guidance, fast=fast)
    total = losses.tokens / amount.tokens + guidance.weight * losses.links / amount.pieces
    assert total == pytest.approx(float(expected.detach()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_pairs_without_links_add_nothing(shards):
    """The first pair has none: its gradient is that of a training without links."""
    model = made("transformer")
    losses, amount, found = guided_gradients(model, shards, 1, Guidance(0, 0, 5.0))
    _, _, plain = guided_gradients(model, shards, 1, None)
    assert (losses.links, amount.pieces) == (0.0, 0)
    assert all(torch.equal(one, other) for one, other in zip(found, plain, strict=True))


def test_side_by_side_or_in_turn_the_bits_are_the_same(shards):
    model = made("transformer", dropout=0.3, attention_dropout=0.2)
    drawn = [guided_gradients(model, shards, 11, Guidance(1, 0, 0.5), threads=each)[2] for each in (1, 2, 2)]
    for again in drawn[1:]:
        assert all(torch.equal(one, other) for one, other in zip(drawn[0], again, strict=True))


def test_weights_are_guided_before_dropout(shards):
    model, guide = made("transformer", attention_dropout=0.5), Guide(0)
    summed_loss(model, collate(shards, batch_of(11), CPU), 0.0, OneWatch("cross", 1, guide))
    [weights] = guide.rows
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))


def test_a_place_that_may_not_be_seen_costs_a_finite_price(shards):
    model = made("rnn-luong local", reach=1)
    losses, _, found = guided_gradients(model, shards, 11, Guidance(0, 0, 1.0))
    assert torch.tensor(losses.links).isfinite()
    assert all(bool(each.isfinite().all()) for each in found if each is not None)


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong"])
def test_the_guided_head_learns_to_look_where_the_links_say_and_no_other(tmp_path, arch):
    """Links that no translation would teach: every piece looks at the first of the source."""
    rows = [
        (source, target, piece_links(first_only(target), range(99), range(99))) for source, target, _ in random_pairs()
    ]
    write_shards(tmp_path / "new", rows, VOCABULARY, 99)
    pairs = collate(Shards(tmp_path / "new"), batch_of(11), CPU)
    model, guidance = made(arch, **SMALLER[arch]), Guidance(0, 0, 1.0)
    optimiser, adder = torch.optim.Adam(model.parameters(), 1e-2), Gradients(model, TrainingSettings(), CPU, guidance)
    for step in range(60):
        optimiser.zero_grad()
        adder.add([pairs], Amount.of([pairs]), step)
        optimiser.step()
    model.eval()
    guides = [Guide(head) for head in range(looks_of(model)[1])]
    for guide in guides:
        summed_loss(model, pairs, 0.0, OneWatch("cross", 0, guide))
    looked = [float(guide.rows[0][..., 0][pairs.wanted > END].detach().mean()) for guide in guides]
    assert looked[0] > 0.8
    assert all(each < 0.6 for each in looked[1:])


def first_only(target):
    return frozenset((0, piece) for piece in range(len(target)))


# --- which head -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "settings", "expected"),
    [
        ("transformer", {}, (2, 0, WEIGHT)),
        ("transformer", {"guided_layer": 3, "guided_head": 1, "guided_weight": 2}, (3, 1, 2.0)),
        ("transformer", {"guided_layer": 0}, (0, 0, WEIGHT)),
        ("conv", {}, (2, 0, WEIGHT)),
        ("rnn-luong", {}, (0, 0, WEIGHT)),
        ("rnn-bahdanau", {}, (0, 0, WEIGHT)),
    ],
)
def test_the_last_layer_but_one_unless_told_otherwise(arch, settings, expected):
    assert Guidance.of(TrainingSettings(**settings), build(arch, source_vocabulary=9)) == expected


def likeness(**options):
    return small_likeness(resolve(small(model={"options": options})).model)


def test_a_model_of_one_layer_has_no_other():
    assert Guidance.of(TrainingSettings(), likeness(decoder_layers=1)) == (0, 0, WEIGHT)


@pytest.mark.parametrize(
    ("settings", "words"), [({"guided_layer": 1}, "guided_layer is 1, .* 0 to 0"), ({"guided_head": 2}, "0 to 1")]
)
def test_a_head_that_is_not_there_is_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        Guidance.of(TrainingSettings(**settings), likeness(decoder_layers=1))


@pytest.fixture
def text(tmp_path):
    source, target = write_corpus(tmp_path)
    return Corpus.of([(source, target)])


@pytest.fixture
def links(text):
    return write_links(text.paths[0])


def rnn(**sections):
    return small("rnn-luong", model={"arch": "rnn"}, **sections)


@pytest.mark.parametrize(
    ("config", "guided", "words"),
    [
        (rnn(), True, "--guided .* never looks"),
        (rnn(validation={"film": True}), False, "--film .* rnn never looks"),
        (small(training={"guided_weight": 0.5}), False, "training.guided_weight is set"),
        (small(training={"guided_head": 9}), True, "guided_head is 9"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_before_anything_is_read(text, links, config, guided, words):
    with pytest.raises(UsageError, match=words) as caught:
        link_files(resolve(config), text, [links] if guided else [])
    assert "\n" not in str(caught.value)


# --- a run ------------------------------------------------------------------------------------------------------


def decoded(prepared, number):
    """A training pair as text, and its links as (source piece, target piece)."""
    ids = [each.tolist() for each in prepared.train[number]]
    sides = prepared.tokenizers.source, prepared.tokenizers.target
    texts = [side.decode(own) for side, own in zip(sides, ids, strict=True)]
    words = [words_of(text, side.pieces(own))[0] for text, side, own in zip(texts, sides, ids, strict=True)]
    return words, prepared.train.links(number).tolist()


@pytest.mark.parametrize("held_out", [True, False])
def test_held_out_and_left_out_pairs_take_their_links_along(tmp_path, text, links, held_out):
    """Each word is linked to the one in its place, so any shift of lines would show."""
    config = small(data={"held_out": 5, "max_length": 6})
    dev = None if held_out else corpus(tmp_path, name="dev", pairs=5)
    found = prepare(tmp_path / "encoded", text, dev, config.data, 1, guided=LinkFiles(text, (links,)))
    assert found.facts["linked"] == found.facts["pairs"] == 60 - 5 * held_out - found.facts["left_out"]
    assert found.facts["left_out"]
    plain = prepare(tmp_path / "plain", text, dev, config.data, 1)
    assert plain.dev_text == found.dev_text
    for one, other in zip(
        *(map(each.train.__getitem__, range(len(each.train))) for each in (plain, found)), strict=True
    ):
        assert [side.tolist() for side in one] == [side.tolist() for side in other]
    for number in range(len(found.train)):
        (source, target), triples = decoded(found, number)
        assert {piece for piece, _, _ in triples} == {*range(len(target))}
        assert all(source[other] == target[piece] for piece, other, _ in triples)


def test_lines_that_cannot_be_links_leave_nothing_behind(tmp_path, text, links):
    links.write_text(links.read_text().replace("1-1", "1-99", 1))
    with pytest.raises(DataError, match="line 1: the link 1-99"):
        train(small(), text, None, tmp_path / "run", guided=[links])
    assert not (tmp_path / "run").exists()


def test_files_without_a_link_are_refused(tmp_path, text, links):
    links.write_text("\n" * 60)
    with pytest.raises(DataError, match="nothing to learn from"):
        train(small(), text, None, tmp_path / "run", guided=[links])


def weights_of(run):
    return (run / "model.safetensors").read_bytes()


def test_stopped_and_resumed_it_is_the_same_run(tmp_path, text, links):
    config = small(training={"schedule": "constant"})
    train(config, text, None, tmp_path / "straight", guided=[links])
    for steps in (3, 8):
        shorter = config.model_copy(update={"budget": config.budget.model_copy(update={"steps": steps})})
        train(shorter, text, None, tmp_path / "resumed", guided=[links])
    straight, resumed = (sorted((tmp_path / run / "checkpoints").glob("step-*"))[-1] for run in ("straight", "resumed"))
    assert (straight / "weights.safetensors").read_bytes() == (resumed / "weights.safetensors").read_bytes()


@pytest.mark.parametrize("change", ["other links", "no links"])
def test_a_run_does_not_go_on_with_other_links(tmp_path, text, links, change):
    train(small(budget={"steps": 1}), text, None, tmp_path / "run", guided=[links])
    if change == "other links":
        links.write_text(links.read_text().replace("1-1", "1-0"))
    with pytest.raises(DataError, match="--guided files"):
        train(small(), text, None, tmp_path / "run", guided=[links] if change == "other links" else [])


def test_everything_tells_of_it_only_when_it_is_on(tmp_path, text, links, monkeypatch):
    monkeypatch.setattr(journal, "SECONDS", 1e-9)
    for name, guided in (("guided", [links]), ("plain", [])):
        train(small(), text, None, tmp_path / name, guided=guided)
        lines = read_journal(tmp_path / name / "metrics.jsonl")
        assert all(("guided" in line) == bool(guided) for line in lines if line["kind"] == "update")
        facts = Bundle.open(tmp_path / name).facts
        assert ("guided" in facts) == bool(guided)
        assert ("guided  " in rehearse(small(), text, None, "cpu", guided)) == bool(guided)
    told = Bundle.open(tmp_path / "guided").facts["guided"]
    assert (told["layer"], told["head"], told["weight"], told["pairs"]) == (0, 0, WEIGHT, 54)
    json.dumps(told)
    assert yaml.safe_load((tmp_path / "guided" / "training.yaml").read_text())["training"]["guided_weight"] is None
