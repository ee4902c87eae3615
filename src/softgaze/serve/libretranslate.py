"""The API of LibreTranslate, so that what speaks it works unchanged: its addresses, fields, statuses and errors."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from softgaze.serve import schemas
from softgaze.serve.asking import asked, plain_field, uploaded
from softgaze.serve.describing import ERRORS, NOT_THERE, also, body_of, file_body
from softgaze.serve.errors import Refused
from softgaze.serve.files import ENDINGS, translate_file
from softgaze.serve.languages import name_of
from softgaze.serve.markup import TranslateMarkup
from softgaze.serve.service import AUTO, Service, service_of
from softgaze.serve.shelf import Model, shortened
from softgaze.serve.texts import Translate

router = APIRouter(tags=["LibreTranslate"], responses=ERRORS)
Serving = Annotated[Service, Depends(service_of)]
FORMATS = ("text", "html")
LANGUAGE = {"type": "string", "description": "The code of a language."}


@router.post(
    "/translate",
    response_model=schemas.LibreTranslated,
    response_model_exclude_none=True,
    openapi_extra=body_of(schemas.LibreTranslate),
)
async def translate(
    request: Request, service: Serving, wish: Annotated[schemas.LibreTranslate, Depends(asked(schemas.LibreTranslate))]
) -> Response:
    """Translate a text or a list of texts."""
    texts = service.texts(wish.q)
    if wish.format not in FORMATS:
        raise Refused(400, f"{shortened(wish.format)} format is not supported")
    model, _, _, found = await service.choose(texts, wish.source, wish.target)
    written = await translated(request, service, model, texts, wish)
    is_list = isinstance(wish.q, list)
    answer: dict[str, Any] = {"translatedText": several(is_list, [best for best, _ in written])}
    if found:
        answer["detectedLanguage"] = several(is_list, [found.to_dict()] * len(texts))
    if wish.alternatives:
        answer["alternatives"] = several(is_list, [others for _, others in written])
    return JSONResponse(answer)


async def translated(
    request: Request, service: Service, model: Model | None, texts: list[str], wish: schemas.LibreTranslate
) -> list[tuple[str, list[str]]]:
    """Each text, and its alternatives."""
    search = service.search(None, wish.alternatives)
    if model is None:
        return [(text, []) for text in texts]
    if wish.format == "html":
        return await service.do(request, TranslateMarkup(model, search), texts)
    found = await service.do(request, Translate(model, search), texts)
    return [(each.text, [other.text for other in each.alternatives]) for each in found]


def several(is_list: bool, values: list[Any]) -> Any:
    """As many as were asked for."""
    return values if is_list else values[0]


@router.post("/detect", response_model=list[schemas.DetectedLanguage], openapi_extra=body_of(schemas.Detect))
async def detect(
    request: Request, service: Serving, wish: Annotated[schemas.Detect, Depends(asked(schemas.Detect))]
) -> Response:
    """The languages a text may be in, likeliest first; of a list of texts, the likeliest of each."""
    texts = service.texts(wish.q)
    if service.detection is None:
        raise Refused(400, "no model for text is loaded, so no language can be told")
    found = await asyncio.to_thread(lambda: [service.detection.detect(text) for text in texts])  # type: ignore[union-attr]
    told = found[0] if isinstance(wish.q, str) else [own[0] for own in found]
    return JSONResponse([each.to_dict() for each in told])


@router.get("/languages", response_model=list[schemas.LanguageTold])
async def languages(service: Serving) -> Response:
    """The languages, and what each can be translated into."""
    return JSONResponse([language.to_dict() for language in service.shelf.languages])


@router.post(
    "/translate_file",
    response_model=schemas.FileTranslated,
    openapi_extra=file_body(
        "file",
        "A text file in UTF-8 (.txt).",
        source={**LANGUAGE, "required": True},
        target={**LANGUAGE, "required": True},
    ),
)
async def translate_a_file(request: Request, service: Serving) -> Response:
    """Translate a text file; the answer says where to fetch it."""
    fields, file = await uploaded(request, "file")
    source, target = plain_field(fields, "source"), plain_field(fields, "target")
    name = await translate_file(request, service, file, source, target)
    return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", name=name))})


@router.get("/download_file/{name}", responses={**also("text/plain", "The file."), **NOT_THERE})
async def download_file(name: str, service: Serving) -> Response:
    """A file that was translated."""
    content = await asyncio.to_thread(service.store.find, name)
    if content is None:
        raise Refused(404, "there is no such file, or no longer")
    headers = {"Content-Disposition": 'attachment; filename="translated.txt"'}
    return Response(content, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/frontend/settings", response_model=schemas.FrontendSettings)
async def frontend_settings(service: Serving) -> Response:
    """What a page needs to know."""
    target = service.shelf.texts[0].target if service.shelf.texts else ""
    return JSONResponse(
        {
            "apiKeys": service.keys.required,
            "keyRequired": service.keys.required,
            "charLimit": service.settings.max_characters,
            "filesTranslation": True,
            "frontendTimeout": 300,
            "suggestions": False,
            "supportedFilesFormat": [*ENDINGS],
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": name_of(target)},
            },
        }
    )
