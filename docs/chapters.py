"""Run the chapters of the guide: every block of code in order, all chapters in one directory, as a reader would.

    python -m docs.chapters        # also makes the figures of docs/guide/figures again

A `python` block goes on where the one before stopped; a `bash` block holds commands of softgaze; a `yaml` block is a
file whose name stands in its first line; an `output` block is what the block before it printed.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from softgaze.cli import app

GUIDE = Path(__file__).parent / "guide"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED = re.compile(r"≈ *(-?[\d.]+(?: %)?)")  # differs from one machine to the next
POINTS, SHARE = 25, 0.3  # how far: so many of a hundred, or of any other number such a share


class Block(NamedTuple):
    """A piece of code, and what a chapter says that it prints."""

    kind: str  # python, bash or yaml
    text: str
    line: int  # of the chapter where the text begins, counted from 0
    output: str | None

    def run(self, chapter: Path, names: dict[str, Any]) -> str:
        """What it printed; run where the caller stands, in these names."""
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
            if self.kind == "python":
                # Empty lines before it, so that an error names the line of the chapter.
                exec(compile("\n" * self.line + self.text, str(chapter), "exec"), names)
            elif self.kind == "yaml":
                Path(self.text.partition("\n")[0].removeprefix("# ")).write_text(self.text, encoding="utf-8")
            else:
                for command in commands(self.text):
                    app(args=command, prog_name="softgaze", standalone_mode=False)
        return printed.getvalue()


class Ran(NamedTuple):
    """A block, and what it printed."""

    chapter: Path
    block: Block
    printed: str

    @property
    def is_as_shown(self) -> bool:
        """Whether the chapter says the truth."""
        return self.block.output is None or agree(self.block.output, self.printed)


def chapters(directory: Path = GUIDE) -> list[Path]:
    """In the order of reading."""
    return sorted(directory.glob("[0-9][0-9]-*.md"))


def blocks(text: str) -> Iterator[Block]:
    """The code of a chapter; formulas and shapes, which are `text`, are nobody's to run."""
    found = [each for each in FENCED.finditer(text) if each[1] != "text"]
    for block, after in zip(found, [*found, None][1:], strict=True):
        if block[1] != "output":
            output = after[2] if after is not None and after[1] == "output" else None
            yield Block(block[1], block[2], text.count("\n", 0, block.start(2)), output)


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each command of softgaze, lines that end in a backslash joined."""
    for line in text.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program == "softgaze":
            yield arguments
        elif program:
            raise ValueError(f"a bash block of the guide holds commands of softgaze, not {line!r}")


def run(paths: Sequence[Path], directory: Path) -> Iterator[Ran]:
    """Run chapters in order in a directory, where they leave their models and figures."""
    (directory / "figures").mkdir(exist_ok=True)
    torch.set_num_threads(1)  # a second one costs more than it gives here
    for chapter in paths:
        names: dict[str, Any] = {"__name__": "__main__"}
        for block in blocks(chapter.read_text(encoding="utf-8")):
            with chdir(directory):
                yield Ran(chapter, block, block.run(chapter, names))


def agree(shown: str, printed: str) -> bool:
    """Whether two outputs are the same; a number after ≈ was measured, and is only near."""
    one, other = (MEASURED.split(each.strip()) for each in (shown, printed))
    if one[::2] != other[::2]:
        return False
    return all(map(near, one[1::2], other[1::2]))


def near(shown: str, printed: str) -> bool:
    """Whether two measured numbers may be those of two machines."""
    first, second = (float(each.removesuffix(" %")) for each in (shown, printed))
    apart = POINTS if shown.endswith("%") else SHARE * max(abs(first), abs(second))
    return shown.endswith("%") == printed.endswith("%") and abs(first - second) <= apart


def main() -> int:
    """Run everything, make the figures again, and name what is no longer as the text shows it."""
    wrong = 0
    with TemporaryDirectory() as directory:
        for ran in run(chapters(), Path(directory)):
            if not ran.is_as_shown:
                wrong += 1
                print(f"{ran.chapter}:{ran.block.line + 1}: prints\n{ran.printed}and not\n{ran.block.output}")
        for figure in sorted(Path(directory, "figures").iterdir()):
            shutil.copy(figure, GUIDE / "figures")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
