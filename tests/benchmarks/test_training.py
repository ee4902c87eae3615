"""The arithmetic of the benchmark, and what it counts; never how fast anything is."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import decoding, parity, shipping, training
from benchmarks.operations import operations
from benchmarks.peers import batching
from benchmarks.peers.job import Finished, Job, Meter
from benchmarks.peers.softgaze import counted, trainer_of
from benchmarks.report import Facts, Spread, chart, document, summarise
from softgaze.attention import MultiHeadAttention
from softgaze.data.corpora.phrasebook import write
from softgaze.models import build_model
from softgaze.models.base import Source
from softgaze.special_tokens import PAD
from softgaze.training.collate import PaddedBatch, collate


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A small corpus, cut into pieces as the benchmark does it."""
    place = tmp_path_factory.mktemp("bench")
    write(place / "text", pairs=300, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "WORK", place)
        corpus, _ = training.prepare_corpus(place / "text" / "train.en", place / "text" / "train.ko")
        case = training.Case("transformer", "tiny", 0.1)
        arguments = training.parse(["--batch-tokens", "256"])
        made = training.make_job(case, corpus, training.Effort(rounds=1, warmup=1, updates=3, seconds=60), arguments)
    small = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    return replace(made, model=small, out=str(place / "run"))


MEASURED = ("tokens_per_second", "version", "precision", "updates", "tokens_per_update", "parameters")


def run(contender: str, number: int, rate: float, **more: object) -> training.Any:
    facts = {"version": "1", "precision": "float32", "updates": 20, "tokens_per_update": 3000.0, "parameters": 10}
    common = {"case": "c", "made": "today", "warmup": 4, "operations": 4e6}
    return {**common, "round": number, "contender": contender, "tokens_per_second": rate, **facts, **more}


def test_ratios_are_taken_within_rounds():
    runs = [run("softgaze", 0, 100), run("eole", 0, 50), run("softgaze", 1, 30), run("eole", 1, 10)]
    ours, theirs = summarise(runs)
    assert ours.rate == Spread(65, 30, 100)
    assert theirs.ratio == Spread(2.5, 2, 3)  # the ratio of the medians would be 65 / 30


def test_a_peer_that_fails_is_reported_with_its_reason():
    runs = [run("softgaze", 0, 100), {**run("sockeye", 0, 1), "error": "no such wheel"}]
    page = document(runs, Facts("text", 2, 4096, {"float32": 1e9, "bfloat16": 1e9}))
    assert "| Sockeye |  |  | — (no such wheel) |" in page
    assert "| softgaze | 1 | float32 | 100 (100–100) | — | 40% | 3,000 | 10 |" in page


def test_the_chart_is_whole():
    drawn = ElementTree.fromstring(chart([run("softgaze", 0, 100), run("eole", 0, 50)]))
    text = [each.text or "" for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "100" in text
    assert any("softgaze × 2.00" in each for each in text)


def test_the_whole_way_from_the_command_line_to_the_page(tmp_path, monkeypatch):
    """Every process is replaced by its answer; one peer breaks in the first round and is not tried again."""
    write(tmp_path / "text", pairs=100, seed=0)
    asked = []

    def answer(python: Path, module: str, arguments: list[str], threads: int) -> dict[str, object]:
        asked.append(module.rsplit(".", 1)[1])
        if module.endswith("operations"):
            return {"float32": 1e11, "bfloat16": 1e9} if arguments[0] == "peak" else {"operations_per_token": 1e7}
        if module.endswith("sockeye"):
            raise training.UnavailableError("it broke")
        return {name: value for name, value in run("", 0, 2000).items() if name in MEASURED}

    monkeypatch.setattr(training, "WORK", tmp_path / "work")
    monkeypatch.setattr(training, "call", answer)
    monkeypatch.setattr(training, "interpreter", lambda name: Path(name))
    monkeypatch.setattr("softgaze.runtime.cpu_flags", frozenset)
    text = [str(tmp_path / "text" / name) for name in ("train.en", "train.ko")]
    line = ["bench", "--source", text[0], "--target", text[1], "--cases", "transformer tiny", "rnn-luong"]
    line += ["--peers", "sockeye", "eole", "--out", str(tmp_path / "r")]
    monkeypatch.setattr("sys.argv", line)
    training.main()
    turns_of_a_case = ["softgaze", "sockeye", "eole", "softgaze", "eole"]
    assert asked == ["operations", "operations", *turns_of_a_case, "operations", "softgaze", "eole", "softgaze", "eole"]
    page = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| Sockeye |  |  | — (it broke) |" in page
    assert "| eole | 1 | float32 | 2,000 (2,000–2,000) | 1.00 (1.00–1.00) | 20% |" in page
    assert str(tmp_path) not in page
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 9

    monkeypatch.setattr("sys.argv", [*line, "--add", "--cases", "rnn-luong"])
    training.main()
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 9  # one case again, the other kept


def test_the_meter_counts_whole_updates_after_the_warm_up(job):
    clock = iter([0.0, 10.0, 12.0, 14.0, 16.0])  # the first batch warms up, three are measured, the fifth ends it
    meter = Meter(job, clock=lambda: next(clock))
    for tokens in (1, 20, 30, 40):
        meter.batch(tokens)
    with pytest.raises(Finished):
        meter.batch(500)
    assert (meter.tokens, meter.seconds, meter.updates) == (90, 6.0, 3)


def test_softgaze_reports_the_real_tokens_of_its_batches(job):
    trainer, meter = trainer_of(job), Meter(job, clock=iter(range(100)).__next__)
    counted(trainer, meter)
    with pytest.raises(Finished):
        for _ in trainer.updates():
            pass
    batches = islice(trainer.batches.batches_from(0), job.warmup, job.warmup + job.updates)
    wanted = [collate(trainer.data.train, batch, trainer.device).labels for batch in batches]
    assert meter.tokens == sum(int((each != PAD).sum()) for each in wanted)


def test_everybody_reads_the_same_tokens(job):
    from benchmarks.peers.job import read_ids

    shards = trainer_of(job).data.train
    expected = [tuple(side.tolist() for side in shards[number]) for number in range(len(shards))]
    assert read_ids(job, "train") == expected
    assert len(Path(job.file("vocabulary.txt")).read_text("utf-8").splitlines()) == job.vocabulary


def test_batches_for_plain_loops_keep_the_budget_and_lose_nothing():
    pairs = [([1] * length, [2] * (length + 3)) for length in range(1, 40)]
    cut = list(batching.cut_by_budget(pairs, 100))
    assert [pair for batch in cut for pair in batch] == pairs
    assert all(len(batch) * max(len(target) + 1 for _, target in batch) <= 100 for batch in cut)


# --- operations -------------------------------------------------------------------------------------------------


class OneLayer(nn.Module):
    """`encode` returns its input, and `decode` is one layer before the output."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.output = layer, nn.Linear(width, 11, bias=False)

    def encode(self, source: Source) -> torch.Tensor:
        return source.values

    def decode(self, memory: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.layer(memory) if isinstance(self.layer, nn.Linear) else self.layer(memory, memory).context


def batch_of_vectors(width: int) -> PaddedBatch:
    rows, labels = torch.randn(2, 3, width, requires_grad=True), torch.ones(2, 3, dtype=torch.long)
    return PaddedBatch(Source(rows, torch.tensor([3, 3])), labels, labels, 6)


def test_operations_of_a_linear_layer_and_of_attention():
    linear, attention = OneLayer(nn.Linear(5, 7, bias=False), 7), OneLayer(MultiHeadAttention(8, 2), 8)
    assert operations(linear, batch_of_vectors(5)) == 6 * 6 * (5 * 7 + 7 * 11)  # six per weight and row
    batch, length, width = 2, 3, 8
    projections = 4 * width * width * batch * length
    products = 2 * length * length * width * batch  # scores and context, over all heads
    expected = 6 * (projections + products + batch * length * width * 11)
    assert operations(attention, batch_of_vectors(width)) == expected


@pytest.mark.parametrize("arch", ["transformer", "rnn-luong", "rnn-bahdanau"])
def test_no_kernel_hides_its_operations(arch):
    size = {"width": 16} | ({"feed_forward_width": 32, "heads": 2} if arch == "transformer" else {})
    model = build_model(arch, source_vocabulary=20, **size)
    tokens = torch.randint(4, 20, (2, 6))
    pairs = PaddedBatch(Source(tokens, torch.tensor([6, 6])), tokens, tokens, 12)
    layers = sum(value.numel() for name, value in model.named_parameters() if value.ndim == 2 and "embed" not in name)
    # Every weight meets twelve tokens (a bridge only two rows); inside a kernel the counter is blind to, none.
    assert operations(model, pairs) > 0.9 * 6 * 12 * (layers + model.output.weight.numel())


@pytest.mark.parametrize("module", [training, decoding, shipping, parity])
def test_a_quick_run_never_replaces_the_table_of_a_full_one(module, monkeypatch):
    needed = ["--transformer", "m", "--text", "t"] if module is shipping else []
    read = training.parse if module is training else module.arguments
    places = []
    for words in ([], ["--full"], ["--full", "--out", "mine"]):
        monkeypatch.setattr(sys, "argv", ["benchmark", *needed, *words])
        places.append(read().out)
    assert [each.parent for each in places] == [training.WORK, training.HERE, Path()]
    assert places[0].name == places[1].name


def test_what_is_said_counts_for_more_than_the_form():
    given = decoding.arguments(["--full", "--rounds", "9", "--models", "m"])
    assert (given.rounds, given.sentences, given.beams, given.cases) == (9, 1000, [5, 1], [])
    assert decoding.arguments([]).cases == ["transformer tiny"]


def test_tables_that_are_not_measured_again_are_kept(tmp_path):
    runs = [{"case": case, "setting": setting} for case in ("a", "b") for setting in ("one", "all")]
    (tmp_path / "made.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert training.earlier(tmp_path / "made", [("a",)]) == runs[2:]
    assert training.earlier(tmp_path / "made", [("a", "all")], ("case", "setting")) == [runs[0], *runs[2:]]
    assert training.earlier(tmp_path / "none", [("a",)]) == []
