"""Run every code block of the guide in order, all chapters in one directory.

    python -m docs.chapters        # also redraws docs/guide/figures

The `python` blocks of a chapter share their names; a `bash` block contains softgaze commands; a `yaml` block is a file
whose first line is its name; an `output` block is the output of the block before it.
"""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from docs.diagrams import for_pages
from softgaze.cli import app

GUIDE = Path(__file__).parent / "guide"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED = re.compile(r"≈ *(-?[\d.]+(?: %)?)")  # differs from one machine to the next
MAX_POINTS, MAX_RATIO = 25, 0.3  # tolerance of measured numbers: percentage points, or relative


class Block(NamedTuple):
    """A code block and the output that the chapter shows for it."""

    kind: str  # python, bash or yaml
    text: str
    line: int  # where the text begins in the chapter, counted from 0
    output: str | None

    def run(self, chapter: Path, names: dict[str, Any]) -> str:
        """Run the block in the current directory and return its output."""
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
            if self.kind == "python":
                # The empty lines make the line numbers of errors those of the chapter.
                exec(compile("\n" * self.line + self.text, str(chapter), "exec"), names)
            elif self.kind == "yaml":
                Path(self.text.partition("\n")[0].removeprefix("# ")).write_text(self.text, encoding="utf-8")
            else:
                for command in commands(self.text):
                    app(args=command, prog_name="softgaze", standalone_mode=False)
        return printed.getvalue()


class Ran(NamedTuple):
    """A block that was run, and its output."""

    chapter: Path
    block: Block
    printed: str

    @property
    def is_as_shown(self) -> bool:
        return self.block.output is None or agree(self.block.output, self.printed)


def chapters(directory: Path = GUIDE) -> list[Path]:
    """Return the chapters in order."""
    return sorted(directory.glob("[0-9][0-9]-*.md"))


def blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a chapter; `text` blocks hold formulas and shapes."""
    matches = [match for match in FENCED.finditer(text) if match[1] != "text"]
    for block, following in zip(matches, [*matches, None][1:], strict=True):
        if block[1] != "output":
            output = following[2] if following is not None and following[1] == "output" else None
            yield Block(block[1], block[2], text.count("\n", 0, block.start(2)), output)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each softgaze command; a backslash continues a line."""
    for line in text.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program == "softgaze":
            yield arguments
        elif program:
            raise ValueError(f"expected a softgaze command in a bash block of the guide, got {line!r}")


def run(paths: Sequence[Path], directory: Path) -> Iterator[Ran]:
    """Run chapters in order; their models and figures are written to `directory`."""
    (directory / "figures").mkdir(exist_ok=True)
    torch.set_num_threads(1)  # these models are too small for two
    for chapter in paths:
        names: dict[str, Any] = {"__name__": "__main__"}
        for block in blocks(chapter.read_text(encoding="utf-8")):
            with chdir(directory):
                yield Ran(chapter, block, block.run(chapter, names))


def agree(shown: str, printed: str) -> bool:
    """Whether two outputs are equal; numbers after ≈ are measured and need only be close."""
    first, second = (MEASURED.split(text.strip()) for text in (shown, printed))
    return first[::2] == second[::2] and all(map(is_close, first[1::2], second[1::2]))


def is_close(shown: str, printed: str) -> bool:
    first, second = (float(text.removesuffix(" %")) for text in (shown, printed))
    tolerance = MAX_POINTS if shown.endswith("%") else MAX_RATIO * max(abs(first), abs(second))
    return shown.endswith("%") == printed.endswith("%") and abs(first - second) <= tolerance


def main() -> int:
    """Run all chapters, redraw the figures, and print each output that differs from the text."""
    differences = 0
    with TemporaryDirectory() as directory:
        for ran in run(chapters(), Path(directory)):
            if not ran.is_as_shown:
                differences += 1
                print(f"{ran.chapter}:{ran.block.line + 1}: prints\n{ran.printed}expected\n{ran.block.output}")
        for figure in sorted(Path(directory, "figures").iterdir()):
            drawn = for_pages(figure.read_text(encoding="utf-8"))
            (GUIDE / "figures" / figure.name).write_text(drawn, encoding="utf-8")
    return min(differences, 1)


if __name__ == "__main__":
    sys.exit(main())
