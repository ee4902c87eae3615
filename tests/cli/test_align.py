"""`softgaze align`: N pairs in are N lines out; the error rate against gold; one line for whatever cannot work."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from bundles import make_bundle, tiny_bundle
from commands import run
from softgaze.bundle import ATTENTION, Bundle, add_facts
from softgaze.gaze import Alignment, Choice, View, aer
from softgaze.gaze.choice import AGREEMENT

PAIRS = [("the dog runs.", "개 달려요."), ("", ""), ("a cat", ""), ("a small red cat sees.", "작은 고양이 봐요.")] * 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("align")
    for side, name in enumerate(["test.en", "test.ko"]):
        (directory / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    make_bundle(directory / "reverse", source_language="ko", target_language="en")
    make_bundle(directory / "rnn", arch="rnn", options={"width": 16})
    return directory


def align(place, *arguments, model=None):
    return run(place, "align", model or tiny_bundle(), *arguments)


def links_of(place, *arguments, **options):
    ran = align(place, "test.en", "test.ko", *arguments, **options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split("\n")[:-1]


def test_as_many_lines_as_pairs_and_every_word_is_linked(place):
    found = links_of(place)
    assert len(found) == len(PAIRS)
    for (source, target), line in zip(PAIRS, found, strict=True):
        words = {other for _, other in Alignment.parse(line)}
        assert words == (set(range(len(target.split()))) if source else set())
    assert found[:4] == found[4:]


def test_a_file_gets_the_same_and_the_screen_nothing(place):
    ran = align(place, "test.en", "test.ko", "-o", "links.gz")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    written = gzip.decompress((place / "links.gz").read_bytes()).decode()
    assert written.split("\n")[:-1] == links_of(place)


def test_json_has_words_and_links(place):
    for (source, target), line in zip(PAIRS, links_of(place, "--json"), strict=True):
        record = json.loads(line)
        assert (record["source"], record["target"]) == (source, target)
        assert Alignment(frozenset(map(tuple, record["links"]))) == Alignment.parse(record["alignment"])


def test_two_directions_are_joined_as_asked(place):
    found = {name: links_of(place, "--reverse", "reverse", "--method", name) for name in ("intersection", "union")}
    usual = links_of(place, "--reverse", "reverse")
    for low, middle, high in zip(found["intersection"], usual, found["union"], strict=True):
        assert Alignment.parse(low).links <= Alignment.parse(middle).links <= Alignment.parse(high).links
    assert found["intersection"] != found["union"]


@pytest.mark.parametrize("base", [0, 1])
def test_the_error_rate_goes_to_stderr_and_lines_stay_lines(place, base):
    found = links_of(place)
    gold = [" ".join(f"{one + base}-{other + base}" for one, other in Alignment.parse(line)) for line in found]
    gold[0] = f"{base}-{base + 1}"
    (place / "gold").write_text("".join(f"{line}\n" for line in gold))
    ran = align(place, "test.en", "test.ko", "--gold", "gold", "--gold-base", base)
    assert ran.stdout.split("\n")[:-1] == found
    assert ran.stderr.startswith(f"AER {100 * aer(found, gold, gold_base=base):.1f} %")
    to_file = align(place, "test.en", "test.ko", "--gold", "gold", "--gold-base", base, "-o", "links", "--json")
    record = json.loads(to_file.stdout)
    assert record["aer"] == pytest.approx(aer(found, gold, gold_base=base), abs=1e-6)
    assert record["sentences"] == len(PAIRS)
    assert record["maps"][0]["by"] == "influence of leaving words out"


def test_the_map_that_was_stored_is_used(place, tmp_path):
    model = make_bundle(tmp_path / "model")
    for rows in ("predicting", "reading"):
        add_facts(model, {ATTENTION: Choice(View(layer=0, head=1, rows=rows), 0.5, "a test", 3).to_dict()})
        (place / "gold").write_text("\n" * len(PAIRS))
        ran = align(place, "test.en", "test.ko", "--gold", "gold", "--gold-base", 0, "-o", "l", "--json", model=model)
        [used] = json.loads(ran.stdout)["maps"]
        assert (used["by"], used["rows"], used["head"]) == ("a test", rows, 1)


def test_the_error_rate_names_the_maps_it_is_of(place):
    (place / "gold").write_text("\n" * len(PAIRS))
    ran = align(place, "test.en", "test.ko", "--reverse", "reverse", "--gold", "gold", "--gold-base", 0, "-o", "l")
    rate, forward, reverse = ran.stdout.splitlines()
    assert rate.startswith("AER ")
    for name, line in (("map", forward), ("reverse map", reverse)):
        assert line.startswith(f"{name}: cross-attention, ")
        assert "words without punctuation attached" in line
        assert "chosen by agreement with the reverse model: " in line


def test_two_models_keep_the_maps_that_agreed(place):
    for name, languages in (("there", ("en", "ko")), ("back", ("ko", "en"))):
        make_bundle(place / name, source_language=languages[0], target_language=languages[1])
    plain = align(place, "test.en", "test.ko", "--reverse", "back", model=place / "there")
    assert not any(ATTENTION in Bundle.open(place / name).facts for name in ("there", "back"))
    kept = align(place, "test.en", "test.ko", "--reverse", "back", "--keep-maps", model=place / "there")
    assert (kept.returncode, kept.stdout) == (plain.returncode, plain.stdout) == (0, plain.stdout)
    for name in ("there", "back"):
        assert Choice.from_dict(Bundle.open(place / name).facts[ATTENTION]).by == AGREEMENT


def test_empty_files_have_no_lines(place):
    (place / "empty").write_text("")
    ran = align(place, "empty", "empty")
    assert (ran.returncode, ran.stdout) == (0, "")


WRONG = {
    "a missing file": (["nowhere.en", "test.ko"], 3, "nowhere.en does not exist"),
    "files of different lengths": (["test.en", "short.ko"], 3, "line n must translate line n"),
    "no base": (["test.en", "test.ko", "--gold", "gold"], 2, "--gold needs --gold-base 0 or 1"),
    "a base without gold": (["test.en", "test.ko", "--gold-base", "1"], 2, "give --gold FILE too"),
    "another base": (["test.en", "test.ko", "--gold", "gold", "--gold-base", "2"], 2, "from 0 or from 1"),
    "gold that is none": (
        ["test.en", "test.ko", "--gold", "test.en", "--gold-base", "1"],
        3,
        "test.en: gold, line 1: 'the'",
    ),
    "gold that does not exist": (
        ["test.en", "test.ko", "--gold", "none", "--gold-base", "1"],
        3,
        "none does not exist",
    ),
    "gold of another length": (
        ["test.en", "test.ko", "--gold", "short.ko", "--gold-base", "1"],
        3,
        "gold needs a line for each",
    ),
    "gold of another base": (
        ["test.en", "test.ko", "--gold", "past", "--gold-base", "0"],
        3,
        "past, line 4: the link 5-3 is past the end: its source has 5 words, counted from 0; is --gold-base right",
    ),
    "a method for one model": (["test.en", "test.ko", "--method", "union"], 2, "give the other one with --reverse"),
    "maps of one model": (["test.en", "test.ko", "--keep-maps"], 2, "give the other one with --reverse"),
    "an unknown method": (["test.en", "test.ko", "--reverse", "reverse", "--method", "unoin"], 2, "did you mean union"),
    "a share that is none": (["test.en", "test.ko", "--threshold", "2"], 2, "a share above 0"),
    "the same direction twice": (["test.en", "test.ko", "--reverse", "{model}"], 2, "must translate ko → en"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_one_line(place, arguments, code, said):
    (place / "gold").write_text("\n" * len(PAIRS))
    (place / "short.ko").write_text("1-1\n")
    (place / "past").write_text("1-1 2-1\n\n\n2p1 5-3\n" + "\n" * 4)
    ran = align(place, *(each.format(model=tiny_bundle()) for each in arguments))
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr
    assert "\n" not in ran.stderr
    assert ran.stdout == ""


def test_a_model_without_attention_says_so(place):
    ran = align(place, "test.en", "test.ko", model=place / "rnn")
    assert ran.returncode == 2
    assert "has no attention" in ran.stderr


def test_as_a_process_it_writes_lines_and_says_errors_in_one(place):
    command = [sys.executable, "-m", "softgaze", "align", str(tiny_bundle()), "test.en"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    right, wrong = (
        subprocess.run([*command, name], capture_output=True, text=True, cwd=place, env=alone, timeout=120)
        for name in ("test.ko", "nowhere")
    )
    assert right.stdout.split("\n")[:-1] == links_of(place)
    assert wrong.stderr.startswith("softgaze: error: nowhere does not exist")
    assert wrong.stderr.count("\n") == 1
