"""`softgaze serve`: models behind a web page and an HTTP API. Knows flags; the serving is `softgaze.serve`'s."""

from pathlib import Path
from typing import Annotated, Any

import typer

from softgaze.serve.settings import Settings


def flag(text: str, name: str, **options: Any) -> Any:
    """An option that is also an environment variable."""
    return typer.Option(help=text, envvar=f"SOFTGAZE_{name}", **options)


def serve(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL…", envvar="SOFTGAZE_MODELS", help="Directories of models, trained or exported."),
    ],
    host: Annotated[str, flag("Address to listen on; 0.0.0.0 is open to the network.", "HOST")] = Settings.host,
    port: Annotated[int, flag("Port to listen on; 0 takes a free one.", "PORT", min=0, max=65535)] = Settings.port,
    workers: Annotated[int, flag("Processes, each with its own copy of the models.", "WORKERS")] = Settings.workers,
    threads: Annotated[
        int, flag("Batches at the same time in each process; 0: one for each core.", "THREADS")
    ] = Settings.threads,
    device: Annotated[str, flag("auto, cpu, cuda, cuda:N or mps.", "DEVICE")] = Settings.device,
    api_keys: Annotated[
        Path | None, flag("Only who has a key of FILE (one a line) may ask.", "API_KEYS", metavar="FILE")
    ] = None,
    cors: Annotated[
        list[str] | None, flag("A web site whose pages may ask, such as https://a.org; * is all.", "CORS")
    ] = None,
    beam: Annotated[int, flag("Hypotheses kept at each step where nobody asks for another.", "BEAM")] = Settings.beam,
    max_body: Annotated[int, flag("Bytes of a request.", "MAX_BODY")] = Settings.max_body,
    max_characters: Annotated[int, flag("Characters of a text.", "MAX_CHARACTERS")] = Settings.max_characters,
    max_texts: Annotated[int, flag("Texts of a request.", "MAX_TEXTS")] = Settings.max_texts,
    max_beam: Annotated[int, flag("The widest beam that may be asked for.", "MAX_BEAM")] = Settings.max_beam,
    max_alternatives: Annotated[
        int, flag("Alternatives that may be asked for.", "MAX_ALTERNATIVES")
    ] = Settings.max_alternatives,
    read_seconds: Annotated[
        float, flag("Seconds in which a request must arrive.", "READ_SECONDS")
    ] = Settings.read_seconds,
    deadline: Annotated[
        float, flag("Seconds that a text may wait for its turn; then 429.", "DEADLINE")
    ] = Settings.deadline,
    window: Annotated[
        float, flag("Milliseconds that a text waits for others to be translated with.", "WINDOW")
    ] = Settings.window,
    batch: Annotated[int, flag("Texts translated together; 1: each alone.", "BATCH")] = Settings.batch,
    queue: Annotated[int, flag("Texts that may wait; beyond, 429.", "QUEUE")] = Settings.queue,
    keep_files: Annotated[
        float, flag("Minutes that a translated file can be fetched.", "KEEP_FILES")
    ] = Settings.keep_files,
) -> None:
    """Serve models: a web page, LibreTranslate's API, as much of DeepL's as its clients need, and one of our own.

    softgaze serve runs/m30k

    softgaze serve runs/en-ko runs/ko-en --port 5000 --api-keys keys.txt

    Open the address it prints in a browser; nothing is loaded from elsewhere. Programs that speak LibreTranslate are
    given the same address. /docs tells of all else. Texts of many requests are translated together. On SIGTERM what was
    accepted is answered first. Texts and keys are never logged.
    """
    from softgaze.devices import need

    for package in ("fastapi", "uvicorn", "python_multipart"):
        need(package, "softgaze[serve]")
    from softgaze.serve.running import serve as run

    settings = Settings(
        models=tuple(map(str, models)),
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        device=device,
        api_keys=str(api_keys) if api_keys else None,
        cors=tuple(cors or ()),
        beam=beam,
        max_body=max_body,
        max_characters=max_characters,
        max_texts=max_texts,
        max_beam=max_beam,
        max_alternatives=max_alternatives,
        read_seconds=read_seconds,
        deadline=deadline,
        window=window,
        batch=batch,
        queue=queue,
        keep_files=keep_files,
    )
    run(settings, lambda line: typer.echo(line))
