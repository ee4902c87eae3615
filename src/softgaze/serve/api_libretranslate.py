"""The LibreTranslate API: its routes, fields, statuses and error messages, so that its clients work unchanged."""

import asyncio
from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from softgaze.serve import schemas
from softgaze.serve.errors import HTTPError, missing_parameter
from softgaze.serve.html_translation import TranslateHtmlJob
from softgaze.serve.languages import language_name
from softgaze.serve.model_registry import shorten
from softgaze.serve.openapi import ERRORS, file_body, request_body, text_response
from softgaze.serve.request_parsing import authorized_fields, parse_as
from softgaze.serve.service import AUTO, ServiceDep
from softgaze.serve.translate_jobs import TranslateJob

router = APIRouter(tags=["LibreTranslate"], responses=ERRORS)
FILE_SUFFIXES = (".txt",)
LINES_AT_ONCE = 64  # of a file in the queue, so that a long file leaves room for other requests
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
        translations = await service.run(request, TranslateJob(model, options), texts)
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
        "file", "A text file in UTF-8 (.txt).", source={**LANGUAGE_FIELD}, target={**LANGUAGE_FIELD}
    ),
)
async def translate_file(request: Request, service: ServiceDep) -> dict[str, str]:
    """Translate a text file line by line, and return the URL of the result."""
    fields, _ = await authorized_fields(request)
    for name, kind in {"file": UploadFile, "source": str, "target": str}.items():
        if not isinstance(fields.get(name), kind) or fields[name] == "":
            raise missing_parameter(name)
    lines = (await read_text(fields["file"])).splitlines(keepends=True)
    model = (await service.select_model(lines or [""], fields["source"], fields["target"])).model
    if model is not None:
        job = TranslateJob(model, service.search_options())
        for start in range(0, len(lines), LINES_AT_ONCE):
            end = start + LINES_AT_ONCE
            lines[start:end] = [best.text for best in await service.run(request, job, lines[start:end])]
    name = service.files.save("".join(lines).encode())
    return {"translatedFileUrl": str(request.url_for("download_file", name=name))}


async def read_text(file: UploadFile) -> str:
    """Return the content of an uploaded text file; only the suffix of its name is used."""
    if PurePosixPath(file.filename or "").suffix.lower() not in FILE_SUFFIXES:
        raise HTTPError(400, "Invalid request: file format not supported")
    content = await file.read()
    if not content:
        raise HTTPError(400, "Invalid request: empty file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HTTPError(400, f"Invalid request: the file is not UTF-8 at byte {error.start + 1}") from None


@router.get(
    "/download_file/{name}",
    response_class=Response,
    responses={
        **text_response("text/plain", "The file."),
        404: {"model": schemas.ErrorResponse, "description": "Not found"},
    },
)
async def download_file(name: str, service: ServiceDep) -> Response:
    """Download a translated file."""
    content = await asyncio.to_thread(service.files.load, name)
    if content is None:
        raise HTTPError(404, "the file does not exist or has expired")
    headers = {"Content-Disposition": 'attachment; filename="translated.txt"'}
    return Response(content, media_type="text/plain; charset=utf-8", headers=headers)


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
        "supportedFilesFormat": [*FILE_SUFFIXES],
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": target, "name": language_name(target)},
        },
    }
