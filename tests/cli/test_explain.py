"""`softgaze explain`: one sentence as text, picture, page or JSON; a corpus; a film; one line for what cannot work."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from time import sleep

import numpy
import pytest

from bundles import make_bundle, tiny_bundle
from commands import run
from maps import random_attention
from softgaze.gaze import Attention, aer
from softgaze.gaze.film import NAME, Frame
from softgaze.gaze.plain import plain
from softgaze.translator import Translator, load

TEXT = "the dog runs."
SOURCES = ["the dog runs.", "", "a small red cat sees the old man.", "the man"]
REFERENCES = ["개 달려요.", "", "작은 고양이 봐요.", "나무 나무"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
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


def explain(place, *arguments, model=None, stdin=""):
    return run(place, "explain", model or tiny_bundle(), *arguments, stdin=stdin)


def right(*arguments, **options):
    ran = explain(*arguments, **options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def found():
    return load(tiny_bundle(), device="cpu").translate(TEXT)


# --- one sentence


def test_the_screen_has_the_texts_the_map_and_its_numbers(place, found):
    shown = right(place, TEXT)
    for part in (TEXT, found.text, str(found.attention), plain(found.attention), found.attention.shows):
        assert " ".join(part.split()) in " ".join(shown.split())
    assert str(found.attention) in shown
    for name in ("source", "translation", "honesty", "entropy", "coverage", "sink"):
        assert sum(line.startswith(f"{name} ") for line in shown.splitlines()) == 1
    assert f"{found.honesty():.2f}: " in shown


def test_each_line_of_stdin_is_explained(place):
    both = right(place, "-", stdin="the dog runs.\n\na cat\n")
    assert both == right(place, TEXT) + "\n" + right(place, "a cat")
    assert right(place, stdin="a cat\n") == right(place, "a cat")
    assert right(place, "a\n cat") == right(place, "a cat")


def test_a_given_translation_is_explained(place):
    shown = right(place, TEXT, "--target", "개 달려요.", "--json")
    record = json.loads(shown)
    assert (record["text"], record["given"], record["rows"][:2]) == ("개 달려요.", True, ["개", "달려요."])
    own = json.loads(right(place, TEXT, "--json"))
    again = json.loads(right(place, TEXT, "--target", own["text"], "--json"))
    if load(tiny_bundle(), device="cpu").translate(TEXT).finished:
        assert again["score"] == pytest.approx(own["score"], abs=1e-4)
    assert numpy.allclose(again["weights"], own["weights"], atol=1e-3)


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
def test_another_map_can_be_asked_for(place, found, options, changes):
    record = json.loads(right(place, TEXT, *options, "--json"))
    expected = found.attention.seen(**changes)
    assert record["shows"] == expected.shows
    assert numpy.allclose(record["weights"], expected.weights, atol=1e-4)
    assert (record["honesty"] is None) == (changes.get("kind", "cross") != "cross")
    assert expected.shows in " ".join(right(place, TEXT, *options).split())


def test_right_links_are_compared_with(place, found):
    links = " ".join(f"{one + 1}-{other + 1}" for one, other in found.attention.alignment())
    assert "error rate 0 %" in right(place, TEXT, "--gold", links, "--gold-base", 1)
    assert json.loads(right(place, TEXT, "--gold", links, "--gold-base", 1, "--json"))["aer"] == 0
    assert "error rate 100 %" in right(place, TEXT, "--target", "개 개 개", "--gold", "", "--gold-base", 0)


@pytest.mark.parametrize("name", ["look.html", "look.svg", "look.json", "LOOK.HTML"])
def test_a_file_holds_the_attention_and_leaves_nothing_else(place, found, tmp_path, name):
    ran = explain(place, TEXT, "-o", tmp_path / name, *["--no-what-if"] * name.lower().endswith("html"))
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.startswith(f"wrote {tmp_path / name} (")
    assert [each.name for each in tmp_path.iterdir()] == [name]
    loaded = Attention.load(tmp_path / name)
    assert numpy.allclose(loaded.weights, found.attention.weights, atol=1e-4)
    assert loaded.shows == found.attention.shows


@pytest.mark.parametrize(("name", "begin"), [("look.png", b"\x89PNG"), ("look.pdf", b"%PDF")])
def test_pictures_for_paper(place, tmp_path, name, begin):
    pytest.importorskip("typst")
    right(place, TEXT, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_a_page_answers_what_if_unless_told_not_to(place, tmp_path):
    for options in ([], ["--no-what-if"]):
        right(place, TEXT, "-o", tmp_path / "look.html", *options)
        assert ("without “dog”" in (tmp_path / "look.html").read_text(encoding="utf-8")) == (not options)


def test_a_word_that_is_left_out_is_named(place, found, monkeypatch):
    influence = numpy.ones((len(found.attention.recording.target.words) + 1, 3))
    influence[:, 1] = -1.0
    monkeypatch.setattr("softgaze.gaze.influence.influences_and_end", lambda *_: [influence])
    likelier = len(influence)
    assert f"unsaid       dog (without, the translation is {likelier:.1f} nats likelier)" in right(place, TEXT)
    assert json.loads(right(place, TEXT, "--json"))["unsaid"] == ["dog"]
    influence[:] = 1
    assert "unsaid" not in right(place, TEXT)


HOSTILE = "the \x1b[31mdog \u202eruns \u2067now \x9b1m."


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize("arguments", [[HOSTILE], [HOSTILE, "--json"], ["--corpus", "hostile.en"]])
def test_nothing_of_a_text_does_anything_to_a_terminal(tmp_path, arguments):
    (tmp_path / "hostile.en").write_text(f"{HOSTILE}\n" * 2, encoding="utf-8")
    shown = on_a_terminal(["explain", str(tiny_bundle()), *arguments], tmp_path)
    assert "dog" in shown
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert "--json" in arguments or "\u2067" not in shown


def on_a_terminal(arguments, place):
    import pty

    here, there = pty.openpty()
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "softgaze", *arguments]
    running = subprocess.Popen(command, cwd=place, env=alone, stdin=there, stdout=there, stderr=subprocess.PIPE)
    os.close(there)
    shown = b""
    with open(here, "rb", buffering=0) as terminal:
        while part := read_some(terminal):
            shown += part
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    return shown.decode()


def read_some(terminal):
    try:
        return terminal.read(4096)
    except OSError:  # how Linux says that nobody writes any more
        return b""


# --- what cannot work

WRONG = {
    "empty text": ([""], 2, "the text is empty"),
    "only spaces": ([" \n "], 2, "the text is empty"),
    "an unknown ending": ([TEXT, "-o", "look.gif"], 2, "must end in .html, .svg, .png, .pdf, .json"),
    "no ending": ([TEXT, "-o", "look"], 2, "must end in"),
    "a directory": ([TEXT, "-o", "folder"], 2, "folder is a directory; name a file"),
    "a directory that is not there": ([TEXT, "-o", "nowhere/look.html"], 4, "there is no directory nowhere"),
    "no such layer": ([TEXT, "--layer", "7"], 2, "there is no layer 7"),
    "no such head": ([TEXT, "--layer", "0", "--head", "7"], 2, "there is no head 7"),
    "a head of no layer": ([TEXT, "--head", "1"], 2, "give --layer too"),
    "an unknown kind": ([TEXT, "--kind", "cros"], 2, "did you mean cross"),
    "an unknown measure": ([TEXT, "--measure", "norm"], 2, "did you mean norms"),
    "a rollout of one layer": ([TEXT, "--measure", "rollout", "--layer", "0"], 2, "through all layers"),
    "gold without a base": ([TEXT, "--gold", "0-0"], 2, "--gold needs --gold-base 0 or 1"),
    "a base without gold": ([TEXT, "--gold-base", "0"], 2, "give --gold"),
    "gold beyond the sentence": (
        [TEXT, "--gold", "9-0", "--gold-base", "0"],
        3,
        "its source has 3 words, counted from 0; is --gold-base right",
    ),
    "gold of one side": ([TEXT, "--kind", "encoder", "--gold", "0-0", "--gold-base", "0"], 2, "only one of them"),
    "gold that is none": ([TEXT, "--gold", "a-b", "--gold-base", "0"], 3, "'a-b' is no link"),
    "nothing given": ([TEXT, "--target", " "], 2, "nothing was written"),
    "a reference of a text": ([TEXT, "--reference", "test.ko"], 2, "--reference has no meaning with a single TEXT"),
    "a text and a corpus": ([TEXT, "--corpus", "test.en"], 2, "TEXT has no meaning with --corpus"),
    "a layer of a corpus": (["--corpus", "test.en", "--layer", "0"], 2, "--layer has no meaning with --corpus"),
    "a picture of a corpus": (["--corpus", "test.en", "-o", "c.svg"], 2, "must end in .html, .json"),
    "a corpus that is not there": (["--corpus", "none.en"], 3, "none.en does not exist"),
    "an empty corpus": (["--corpus", "empty.en"], 3, "empty.en is empty"),
    "a reference that is too short": (["--corpus", "test.en", "--reference", "short.gold"], 3, "line n must"),
    "gold of no reference": (["--corpus", "test.en", "--gold", "test.gold", "--gold-base", "0"], 2, "--reference REF"),
    "gold of another base": (
        ["--corpus", "test.en", "--reference", "test.ko", "--gold", "past.gold", "--gold-base", "0"],
        3,
        "past.gold, line 1: the link 3-2 is past the end: its source has 3 words",
    ),
    "gold that is too short": (
        ["--corpus", "test.en", "--reference", "test.ko", "--gold", "short.gold", "--gold-base", "0"],
        3,
        "gold needs a line for each",
    ),
    "a film on the screen": (["--film"], 2, "say where it goes: -o film.html"),
    "a film of a model without one": (["--film", "-o", "film.html"], 3, "--film"),
    "a film as JSON": (["--film", "-o", "film.html", "--json"], 2, "--json has no meaning with --film"),
    "a base of a film": (["--film", "-o", "f.html", "--gold-base", "0"], 2, "--gold-base has no meaning with --film"),
    "a beam of a film": (["--film", "-o", "film.html", "--beam", "5"], 2, "--beam has no meaning with --film"),
    "a beam of a given text": ([TEXT, "--target", "개", "--beam", "5"], 2, "--beam has no meaning with --target"),
    "no what-if on the screen": ([TEXT, "--no-what-if"], 2, "--no-what-if has no meaning with the screen"),
    "no what-if in a picture": ([TEXT, "-o", "look.svg", "--no-what-if"], 2, "has no meaning with look.svg"),
    "a film of a text": ([TEXT, "--film", "-o", "film.html"], 2, "TEXT has no meaning with --film"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_one_line(place, arguments, code, said):
    ran = explain(place, *arguments)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr
    assert "\n" not in ran.stderr
    assert ran.stdout == ""


def test_one_file_holds_one_text(place):
    ran = explain(place, "-", "-o", "look.html", stdin="a\nb\n")
    assert ran.returncode == 2
    assert "can hold one text, and 2 were given" in ran.stderr


def test_a_read_only_directory_is_named_before_a_model_is_loaded(place, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everywhere
    ran = explain(place, TEXT, "-o", "folder/look.html", model="nowhere")
    assert (ran.returncode, ran.stderr) == (
        4,
        "folder/look.html: cannot be written: the directory folder is read-only for you",
    )


@pytest.mark.parametrize("arguments", [[TEXT], ["--corpus", "test.en"]])
def test_a_model_without_attention_says_so(place, arguments):
    ran = explain(place, *arguments, model=place / "rnn")
    assert ran.returncode == 2
    assert "a model of arch rnn has no attention" in ran.stderr


# --- a corpus


def corpus_json(place, tmp_path, *options):
    ran = explain(place, "--corpus", "test.en", "-o", tmp_path / "c.json", "--beam", 1, *options)
    assert ran.returncode == 0, ran.stderr
    return json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))


def test_every_line_is_looked_at_and_is_what_translate_gives(place, tmp_path):
    record = corpus_json(place, tmp_path, "--reference", "test.ko")
    assert (record["sentences"], record["empty"], record["beam"]) == (3, 1, 1)
    assert [each["line"] for each in record["looks"]] == [1, 3, 4]
    translator = load(tiny_bundle(), device="cpu").measured(zip(SOURCES, REFERENCES, strict=True))
    for each in record["looks"]:
        expected = translator.translate(SOURCES[each["line"] - 1], beam=1)
        assert " ".join(each["output"]) == expected.text
        assert each["reference"] == REFERENCES[each["line"] - 1].split()
        assert each["honesty"] == pytest.approx(expected.honesty(), abs=1e-3)
        assert each["sink"] == pytest.approx(expected.attention.sink, abs=1e-3)
        assert set(each["scores"]) == {"bleu", "chrf"}


def test_without_a_stored_choice_one_map_is_chosen_for_all(place, tmp_path):
    sizes = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 3}
    model = make_bundle(tmp_path / "model", options=sizes)
    right(place, "--corpus", "test.en", "-o", tmp_path / "c.json", "--beam", 1, model=model)
    record = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    translator = load(model, device="cpu")
    found = translator.translate(SOURCES, beam=1)
    choice = translator.measured([(each.source, each.text) for each in found]).choice
    for each in record["looks"]:
        expected = found[each["line"] - 1].attention.seen(**vars(choice.view))
        assert each["covered"] == pytest.approx(expected.word_weights().sum(axis=0), abs=1e-3)
    assert record["shows"] == replace(expected, choice=choice).shows


def test_what_mattered_is_measured_once(place, tmp_path, monkeypatch):
    plain, asked = Translator.influences, []
    monkeypatch.setattr(Translator, "influences", lambda self, texts: [asked.append(1), plain(self, texts)][1])
    right(place, TEXT, "-o", tmp_path / "look.html", "--no-what-if", "--json")
    assert asked == [1]


def test_blocks_change_nothing(place, tmp_path, monkeypatch):
    whole = corpus_json(place, tmp_path)
    monkeypatch.setattr("softgaze.cli.corpus.BLOCK", 2)
    parts = corpus_json(place, tmp_path)
    for one, other in zip(whole.pop("looks"), parts.pop("looks"), strict=True):
        assert one["line"] == other["line"]
        assert one["output"] == other["output"]
        assert one["needed"] == pytest.approx(other["needed"], abs=1e-3)
    assert whole == parts


def test_only_the_first_lines(place, tmp_path):
    assert [each["line"] for each in corpus_json(place, tmp_path, "--limit", 3)["looks"]] == [1, 3]


def test_the_error_rate_is_that_of_align(place, tmp_path):
    gold = ["--reference", "test.ko", "--gold", "test.gold", "--gold-base", 0]
    record = corpus_json(place, tmp_path, *gold)
    links = load(tiny_bundle(), device="cpu").align(SOURCES, REFERENCES)
    kept = [number for number, source in enumerate(SOURCES) if source]
    lines = (place / "test.gold").read_text().splitlines()
    expected = aer([links[number] for number in kept], [lines[number] for number in kept], gold_base=0)
    assert record["aer"] == pytest.approx(expected, abs=1e-4)


def test_the_screen_has_the_worst_of_each_ranking(place):
    shown = right(place, "--corpus", "test.en", "--reference", "test.ko")
    assert shown.startswith("3 sentences, ")
    assert "1 line had nothing to look at" in shown
    assert "Unlike the reference (3 of 3 sentences)" in shown
    assert json.loads(right(place, "--corpus", "test.en", "--json"))["sentences"] == 3


def test_the_page_is_one_file(place, tmp_path):
    ran = explain(place, "--corpus", "test.en", "-o", tmp_path / "c.html")
    assert ran.returncode == 0
    assert "wrote" in ran.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["c.html"]
    assert (tmp_path / "c.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupted_nothing_is_left(place, tmp_path):
    (tmp_path / "many.en").write_text("the dog runs and sees the old man.\n" * 20_000)
    command = [sys.executable, "-m", "softgaze", "explain", str(tiny_bundle()), "--corpus", "many.en", "-o", "c.html"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(command, cwd=tmp_path, env=alone, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sleep(5)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert b"Traceback" not in said
    assert [each.name for each in tmp_path.iterdir()] == ["many.en"]


# --- a film


def test_a_film_is_made_from_a_run_even_while_it_goes_on(place, tmp_path):
    frames = [Frame(step, step / 10, {"loss": 3.0, "bleu": 1.5}, "개", random_attention(step)) for step in (0, 10)]
    film = "".join(frame.to_line() + "\n" for frame in frames)
    (tmp_path / NAME).write_text(film + frames[0].to_line()[:50], encoding="utf-8")  # one is being written
    ran = explain(place, "--film", "-o", "film.html", model=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (place / "film.html").read_text(encoding="utf-8").count('"step":') == 2


def test_a_film_without_a_frame_says_so(place, tmp_path):
    (tmp_path / NAME).write_text("")
    ran = explain(place, "--film", "-o", "film.html", model=tmp_path)
    assert ran.returncode == 3
    assert "no frame yet" in ran.stderr
