"""`softgaze serve`: models behind a web page and HTTP APIs."""

from dataclasses import fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from softgaze.serve.settings import Settings


def serve(**settings: Any) -> None:
    """Serve models as a web page and HTTP API.

    softgaze serve runs/m30k
    softgaze serve runs/en-ko runs/ko-en --port 5000 --api-keys keys.txt

    Open the printed address in a browser. LibreTranslate clients use the
    same address; the DeepL API and softgaze's own are described in /docs.
    The page loads nothing from other servers. On SIGTERM the server first
    finishes the accepted requests. Texts and keys are never logged.

    Every option is also an environment variable: SOFTGAZE_MODELS,
    SOFTGAZE_HOST, SOFTGAZE_MAX_BODY and so on.
    """
    from softgaze.runtime import need

    for package in ("fastapi", "uvicorn", "python_multipart", "jinja2", "babel"):
        need(package, "softgaze[serve]")
    from softgaze.serve.server import serve as run

    lists = {"models": tuple(map(str, settings["models"])), "cors": tuple(settings["cors"] or ())}
    run(Settings(**{**settings, **lists}), typer.echo)


def parameters() -> list[Parameter]:
    """Return the argument MODEL and an option for each setting, all with environment variables."""
    text = "Model directories, trained or exported."
    models = typer.Argument(metavar="MODEL", envvar="SOFTGAZE_MODELS", show_envvar=False, help=text)
    result = [Parameter("models", Parameter.KEYWORD_ONLY, annotation=Annotated[list[Path], models])]
    for field in fields(Settings):
        if option := field.metadata.get("option"):
            is_list = isinstance(field.default, tuple)
            kind, default = (list[str] | None, None) if is_list else (field.type, field.default)
            info = typer.Option(envvar=f"SOFTGAZE_{field.name.upper()}", show_envvar=False, **option)
            annotation = Annotated[kind, info]  # type: ignore[valid-type]
            result.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return result


# The options are made from the settings, so that each is described once.
serve.__signature__ = Signature(parameters())  # type: ignore[attr-defined]
