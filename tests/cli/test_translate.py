import gzip
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bundles import copier, lines, tiny_bundle, tokenizer
from commands import slow_writes
from softgaze.cli import app
from softgaze.data.corpus import LineError, stream_lines
from softgaze.data.tokenizer import normalise

MODEL = "model"
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}  # on a model this small a second thread only waits


@pytest.fixture
def copies(monkeypatch, tmp_path):
    """The command with a model that copies, so that what comes out is known."""
    translator = copier(tmp_path)
    monkeypatch.setattr("softgaze.translator.load", lambda path, device, **_: translator)
    return translator


def run(*arguments: str, given: str | bytes | None = None) -> str:
    result = CliRunner().invoke(app, ["translate", MODEL, *arguments], input=given)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout_bytes.decode()


# --- a real process


def test_lines_before_a_bad_one_are_translated(tmp_path):
    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), "--beam-size", "1"]
    result = subprocess.run(command, input=b"the dog runs.\na cat\n\xff\nthe man\n", capture_output=True, env=ALONE)
    assert result.returncode == 3
    assert result.stdout.count(b"\n") == 2
    assert result.stderr.startswith(b"softgaze: error: stdin, line 3, byte ")


def test_a_pipe_of_ten_thousand_lines_gives_ten_thousand_lines(tmp_path):
    """Empty lines, line separators of Unicode and lone carriage returns included, through the real program."""
    some = ["the dog runs.", "", "a\u2028cat\u2029\x85sees", "the\rman", " \t ", "개가 달려요.", "\x0c\x1c", "👍"]
    text = "\n".join(some[number % len(some)] for number in range(10_000)) + "\n"
    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), "--beam-size", "1"]
    result = subprocess.run(command, input=text.encode(), capture_output=True, timeout=300, env=ALONE)
    assert (result.returncode, result.stderr) == (0, b"")
    written = result.stdout.decode().split("\n")
    assert written.pop() == ""
    assert len(written) == 10_000
    for number, line in enumerate(written):
        assert bool(line) <= bool(some[number % len(some)].strip())
        assert line == written[number % len(some)]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="pseudo-terminals of POSIX")
def test_a_person_at_a_terminal_is_told_what_to_do_and_answered_at_once():
    master, slave = os.openpty()
    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle())]
    process = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ALONE)
    os.close(slave)
    assert process.stdout is not None
    assert process.stderr is not None
    assert b"Ctrl-D" in process.stderr.readline()
    os.write(master, b"the dog\n")
    assert process.stdout.readline()
    os.write(master, b"\n\x04")
    assert process.communicate(timeout=60)[0] == b"\n"
    os.close(master)
    assert process.returncode == 0


# --- in


def test_an_argument(copies):
    assert run("the dog  runs.") == "the dog runs.\n"
    assert run("") == "\n"
    assert run("the dog\n\na cat") == "the dog\n\na cat\n"
    assert run("--", "-5 dogs") == "-5 dogs\n"


@pytest.mark.parametrize("given", ["", "\n", "the dog", "the dog\n", "\n\nthe dog\n\n", "a\r\nb\r\n", "\u2028\nb"])
def test_as_many_lines_out_as_in(copies, given):
    count = given.count("\n") + (not given.endswith("\n") and given != "")
    written = run(given=given)
    assert written.count("\n") == count
    assert written == "".join(f"{normalise(line)}\n" for line in given.split("\n")[:count])


def test_files_in_and_out(copies, tmp_path):
    texts = [*lines("en", 50), "", *lines("ko", 20), ""]
    (tmp_path / "in").write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert run("--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")) == ""
    assert (tmp_path / "out").read_text(encoding="utf-8").split("\n") == [*texts, ""]
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_compressed_files_in_and_out(copies, tmp_path):
    texts = lines("en", 30)
    with gzip.open(tmp_path / "in.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(texts))
    run("-i", str(tmp_path / "in.gz"), "-o", str(tmp_path / "out.gz"))
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode().split("\n") == [*texts, ""]


def test_an_empty_file_gives_an_empty_file(copies, tmp_path):
    (tmp_path / "in").touch()
    run("--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_named_pipe_is_read_once(copies, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writing = subprocess.Popen(["sh", "-c", f"printf 'the dog\\n\\na cat\\n' > {tmp_path / 'pipe'}"])
    assert run("--input", str(tmp_path / "pipe")) == "the dog\n\na cat\n"
    assert writing.wait(10) == 0


def test_windows_keep_the_order(copies):
    texts = [*lines("en", 30), "", "the dog"]
    assert run("--window", "7", given="\n".join(texts)).split("\n") == [*texts, ""]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80))
def test_a_stream_is_lines_or_names_the_place_that_is_not_text(raw):
    found, error = [], None
    try:
        found.extend(stream_lines(io.BytesIO(raw), Path("stdin")))
    except LineError as caught:
        error = caught
    if error is None:
        ends_open = raw != b"" and not raw.endswith(b"\n")
        assert len(found) == raw.count(b"\n") + ends_open
        assert found == [line.removesuffix("\r") for line in raw.decode().split("\n")][: len(found)]
    else:
        start = raw.rfind(b"\n", 0, error.byte) + 1
        line = raw[start:].split(b"\n")[0]
        assert error.line == raw[:start].count(b"\n") + 1
        assert b"\0" in line or line.startswith(b"\xef\xbb\xbf") or line.decode(errors="replace").encode() != line


@pytest.mark.parametrize(
    ("raw", "line", "byte"),
    [(b"the dog\n\na \xff cat\n", 3, 11), (b"\xc3", 1, 0), (b"ok\na\0b\n", 2, 4), (b"\xef\xbb\xbfok\n", 1, 0)],
)
def test_bytes_that_are_no_text_are_named_by_line_and_byte(copies, raw, line, byte):
    with pytest.raises(LineError, match=f"stdin, line {line}, byte {byte}:") as caught:
        run(given=raw)
    assert caught.value.exit_code == 3


def test_an_argument_that_is_no_text_is_refused(copies):
    from softgaze.errors import DataError

    with pytest.raises(DataError, match="TEXT is not UTF-8 at character 3"):
        run("a \udcff")


# --- out


def test_nbest_keeps_one_line_for_each_line(copies):
    rows = [row.split("\t") for row in run("--num-hypotheses", "3", given="the dog\n\na cat").split("\n")]
    assert [len(row) for row in rows] == [3, 1, 3, 1]
    assert [row[0] for row in rows] == ["the dog", "", "a cat", ""]


def test_split_sentences_translates_each_sentence_of_a_line_alone(copies, monkeypatch):
    batches, decode_batch = [], copies.engine.decode_batch
    monkeypatch.setattr(
        copies.engine, "decode_batch", lambda batch, *rest: batches.append(len(batch)) or decode_batch(batch, *rest)
    )
    line = "The dog. A cat.\n"
    assert run(given=line) == run("--split-sentences", given=line) == line
    assert batches == [1, 2]


def test_confidence_is_a_field_of_json(copies):
    records = [
        json.loads(line) for line in run("--json", "--confidence", given="the dog\n\na cat {name}\n").splitlines()
    ]
    assert [[word["text"] for word in record["confidence"]["words"]] for record in records[:2]] == [["the", "dog"], []]
    assert all(word["confidence"] > 0.99 for word in records[0]["confidence"]["words"])
    assert not records[0]["confidence"]["calibrated"]


def test_json_is_an_object_for_each_line(copies):
    written = run("--json", "--num-hypotheses", "2", given="the dog\n\na\u2028cat\x85\n")
    assert len(written.splitlines()) == written.count("\n") == 3
    records = [json.loads(line) for line in written.splitlines()]
    assert [each["source"] for each in records] == ["the dog", "", "a\u2028cat\x85"]
    assert [each["text"] for each in records] == ["the dog", "", "a cat"]
    assert [len(each["alternatives"]) for each in records] == [1, 0, 1]
    assert records[0]["tokens"] == tokenizer().pieces(tokenizer().encode(["the dog"])[0])


def test_sampling_follows_from_its_seed():
    def draw(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["translate", str(tiny_bundle()), "the dog", "--device", "cpu", *arguments])
        assert result.exit_code == 0
        return result.stdout

    assert draw("--seed", "1") == draw("--seed", "1")
    assert draw("--seed", "1") != draw("--seed", "2")
    assert draw("--temperature", "0.001", "--seed", "1") == draw("--top-k", "1") == draw("--beam-size", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--input", "f"], "not both"),
        (["x", "--beam-size", "2", "--num-hypotheses", "3"], "num_hypotheses 3 is above beam_size 2"),
        (["x", "--beam-size", "2", "--seed", "3"], "--beam-size has no effect"),
        (["x", "--temperature", "0"], "temperature"),
        (["x", "--output", "."], "is a directory"),
    ],
)
def test_what_cannot_work_is_refused(copies, arguments, message):
    from softgaze.errors import UsageError

    with pytest.raises(UsageError, match=message):
        run(*arguments)


def test_a_missing_input_is_named_before_the_model_is_loaded(monkeypatch):
    from softgaze.errors import DataError

    monkeypatch.setattr("softgaze.translator.load", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(DataError, match=r"nothing\.en does not exist"):
        run("--input", "nothing.en")


def test_output_appears_only_when_all_is_done(copies, tmp_path):
    out = tmp_path / "out"
    out.write_text("old")
    with pytest.raises(LineError):
        run("--output", str(out), "--window", "1", given=b"the dog\n\xff\n")
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_killed_at_any_instant_and_run_again_is_undisturbed(tmp_path):
    """A real process, writes slowed down so that kills strike between them."""
    (tmp_path / "in.en").write_text(
        "".join(f"the dog {'sees ' * (number % 4)}a cat {number}.\n" for number in range(120))
    )
    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), "--beam-size", "1", "--window", "8"]
    files = ("--input", str(tmp_path / "in.en"), "--output")
    subprocess.run([*command, *files, str(tmp_path / "straight")], check=True, env=ALONE, capture_output=True)
    dice, killed, went_on = random.Random(1), 0, 0
    slow = {**ALONE, **slow_writes(0.02)}
    while not (tmp_path / "killed").exists():
        process = subprocess.Popen([*command, *files, str(tmp_path / "killed")], env=slow, stderr=subprocess.PIPE)
        if killed < 3:
            note = tmp_path / "killed.part.json"
            before = note.stat().st_mtime_ns if note.exists() else 0
            while process.poll() is None and not (note.exists() and note.stat().st_mtime_ns > before):
                time.sleep(0.01)
            time.sleep(dice.uniform(0, 0.15))
            process.kill()
        _, said = process.communicate(timeout=120)
        killed += process.returncode == -9
        went_on += b"resuming after" in said
    assert killed == 3
    assert went_on == 3
    assert (tmp_path / "killed").read_bytes() == (tmp_path / "straight").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["in.en", "killed", "straight"]


def test_ctrl_c_names_the_file_that_is_kept(tmp_path):
    (tmp_path / "in.en").write_text("the dog sees a cat.\n" * 5000)
    command = [sys.executable, "-m", "softgaze", "translate", str(tiny_bundle()), "--beam-size", "1", "--window", "8"]
    files = ("--input", str(tmp_path / "in.en"), "--output", str(tmp_path / "out"))
    process = subprocess.Popen([*command, *files], env=ALONE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / "out.part").exists():
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert re.search(r"^softgaze: stopped; .*out\.part", said, re.MULTILINE), said
    assert (tmp_path / "out.part").exists()


def test_output_where_nothing_can_be_written_is_one_line(copies, tmp_path):
    from softgaze.errors import ResourceError

    with pytest.raises(ResourceError, match="cannot be written"):
        run("x", "--output", str(tmp_path / "no" / "out"))
