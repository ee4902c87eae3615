"""Write each chapter of the guide as a notebook: docs/guide/notebooks/*.ipynb and docs/guide/ko/notebooks/*.ipynb.

    python -m docs.notebooks

The code cells are the blocks that `docs.chapters` runs, with the outputs that the chapter shows.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.chapters import GUIDE, Block, blocks, chapters

FENCED = re.compile(r"^```(?!text)(\w+)\n.*?^```\n?", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(r"<details>\n<summary>(.*?)</summary>\n|</details>\n")  # a fold cannot contain code cells
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)]+)(?=\))")
FIRST = {
    "en": "Run the notebooks in order, in one directory: later chapters use files of earlier ones.",
    "ko": "노트북은 한 디렉터리에서 순서대로 실행하세요. 뒤의 장은 앞의 장이 만든 파일을 써요.",
}
SETUP = 'from pathlib import Path\n\nPath("figures").mkdir(exist_ok=True)'  # the chapters save their figures there
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook(chapter: Path) -> str:
    """Return a chapter as the JSON of a notebook."""
    language = "ko" if chapter.parent.name == "ko" else "en"
    text = chapter.read_text(encoding="utf-8")
    found, cells = blocks(text), list[dict[str, Any]]()
    for kind, content in parts(text):
        if kind == "markdown":
            cells.append(markdown_cell(content))
        elif kind != "output":
            cells.append(code_cell(next(found)))
    title, rest = cells[0]["source"].split("\n\n", 1)
    cells[0]["source"] = rest
    cells[:0] = [markdown_cell(f"{title}\n\n{FIRST[language]}"), python_cell(SETUP)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
        cell["source"] = cell["source"].splitlines(keepends=True)
    stored = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(stored, ensure_ascii=False, indent=1) + "\n"


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text between code blocks, and the kind of each block; formulas are text."""
    end = 0
    for match in FENCED.finditer(text):
        if between := text[end : match.start()].strip():
            yield "markdown", between
        yield match[1], match[0]
        end = match.end()
    if rest := text[end:].strip():
        yield "markdown", rest


def markdown_cell(text: str) -> dict[str, Any]:
    """Return text as a cell: folds are opened, and links start from the directory of the notebooks."""
    text = FOLDED.sub(lambda match: f"**{match[1]}**\n" if match[1] else "", text + "\n").strip()
    return {"cell_type": "markdown", "metadata": {}, "source": LINK.sub(moved, text)}


def moved(match: re.Match[str]) -> str:
    path = match[1]
    return path.replace(".md", ".ipynb") if re.match(r"\d\d-[\w-]+\.md", path) else f"../{path}"


def code_cell(block: Block) -> dict[str, Any]:
    """Return a block as a cell: Python as it is, files by `%%writefile`, commands by `!`."""
    source = block.text.rstrip("\n")
    if block.kind == "yaml":
        source = f"%%writefile {source.partition(chr(10))[0].removeprefix('# ')}\n{source}"
    elif block.kind == "bash":
        source = re.sub(r"^(?=softgaze )", "!", re.sub(r"\\\n\s*", "", source), flags=re.MULTILINE)
    return python_cell(source, block.output)


def python_cell(source: str, output: str | None = None) -> dict[str, Any]:
    printed = output and {"name": "stdout", "output_type": "stream", "text": output.splitlines(keepends=True)}
    shown = [printed] if printed else []
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": shown, "source": source}


def path_of(chapter: Path) -> Path:
    return chapter.parent / "notebooks" / f"{chapter.stem}.ipynb"


def main() -> int:
    for chapter in [*chapters(), *chapters(GUIDE / "ko")]:
        path_of(chapter).parent.mkdir(exist_ok=True)
        path_of(chapter).write_text(notebook(chapter), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
