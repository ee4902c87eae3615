"""`softgaze serve`: models behind a web page and HTTP APIs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from softgaze.serve.settings import Settings

MAXIMUM = "Limits (maximum values)"


def setting(variable: str, text: str, panel: str | None = None, **rest: Any) -> Any:
    """Return an option that is also an environment variable."""
    return typer.Option(help=text, envvar=f"SOFTGAZE_{variable}", show_envvar=False, rich_help_panel=panel, **rest)


def serve(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL", envvar="SOFTGAZE_MODELS", show_envvar=False, help="Model directories, trained or exported."
        ),
    ],
    host: Annotated[str, setting("HOST", "Address to listen on; 0.0.0.0: all interfaces.")] = Settings.host,
    port: Annotated[int, setting("PORT", "Port to listen on; 0: any free port.", min=0, max=65535)] = Settings.port,
    workers: Annotated[int, setting("WORKERS", "Processes; each loads all models.")] = Settings.workers,
    threads: Annotated[
        int, setting("THREADS", "Concurrent batches per process; 0: set by the engine.")
    ] = Settings.threads,
    device: Annotated[str, setting("DEVICE", "auto, cpu, cuda, cuda:N or mps.")] = Settings.device,
    api_keys: Annotated[
        Path | None, setting("API_KEYS", "Require an API key listed in FILE (one per line).", metavar="FILE")
    ] = None,
    cors: Annotated[
        list[str] | None, setting("CORS", "Origin whose pages may call the API, such as https://a.org; *: all.")
    ] = None,
    beam_size: Annotated[int, setting("BEAM_SIZE", "Default beam size.")] = Settings.beam_size,
    max_body: Annotated[int, setting("MAX_BODY", "Request body, in bytes.", MAXIMUM)] = Settings.max_body,
    max_characters: Annotated[
        int, setting("MAX_CHARACTERS", "Length of a text, in characters.", MAXIMUM)
    ] = Settings.max_characters,
    max_texts: Annotated[int, setting("MAX_TEXTS", "Texts per request.", MAXIMUM)] = Settings.max_texts,
    max_beam_size: Annotated[
        int, setting("MAX_BEAM_SIZE", "Beam size of a request.", MAXIMUM)
    ] = Settings.max_beam_size,
    max_hypotheses: Annotated[
        int, setting("MAX_HYPOTHESES", "Translations per text.", MAXIMUM)
    ] = Settings.max_hypotheses,
    read_seconds: Annotated[
        float, setting("READ_SECONDS", "Time to receive a request, in seconds.", MAXIMUM)
    ] = Settings.read_seconds,
    deadline: Annotated[
        float, setting("DEADLINE", "Waiting time of a text in seconds; then 429.", MAXIMUM)
    ] = Settings.deadline,
    queue: Annotated[int, setting("QUEUE", "Number of waiting texts; above it 429.", MAXIMUM)] = Settings.queue,
    keep_files: Annotated[
        float, setting("KEEP_FILES", "Lifetime of a translated file, in minutes.", MAXIMUM)
    ] = Settings.keep_files,
    batch: Annotated[int, setting("BATCH", "Texts translated together.", MAXIMUM)] = Settings.batch,
    window: Annotated[
        float, setting("WINDOW", "Time a text waits for others to join its batch, in milliseconds.", MAXIMUM)
    ] = Settings.window,
) -> None:
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
    given = locals()  # all parameters, which have the names of the settings
    from softgaze.runtime import need

    for package in ("fastapi", "uvicorn", "python_multipart", "jinja2", "babel"):
        need(package, "softgaze[serve]")
    from softgaze.serve.server import serve as run

    given |= {"models": tuple(map(str, models)), "cors": tuple(cors or ())}
    given |= {"api_keys": str(api_keys) if api_keys else None}
    run(Settings(**given), typer.echo)
