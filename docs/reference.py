"""Reference pages made from the program itself: commands, settings, HTTP API, exit codes, messages, environment.

docs/conf.py writes them before it builds the site.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_origin

from fastapi import FastAPI

from softgaze import cli, errors
from softgaze.cli.settings import Setting, all_settings, default_text, type_text
from softgaze.models import MODELS
from softgaze.serve import api_deepl, api_libretranslate, api_v1
from softgaze.serve import app as server
from softgaze.serve.openapi import JSON, DescribedAPI, field_rows
from softgaze.serve.settings import Settings

EXAMPLE = re.compile(r"^softgaze .*(?:\n.*)*", re.MULTILINE)

# Variables of other programs that change what softgaze does: name -> (read by, effect).
OTHER_VARIABLES = {
    "OMP_NUM_THREADS": ("every command", "Threads per process on a CPU."),
    "CUDA_VISIBLE_DEVICES": ("every command", "GPUs that `cuda` and `auto` may use."),
    "RANK, WORLD_SIZE, LOCAL_RANK": ("`train`", "Rank of this process; set by torchrun."),
    "MASTER_ADDR, MASTER_PORT": ("`train`", "Address of rank 0; set by torchrun, or derived from Slurm's variables."),
    "SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_LOCALID": ("`train`", "Rank of this process; set by srun."),
    "COLUMNS": ("every command", "Width of tables and help texts, in characters."),
    "NO_COLOR": ("every command", "Disable colours in help texts."),
}


def pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    return {
        "cli.md": cli_page(),
        "settings.md": settings_page(),
        "http-api.md": http_page(),
        "exit-codes.md": exit_code_page(),
        "error-messages.md": message_page(),
        "environment.md": environment_page(),
    }


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (header, ["---"] * len(header), *rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


# --- commands ---------------------------------------------------------------------------------------------------


def cli_page() -> str:
    """Return every command with its arguments and options, in the order and groups of the help."""
    rows = [
        (f"[`softgaze {name}`](#softgaze-{name})", panel, cli.command(name).help.partition("\n")[0])
        for panel, names in cli.PANELS.items()
        for name in names
    ]
    texts = ["# Commands", "`softgaze COMMAND --help` prints the same.", table(("command", "group", ""), rows)]
    texts += [command_section(name, cli.command(name)) for name in cli.COMMANDS]
    return "\n\n".join(texts) + "\n"


def command_section(name: str, command: Any) -> str:
    """Return the help of a command: summary, examples, explanation, arguments and options."""
    summary, *paragraphs = command.help.strip().split("\n\n")
    texts = [f"## softgaze {name}", summary]
    for paragraph in paragraphs:
        texts.append(f"```text\n{paragraph}\n```" if EXAMPLE.match(paragraph) else plain(paragraph))
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        if parameter.name != "help":
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(parameter)
    for panel, parameters in panels.items():
        rows = [(parameter_name(each), plain(each.help or ""), default_cell(each)) for each in parameters]
        texts.append(f"**{panel}**\n\n" + table(("", "meaning", "default"), rows))
    return "\n\n".join(texts)


def plain(text: str) -> str:
    """Return help text as one line of Markdown; outside of `code`, `*`, `<` and `_` are meant as they stand."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [re.sub(r"([*_<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def parameter_name(parameter: Any) -> str:
    """Return `--output`, `-o` `FILE`."""
    if parameter.param_type_name == "argument":
        return code(parameter.metavar or parameter.name.upper())
    annotation = parameter.type_descriptor.annotation
    value = type_text(annotation) if get_origin(annotation) is Literal else parameter.metavar
    names = ", ".join(map(code, parameter.opts))
    return f"{names} {code(value or '') if not parameter.is_flag else ''}".strip()


def default_cell(parameter: Any) -> str:
    """Return the described default, or the value."""
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    if parameter.required:
        return "required"
    default = parameter.default
    return "" if default in (None, False, (), []) or callable(default) else code(str(default))


# --- settings ---------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Return every setting of a run by section, then the options of each architecture."""
    texts = [
        "# Settings of a training run",
        "Give them to `softgaze train` with `--set NAME=VALUE` or in a YAML file (`--config`). `softgaze settings "
        "[ARCH]` prints the same.",
    ]
    common = [row for row in all_settings(list(MODELS)) if not row.name.startswith("model.options.")]
    for section in dict.fromkeys(row.name.partition(".")[0] for row in common):
        rows = [row for row in common if row.name.startswith(f"{section}.")]
        texts += [f"## {section}", settings_table(rows)]
    for arch in MODELS:
        rows = [row for row in all_settings([arch]) if row.name.startswith("model.options.")]
        texts += [f"## Options of {arch}", settings_table(rows)]
    return "\n\n".join(texts) + "\n"


def settings_table(settings: Iterable[Setting]) -> str:
    rows = [(code(row.name), row.type, default_text(row.defaults), plain(row.meaning)) for row in settings]
    return table(("setting", "type", "default", "meaning"), rows)


# --- HTTP API ---------------------------------------------------------------------------------------------------


def http_page() -> str:
    """Return every route with the fields of its request and response, from the OpenAPI description."""
    description = openapi_description()
    schemas = description["components"]["schemas"]
    texts = [
        "# HTTP API",
        f"{description['info']['description']} A running server describes itself at `/docs` (page) and `/spec` "
        "(OpenAPI). With `--api-keys`, send a key as the field `api_key` or as the header `Authorization: Bearer KEY`.",
    ]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            texts.append(f"## {method.upper()} {path}")
            texts += route_texts(operation, schemas)
    return "\n\n".join(texts) + "\n"


def openapi_description() -> dict[str, Any]:
    """Return the description of the server's routes, without a model."""
    api: FastAPI = DescribedAPI(title="softgaze", description=server.DESCRIPTION)
    for routes in (api_libretranslate.router, api_deepl.router, api_v1.router, server.router):
        api.include_router(routes)
    return api.openapi()


def route_texts(operation: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    """Return description, request fields, response fields and status codes of a route."""
    body = operation.get("requestBody", {}).get("content", {})
    response = operation["responses"].get("200", {}).get("content", {}).get(JSON, {}).get("schema")
    texts = [" ".join(operation.get("description", operation.get("summary", "")).split())]
    if body:
        rows = field_rows(next(iter(body.values()))["schema"], schemas)
        texts.append(f"Request ({', '.join(map(code, body))}):\n\n{fields_table(rows)}")
    if response and (rows := field_rows(response, schemas)):
        kind = "Response, a list of" if response.get("type") == "array" else "Response"
        texts.append(f"{kind}:\n\n{fields_table(rows)}")
    statuses = [f"{status} {result['description']}" for status, result in sorted(operation["responses"].items())]
    return [*filter(None, texts), f"Status: {'; '.join(statuses)}."]


def fields_table(rows: Iterable[tuple[str, str, str]]) -> str:
    return table(("field", "type", ""), [(code(name), kind, plain(notes)) for name, kind, notes in rows])


# --- exit codes and environment ---------------------------------------------------------------------------------


def exit_code_page() -> str:
    """Return the exit codes, from the error classes."""
    classes: list[type[errors.SoftgazeError]] = [errors.SoftgazeError, *errors.SoftgazeError.__subclasses__()]
    rows = [(code("0"), "", "Success.")]
    for error in sorted(classes, key=lambda each: each.exit_code):
        meaning = "An unexpected error." if error is errors.SoftgazeError else error.__doc__ or ""
        rows.append((code(str(error.exit_code)), code(error.__name__), plain(meaning)))
    rows.append((code(str(cli.INTERRUPTED)), "", "Interrupted by Ctrl-C. `train` and `translate` resume."))
    note = (
        "An error is one line on stderr, `softgaze: error: …`. Add `--debug` at any position for the traceback. "
        "The library raises the same classes. [Troubleshooting](../howto/troubleshooting.md) explains frequent errors."
    )
    return "\n\n".join(["# Exit codes", note, table(("code", "class", "meaning"), rows)]) + "\n"


def message_page() -> str:
    """Return every error message of the package by exit code; … stands for names and numbers."""
    note = (
        "Every message that softgaze raises for users; … stands for names and numbers. The last column "
        "links to an explanation in [troubleshooting](../howto/troubleshooting.md)."
    )
    explained = troubleshooting()
    texts = ["# Error messages", note]
    for error in sorted(errors.SoftgazeError.__subclasses__(), key=lambda each: each.exit_code):
        rows = [
            (
                part,
                plain(text),
                f"[{explained[text]}](../howto/troubleshooting.md#{slug(explained[text])})"
                if text in explained
                else "",
            )
            for name, text, part in messages()
            if name == error.__name__
        ]
        texts += [f"## Exit code {error.exit_code}", table(("part", "message", ""), rows)]
    return "\n\n".join(texts) + "\n"


def messages() -> list[tuple[str, str, str]]:
    """Return class, text and part of the package of every error written for users."""
    classes = {each.__name__ for each in errors.SoftgazeError.__subclasses__()}
    root = Path(errors.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        part = path.relative_to(root).parts[0].removesuffix(".py").strip("_")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes and node.args:
                text = template(node.args[0])
                if re.search(r"\w{3}", text):
                    found.add((node.func.id, text, part))
    return sorted(found, key=lambda each: (each[2], each[1]))


def template(node: ast.expr) -> str:
    """Return the text of a string; … stands for each expression in it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def troubleshooting() -> dict[str, str]:
    """Return {message: heading} of the troubleshooting page."""
    page = Path(__file__).parent / "howto/troubleshooting.md"
    return {
        text: heading
        for heading, text in re.findall(
            r"^## (.*)\n\n```text\n(.*)\n```$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
    }


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def environment_page() -> str:
    """Return the environment variables: one for each option of the server, and those of other programs."""
    rows = [(code("SOFTGAZE_MODELS"), "", "Model directories, separated by `:`.")]
    for field in fields(Settings):
        if option := field.metadata.get("option"):
            default = option.get("show_default", "") if field.default in (None, ()) else code(str(field.default))
            rows.append((code(f"SOFTGAZE_{field.name.upper()}"), default, plain(option["help"])))
    others = [(", ".join(map(code, names.split(", "))), *facts) for names, facts in OTHER_VARIABLES.items()]
    texts = ["# Environment variables", "## Server", "`softgaze serve` reads each of its options from a variable, too."]
    texts += [table(("variable", "default", "meaning"), rows), "## Other programs"]
    texts += ["softgaze reads these, directly or through torch.", table(("variable", "read by", "effect"), others)]
    return "\n\n".join(texts) + "\n"
