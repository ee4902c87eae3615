"""The data doctor on small made-up corpora: what was planted is found, what is clean stays quiet."""

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgaze.data import doctor
from softgaze.data.corpus import Corpus, Pair, read_lines, read_pairs, write_lines
from softgaze.data.doctor import Finding, Report, examine, fix
from softgaze.errors import DataError

WORDS = 400
HANGUL = [chr(code) for code in range(0xAC00, 0xD7A3, 7)]


def toy_pairs(count: int, seed: int = 0, hangul: bool = False) -> list[Pair]:
    """Sentences of an invented language and their translation, word for word with some order changed."""
    chance = random.Random(seed)
    spell = (
        (lambda: "".join(chance.choices(HANGUL, k=3))) if hangul else (lambda: "".join(chance.choices("klmnouä", k=7)))
    )
    dictionary = [("".join(chance.choices("abcdefgi", k=6)), spell()) for _ in range(WORDS)]
    pairs = []
    for _ in range(count):
        words = [dictionary[int(WORDS * chance.random() ** 2)] for _ in range(chance.randint(4, 12))]
        turned = [words[0], *reversed(words[1:])]
        pairs.append(Pair(" ".join(word for word, _ in words) + ".", " ".join(word for _, word in turned) + "."))
    return pairs


def save(folder: Path, pairs: Sequence[Pair], name: str = "t") -> Corpus:
    files = folder / f"{name}.en", folder / f"{name}.xx"
    write_lines(files[0], [pair.source for pair in pairs])
    write_lines(files[1], [pair.target for pair in pairs])
    return Corpus.of([files])


def found(report: Report, code: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.code == code]
    return finding


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


def sides(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def with_shift(pairs: Sequence[Pair], start: int, length: int, offset: int) -> list[Pair]:
    """Source lines from `start` on fit target lines `offset` further on, for `length` lines."""
    sources, targets = sides(pairs)
    lost, junk = abs(offset), [targets[row * 7 % len(targets)] for row in range(abs(offset))]
    if offset > 0:
        targets[start : start + length + lost] = junk + targets[start : start + length]
    else:
        targets[start - lost : start + length] = targets[start : start + length] + junk
    return [Pair(*texts) for texts in zip(sources, targets, strict=True)]


# ------------------------------------------------------------------------------------------------------------- clean


@pytest.mark.parametrize("count", [1, 3, 150, 300, 2500])
@pytest.mark.parametrize("hangul", [False, True])
def test_a_clean_corpus_has_nothing_to_complain_about(tmp_path: Path, count: int, hangul: bool) -> None:
    report = examine(save(tmp_path, toy_pairs(count, seed=count, hangul=hangul)))
    assert codes(report) <= {"too_small"}
    assert report.exit_code == 0
    assert report.pairs == report.usable == count


def test_numbers_describe_each_side(tmp_path: Path) -> None:
    pairs = [Pair("a " * words, "가나 " * words) for words in range(1, 101)]
    report = examine(save(tmp_path, [Pair(*map(str.strip, pair)) for pair in pairs]))
    assert report.source is not None
    assert report.target is not None
    words = report.source.words
    assert (words.minimum, words.median, words.mean, words.p95, words.p99, words.maximum) == (1, 50, 50.5, 95, 99, 100)
    assert sum(count for _, _, count in words.histogram) == 100
    assert report.target.characters.maximum == 299
    assert report.source.scripts == {"Latin": 1.0}
    assert report.target.scripts == {"Hangul": 1.0}
    assert report.source.language == "en"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.tuples(*[st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=20)] * 2),
        min_size=1,
        max_size=12,
    )
)
def test_any_text_at_all_can_be_examined(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    pairs = [Pair(source.lstrip("\ufeff"), target.lstrip("\ufeff")) for source, target in lines]
    report = examine(save(tmp_path, pairs))
    assert report.pairs == len(pairs)
    assert all("\x1b" not in line and "\n" not in line for line in report.lines())
    assert json.loads(report.to_json())["pairs"] == len(pairs)


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=8))
def test_lines_are_measured_as_python_would(lines: list[str]) -> None:
    measured = doctor._measure(lines)
    assert measured.length.tolist() == list(map(len, lines))
    assert measured.kinds.sum(axis=1).tolist() == list(map(len, lines))
    together = {
        (line, token) for line, token in zip(measured.token_line.tolist(), measured.token.tolist(), strict=True)
    }
    alone = {(n, token) for n, line in enumerate(lines) for token in doctor._measure([line]).token.tolist()}
    assert together == alone


@pytest.mark.parametrize("text", ["a b", " a  b ", "", " ", "가 나 다", "don't stop"])
def test_words_are_counted_at_spaces(text: str) -> None:
    assert doctor._measure([text]).words.tolist() == [len(text.split())]


# --------------------------------------------------------------------------------------------------------- single pairs


@pytest.mark.parametrize(
    ("code", "level", "pair"),
    [
        ("empty", "warning", Pair(" ", "\u200b")),
        ("one_sided", "warning", Pair("", "klmno.")),
        ("ratio", "warning", Pair("abc.", "klmno " * 30)),
        ("script", "warning", Pair("abc abc abc.", "привет мир всем.")),
        ("replacement", "warning", Pair("abc\ufffd abc abc.", "klmno klmno.")),
        ("mojibake", "warning", Pair("abc abc abc.", "klmnÃ© klmno.")),
        ("control", "warning", Pair("abc\x07 abc abc.", "klmno klmno.")),
        ("control", "warning", Pair("abc abc\u2028abc.", "klmno klmno.")),
        ("private", "warning", Pair("abc abc abc\ue000.", "klmno klmno.")),
        ("markup", "warning", Pair("abc &amp; abc abc.", "klmno klmno.")),
        ("markup", "warning", Pair("abc abc abc.", "<br/>klmno klmno.")),
        ("markup", "warning", Pair("abc abc abc.", 'klmno <a href="x">klmno</a>.')),
        ("long", "warning", Pair("abc " * 250, "klmno " * 250)),
        ("metaspace", "note", Pair("abc abc▁abc.", "klmno klmno.")),
        ("invisible", "note", Pair("abc abc\u00adabc.", "klmno klmno.")),
        ("identical", "note", Pair("klmno klmno.", "klmno klmno.")),
    ],
)
def test_an_odd_pair_is_found_at_its_line(tmp_path: Path, code: str, level: str, pair: Pair) -> None:
    pairs = toy_pairs(150)
    pairs[41:41] = [pair]
    report = examine(save(tmp_path, pairs))
    finding = found(report, code)
    assert (finding.level, finding.count) == (level, 1)
    assert [example.line for example in finding.examples] == [42]
    assert codes(report) == {code, "too_small"}
    assert report.exit_code == 0


@pytest.mark.parametrize("text", ["a < b and c > d.", "R&D; abc", "x<y abc.", "👩‍👩‍👧 abc abc.", "می‌روم"])
def test_ordinary_text_is_not_odd(tmp_path: Path, text: str) -> None:
    pairs = toy_pairs(50)
    report = examine(save(tmp_path, [*pairs, Pair(text, text)]))
    assert not codes(report) & {"markup", "invisible", "control", "private", "mojibake"}


def test_repeats_and_ambiguous_sources(tmp_path: Path) -> None:
    pairs = toy_pairs(150)
    report = examine(save(tmp_path, [*pairs, pairs[3], pairs[3], Pair(pairs[5].source, pairs[6].target)]))
    assert found(report, "duplicate").count == 2
    assert [example.line for example in found(report, "duplicate").examples] == [151, 152]
    assert [example.line for example in found(report, "ambiguous").examples] == [6, 153]


def test_scripts_are_those_of_the_corpus(tmp_path: Path) -> None:
    pairs = toy_pairs(150, hangul=True)
    pairs[9] = Pair(pairs[9].source, "this was never translated.")
    pairs[19] = Pair("가나다라 마바사.", pairs[19].target)
    pairs[29] = Pair(pairs[29].source, "abcdefghijklm 가나다라마.")
    report = examine(save(tmp_path, pairs))
    assert [example.line for example in found(report, "script").examples] == [10, 20]
    assert [example.line for example in found(report, "mixed_script").examples] == [30]


def test_kanji_are_at_home_with_kana() -> None:
    survey = doctor._Survey()
    survey.dominated[1][doctor._KANA - doctor._FIRST_SCRIPT] = 100
    assert survey.home_scripts(1)[doctor._HAN - doctor._FIRST_SCRIPT]


@pytest.mark.parametrize(
    ("character", "script"),
    [
        *[("a", "LATIN"), ("ß", "LATIN"), ("Ａ", "LATIN"), ("я", "CYRILLIC"), ("ع", "ARABIC"), ("가", "HANGUL")],
        *[
            ("漢", "HAN"),
            ("々", "HAN"),
            ("ひ", "KANA"),
            ("ー", "KANA"),
            ("ｶ", "KANA"),
            ("ा", "DEVANAGARI"),
            ("ก", "THAI"),
        ],
    ],
)
def test_scripts_come_from_unicode_names(character: str, script: str) -> None:
    assert doctor._kind_of(character) == doctor._SCRIPT_KIND[script]


def test_at_most_five_examples_and_no_control_characters(tmp_path: Path) -> None:
    report = examine(save(tmp_path, [Pair(f"[bold]abc {n}\x1b[31m.", f"klm {n}.") for n in range(40)]))
    finding = found(report, "control")
    assert finding.count == 40
    assert len(finding.examples) == 5
    assert "\\x1b" in finding.examples[0].text


# ------------------------------------------------------------------------------------------------------ shifted ranges


@pytest.mark.parametrize("offset", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("hangul", [False, True])
def test_a_planted_shift_is_found(tmp_path: Path, offset: int, hangul: bool) -> None:
    pairs = with_shift(toy_pairs(2500, seed=offset, hangul=hangul), 1200, 40, offset)
    report = examine(save(tmp_path, pairs))
    finding = found(report, "shifted")
    start, stop = (int(number.replace(",", "")) for number in finding.message.split()[1].split("–"))
    assert abs(start - 1201) <= 3
    assert abs(stop - 1240) <= 3
    assert f"shifted by {abs(offset)} (source line n fits target line n{offset:+})" in finding.message
    assert (finding.level, report.exit_code) == ("warning", 0)


@pytest.mark.parametrize(("gain", "expected"), [(0.5, []), (2.2, []), (3.0, [doctor.Shift(100, 112, 2, True)])])
def test_a_range_must_earn_its_keep(gain: float, expected: list[doctor.Shift]) -> None:
    offsets = np.array([*range(-5, 6), doctor._NOWHERE])
    evidence = np.full((300, len(offsets)), -3.0) * doctor._SCALE
    evidence[:, offsets == 0] = 2 * doctor._SCALE
    evidence[:, offsets == doctor._NOWHERE] = 0
    evidence[100:112, offsets == 0] = 0
    evidence[100:112, offsets == 2] = gain * doctor._SCALE
    assert doctor._find_shifts(evidence.astype(np.int8), offsets, 0) == expected


@pytest.mark.parametrize("lost", [5, 700, 2490])
@pytest.mark.parametrize("side", [0, 1])
def test_a_lost_line_is_named_with_its_place(tmp_path: Path, lost: int, side: int) -> None:
    pairs = toy_pairs(2500)
    texts = sides(pairs)
    del texts[side][lost]
    files = tmp_path / "t.en", tmp_path / "t.xx"
    for path, lines in zip(files, texts, strict=True):
        write_lines(path, lines)
    report = examine(Corpus.of([files]))
    finding = found(report, "line_counts")
    assert report.exit_code == 3
    assert f"{files[0]} has {len(texts[0]):,} lines, {files[1]} {len(texts[1]):,}; " in finding.message
    assert abs(int(finding.message.rsplit("near line ", 1)[1].replace(",", "")) - lost - 1) <= 3

    fixed = fix(Corpus.of([files]), tmp_path / "f.en", tmp_path / "f.xx", report)
    kept = list(read_pairs(tmp_path / "f.en", tmp_path / "f.xx"))
    assert set(kept) <= set(pairs)
    assert fixed.kept == len(kept) >= 2470


def test_lines_lost_one_after_another_are_each_found(tmp_path: Path) -> None:
    sources, targets = sides(toy_pairs(2500))
    for lost in (1800, 1000, 300):
        del targets[lost]
    write_lines(tmp_path / "t.en", sources)
    write_lines(tmp_path / "t.xx", targets)
    report = examine(Corpus.of([(tmp_path / "t.en", tmp_path / "t.xx")]))
    shifts = [finding for finding in report.findings if finding.code == "shifted"]
    assert [finding.message[-4:] for finding in shifts] == ["n-1)", "n-2)", "n-3)"]
    for finding, count in zip(shifts, (700, 800, 696), strict=True):
        assert abs(finding.count - count) <= 5
    assert "near line 30" in found(report, "line_counts").message
    assert "unrelated" not in codes(report)


def test_the_edges_of_a_range_are_left_out_and_its_inside_moved(tmp_path: Path) -> None:
    corpus = save(tmp_path, [Pair("a", "k")])
    sure, unsure = doctor.Shift(20, 40, -1, True), doctor.Shift(60, 70, 3, False)
    diagnosis = doctor._PartDiagnosis(corpus.parts[0], (100, 100), [sure, unsure], True)
    margin = doctor._EDGE + 1
    expected = [0] * 100
    expected[20:40] = [-1] * 20
    for edge in (20, 40):
        expected[edge - margin : edge + margin] = [doctor._LEFT_OUT] * 2 * margin
    expected[60 - doctor._EDGE : 70 + doctor._EDGE] = [doctor._LEFT_OUT] * (10 + 2 * doctor._EDGE)
    for size in (100, 7, 1):
        plans = [doctor._plan(diagnosis, start, size) for start in range(0, 100, size)]
        assert np.concatenate(plans)[:100].tolist() == expected


def test_a_range_to_the_end_reaches_the_end_of_the_longer_file(tmp_path: Path) -> None:
    part = save(tmp_path, [Pair("a", "k")]).parts[0]
    diagnosis = doctor._PartDiagnosis(part, (102, 100), [doctor.Shift(0, 100, -2, True)], True)
    assert doctor._plan(diagnosis, 0, 102).tolist() == [-2] * 102


def test_extra_lines_at_the_very_end_are_told(tmp_path: Path) -> None:
    corpus = save(tmp_path, toy_pairs(2500))
    write_lines(tmp_path / "t.xx", [*read_lines(tmp_path / "t.xx"), "klmn", "klmn"])
    assert "extra lines there" in found(examine(corpus), "line_counts").message


def test_different_counts_of_a_tiny_corpus_are_not_guessed_at(tmp_path: Path) -> None:
    corpus = save(tmp_path, toy_pairs(50))
    write_lines(tmp_path / "t.xx", list(read_lines(tmp_path / "t.xx"))[1:])
    report = examine(corpus)
    assert "could not be found" in found(report, "line_counts").message
    with pytest.raises(DataError, match="cannot be fixed"):
        fix(corpus, tmp_path / "f.en", tmp_path / "f.xx", report)
    assert not (tmp_path / "f.en").exists()


def test_a_corpus_shifted_as_a_whole_is_noticed(tmp_path: Path) -> None:
    sources, targets = sides(toy_pairs(2500))
    pairs = [Pair(*texts) for texts in zip(sources[:-2], targets[2:], strict=True)]
    finding = found(examine(save(tmp_path, pairs)), "shifted")
    assert finding.count > 2480
    assert "n-2" in finding.message


def test_unrelated_sides_are_noticed(tmp_path: Path) -> None:
    sources, targets = sides(toy_pairs(2500))
    random.Random(1).shuffle(targets)
    report = examine(save(tmp_path, [Pair(*texts) for texts in zip(sources, targets, strict=True)]))
    assert "unrelated" in codes(report)
    assert "shifted" not in codes(report)


def test_an_unrelated_range_is_noticed_and_left_out(tmp_path: Path) -> None:
    pairs = toy_pairs(2500)
    sources, targets = sides(pairs)
    targets[800:900] = random.Random(1).sample(targets[1000:], 100)
    corpus = save(tmp_path, [Pair(*texts) for texts in zip(sources, targets, strict=True)])
    report = examine(corpus)
    assert abs(found(report, "nowhere").count - 100) <= 6
    fix(corpus, tmp_path / "f.en", tmp_path / "f.xx", report)
    assert set(read_pairs(tmp_path / "f.en", tmp_path / "f.xx")) <= set(pairs)


# ------------------------------------------------------------------------------------------------ what cannot be read


def test_unreadable_lines_are_findings_and_the_rest_is_examined(tmp_path: Path) -> None:
    pairs = toy_pairs(150)
    corpus = save(tmp_path, [*pairs, pairs[0]])
    raw = (tmp_path / "t.xx").read_bytes().split(b"\n")
    raw[4], raw[6], raw[9] = raw[4] + b"\xe9", raw[6] + b"\xe9", b"\0"
    (tmp_path / "t.xx").write_bytes(b"\n".join(raw))
    report = examine(corpus)
    encoding, nul = [finding for finding in report.findings if finding.code == "unreadable"]
    assert (encoding.level, encoding.count, nul.count, report.exit_code) == ("fatal", 2, 1, 3)
    byte = len(b"\n".join(raw[:4])) + len(raw[4])
    assert f"{tmp_path / 't.xx'}, line 5, byte {byte}: not UTF-8" in encoding.message
    assert (encoding.examples[0].line, encoding.examples[0].byte) == (5, byte)
    assert report.usable == 148
    assert found(report, "duplicate").count == 1
    assert "one_sided" not in codes(report)
    fixed = fix(corpus, tmp_path / "f.en", tmp_path / "f.xx")
    assert fixed.dropped["unreadable"] == 3
    assert fixed.kept == 147


def test_a_byte_order_mark_is_fatal_and_fixed(tmp_path: Path) -> None:
    pairs = toy_pairs(20)
    corpus = save(tmp_path, pairs)
    (tmp_path / "t.en").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.en").read_bytes())
    report = examine(corpus)
    assert "byte-order mark" in found(report, "unreadable").message
    assert report.exit_code == 3
    fix(corpus, tmp_path / "f.en", tmp_path / "f.xx", report)
    assert list(read_pairs(tmp_path / "f.en", tmp_path / "f.xx")) == pairs


def test_fix_never_starts_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    pairs = toy_pairs(20)
    corpus = save(tmp_path, [Pair("", "klm"), Pair("\ufeff" + pairs[0].source, pairs[0].target), *pairs[1:]])
    fix(corpus, tmp_path / "f.en", tmp_path / "f.xx")
    assert list(read_pairs(tmp_path / "f.en", tmp_path / "f.xx")) == pairs


def test_broken_rows_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    write_lines(table, ["abc\tklm", "no tab", "a\tb\tc", "abd\tklo"])
    report = examine(Corpus.of([], [table]))
    assert [finding.count for finding in report.findings if finding.code == "unreadable"] == [1, 1]
    assert report.usable == 2


def test_files_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    good = save(tmp_path, toy_pairs(20))
    (tmp_path / "cut.en.gz").write_bytes(gzip.compress(b"abc\n" * 999)[:-12])
    broken = Corpus.of([*[part.paths for part in good.parts], (tmp_path / "cut.en.gz", tmp_path / "gone.xx")])
    report = examine(broken)
    assert report.exit_code == 3
    assert "cut short" in found(report, "file").message
    assert report.usable == 20
    with pytest.raises(DataError, match="cut short"):
        fix(broken, tmp_path / "f.en", tmp_path / "f.xx", report)
    assert examine(Corpus.of([(tmp_path / "gone.en", tmp_path / "t.xx")])).pairs == 0


def test_nothing_but_empty_lines(tmp_path: Path) -> None:
    corpus = save(tmp_path, [Pair("", "")] * 3)
    assert examine(corpus).exit_code == 3
    with pytest.raises(DataError, match="nothing"):
        fix(corpus, tmp_path / "f.en", tmp_path / "f.xx")


# ----------------------------------------------------------------------------------------------------------------- fix


def test_what_was_fixed_passes_the_check(tmp_path: Path) -> None:
    clean = toy_pairs(2500)
    pairs = with_shift(clean, 1200, 60, 1)
    bad = [Pair("", "klm"), Pair("", ""), clean[7], Pair("abc.", "klmno " * 40), Pair("abcd efg abc.", "привет мир.")]
    corpus = save(tmp_path, [*pairs[:2000], *bad, *pairs[2000:]])
    fixed = fix(corpus, tmp_path / "f.en", tmp_path / "f.xx")
    kept = list(read_pairs(tmp_path / "f.en", tmp_path / "f.xx"))
    assert set(kept) <= set(clean)
    assert len(kept) == fixed.kept == len(set(kept)) >= 2470
    assert fixed.realigned >= 45
    assert all(fixed.dropped[code] == 1 for code in ("empty", "one_sided", "duplicate", "ratio", "script"))
    assert fixed.kept + sum(fixed.dropped.values()) == 2505
    assert not examine(Corpus.of([(tmp_path / "f.en", tmp_path / "f.xx")])).findings


def test_several_parts_name_their_file(tmp_path: Path) -> None:
    first, second = save(tmp_path, toy_pairs(30), "a"), save(tmp_path, [Pair("", "klm"), *toy_pairs(30, 1)], "b")
    report = examine(Corpus((*first.parts, *second.parts)))
    assert found(report, "one_sided").examples[0].place == "b.en, line 1"
    assert report.pairs == 61


def test_memory_and_windows_do_not_change_the_answer(tmp_path: Path) -> None:
    rows = [(f"a{n}", f"k{n}") for n in range(23)]
    for size, reach in ((1, 0), (4, 2), (5, 9), (23, 3), (50, 50)):
        windows = list(doctor._windows(iter(rows), size, reach))
        assert [row for window in windows for row in window.rows] == rows
        for window in windows:
            low, high = max(0, window.start - reach), window.start + len(window.rows) + reach
            assert window.reached == [target for _, target in rows[low:high]]
            assert window.left == window.start - low


def test_progress_runs_to_the_end(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    examine(save(tmp_path, toy_pairs(100)), lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (200, 200)
