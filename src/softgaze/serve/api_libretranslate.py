"""The LibreTranslate API: its routes, fields, statuses and error messages, so that its clients work unchanged."""

import asyncio
from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from softgaze.documents import FORMATS, SUFFIXES, Document, DocumentOptions, detect_format
from softgaze.errors import DataError
from softgaze.serve import schemas
from softgaze.serve.errors import HTTPError, missing_parameter
from softgaze.serve.html_translation import TranslateHtmlJob
from softgaze.serve.languages import language_name
from softgaze.serve.model_registry import shorten
from softgaze.serve.openapi import ERRORS, file_body, request_body, text_response
from softgaze.serve.request_parsing import authorized_fields, parse_as
from softgaze.serve.service import AUTO, ServiceDep
from softgaze.serve.translate_jobs import TranslateJob, TranslateSegmentsJob

router = APIRouter(tags=["LibreTranslate"], responses=ERRORS)
SEGMENTS_AT_ONCE = 64  # of a file in the queue, so that a long file leaves room for other requests
BINARY = "application/octet-stream"
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
    options = service.search_options(None, fields.alternatives + 1)
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
        "file", f"A document: {', '.join(SUFFIXES)}.", source={**LANGUAGE_FIELD}, target={**LANGUAGE_FIELD}
    ),
)
async def translate_file(request: Request, service: ServiceDep) -> dict[str, str]:
    """Translate a document, and return the URL of the result, which has the same format."""
    fields, _ = await authorized_fields(request)
    for name, kind in {"file": UploadFile, "source": str, "target": str}.items():
        if not isinstance(fields.get(name), kind) or fields[name] == "":
            raise missing_parameter(name)
    suffix, content = await read_file(fields["file"])
    languages = DocumentOptions(fields["source"], fields["target"])
    document = await asyncio.to_thread(parse_file, suffix, content, languages)
    segments = document.segments
    texts = [segment.text for segment in segments if segment.text.strip()] or [""]
    model = (await service.select_model(texts, fields["source"], fields["target"])).model
    if model is not None:
        job = TranslateSegmentsJob(model, service.search_options())
        translations: list[str] = []
        for start in range(0, len(segments), SEGMENTS_AT_ONCE):
            batch = segments[start : start + SEGMENTS_AT_ONCE]
            service.metrics.count_texts([segment.text for segment in batch])
            translations += await service.run(request, job, batch, [len(segment.text) for segment in batch])
        content = await asyncio.to_thread(document.write, translations)
    name = service.files.save(content, suffix)
    return {"translatedFileUrl": str(request.url_for("download_file", name=name))}


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
    """Open an uploaded document."""
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
    target = service.registry.text_models[0].targets[0] if service.registry.text_models else ""
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
