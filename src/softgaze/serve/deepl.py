"""As much of the API of DeepL as its clients need to translate text."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from softgaze.serve import schemas
from softgaze.serve.asking import asked
from softgaze.serve.describing import ERRORS, body_of
from softgaze.serve.errors import Refused
from softgaze.serve.languages import name_of
from softgaze.serve.markup import TranslateMarkup
from softgaze.serve.service import AUTO, Service, service_of
from softgaze.serve.texts import Translate

router = APIRouter(prefix="/v2", tags=["DeepL"], responses=ERRORS)
Serving = Annotated[Service, Depends(service_of)]


@router.post("/translate", response_model=schemas.DeepLTranslated, openapi_extra=body_of(schemas.DeepL))
async def translate(
    request: Request, service: Serving, wish: Annotated[schemas.DeepL, Depends(asked(schemas.DeepL))]
) -> Response:
    """Translate texts; with `tag_handling` html or xml, tags are kept."""
    texts = service.texts(wish.text)
    model, source, _, _ = await service.choose(texts, wish.source_lang or AUTO, wish.target_lang)
    search = service.search()
    if model is None:
        written = texts
    elif wish.tag_handling:
        written = [best for best, _ in await service.do(request, TranslateMarkup(model, search), texts)]
    else:
        written = [each.text for each in await service.do(request, Translate(model, search), texts)]
    translations = [
        {"detected_source_language": source.upper(), "text": text, "billed_characters": len(own)}
        for own, text in zip(texts, written, strict=True)
    ]
    return JSONResponse({"translations": translations})


@router.get("/languages", response_model=list[schemas.DeepLLanguage])
async def languages(service: Serving, type: str = "source") -> Response:
    """Languages that can be read, or with `type=target` those that can be written."""
    if type not in ("source", "target"):
        raise Refused(400, "Invalid request: type is source or target")
    models = service.shelf.texts
    codes = dict.fromkeys(model.source if type == "source" else model.target for model in models)
    return JSONResponse(
        [{"language": code.upper(), "name": name_of(code), "supports_formality": False} for code in codes]
    )
