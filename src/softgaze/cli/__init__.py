"""The command line: one small file a command, its heavy imports inside the command."""

from typing import Annotated

import typer

from softgaze import __version__

app = typer.Typer(
    name="softgaze",
    help="Sequence models whose attention you can see, trust and ship.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"softgaze {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Sequence models whose attention you can see, trust and ship."""


def main() -> None:
    """Run the command line."""
    app()
