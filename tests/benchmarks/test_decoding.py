"""What the decoding benchmark compares and counts; never how fast anything is."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch

from benchmarks import decoding
from benchmarks.peers import weights
from benchmarks.peers.decode_job import Orders, until
from benchmarks.peers.job import Job
from softgaze.bundle import Description
from softgaze.models import build_model
from softgaze.positions import sinusoidal

SMALL = {"width": 8, "feed_forward_width": 8, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
PARTS = ("attention.query", "attention.key", "attention.value", "attention.output", "around_attention.norm")
FEED = ("feed_forward.inner", "feed_forward.outer", "around_feed_forward.norm")
CROSS = ("cross.query", "cross.key", "cross.value", "cross.output", "around_cross.norm")


def test_every_parameter_of_a_trained_model_finds_a_place_of_its_own():
    model = build_model("transformer", source_vocabulary=9, **SMALL)
    layers = {
        "encoder": {part: f"x.{part}" for part in (*PARTS, *FEED)},
        "decoder": {part: f"y.{part}" for part in (*PARTS, *CROSS, *FEED)},
    }
    stacks = {"encoder": "e.layers", "decoder": "d.layers"}
    others = {"source_embedding.weight": ["in", "out"], **weights.norms("e.norm", "d.norm")}
    ours = dict(model.named_parameters())
    found = weights.renamed(ours, weights.Names(stacks, layers, others))
    assert len(found) == len(ours) + 1  # the words have two places
    assert found["d.layers.1.y.cross.key.weight"] is ours["decoder.1.cross.key.weight"]
    assert found["e.norm.bias"] is ours["encoder_norm.bias"]
    assert {id(value) for value in found.values()} == {id(value) for value in ours.values()}


def test_weights_that_do_not_fit_a_peer_are_refused():
    layer = torch.nn.Linear(2, 2)
    weights.load(layer, {"weight": torch.ones(2, 2)}, "bias")
    assert layer.weight.sum() == 4
    with pytest.raises(SystemExit, match="bias"):
        weights.load(layer, {"weight": torch.ones(2, 2)}, "nothing")
    with pytest.raises(SystemExit, match="more"):
        weights.load(layer, {**layer.state_dict(), "more": torch.ones(1)}, "nothing")


def test_peers_get_our_places():
    table = weights.sinusoids(8, first=1)
    assert not table[0].any()
    torch.testing.assert_close(table[1:], sinusoidal(torch.arange(weights.MAX_POSITIONS), 8))


def test_what_was_written_is_compared_in_pieces_as_far_as_everybody_goes(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("<pad>\n<unk>\n<s>\n</s>\na\nb\n", encoding="utf-8")
    job = Job(**{**dict.fromkeys(Job.__annotations__, 0), "corpus": str(tmp_path)})  # type: ignore[arg-type]
    orders = Orders(job, 2, 0, 1, False, 1, "")
    assert orders.ids([["a", "b"]]) == [[4, 5]]
    assert orders.spelled([["a"], ["a"]], [[4, 5], ["a"] * 99]) == ["a b", " ".join("a" * 7)]
    assert until([4, 5, 3, 4, 3], 3) == [4, 5]
    assert until([4, 5], 3) == [4, 5]
    assert decoding.alike({"written": ["a b", "a"]}, {"written": ["a b", "b"]}) == 0.5


def test_ratios_are_taken_within_rounds_and_failures_say_why():
    facts = {"tokens_per_second": 1.0, "version": "1", "batch": 32, "same": 1.0}
    runs = [
        {"contender": name, "round": number, "sentences_per_second": rate, **facts}
        for name, number, rate in (("torch", 0, 100.0), ("eole", 0, 50.0), ("torch", 1, 30.0), ("eole", 1, 10.0))
    ]
    page = decoding.table([*runs, {"contender": "joeynmt", "round": 0, "error": "no|wheel"}])
    assert "| eole | 1 | 30.0 (10.0–50.0) | 1 | — | 2.50 (2.00–3.00) | 100.0% | 32 |" in page
    assert "| JoeyNMT | | — (no/wheel) |" in page


def test_a_model_that_no_peer_has_is_refused_by_name():
    def bundle(**options: object) -> SimpleNamespace:
        about = Description("transformer", "tiny", options, "en", "de", 100)
        return SimpleNamespace(path="m", description=about, tokenizers=SimpleNamespace(joint=True))

    assert decoding.comparable(bundle(residual="post")) == {"residual": "post"}  # type: ignore[arg-type]
    with pytest.raises(SystemExit, match="m: no peer has such a model: positions rotary"):
        decoding.comparable(bundle(positions="rotary"))  # type: ignore[arg-type]


def test_our_engines_batch_for_themselves_and_nobody_is_tried_with_one_choice(monkeypatch):
    tried = []

    def run(name: str, orders: Orders) -> dict[str, float]:
        tried.append((name, orders.batch))
        return {"sentences_per_second": {32: 1.0, 64: 3.0, 128: 2.0}[orders.batch]}

    monkeypatch.setattr(decoding, "run", run)
    orders = Orders(None, 100, 0, 5, False, 1, "")  # type: ignore[arg-type]
    sizes = Namespace(batches=[32, 64, 128]).batches
    assert decoding.best_batch("eole", orders, sizes) == 64
    assert decoding.best_batch("torch", orders, sizes) == 32
    assert decoding.best_batch("eole", orders, [16]) == 16
    assert [batch for _, batch in tried] == sizes
