"""`softgaze align`: N pairs in are N lines out; the error rate against gold; one-line errors."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from bundles import make_bundle, tiny_bundle
from commands import check_error, run
from softgaze.bundle import ATTENTION, Bundle, add_facts
from softgaze.explain import Alignment, SelectedMap, View, aer
from softgaze.explain.map_selection import BY_AGREEMENT

PAIRS = [("the dog runs.", "개 달려요."), ("", ""), ("a cat", ""), ("a small red cat sees.", "작은 고양이 봐요.")] * 2


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("align")
    for side, name in enumerate(["test.en", "test.ko"]):
        (directory / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    make_bundle(directory / "reverse", source_language="ko", target_language="en")
    make_bundle(directory / "rnn", arch="rnn", options={"width": 16})
    return directory


def align(directory, *arguments, model=None):
    return run(directory, "align", model or tiny_bundle(), *arguments)


def links_of(directory, *arguments, **options):
    result = align(directory, "test.en", "test.ko", *arguments, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[:-1]


def test_as_many_lines_as_pairs_and_every_word_is_linked(directory):
    alignments = links_of(directory)
    assert len(alignments) == len(PAIRS)
    for (source, target), line in zip(PAIRS, alignments, strict=True):
        words = {other for _, other in Alignment.parse(line)}
        assert words == (set(range(len(target.split()))) if source else set())
    assert alignments[:4] == alignments[4:]


def test_a_file_gets_the_same_and_the_screen_nothing(directory):
    result = align(directory, "test.en", "test.ko", "-o", "links.gz")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    written = gzip.decompress((directory / "links.gz").read_bytes()).decode()
    assert written.split("\n")[:-1] == links_of(directory)


def test_json_has_words_and_links(directory):
    for (source, target), line in zip(PAIRS, links_of(directory, "--json"), strict=True):
        record = json.loads(line)
        assert (record["source"], record["target"]) == (source, target)
        assert Alignment(frozenset(map(tuple, record["links"]))) == Alignment.parse(record["alignment"])


def test_two_directions_are_combined_by_the_method(directory):
    alignments = {
        name: links_of(directory, "--reverse", "reverse", "--method", name) for name in ("intersection", "union")
    }
    usual = links_of(directory, "--reverse", "reverse")
    for low, middle, high in zip(alignments["intersection"], usual, alignments["union"], strict=True):
        assert Alignment.parse(low).links <= Alignment.parse(middle).links <= Alignment.parse(high).links
    assert alignments["intersection"] != alignments["union"]


@pytest.mark.parametrize("base", [0, 1])
def test_the_error_rate_goes_to_stderr_and_lines_stay_lines(directory, base):
    alignments = links_of(directory)
    gold = [" ".join(f"{one + base}-{other + base}" for one, other in Alignment.parse(line)) for line in alignments]
    gold[0] = f"{base}-{base + 1}"
    (directory / "gold").write_text("".join(f"{line}\n" for line in gold))
    result = align(directory, "test.en", "test.ko", "--gold", "gold", "--gold-base", base)
    assert result.stdout.split("\n")[:-1] == alignments
    assert result.stderr.startswith(f"AER {aer(alignments, gold, gold_base=base):.1%}")
    to_file = align(directory, "test.en", "test.ko", "--gold", "gold", "--gold-base", base, "-o", "links", "--json")
    record = json.loads(to_file.stdout)
    assert record["aer"] == pytest.approx(aer(alignments, gold, gold_base=base), abs=1e-6)
    assert record["sentences"] == len(PAIRS)
    assert record["maps"][0]["by"] == "agreement with occlusion"


def test_the_map_that_was_stored_is_used(directory, tmp_path):
    model = make_bundle(tmp_path / "model")
    for rows in ("predicting", "reading"):
        add_facts(model, {ATTENTION: SelectedMap(View(layer=0, head=1, rows=rows), 0.5, "a test", 3).to_dict()})
        (directory / "gold").write_text("\n" * len(PAIRS))
        result = align(
            directory, "test.en", "test.ko", "--gold", "gold", "--gold-base", 0, "-o", "l", "--json", model=model
        )
        [used] = json.loads(result.stdout)["maps"]
        assert (used["by"], used["rows"], used["head"]) == ("a test", rows, 1)


def test_the_error_rate_comes_with_its_maps(directory):
    (directory / "gold").write_text("\n" * len(PAIRS))
    result = align(
        directory, "test.en", "test.ko", "--reverse", "reverse", "--gold", "gold", "--gold-base", 0, "-o", "l"
    )
    rate, forward, reverse = result.stdout.splitlines()
    assert rate.startswith("AER ")
    for name, line in (("map", forward), ("reverse map", reverse)):
        assert line.startswith(f"{name}: cross-attention, ")
        assert "words without attached punctuation" in line
        assert "selected by agreement with the reverse model: " in line


def test_two_models_store_the_maps_that_agreed(directory):
    for name, languages in (("there", ("en", "ko")), ("back", ("ko", "en"))):
        make_bundle(directory / name, source_language=languages[0], target_language=languages[1])
    plain = align(directory, "test.en", "test.ko", "--reverse", "back", model=directory / "there")
    assert not any(ATTENTION in Bundle.open(directory / name).facts for name in ("there", "back"))
    kept = align(directory, "test.en", "test.ko", "--reverse", "back", "--save-maps", model=directory / "there")
    assert (kept.returncode, kept.stdout) == (plain.returncode, plain.stdout) == (0, plain.stdout)
    for name in ("there", "back"):
        assert SelectedMap.from_dict(Bundle.open(directory / name).facts[ATTENTION]).by == BY_AGREEMENT


def test_empty_files_have_no_lines(directory):
    (directory / "empty").write_text("")
    result = align(directory, "empty", "empty")
    assert (result.returncode, result.stdout) == (0, "")


GOLD = ["--gold", "gold", "--gold-base", "0"]
WRONG = {  # options of `align MODEL test.en test.ko`
    "no base": (["--gold", "gold"], 2, "--gold-base"),
    "a base without gold": (["--gold-base", "1"], 2, "--gold FILE"),
    "another base": (["--gold", "gold", "--gold-base", "2"], 2, "'0', '1'"),
    "gold that is none": ([*GOLD, "--gold", "test.en"], 3, "test.en: gold, line 1: 'the'"),
    "gold that does not exist": ([*GOLD, "--gold", "none"], 3, "none does not exist"),
    "gold of another length": ([*GOLD, "--gold", "short.ko"], 3, "one line per sentence"),
    "gold of another base": ([*GOLD, "--gold", "past"], 3, "past, line 4: the link 5-3 is past the end"),
    "a method for one model": (["--method", "union"], 2, "--reverse"),
    "maps of one model": (["--save-maps"], 2, "--reverse"),
    "an unknown method": (["--reverse", "reverse", "--method", "unoin"], 2, "'union'"),
    "a share that is none": (["--threshold", "2"], 2, "--threshold"),
    "the same direction twice": (["--reverse", tiny_bundle], 2, "ko → en"),
}


@pytest.mark.parametrize(("options", "code", "fact"), WRONG.values(), ids=WRONG)
def test_mistakes_are_one_line(directory, options, code, fact):
    (directory / "gold").write_text("\n" * len(PAIRS))
    (directory / "short.ko").write_text("1-1\n")
    (directory / "past").write_text("1-1 2-1\n\n\n2p1 5-3\n" + "\n" * 4)
    options = [option() if callable(option) else option for option in options]
    check_error(align(directory, "test.en", "test.ko", *options), code, fact)


@pytest.mark.parametrize(
    ("files", "fact"), [(("no.en", "test.ko"), "no.en"), (("test.en", "test.gold"), "line n must")]
)
def test_files_that_do_not_fit_are_named(directory, files, fact):
    (directory / "test.gold").write_text("1-1\n")
    check_error(align(directory, *files), 3, fact)


def test_a_model_without_attention_is_rejected(directory):
    check_error(align(directory, "test.en", "test.ko", model=directory / "rnn"), 2, "has no attention")


def test_a_real_process_prints_lines_and_one_line_errors(directory):
    command = [sys.executable, "-m", "softgaze", "align", str(tiny_bundle()), "test.en"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    right, wrong = (
        subprocess.run([*command, name], capture_output=True, text=True, cwd=directory, env=alone, timeout=120)
        for name in ("test.ko", "nowhere")
    )
    assert right.stdout.split("\n")[:-1] == links_of(directory)
    assert wrong.stderr.startswith("softgaze: error: nowhere does not exist")
    assert wrong.stderr.count("\n") == 1
