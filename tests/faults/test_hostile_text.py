"""Text made to harm, through every command: as many lines out as in, no control token among them, and no crash."""

import json
import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundles import copier, tiny_bundle, tokenizer
from commands import run
from corpora import write_corpus
from faults.amounts import times
from faults.children import command, environment
from softgaze.data.tokenizer import normalise, train_tokenizer
from softgaze.errors import SoftgazeError
from softgaze.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

HARMLESS = {  # lines a text file may hold
    "line separator": "one\u2028two",
    "paragraph separator": "one\u2029two",
    "next line": "one\u0085two",
    "form feed": "one\x0ctwo\x0bthree\x1cfour",
    "bell and escape": "\x07\x1b[31mred\x1b]0;title\x07",
    "right to left": "\u202eevil\u202c \u2066isolated\u2069 \u200fmark",
    "emoji": "👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 🇰🇷",
    "combining": "e" + "\u0301" * 50,
    "composed": "각 é",
    "decomposed": unicodedata.normalize("NFD", "각 é"),
    "controls spelled": "<s> </s> <pad> <unk> <0x0A> <0x00> <s></s><s>",
    "space marks": "▁ ▁▁ ▁dog ▁</s>",
    "tabs": "one\ttwo\tthree",
    "carriage return inside": "one\rtwo",
    "noncharacters": "\ufdd0\uffff\U0010ffff",
    "private": "\ue000\U000f0000",
    "zero width": "do\u200bg \ufeffcat \u00ad",
    "not a bom": "cat\ufeff",
    "spaces of all kinds": "\u00a0\u2003\u3000",
    "nothing": "",
    "long": "dog" * 50,
    "markup": "<script>alert(1)</script> & \"quoted\" 'so' {{x}} %s {0}",
    "number": "NaN inf -0 1e999",
}
REFUSED = {  # bytes no line of text may have; the message says where
    "nul": b"a\0b",
    "surrogate": b"a\xed\xa0\x80b",
    "latin": b"caf\xe9",
    "cut": b"\xf0\x9f\x98",
    "overlong": b"\xc0\xaf",
}
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")) | st.sampled_from(
    sorted(HARMLESS.values())
)
fuzzed = settings(max_examples=times(20, 500))


def write(place: Path, name: str, lines: list[str]) -> Path:
    path = place / name
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


# --- tokens -----------------------------------------------------------------------------------------------------


@cache
def learnt():
    """From the harmful text itself."""
    return train_tokenizer([*HARMLESS.values(), *HARMLESS.values()])


@fuzzed
@given(st.lists(any_text, min_size=1, max_size=4))
def test_no_text_becomes_a_control_token(texts):
    for each in (tokenizer(), learnt()):
        for text, ids in zip(texts, each.encode(texts), strict=True):
            assert not {PAD, BOS, EOS, UNK} & set(ids)
            assert all(0 <= number < len(each) for number in ids)
            assert each.decode(ids) == normalise(text.replace("▁", " ")) or "▁" in text


@pytest.mark.parametrize("word", ["<s>", "</s>", "<pad>", "<unk>", "<0x0A>", "<0x41>"])
def test_control_tokens_that_are_typed_stay_what_was_typed(word):
    for each in (tokenizer(), learnt()):
        [ids] = each.encode([f"dog {word} cat"])
        assert not set(SPECIAL_TOKENS) & set(ids)
        assert each.decode(ids) == f"dog {word} cat"
        assert word not in each.pieces(ids)


# --- translating ------------------------------------------------------------------------------------------------


@fuzzed
@given(st.lists(any_text, max_size=6))
def test_as_many_translations_as_texts(texts):
    """By a model that copies: what comes out is what went in, without line ends."""
    found = copier(Path("none")).translate(texts)
    assert len(found) == len(texts)
    for text, each in zip(texts, found, strict=True):
        assert not set("\n\r\t\u0085\u2028\u2029\x1b\0") & set(each.text)
        assert bool(each.text) <= bool(text.strip())


@pytest.mark.parametrize("text", ["e" + "\u0301" * 10_000, "dog" * 1_000, "\u202e" * 1_000, "👩\u200d" * 1_000])
def test_a_line_without_a_seam_is_one_line(tmp_path, text):
    [found] = copier(Path("none")).translate([text])
    assert normalise(found.text).replace(" ", "") == normalise(text)
    write(tmp_path, "a.en", [text, "dog"])
    assert json.loads(run(tmp_path, "check", "a.en", "a.en", "--json").stdout)["pairs"] == 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("text")
    write(directory, "hostile.en", [*HARMLESS.values()])
    write(directory, "hostile.ko", [*reversed(HARMLESS.values())])
    return directory


QUICK = ("--beam-size", 1, "--device", "cpu")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_translate_writes_a_line_for_each(place, more):
    done = run(place, "translate", tiny_bundle(), "--input", "hostile.en", "--output", "out", *QUICK, *more)
    assert done.returncode == 0, done.stderr
    lines = (place / "out").read_bytes().decode().split("\n")
    assert len(lines) == len(HARMLESS) + 1
    if more:
        assert [json.loads(line)["source"] for line in lines[:-1]] == [
            each.removesuffix("\r") for each in HARMLESS.values()
        ]
        assert len((place / "out").read_text().splitlines()) == len(HARMLESS)
    else:
        for source, line in zip(
            HARMLESS.values(), lines[:-1], strict=True
        ):  # a typed tag comes back, none is generated
            for name in ("<s>", "</s>", "<pad>"):
                assert line.count(name) <= source.count(name)


@pytest.mark.parametrize("name", REFUSED)
def test_bytes_that_are_no_text_are_named(place, name):
    (place / "bad").write_bytes(b"a dog\n" + REFUSED[name] + b"\na cat\n")
    for arguments in (
        ("translate", tiny_bundle(), "--input", "bad", *QUICK),
        ("align", tiny_bundle(), "bad", "bad"),
        ("evaluate", tiny_bundle(), "--test", "bad", "bad"),
        ("train", "--train", "bad", "hostile.ko", "--out", "run"),
        ("train", "--train", "bad", "bad", "--out", "run", "--source-lang", "en", "--target-lang", "de"),
    ):
        done = run(place, *arguments)
        assert done.returncode in (2, 3), (arguments, done)
        assert "bad" in done.stderr
        assert "\n" not in done.stderr.strip()
        assert not (place / "run").exists()
    told = run(place, "check", "bad", "bad")
    assert "line 2" in told.stdout


# --- the other commands -----------------------------------------------------------------------------------------


def test_check_examines_it(place):
    done = run(place, "check", "hostile.en", "hostile.ko")
    assert done.returncode in (0, 1, 3), done.stderr
    assert "pairs" in done.stdout
    assert "\x1b" not in done.stdout
    told = run(place, "check", "hostile.en", "hostile.ko", "--json")
    assert json.loads(told.stdout)["pairs"] == len(HARMLESS)


def test_align_writes_a_line_for_each_pair(place):
    done = run(place, "align", tiny_bundle(), "hostile.en", "hostile.ko")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == len(HARMLESS)


def test_evaluate_scores_it(place):
    done = run(place, "evaluate", tiny_bundle(), "--test", "hostile.en", "hostile.ko")
    assert done.returncode == 0, done.stderr


def test_explain_shows_it(place):
    for name in ("controls spelled", "markup", "right to left", "emoji", "bell and escape", "combining"):
        done = run(place, "explain", tiny_bundle(), HARMLESS[name], "-o", "page.html")
        assert done.returncode == 0, (name, done.stderr)
        assert "<script>alert" not in (place / "page.html").read_text()


def test_training_learns_from_it(tmp_path):
    """Among enough pairs that are none of this."""
    source, target = write_corpus(tmp_path)
    for path in (source, target):
        path.write_bytes(path.read_bytes() + "".join(f"{line}\n" for line in HARMLESS.values()).encode())
    arguments = command(tmp_path, tmp_path / "run", steps=3)
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    lines = write(tmp_path, "lines", [*HARMLESS.values()])
    found = run(tmp_path, "translate", tmp_path / "run", "--input", lines, *QUICK)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("\n") == len(HARMLESS)


@settings(max_examples=times(10, 200))
@given(st.lists(any_text, min_size=1, max_size=5), st.lists(any_text, min_size=1, max_size=5))
def test_any_pair_of_files_is_examined_and_aligned_or_refused(tmp_path_factory, sources, targets):
    place = tmp_path_factory.mktemp("pair")
    write(place, "a.en", sources)
    write(place, "a.ko", targets)
    for arguments in (("check", "a.en", "a.ko"), ("align", tiny_bundle(), "a.en", "a.ko")):
        done = run(place, *arguments)
        assert done.returncode in (0, 1, 2, 3), (arguments, done)
        assert "Traceback" not in done.stderr
        assert "--debug" not in done.stderr
        if arguments[0] == "align" and done.returncode == 0:
            assert done.stdout.count("\n") == len(sources) == len(targets)


def test_half_a_surrogate_typed_as_text_is_refused(place):
    with pytest.raises(SoftgazeError, match="surrogate") as caught:
        copier(Path("none")).translate("a\ud800b")
    assert caught.value.exit_code == 3
    done = subprocess.run(
        [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), b"a\xed\xa0\x80b"],
        capture_output=True,
        env=environment(),
        timeout=120,
    )
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1
