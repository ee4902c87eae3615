"""The conversion that `load` makes and keeps: same output as torch, whatever happens to its files."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from bundles import SMALL, lines, make_bundle
from engines.exported import OPTIONS, changed, exported, lively_bundle, trained_bundle
from engines.suite import LONG, TEXTS, told
from softgaze.bundle import Bundle
from softgaze.engines import choose_engine, conversion
from softgaze.engines.conversion import DIRECTORY, LEFTOVER_SECONDS, REJECTED
from softgaze.engines.selection import FASTEST, AutoEngine
from softgaze.errors import UsageError
from softgaze.models import MODELS
from softgaze.search import SearchOptions
from softgaze.translator import load

VARIANTS = {
    "sinusoidal": {},
    "learned, short": {"positions": "learned", "max_length": 14},
    "everything else": {"key_heads": 2, "norm": "rms", "feed_forward": "swiglu", "positions": "rotary", "tie": "none"},
}
SEARCHES = [
    SearchOptions(),
    SearchOptions(beam_size=1),
    SearchOptions(beam_size=3, num_hypotheses=3, length_penalty=0.6),
    SearchOptions(beam_size=2, prefix="old man"),
    SearchOptions(beam_size=1, prefix="old man " * 30),
    SearchOptions(beam_size=1, max_length=90),
    SearchOptions(min_length=9),
    SearchOptions(no_repeat_ngram_size=1),
    SearchOptions(temperature=1.0, num_hypotheses=2, seed=3),
]
TRANSLATE = "import sys, softgaze; m = softgaze.load(sys.argv[1], 'cpu'); print(m.translate('the dog runs.').text)"


@pytest.fixture
def model(tmp_path):
    """A model of its own, without any conversion."""
    return shutil.copytree(trained_bundle(), tmp_path / "model", ignore=shutil.ignore_patterns(DIRECTORY))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "softgaze" / "engines"


def conversions(model: Path) -> list[Path]:
    """Everything in the directory of conversions, finished or not."""
    return sorted((model / DIRECTORY).iterdir()) if (model / DIRECTORY).is_dir() else []


def process(code: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check_same(model: Path, options: SearchOptions = SearchOptions()) -> None:
    """The converted model writes what torch writes."""
    ours, theirs = load(model, "cpu", engine="torch"), load(model, "cpu")
    assert theirs.engine.name == "ctranslate2"
    assert [told(each) for each in theirs.translate(TEXTS, options)] == [
        told(each) for each in ours.translate(TEXTS, options)
    ]


# --- the same output


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_every_search_writes_what_torch_writes(options):
    check_same(trained_bundle(), options)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_models_drawn_at_random_write_what_torch_writes(tmp_path, variant):
    """Their best tokens are often special ones, which torch never considers."""
    path = lively_bundle(tmp_path / "model", options={**OPTIONS, **variant})
    for options in (SearchOptions(beam_size=1), SearchOptions(beam_size=3, num_hypotheses=2)):
        check_same(path, options)


@pytest.mark.parametrize("text", [TEXTS[0], LONG])
def test_streamed_words_are_those_of_torch(text):
    ours, theirs = load(trained_bundle(), "cpu", engine="torch"), load(trained_bundle(), "cpu")
    words: list[str] = []
    assert told(theirs.translate_stream(text, words.append)) == told(ours.translate_stream(text, lambda word: None))
    assert "".join(words) == theirs.translate(text, beam_size=1).text


def test_explanations_are_those_of_torch():
    ours, theirs = load(trained_bundle(), "cpu", engine="torch"), load(trained_bundle(), "cpu")
    one, two = (each.translate("the dog sees a cat.", beam_size=2) for each in (ours, theirs))
    assert one.attention.description == two.attention.description
    assert (one.attention.weights == two.attention.weights).all()
    assert (one.occlusion == two.occlusion).all()
    assert told(one.what_if(mask="dog")) == told(two.what_if(mask="dog"))
    assert one.beam == two.beam
    assert ours.score("the dog", "개").log_prob == theirs.score("the dog", "개").log_prob
    assert ours.align(["the dog"], ["개 달려요"]) == theirs.align(["the dog"], ["개 달려요"])
    assert (ours.max_positions, ours.has_attention) == (theirs.max_positions, theirs.has_attention)
    assert ours.max_source_length == theirs.max_source_length


def test_the_table_of_engines_is_that_of_the_models():
    assert {name: (engine,) for name, engine in FASTEST.items()} == {
        name: each.exports_to for name, each in MODELS.items() if each.exports_to and not each.reads_features
    }


# --- the cache


def test_a_model_is_converted_once(model):
    load(model, "cpu")
    [first] = conversions(model)
    before = {path: path.stat().st_mtime_ns for path in first.iterdir()}
    check_same(model)
    assert {path: path.stat().st_mtime_ns for path in first.iterdir()} == before


def test_a_converted_model_is_translated_without_torch(model):
    load(model, "cpu")
    done = process(f"{TRANSLATE}; assert 'torch' not in sys.modules", model)
    out, err = done.communicate()
    assert (done.returncode, err) == (0, "")
    assert out.strip() == load(model, "cpu", engine="torch").translate("the dog runs.").text


def test_other_weights_are_converted_again(model):
    load(model, "cpu")
    [old] = conversions(model)

    def sharpen(network, tokenizers):
        network.output.weight.data.mul_(1.3)

    changed(model, sharpen)
    check_same(model)
    [new] = conversions(model)
    assert new != old


@pytest.mark.parametrize("name", ["model.bin", "config.json", "shared_vocabulary.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_a_damaged_conversion_is_made_again(model, caplog, name, damage):
    load(model, "cpu")
    file = conversions(model)[0] / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    if damage == "delete":
        file.unlink()
    with caplog.at_level(logging.WARNING):
        check_same(model)
    assert len([record for record in caplog.records if "converted again" in record.message]) == 1
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        check_same(model)
    assert not caplog.records


def test_a_conversion_for_another_model_is_not_used(model, tmp_path):
    """Even if its name is right: the manifest has the whole key."""
    load(model, "cpu")
    other = lively_bundle(tmp_path / "other")
    load(other, "cpu")
    [ours], [theirs] = conversions(model), conversions(other)
    shutil.rmtree(ours)
    shutil.copytree(theirs, ours)
    check_same(model)


def test_a_conversion_that_takes_long_is_announced_once(model, caplog, monkeypatch):
    monkeypatch.setattr(conversion, "QUIET_SECONDS", 0)
    with caplog.at_level(logging.INFO, "softgaze.engines"):
        load(model, "cpu")
        load(model, "cpu")
    assert [str(model) in record.message for record in caplog.records] == [True]


def test_a_model_that_cannot_be_written_is_kept_in_the_users_cache(model, cache, caplog):
    (model / DIRECTORY).write_text("a file where the directory should be")
    with caplog.at_level(logging.WARNING):
        check_same(model)
    assert len(caplog.records) == 1
    assert len([*cache.iterdir()]) == 1
    caplog.clear()
    check_same(model)
    assert not caplog.records


def test_where_nothing_can_be_written_nothing_is_kept(model, cache, tmp_path, monkeypatch):
    (model / DIRECTORY).write_text("a file where the directory should be")
    cache.parent.parent.write_text("another")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    check_same(model)
    assert not [*(tmp_path / "temporary").iterdir()]


# --- several processes, and killed ones


def test_processes_that_convert_at_the_same_time_agree(model):
    wanted = load(model, "cpu", engine="torch").translate("the dog runs.").text
    running = [process(TRANSLATE, model) for _ in range(3)]
    results = [each.communicate() for each in running]
    assert [out.strip() for out, _ in results] == [wanted] * 3, results
    assert len(conversions(model)) == 1


def test_a_killed_conversion_leaves_nothing_broken(model):
    running = process(TRANSLATE, model)
    while running.poll() is None and not conversions(model):
        time.sleep(0.001)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    check_same(model)
    leftovers = [path for path in conversions(model) if path.name.startswith(".")]
    for leftover in leftovers:
        os.utime(leftover, (0, time.time() - 2 * LEFTOVER_SECONDS))
    changed(model, lambda network, tokenizers: network.output.weight.data.mul_(1.01))
    check_same(model)
    assert not [path for path in conversions(model) if path.name.startswith(".")]


# --- where torch runs, and why


def rejected_by(path: Path) -> str:
    [kept] = conversions(path)
    return str(json.loads((kept / "manifest.json").read_text())["engine"][REJECTED])


def test_a_conversion_that_differs_is_rejected_and_torch_runs(model, monkeypatch, caplog):
    from softgaze.engines import export_ctranslate2

    fill = export_ctranslate2.fill_norm

    def fill_wrong(spec, norm):
        fill(spec, norm)
        if spec is not None:
            spec.gamma = spec.gamma + 0.01

    monkeypatch.setattr(export_ctranslate2, "fill_norm", fill_wrong)
    with caplog.at_level(logging.WARNING):
        translator = load(model, "cpu")
    assert translator.engine.name == "torch"
    assert "differ" in rejected_by(model)
    assert len(caplog.records) == 1
    assert choose_engine(translator.bundle, "cpu")[0] == "torch"
    before = conversions(model)[0].stat().st_mtime_ns
    assert load(model, "cpu").engine.name == "torch"
    assert conversions(model)[0].stat().st_mtime_ns == before
    with pytest.raises(UsageError, match="differ"):
        load(model, "cpu", engine="ctranslate2")


def test_an_option_that_the_engine_lacks_is_known_after_the_first_load(tmp_path):
    path = make_bundle(tmp_path / "model", options={**SMALL, "window_size": 2})
    assert load(path, "cpu").engine.name == "torch"
    assert "local self-attention" in rejected_by(path)
    assert "local self-attention" in choose_engine(Bundle.open(path), "cpu").reason


def test_torch_runs_what_has_no_other_engine(tmp_path):
    path = make_bundle(tmp_path / "model", arch="conv", options={"width": 16})
    assert load(path, "cpu").engine.name == "torch"
    assert not conversions(path)
    with pytest.raises(UsageError, match="conv"):
        load(path, "cpu", engine="ctranslate2")


def test_what_cannot_share_the_process_runs_on_torch_and_says_so(tmp_path, caplog):
    import ctranslate2  # noqa: F401

    path = make_bundle(tmp_path / "model", arch="rnn-luong", options={"width": 16})
    with caplog.at_level(logging.WARNING):
        assert load(path, "cpu").engine.name == "torch"
    assert "ctranslate2" in caplog.text
    with pytest.raises(UsageError, match="cannot share a process"):
        load(path, "cpu", engine="onnx")


def test_a_requested_engine_runs_or_is_an_error(model, tmp_path):
    assert isinstance(load(model, "cpu", engine="ctranslate2").engine, AutoEngine)
    assert load(model, "cpu", engine="torch").engine.name == "torch"
    with pytest.raises(UsageError, match="unknown engine"):
        load(model, "cpu", engine="onxx")
    made = exported(model, tmp_path / "made", "ctranslate2")
    assert load(made, "cpu", engine="ctranslate2").engine.name == "ctranslate2"
    for engine in ("torch", "onnx"):
        with pytest.raises(UsageError, match="the model it was made from"):
            load(made, "cpu", engine=engine)
    full = exported(model, tmp_path / "full", "ctranslate2", with_weights=True)
    assert load(full, "cpu", engine="torch").engine.name == "torch"


def test_threads_share_one_torch_model(model):
    from concurrent.futures import ThreadPoolExecutor

    engine = load(model, "cpu").engine
    with ThreadPoolExecutor(4) as pool:
        assert len({id(each) for each in pool.map(lambda _: engine.torch, range(8))}) == 1


def test_held_out_sentences_are_part_of_the_proof(model):
    pairs = list(zip(lines("en", 9), lines("ko", 9), strict=True))
    (model / "encoded").mkdir()
    (model / "encoded" / "dev.json").write_text(json.dumps(pairs))
    load(model, "cpu")
    proof = json.loads((conversions(model)[0] / "manifest.json").read_text())["facts"]["proof"]
    assert proof["held_out"] > 0
    assert proof["different"] == 0
    assert torch.is_grad_enabled()
