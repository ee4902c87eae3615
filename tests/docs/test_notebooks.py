"""The notebooks are the chapters: the same code as the blocks that test_guide.py runs, and one is run as a notebook."""

import os
import re
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from docs.chapters import GUIDE, agree, blocks, chapters
from docs.notebooks import SETUP, notebook, path_of

CHAPTERS = [*chapters(), *chapters(GUIDE / "ko")]
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.relative_to(GUIDE).as_posix())
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def read(chapter):
    return nbformat.read(path_of(chapter), as_version=4)


@every_chapter
def test_a_stored_notebook_is_that_of_its_chapter(chapter):
    assert path_of(chapter).read_text(encoding="utf-8") == notebook(chapter)


@every_chapter
def test_a_notebook_has_the_code_of_its_chapter(chapter):
    stored = read(chapter)
    nbformat.validate(stored)
    cells = [cell for cell in stored.cells if cell.cell_type == "code" and cell.source != SETUP]
    executed = [*blocks(chapter.read_text(encoding="utf-8"))]
    assert len(cells) == len(executed)
    for cell, block in zip(cells, executed, strict=True):
        assert "".join(output.text for output in cell.outputs) == (block.output or "")
        if block.kind == "python":
            assert cell.source == block.text.rstrip("\n")
        elif block.kind == "bash":
            assert cell.source.replace("!", "").split() == block.text.replace("\\", "").split()


@every_chapter
def test_links_of_a_notebook_exist(chapter):
    for cell in read(chapter).cells:
        for target in LINK.findall(cell.source) if cell.cell_type == "markdown" else ():
            assert (path_of(chapter).parent / target).exists(), target


def test_a_notebook_runs_and_prints_the_stored_output(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "softgaze").write_text(f'#!/bin/sh\nexec {sys.executable} -m softgaze "$@"\n')
    (programs / "softgaze").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    [chapter] = [each for each in chapters() if each.name.startswith("06")]
    stored = read(chapter)
    shown = [[output.text for output in cell.get("outputs", [])] for cell in stored.cells]
    stored.cells.append(nbformat.v4.new_code_cell("!softgaze settings rnn | head -n 1"))
    ran = NotebookClient(stored, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for expected, cell in zip(shown, ran.cells, strict=False):
        if expected:
            assert agree("".join(expected), "".join(output.text for output in cell.outputs))
    assert "error" not in "".join(output.text for output in ran.cells[-1].outputs)
    assert ran.cells[-1].outputs
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["06-tiles.svg"]
