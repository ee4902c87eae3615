"""The command line: one small file a command, its heavy imports inside the command.

Errors are one line on stderr, `softgaze: error: …`, with the exit code of their kind; `--debug` shows where they arose.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from softgaze import __version__
from softgaze.errors import ResourceError, SoftgazeError, UsageError, did_you_mean

COMMANDS = (
    "quickstart",
    "check",
    "train",
    "translate",
    "evaluate",
    "why",
    "compare",
    "align",
    "explain",
    "export",
    "serve",
    "bench",
    "info",
    "phrasebook",
)  # in the order of the help
INTERRUPTED = 130


class Commands(TyperGroup):
    """Commands that are called by their names, or nearly."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; for an unknown one say which names are near."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise UsageError(f"unknown command {args[0]!r}; {did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="softgaze",
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"softgaze {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere.")] = False,
) -> None:
    """Sequence models whose attention you can see, trust and ship.

    Begin with: softgaze quickstart
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def register() -> None:
    """Add every command: the function its module is named after, parsed by the module's own class if it has one."""
    for name in COMMANDS:
        module = import_module(f"softgaze.cli.{name}")
        app.command(cls=getattr(module, "COMMAND", None))(getattr(module, name))


register()


def main() -> None:
    """Run the command line and leave with its exit code."""
    arguments, debug = without_debug(sys.argv[1:])
    try:
        result = app(args=arguments, prog_name="softgaze", standalone_mode=False)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        message, code = explained(error)
        typer.echo(f"softgaze: error: {' '.join(message.split())}", err=True)
    sys.exit(code)


def without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--debug` out wherever it stands before a `--`: people add it to the end of the line that failed."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [each for each in arguments[:end] if each != "--debug"]
    return [*options, *arguments[end:]], len(options) < end


def explained(error: Exception) -> tuple[str, int]:
    """What to tell the user about an error, and its exit code."""
    if isinstance(error, SoftgazeError):
        return str(error), error.exit_code
    if hasattr(error, "format_message"):  # of the command line parser, whichever parser this version of typer has
        return explained_usage(error), UsageError.exit_code
    scarce = isinstance(error, (OSError, MemoryError)) or type(error).__name__ == "OutOfMemoryError"
    message = f"{type(error).__name__}: {error}; run again with --debug for the traceback"
    return message, ResourceError.exit_code if scarce else SoftgazeError.exit_code


def explained_usage(error: Any) -> str:
    """A mistake in the arguments, with the nearest option and where to read more."""
    context, name = getattr(error, "ctx", None), getattr(error, "option_name", None)
    if context is None:
        return str(error.format_message())
    message = error.format_message().rstrip(".")
    message = message[0].lower() + message[1:]
    if name and message.startswith("no such option"):
        known = [option for each in context.command.params for option in each.opts]
        message = f"unknown option {name}; {did_you_mean(name, known).rstrip('?')}"
    return f"{message} (see {context.command_path} --help)"
