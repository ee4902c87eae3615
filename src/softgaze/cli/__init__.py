"""The command line: one file per command, heavy imports inside the commands.

An error is one line on stderr, `softgaze: error: …`, with the exit code of its class; `--debug` shows the traceback.
"""

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from softgaze import __version__
from softgaze.cli import _options as opt
from softgaze.errors import ResourceError, SoftgazeError, UsageError, did_you_mean
from softgaze.runtime import tune_cpu

PANELS = {
    "Start": ("quickstart", "phrasebook", "import"),
    "Train": ("check", "train", "settings", "compare"),
    "Use": ("translate", "caption", "align", "explain"),
    "Measure": ("evaluate", "bench", "why", "info"),
    "Deploy": ("export", "serve"),
}
COMMANDS = {name: panel for panel, names in PANELS.items() for name in names}
INTERRUPTED = 130


class CommandGroup(opt.PlainHelp, TyperGroup):
    """A group that imports the command it runs, and suggests the nearest command for an unknown one."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            if cmd_name.startswith("-"):
                return None
            raise UsageError(f"unknown command {cmd_name!r}; {did_you_mean(cmd_name, COMMANDS)}")
        return command(cmd_name)


def command(name: str) -> Any:
    """Return the parser of a command; its module is imported only now."""
    function = f"{name}_" if iskeyword(name) else name
    module = import_module(f"softgaze.cli.{function}")
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    register = single.command(name, cls=getattr(module, "COMMAND", opt.Command), rich_help_panel=COMMANDS[name])
    register(getattr(module, function))
    return typer.main.get_command(single)


app = typer.Typer(
    name="softgaze",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"softgaze {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error (any position).")] = False,
) -> None:
    """Train, inspect and serve attention-based translation models.

    First steps: softgaze quickstart
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit with its code."""
    tune_cpu()  # process-wide: done by programs, never by library calls
    if sys.stderr.isatty():  # progress; without a terminal only warnings are shown
        logging.basicConfig(format="%(message)s")
        logging.getLogger("softgaze").setLevel(logging.INFO)
    arguments, debug = split_debug(sys.argv[1:])
    try:
        result = app(args=arguments, prog_name="softgaze", standalone_mode=False)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        message, code = describe_error(error)
        typer.echo(f"softgaze: error: {' '.join(message.split())}", err=True)
    sys.exit(code)


def split_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Remove `--debug` from any position before `--`, and return whether it was there.

    Users append it to the line that failed, where the root command does not see it.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return [*options, *arguments[end:]], len(options) < end


def describe_error(error: Exception) -> tuple[str, int]:
    """Return the message for the user and the exit code."""
    if isinstance(error, SoftgazeError):
        return str(error), error.exit_code
    if hasattr(error, "format_message"):  # a usage error of click, or of the parser that replaces it in Typer
        return describe_usage_error(error), UsageError.exit_code
    is_resource = isinstance(error, (OSError, MemoryError)) or type(error).__name__ == "OutOfMemoryError"
    message = f"{type(error).__name__}: {error}; run again with --debug for the traceback"
    return message, ResourceError.exit_code if is_resource else SoftgazeError.exit_code


def describe_usage_error(error: Any) -> str:
    """Return the parser's message with the nearest option and the help command."""
    context, name = getattr(error, "ctx", None), getattr(error, "option_name", None)
    if context is None:
        return str(error.format_message())
    message = error.format_message().rstrip(".").replace("Value error, ", "")
    message = message[0].lower() + message[1:]
    if name and message.startswith("no such option"):
        options = [option for parameter in context.command.params for option in parameter.opts]
        message = f"unknown option {name}; {did_you_mean(name, options).rstrip('?')}"
    return f"{message} (see {context.command_path} --help)"
