import pytest

from bundles import tiny_bundle
from commands import check_error, run
from documents.samples import PO, SAMPLES
from softgaze.documents.base import DocumentOptions
from softgaze.documents.formats import open_document


def translate(directory, *arguments):
    return run(directory, "translate", tiny_bundle(), "--beam-size", 1, *arguments)


@pytest.mark.parametrize("name", ["a.docx", "a.po", "a.srt", "strings.xml"])
def test_a_document_becomes_a_document(tmp_path, name):
    content = SAMPLES[name][0]
    (tmp_path / name).write_bytes(content)
    result = translate(tmp_path, name, "-o", f"out-{name}")
    assert result.returncode == 0, result.stderr
    written = (tmp_path / f"out-{name}").read_bytes()
    assert written != content
    assert open_document(written, name, DocumentOptions("en", "ko", overwrite=True)).segments


def test_text_formats_go_to_stdout(tmp_path):
    (tmp_path / "a.json").write_text('{"a": "the dog {n} runs"}')
    result = translate(tmp_path, "a.json")
    assert result.stdout.startswith('{"a": "')
    assert result.stdout.count("{n}") == 1


def test_overwrite_and_format(tmp_path):
    (tmp_path / "catalogue").write_text(PO)
    assert 'msgstr "fertig"' in translate(tmp_path, "--input", "catalogue", "--format", "po").stdout
    assert 'msgstr "fertig"' not in translate(tmp_path, "catalogue", "--format", "po", "--overwrite").stdout


def test_lines_keep_placeholders(tmp_path):
    result = translate(tmp_path, "the %s dog\nplain dog\nACME runs <b>fast</b>", "--protect", "ACME")
    first, second, third = result.stdout.splitlines()
    assert first.count("%s") == 1
    assert "%s" not in second
    assert all(third.count(each) == 1 for each in ("ACME", "<b>", "</b>"))


def test_errors_are_one_line(tmp_path):
    (tmp_path / "a.docx").write_bytes(SAMPLES["a.docx"][0])
    (tmp_path / "bad.docx").write_bytes(b"no")
    check_error(translate(tmp_path, "a.docx"), 2, "--output")
    check_error(translate(tmp_path, "a.docx", "--json", "-o", "x"), 2, "--json")
    check_error(translate(tmp_path, "bad.docx", "-o", "x"), 3, "bad.docx", "zip archive")
    check_error(translate(tmp_path, "missing", "--format", "po"), 2, "--format po", "missing")
    check_error(translate(tmp_path, "raport.docx", "-o", "out.docx"), 2, "raport.docx: no such file")
    assert not (tmp_path / "out.docx").exists()
    for out in ("absent/out.docx", "."):  # rejected before the model is opened
        result = run(tmp_path, "translate", "no-model", "a.docx", "-o", out)
        check_error(result, 4 if out != "." else 2, "directory")
        assert "no-model" not in result.stderr
    check_error(translate(tmp_path, "a", "--protect", "("), 2, "--protect")
