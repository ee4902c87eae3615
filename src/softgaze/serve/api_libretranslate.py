"""The LibreTranslate API: its routes, fields, statuses and error messages, so that its clients work unchanged."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from softgaze.documents.base import Document, DocumentOptions
from softgaze.documents.formats import FORMATS, SUFFIXES, detect_format
from softgaze.documents.inline import Segment
from softgaze.errors import DataError
from softgaze.serve import schemas
from softgaze.serve.errors import HTTPError, log_error, missing_parameter, to_http_error
from softgaze.serve.languages import language_name
from softgaze.serve.model_registry import shorten
from softgaze.serve.openapi import ERRORS, file_body, request_body, text_response
from softgaze.serve.request_parsing import authorized_fields, parse_as
from softgaze.serve.service import AUTO, Service, ServiceDep
from softgaze.serve.translate_jobs import TranslateHtmlJob, TranslateJob, TranslateSegmentsJob

router = APIRouter(tags=["LibreTranslate"], responses=ERRORS)
SEGMENTS_AT_ONCE = 64  # of a file in the queue, so that a long file leaves room for other requests
BINARY = "application/octet-stream"
GLOSSARY_FIELD = {"type": "string", "description": "Terms, a line each: source, tab, target."}
LANGUAGE_FIELD = {"type": "string", "description": "A language code.", "required": True}


@router.post(
    "/translate",
    response_model=schemas.LibreTranslateResponse,
    response_model_exclude_none=True,
    openapi_extra=request_body(schemas.LibreTranslateRequest),
)
async def translate(
    request: Request,
    service: ServiceDep,
    fields: Annotated[schemas.LibreTranslateRequest, Depends(parse_as(schemas.LibreTranslateRequest))],
) -> dict[str, Any]:
    """Translate a text or a list of texts."""
    texts = service.check_texts(fields.q)
    if fields.format not in ("text", "html"):
        raise HTTPError(400, f"{shorten(fields.format)} format is not supported")
    model, _, _, detected = await service.select_model(texts, fields.source, fields.target)
    options = replace(
        service.search_options(model, None, fields.alternatives + 1), split_sentences=True
    )  # as their servers do
    results: list[tuple[str, list[str]]]  # each text and its alternatives
    if model is None:
        results = [(text, []) for text in texts]
    elif fields.format == "html":
        results = await service.run(request, TranslateHtmlJob(model, options), texts)
    else:
        translations = await service.run(request, TranslateJob(model, options, keeps_placeholders=True), texts)
        results = [(best.text, [other.text for other in best.alternatives]) for best in translations]
    response: dict[str, list[Any]] = {"translatedText": [text for text, _ in results]}
    if detected:
        response["detectedLanguage"] = [detected._asdict()] * len(texts)
    if fields.alternatives:
        response["alternatives"] = [alternatives for _, alternatives in results]
    return {name: values if isinstance(fields.q, list) else values[0] for name, values in response.items()}


@router.post(
    "/detect", response_model=list[schemas.DetectedLanguage], openapi_extra=request_body(schemas.DetectRequest)
)
async def detect(
    service: ServiceDep, fields: Annotated[schemas.DetectRequest, Depends(parse_as(schemas.DetectRequest))]
) -> list[dict[str, Any]]:
    """Detect the language of a text, most probable first; for a list, the most probable of each text."""
    texts, detector = service.check_texts(fields.q), service.require_detector()
    detected = await asyncio.to_thread(lambda: [detector.detect(text) for text in texts])
    languages = detected[0] if isinstance(fields.q, str) else [candidates[0] for candidates in detected]
    return [language._asdict() for language in languages]


@router.get("/languages", response_model=list[schemas.LanguageEntry])
async def languages(service: ServiceDep) -> list[dict[str, Any]]:
    """List the languages and the targets of each."""
    return service.registry.languages_json()


@router.post(
    "/translate_file",
    response_model=schemas.FileResponse,
    openapi_extra=file_body(
        "file",
        f"A document: {', '.join(SUFFIXES)}.",
        source={**LANGUAGE_FIELD},
        target={**LANGUAGE_FIELD},
        glossary=GLOSSARY_FIELD,
        stream={"type": "boolean"},
    ),
    responses=text_response("text/event-stream", "The URL; with `stream`, the progress before it."),
)
async def translate_file(request: Request, service: ServiceDep) -> Any:
    """Translate a document, and return the URL of the result, which has the same format.

    With `stream`, the response is a stream of events: `progress` with the segments done, then `done` with the URL.
    """
    fields, _ = await authorized_fields(request)
    for name, kind in {"file": UploadFile, "source": str, "target": str}.items():
        if not isinstance(fields.get(name), kind) or fields[name] == "":
            raise missing_parameter(name)
    suffix, content = await read_file(fields["file"])
    languages = DocumentOptions(fields["source"], fields["target"])
    document = await asyncio.to_thread(parse_file, suffix, content, languages)
    texts = [segment.text for segment in document.segments if segment.text.strip()] or [""]
    model = (await service.select_model(texts, fields["source"], fields["target"])).model
    glossary = None if model is None else service.find_glossary(model, str(fields.get("glossary", "")))
    job = None if model is None else TranslateSegmentsJob(model, service.search_options(model, glossary=glossary))
    steps = translate_segments(request, service, job, document.segments)

    async def save(translations: Sequence[str]) -> dict[str, str]:
        written = content if model is None else await asyncio.to_thread(document.write, translations)
        saved = service.files.save(written, suffix)
        return {"translatedFileUrl": str(request.url_for("download_file", name=saved))}

    if fields.get("stream") in ("true", "1"):
        events = file_events(steps, len(document.segments), save)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    return await save([markup async for batch in steps for markup in batch])


async def translate_segments(
    request: Request, service: Service, job: TranslateSegmentsJob | None, segments: Sequence[Segment]
) -> AsyncIterator[list[str]]:
    """Yield the translations of segments, some at a time; nothing if there is no model to translate with."""
    if job is None:
        return
    for start in range(0, len(segments), SEGMENTS_AT_ONCE):
        batch = segments[start : start + SEGMENTS_AT_ONCE]
        service.metrics.count_texts([segment.text for segment in batch])
        yield await service.run(request, job, batch, [len(segment.text) for segment in batch])


async def file_events(
    steps: AsyncIterator[list[str]], total: int, save: Callable[[Sequence[str]], Awaitable[dict[str, str]]]
) -> AsyncIterator[str]:
    """Yield the progress of a translation and its result as server-sent events."""
    translations: list[str] = []
    try:
        async for batch in steps:
            translations += batch
            yield server_sent_event("progress", {"done": len(translations), "total": total})
        yield server_sent_event("done", await save(translations))
    except Exception as exception:
        error = to_http_error(exception)
        if error.status >= 500:
            log_error("a file", exception)
        yield server_sent_event("error", {"error": error.message})


def server_sent_event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, allow_nan=False)}\n\n"


async def read_file(file: UploadFile) -> tuple[str, bytes]:
    """Return the suffix and the content of an uploaded document; nothing else of its name is used."""
    suffix = PurePosixPath(file.filename or "").suffix.lower()
    if suffix not in SUFFIXES:
        raise HTTPError(400, "Invalid request: file format not supported")
    content = await file.read()
    if not content:
        raise HTTPError(400, "Invalid request: empty file")
    return suffix, content


def parse_file(suffix: str, content: bytes, options: DocumentOptions) -> Document:
    found = detect_format(f"file{suffix}", content)
    if found is None:
        raise HTTPError(400, "Invalid request: file format not supported")
    try:
        return FORMATS[found].parse(content, options)
    except DataError as error:
        raise HTTPError(400, f"Invalid request: {error}") from None


@router.get(
    "/download_file/{name}",
    response_class=Response,
    responses={
        **text_response(BINARY, "The file."),
        404: {"model": schemas.ErrorResponse, "description": "Not found"},
    },
)
async def download_file(name: str, service: ServiceDep) -> Response:
    """Download a translated file."""
    content = await asyncio.to_thread(service.files.load, name)
    if content is None:
        raise HTTPError(404, "the file does not exist or has expired")
    suffix = PurePosixPath(name).suffix
    headers = {"Content-Disposition": f'attachment; filename="translated{suffix}"'}
    # Never as HTML or XML, which a browser could run.
    return Response(content, media_type="text/plain; charset=utf-8" if suffix == ".txt" else BINARY, headers=headers)


@router.get("/frontend/settings", response_model=schemas.FrontendSettings)
async def frontend_settings(service: ServiceDep) -> dict[str, Any]:
    """Return the settings for a web page."""
    target = service.registry.text_models[0].target if service.registry.text_models else ""
    return {
        "apiKeys": service.keys.required,
        "keyRequired": service.keys.required,
        "charLimit": service.settings.max_characters,
        "filesTranslation": True,
        "frontendTimeout": 300,
        "suggestions": False,
        "supportedFilesFormat": [*SUFFIXES],
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": target, "name": language_name(target)},
        },
    }
