"""`softgaze import`: open a model of another toolkit."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgaze.cli import _options as opt
from softgaze.cli._options import argument, choice, flag, option
from softgaze.cli._output import progress, warn

if TYPE_CHECKING:
    from softgaze.importers import ImportCallback, ImportReport

StoredType = Literal["float32", "float16", "bfloat16"]


def import_(
    path: Annotated[Path, argument("Directory or file of the model.", "PATH")],
    out: Annotated[Path, option("New model directory.", "--output", "-o", metavar="DIR")],
    dtype: Annotated[StoredType, choice("Stored precision of the weights.", of=StoredType)] = "float32",
    source_lang: Annotated[
        str | None, option("Source language of a model with one pair.", metavar="CODE", default="from its files")
    ] = None,
    target_lang: Annotated[
        str | None, option("Target language of a model with one pair.", metavar="CODE", default="from its files")
    ] = None,
    no_verify: Annotated[bool, flag("Skip the comparison with the original.", "--no-verify")] = False,
    as_json: opt.Json = False,
) -> None:
    """Import a model of another toolkit.

    softgaze import opus-mt-en-de -o en-de
    softgaze translate en-de "A dog runs."

    Reads Hugging Face directories of OPUS-MT (Marian), M2M100, NLLB-200 and
    mBART, Marian .npz and Firefox .bin files, Argos packages and CTranslate2
    directories. Every command works on the result. The import compares itself
    with the original: logits if its library is installed, else tensors.
    Nothing in the files is executed.
    """
    from softgaze.cli._output import json_line
    from softgaze.importers import import_model
    from softgaze.runtime import need_torch

    need_torch()
    languages = {"source_lang": source_lang, "target_lang": target_lang}
    with import_display() as callback:
        report = import_model(path, out, dtype=dtype, **languages, verify=not no_verify, callback=callback)
    typer.echo(json_line({**vars(report), "path": str(report.path)}) if as_json else report_text(report))


@contextmanager
def import_display() -> "Iterator[ImportCallback]":
    """Show tensors and bytes, then the verification: a progress bar on a terminal, and lines on stderr."""
    from softgaze.importers import ImportCallback

    with ExitStack() as stack:

        class Display(ImportCallback):
            def on_start(self, tensors: int, size: int) -> None:
                warn(f"writing {tensors:,} tensors, {size / 1e6:,.0f} MB")
                self.done = 0
                self.advance = stack.enter_context(progress(size // 1_000_000 + 1, "MB"))

            def on_write(self, size: int) -> None:
                before, self.done = self.done, self.done + size
                self.advance(self.done // 1_000_000 - before // 1_000_000)

            def on_verify(self, compared: str) -> None:
                stack.close()
                warn(f"verifying: comparing {compared} with the original")

        yield Display()


def report_text(report: "ImportReport") -> str:
    """Describe the imported model and its verification."""
    languages = f"{' → '.join(report.pair)}, " if all(report.pair) else ""
    if any(report.languages):
        languages = f"{' → '.join(str(count or 'any') for count in report.languages)} languages, {languages}"
    lines = [f"wrote {report.path}: {report.family}, {languages}{report.parameters:,} parameters"]
    if report.largest_difference == report.largest_difference:  # not NaN
        lines.append(f"compared with {report.compared_with}: largest difference {report.largest_difference:.2g}")
        lines.append(f"sample: {report.sample}")
    else:
        lines.append("not verified")
    if not languages:
        lines.append("languages: not stated in its files; --source-lang and --target-lang set them, as servers need")
    return "\n".join([*lines, f"took {report.seconds:.1f} s"])
