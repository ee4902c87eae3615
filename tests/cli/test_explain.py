"""`softgaze explain`: one sentence as text, picture, page or JSON; a corpus; an attention history; one-line errors."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from bundles import make_bundle, tiny_bundle
from commands import check_error, run
from maps import random_attention
from softgaze.bundle import ATTENTION, FAITHFULNESS, add_facts
from softgaze.explain import Attention, SelectedMap, View, aer, explanation
from softgaze.explain.confidence import Calibration
from softgaze.explain.reliability import FEATURES, ReliabilityCalibration
from softgaze.explain.render.terminal import summarize
from softgaze.explain.serialization import HISTORY_FILE, Snapshot
from softgaze.translator import load

TEXT = "the dog runs."
SOURCES = ["the dog runs.", "", "a small red cat sees the old man.", "the man"]
REFERENCES = ["개 달려요.", "", "작은 고양이 봐요.", "나무 나무"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("explain")
    for name, lines in (("test.en", SOURCES), ("test.ko", REFERENCES)):
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (directory / "test.gold").write_text("0-0 2-1\n\n1-0 3-1 4-2\n1-0\n")
    (directory / "past.gold").write_text("1-1 3-2\n\n\n\n")
    (directory / "short.gold").write_text("0-0\n")
    (directory / "empty.en").write_text("")
    (directory / "folder").mkdir()
    make_bundle(directory / "rnn", arch="rnn", options={"width": 16})
    return directory


def explain(directory, *arguments, model=None, stdin=""):
    return run(directory, "explain", model or tiny_bundle(), *arguments, stdin=stdin)


def explain_ok(*arguments, **options):
    result = explain(*arguments, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def translation():
    return load(tiny_bundle(), device="cpu").translate(TEXT)


# --- one sentence


def test_the_screen_has_the_texts_the_map_and_its_numbers(directory, translation):
    shown = explain_ok(directory, TEXT)
    for part in (
        TEXT,
        translation.text,
        str(translation.attention),
        summarize(translation.attention),
        translation.attention.description,
    ):
        assert " ".join(part.split()) in " ".join(shown.split())
    assert str(translation.attention) in shown
    for name in ("source", "translation", "faithfulness", "entropy", "coverage", "sink"):
        assert sum(line.startswith(f"{name} ") for line in shown.splitlines()) == 1
    assert f"{translation.faithfulness():.2f}: " in shown


def test_each_line_of_stdin_is_explained(directory):
    both = explain_ok(directory, "-", stdin="the dog runs.\n\na cat\n")
    assert both == explain_ok(directory, TEXT) + "\n" + explain_ok(directory, "a cat")
    assert explain_ok(directory, stdin="a cat\n") == explain_ok(directory, "a cat")
    assert explain_ok(directory, "a\n cat") == explain_ok(directory, "a cat")


def test_a_given_translation_is_explained(directory):
    shown = explain_ok(directory, TEXT, "--target", "개 달려요.", "--json")
    record = json.loads(shown)
    assert (record["text"], record["given"], record["rows"][:2]) == ("개 달려요.", True, ["개", "달려요."])
    own = json.loads(explain_ok(directory, TEXT, "--json"))
    again = json.loads(explain_ok(directory, TEXT, "--target", own["text"], "--json"))
    if load(tiny_bundle(), device="cpu").translate(TEXT).finished:
        assert again["score"] == pytest.approx(own["score"], abs=1e-4)
    assert np.allclose(again["weights"], own["weights"], atol=1e-3)


VIEWS = {
    "a layer": (["--layer", "0"], {"layer": 0, "head": None}),
    "a head": (["--layer", "0", "--head", "1"], {"layer": 0, "head": 1}),
    "the encoder": (["--kind", "encoder"], {"kind": "encoder", "layer": None}),
    "the decoder's head": (["--kind", "decoder", "--layer", "0", "--head", "0"], {"kind": "decoder", "head": 0}),
    "reading": (["--rows", "reading"], {"rows": "reading"}),
    "norms": (["--measure", "norms"], {"measure": "norms"}),
    "rollout": (["--measure", "rollout"], {"measure": "rollout", "layer": None}),
    "subwords": (["--subwords"], {"unit": "subwords"}),
}


@pytest.mark.parametrize(("options", "changes"), VIEWS.values(), ids=VIEWS)
def test_another_map_can_be_chosen(directory, translation, options, changes):
    record = json.loads(explain_ok(directory, TEXT, *options, "--json"))
    expected = translation.attention.with_view(**changes)
    assert record["shows"] == expected.description
    assert np.allclose(record["weights"], expected.weights, atol=1e-4)
    assert (record["faithfulness"] is None) == (changes.get("kind", "cross") != "cross")
    assert expected.description in " ".join(explain_ok(directory, TEXT, *options).split())


@pytest.mark.parametrize("method", ["gradient", "gradient-norm", "contribution", "occlusion"])
def test_an_attribution_is_a_map(directory, translation, method):
    record = json.loads(explain_ok(directory, TEXT, "--measure", method, "--json"))
    expected = translation.attribution(method).map()
    assert record["shows"] == expected.description
    assert np.allclose(record["weights"], expected.weights, atol=1e-3)
    assert len(record["support"]) == len(expected.target)


@pytest.mark.parametrize("method", ["gradient", "gradient-norm", "occlusion"])
def test_a_model_without_attention_has_attributions(directory, tmp_path, method):
    model, page = directory / "rnn", tmp_path / "page.html"
    record = json.loads(explain_ok(directory, TEXT, "--measure", method, "--json", "-o", page, model=model))
    expected = load(model, "cpu", engine="torch").translate(TEXT).attribution(method).map()
    assert np.allclose(record["weights"], expected.weights, atol=1e-3)
    assert len(record["support"]) == len(record["rows"])
    assert Attention.load(page).description == expected.description
    assert expected.description in " ".join(explain_ok(directory, TEXT, "--measure", method, model=model).split())


def test_the_measure_that_was_clearly_more_faithful_is_shown_unless_another_is_requested(directory):
    model = make_bundle(directory / "measured")
    scores = {"selected map": (0.4, 0.3), "contribution": (0.6, 0.1), "occlusion": (0.9, 0.0)}
    stored = {name: {"comprehensiveness": a, "sufficiency": b, "words": 9} for name, (a, b) in scores.items()}
    add_facts(model, {FAITHFULNESS: stored})
    assert "L1 contribution" in json.loads(explain_ok(directory, TEXT, "--json", model=model))["shows"]
    shown = json.loads(explain_ok(directory, TEXT, "--json", "--measure", "weights", model=model))["shows"]
    assert "L1 contribution" not in shown
    explain_ok(directory, TEXT, "-o", "measured.html", "--no-what-if", model=model)
    page = (directory / "measured.html").read_text(encoding="utf-8")
    assert '"opensWith":"occlusion"' in page
    assert '"flags":' in page


def test_the_most_faithful_measure_comes_with_the_reliability_of_the_sentence(directory):
    model = make_bundle(directory / "warned")
    view = View(layer=0)
    add_facts(model, {ATTENTION: SelectedMap(view, 0.9, "test", 5).to_dict()})
    add_facts(model, ReliabilityCalibration(view, Calibration((-1.0, *[0.0] * FEATURES), 1, 1)).to_facts())
    stored = {"comprehensiveness": 0.6, "sufficiency": 0.1, "words": 9}
    add_facts(model, {FAITHFULNESS: {"gradient": stored}})
    record = json.loads(explain_ok(directory, TEXT, "--json", model=model))
    assert "gradient" in record["shows"]
    assert record["reliability"]["is_low"]
    assert "do not rely on maps" in " ".join(explain_ok(directory, TEXT, model=model).split())


def test_the_page_marks_the_words_that_the_numbers_name(directory, tmp_path):
    record = json.loads(explain_ok(directory, TEXT, "--json", "-o", tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    flags = json.loads(re.search(r'"flags":(\{.*?\})', text)[1])
    words = Attention.load(tmp_path / "page.html").recording
    assert [words.target.words[index] for index in flags["row"]] == record["unsupported"]
    assert [words.source.words[index] for index in flags["column"]] == record["omitted"]


def test_the_map_is_compared_with_the_gold_alignment(directory, translation):
    links = " ".join(f"{one + 1}-{other + 1}" for one, other in translation.attention.alignment())
    assert "AER 0%" in explain_ok(directory, TEXT, "--gold", links, "--gold-base", 1)
    assert json.loads(explain_ok(directory, TEXT, "--gold", links, "--gold-base", 1, "--json"))["aer"] == 0
    assert "AER 100%" in explain_ok(directory, TEXT, "--target", "개 개 개", "--gold", "", "--gold-base", 0)


@pytest.mark.parametrize("name", ["look.html", "look.svg", "look.json", "LOOK.HTML"])
def test_a_file_holds_the_attention_and_leaves_nothing_else(directory, translation, tmp_path, name):
    result = explain(directory, TEXT, "-o", tmp_path / name, *["--no-what-if"] * name.lower().endswith("html"))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith(f"wrote {tmp_path / name} (")
    assert [each.name for each in tmp_path.iterdir()] == [name]
    loaded = Attention.load(tmp_path / name)
    assert np.allclose(loaded.weights, translation.attention.weights, atol=1e-4)
    assert loaded.description == translation.attention.description


@pytest.mark.parametrize(("name", "begin"), [("look.png", b"\x89PNG"), ("look.pdf", b"%PDF")])
def test_figures_for_papers(directory, tmp_path, name, begin):
    pytest.importorskip("typst")
    explain_ok(directory, TEXT, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_a_page_has_what_ifs_unless_disabled(directory, tmp_path):
    for options in ([], ["--no-what-if"]):
        explain_ok(directory, TEXT, "-o", tmp_path / "look.html", *options)
        assert ('"kind":"mask"' in (tmp_path / "look.html").read_text(encoding="utf-8")) == (not options)


def test_omitted_words_are_reported(directory, translation, monkeypatch):
    influence = np.ones((len(translation.attention.recording.target.words) + 1, 3))
    influence[:, 1] = -1.0
    monkeypatch.setattr("softgaze.explain.explanation.occlusion_scores", lambda *_, **__: [influence])
    likelier = len(influence)
    assert re.search(rf"omitted +dog .*{likelier:.1f} nats", explain_ok(directory, TEXT))
    assert json.loads(explain_ok(directory, TEXT, "--json"))["omitted"] == ["dog"]
    influence[:] = 1
    assert "omitted" not in explain_ok(directory, TEXT)


HOSTILE = "the \x1b[31mdog \u202eruns \u2067now \x9b1m."


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize("arguments", [[HOSTILE], [HOSTILE, "--json"], ["--corpus", "hostile.en"]])
def test_a_text_cannot_control_the_terminal(tmp_path, arguments):
    (tmp_path / "hostile.en").write_text(f"{HOSTILE}\n" * 2, encoding="utf-8")
    shown = on_a_terminal(["explain", str(tiny_bundle()), *arguments], tmp_path)
    assert "dog" in shown
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert "--json" in arguments or "\u2067" not in shown


def on_a_terminal(arguments, directory):
    import pty

    here, there = pty.openpty()
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "softgaze", *arguments]
    running = subprocess.Popen(command, cwd=directory, env=alone, stdin=there, stdout=there, stderr=subprocess.PIPE)
    os.close(there)
    shown = b""
    with open(here, "rb", buffering=0) as terminal:
        while part := read_some(terminal):
            shown += part
    _, fact = running.communicate(timeout=60)
    assert running.returncode == 0, fact
    return shown.decode()


def read_some(terminal):
    try:
        return terminal.read(4096)
    except OSError:  # how Linux says that nobody writes any more
        return b""


# --- what cannot work

LINK = [TEXT, "--gold", "0-0", "--gold-base", "0"]
CORPUS = ["--corpus", "test.en"]
GOLD_FILE = [*CORPUS, "--reference", "test.ko", "--gold-base", "0", "--gold"]
HISTORY = ["--attention-history", "-o", "history.html"]
WRONG = {
    "empty text": ([""], 2, "the text is empty"),
    "only spaces": ([" \n "], 2, "the text is empty"),
    "an unknown ending": ([TEXT, "-o", "look.gif"], 2, ".html, .svg, .png, .pdf, .json"),
    "no ending": ([TEXT, "-o", "look"], 2, "must end in"),
    "a directory": ([TEXT, "-o", "folder"], 2, "folder is a directory"),
    "a directory that is not there": ([TEXT, "-o", "nowhere/look.html"], 4, "nowhere"),
    "no such layer": ([TEXT, "--layer", "7"], 2, "layer 7"),
    "no such head": ([TEXT, "--layer", "0", "--head", "7"], 2, "head 7"),
    "a head of no layer": ([TEXT, "--head", "1"], 2, "--layer"),
    "an unknown kind": ([TEXT, "--kind", "cros"], 2, "'cross'"),
    "an unknown measure": ([TEXT, "--measure", "norm"], 2, "'norms'"),
    "an attribution of one layer": ([TEXT, "--measure", "gradient", "--layer", "0"], 2, "no effect"),
    "a rollout of one layer": ([TEXT, "--measure", "rollout", "--layer", "0"], 2, "all layers"),
    "gold without a base": ([TEXT, "--gold", "0-0"], 2, "--gold-base 0 or 1"),
    "a base without gold": ([TEXT, "--gold-base", "0"], 2, "--gold"),
    "gold beyond the sentence": ([*LINK, "--gold", "9-0"], 3, "its source has 3 words"),
    "gold of one side": ([*LINK, "--kind", "encoder"], 2, "--kind encoder"),
    "gold that is none": ([*LINK, "--gold", "a-b"], 3, "'a-b'"),
    "nothing given": ([TEXT, "--target", " "], 2, "empty"),
    "a reference of a text": ([TEXT, "--reference", "test.ko"], 2, "--reference has no effect"),
    "a text and a corpus": ([TEXT, *CORPUS], 2, "TEXT has no effect"),
    "a layer of a corpus": ([*CORPUS, "--layer", "0"], 2, "--layer has no effect"),
    "a picture of a corpus": ([*CORPUS, "-o", "c.svg"], 2, ".html, .json"),
    "a corpus that is not there": (["--corpus", "none.en"], 3, "none.en"),
    "an empty corpus": (["--corpus", "empty.en"], 3, "empty.en"),
    "a reference that is too short": ([*CORPUS, "--reference", "short.gold"], 3, "line n must"),
    "gold of no reference": ([*CORPUS, "--gold", "test.gold", "--gold-base", "0"], 2, "--reference REF"),
    "gold of another base": ([*GOLD_FILE, "past.gold"], 3, "past.gold, line 1: the link 3-2"),
    "gold that is too short": ([*GOLD_FILE, "short.gold"], 3, "one line per sentence"),
    "a history on the screen": (["--attention-history"], 2, "-o history.html"),
    "a model without a history": (HISTORY, 3, "--attention-history"),
    "a history as JSON": ([*HISTORY, "--json"], 2, "--json has no effect"),
    "a base of a history": ([*HISTORY, "--gold-base", "0"], 2, "--gold-base has no effect"),
    "a beam of a history": ([*HISTORY, "--beam-size", "5"], 2, "--beam-size has no effect"),
    "a history of a text": ([TEXT, *HISTORY], 2, "TEXT has no effect"),
    "a beam of a given text": ([TEXT, "--target", "개", "--beam-size", "5"], 2, "--beam-size has no effect"),
    "no what-if on the screen": ([TEXT, "--no-what-if"], 2, "--no-what-if has no effect"),
    "no what-if in a picture": ([TEXT, "-o", "look.svg", "--no-what-if"], 2, "--no-what-if has no effect"),
}


@pytest.mark.parametrize(("arguments", "code", "fact"), WRONG.values(), ids=WRONG)
def test_mistakes_are_one_line(directory, arguments, code, fact):
    check_error(explain(directory, *arguments), code, fact)


def test_one_file_holds_one_text(directory):
    check_error(explain(directory, "-", "-o", "look.html", stdin="a\nb\n"), 2, "one text, got 2")


def test_a_read_only_directory_is_reported_before_a_model_is_loaded(directory, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everywhere
    check_error(
        explain(directory, TEXT, "-o", "folder/look.html", model="nowhere"), 4, "folder/look.html", "permission"
    )


@pytest.mark.parametrize("arguments", [[TEXT], ["--corpus", "test.en"]])
def test_a_model_without_attention_is_rejected(directory, arguments):
    check_error(explain(directory, *arguments, model=directory / "rnn"), 2, "arch rnn has no attention")


# --- a corpus


def corpus_json(directory, tmp_path, *options):
    result = explain(directory, "--corpus", "test.en", "-o", tmp_path / "c.json", "--beam-size", 1, *options)
    assert result.returncode == 0, result.stderr
    return json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))


def test_every_line_is_analyzed_and_translated_as_by_translate(directory, tmp_path):
    record = corpus_json(directory, tmp_path, "--reference", "test.ko")
    assert (record["sentences"], record["empty"], record["beam_size"]) == (3, 1, 1)
    assert [each["line"] for each in record["reports"]] == [1, 3, 4]
    translator = load(tiny_bundle(), device="cpu").with_selected_map(zip(SOURCES, REFERENCES, strict=True))
    for each in record["reports"]:
        expected = translator.translate(SOURCES[each["line"] - 1], beam_size=1)
        assert " ".join(each["output"]) == expected.text
        assert each["reference"] == REFERENCES[each["line"] - 1].split()
        assert each["faithfulness"] == pytest.approx(expected.faithfulness(), abs=1e-3)
        assert each["sink"] == pytest.approx(expected.attention.sink, abs=1e-3)
        assert set(each["scores"]) == {"bleu", "chrf"}


def test_without_a_stored_map_one_is_selected_for_all(directory, tmp_path):
    sizes = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 3}
    model = make_bundle(tmp_path / "model", options=sizes)
    explain_ok(directory, "--corpus", "test.en", "-o", tmp_path / "c.json", "--beam-size", 1, model=model)
    record = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    translator = load(model, device="cpu")
    translation = translator.translate(SOURCES, beam_size=1)
    choice = translator.with_selected_map([(each.source, each.text) for each in translation]).selected_map
    for each in record["reports"]:
        expected = translation[each["line"] - 1].attention.with_view(**vars(choice.view))
        assert each["covered"] == pytest.approx(expected.word_weights().sum(axis=0), abs=1e-3)
    assert record["shows"] == replace(expected, selected_map=choice).map_description


def test_occlusion_is_computed_once(directory, tmp_path, monkeypatch):
    original, calls = explanation.occlusion_scores, []
    monkeypatch.setattr(
        explanation, "occlusion_scores", lambda *given, **options: calls.append(1) or original(*given, **options)
    )
    explain_ok(directory, TEXT, "-o", tmp_path / "look.html", "--no-what-if", "--json")
    assert calls == [1]


def test_blocks_change_nothing(directory, tmp_path, monkeypatch):
    whole = corpus_json(directory, tmp_path)
    monkeypatch.setattr("softgaze.cli.explain.BLOCK_SENTENCES", 2)
    parts = corpus_json(directory, tmp_path)
    for one, other in zip(whole.pop("reports"), parts.pop("reports"), strict=True):
        assert one["line"] == other["line"]
        assert one["output"] == other["output"]
        assert one["needed"] == pytest.approx(other["needed"], abs=1e-3)
    assert whole == parts


def test_only_the_first_lines(directory, tmp_path):
    assert [each["line"] for each in corpus_json(directory, tmp_path, "--limit", 3)["reports"]] == [1, 3]


def test_the_error_rate_is_that_of_align(directory, tmp_path):
    gold = ["--reference", "test.ko", "--gold", "test.gold", "--gold-base", 0]
    record = corpus_json(directory, tmp_path, *gold)
    links = load(tiny_bundle(), device="cpu").align(SOURCES, REFERENCES)
    kept = [number for number, source in enumerate(SOURCES) if source]
    lines = (directory / "test.gold").read_text().splitlines()
    expected = aer([links[number] for number in kept], [lines[number] for number in kept], gold_base=0)
    assert record["aer"] == pytest.approx(expected, abs=1e-4)


def test_the_screen_has_the_worst_of_each_ranking(directory):
    shown = explain_ok(directory, "--corpus", "test.en", "--reference", "test.ko")
    assert shown.startswith("3 sentences, ")
    assert "1 line without attention" in shown
    assert "Unlike the reference (3 of 3 sentences)" in shown
    assert json.loads(explain_ok(directory, "--corpus", "test.en", "--json"))["sentences"] == 3


def test_the_page_is_one_file(directory, tmp_path):
    result = explain(directory, "--corpus", "test.en", "-o", tmp_path / "c.html")
    assert result.returncode == 0
    assert "wrote" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["c.html"]
    assert (tmp_path / "c.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupted_nothing_is_left(directory, tmp_path):
    (tmp_path / "many.en").write_text("the dog runs and sees the old man.\n" * 20_000)
    command = [sys.executable, "-m", "softgaze", "explain", str(tiny_bundle()), "--corpus", "many.en", "-o", "c.html"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(command, cwd=tmp_path, env=alone, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    maps = Path(f"/proc/{running.pid}/maps")
    while maps.exists() and "libtorch" not in maps.read_text():  # until the command itself runs
        sleep(0.1)
    sleep(5)
    running.send_signal(signal.SIGINT)
    _, fact = running.communicate(timeout=60)
    assert running.returncode == 130
    assert fact.splitlines()[-1] == b"softgaze: stopped; nothing was written"
    assert b"Traceback" not in fact
    assert [each.name for each in tmp_path.iterdir()] == ["many.en"]


# --- a film


def test_the_attention_history_of_a_running_training(directory, tmp_path):
    frames = [Snapshot(step, step / 10, {"loss": 3.0, "bleu": 1.5}, "개", random_attention(step)) for step in (0, 10)]
    film = "".join(frame.to_line() + "\n" for frame in frames)
    (tmp_path / HISTORY_FILE).write_text(film + frames[0].to_line()[:50], encoding="utf-8")  # one is being written
    result = explain(directory, "--attention-history", "-o", "film.html", model=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (directory / "film.html").read_text(encoding="utf-8").count('"step":') == 2


def test_an_empty_attention_history_is_an_error(directory, tmp_path):
    (tmp_path / HISTORY_FILE).write_text("")
    check_error(explain(directory, *HISTORY, model=tmp_path), 3, "no snapshot")
