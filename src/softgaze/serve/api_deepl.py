"""The part of the DeepL API that its clients need to translate text."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from softgaze.documents.html import TagRules
from softgaze.serve import schemas
from softgaze.serve.errors import HTTPError
from softgaze.serve.languages import language_name
from softgaze.serve.openapi import ERRORS, request_body
from softgaze.serve.request_parsing import parse_as
from softgaze.serve.service import AUTO, ServiceDep
from softgaze.serve.translate_jobs import TranslateHtmlJob, TranslateJob

router = APIRouter(prefix="/v2", tags=["DeepL"], responses=ERRORS)


@router.post("/translate", response_model=schemas.DeepLResponse, openapi_extra=request_body(schemas.DeepLRequest))
async def translate(
    request: Request,
    service: ServiceDep,
    fields: Annotated[schemas.DeepLRequest, Depends(parse_as(schemas.DeepLRequest))],
) -> dict[str, Any]:
    """Translate texts; with `tag_handling` html or xml, tags are kept; elements of `ignore_tags` stay."""
    texts = service.check_texts(fields.text)
    model, source, _, _ = await service.select_model(texts, fields.source_lang or AUTO, fields.target_lang)
    ids = fields.glossary_ids or fields.glossary_id
    if ids and not fields.source_lang:
        raise HTTPError(400, "Invalid request: a glossary needs source_lang")
    options = service.search_options(model, glossary=service.find_glossary(model, ids=ids))
    options = replace(options, split_sentences=True)  # as DeepL does
    if model is None:
        translated = texts
    elif fields.tag_handling:
        rules = TagRules(fields.tag_handling == "xml", tag_names(fields.splitting_tags), tag_names(fields.ignore_tags))
        translated = [best for best, _ in await service.run(request, TranslateHtmlJob(model, options, rules), texts)]
    else:
        translated = [
            best.text
            for best in await service.run(request, TranslateJob(model, options, keeps_placeholders=True), texts)
        ]
    return {
        "translations": [
            {"detected_source_language": source.upper(), "text": target, "billed_characters": len(text)}
            for text, target in zip(texts, translated, strict=True)
        ]
    }


def tag_names(names: str | list[str]) -> frozenset[str]:
    """Return the names of a field, which may be a list or text with commas."""
    text = names if isinstance(names, str) else ",".join(names)
    return frozenset(name.strip().lower() for name in text.split(",") if name.strip())


@router.get("/languages", response_model=list[schemas.DeepLLanguage])
async def languages(service: ServiceDep, type: str = "source") -> list[dict[str, Any]]:
    """List the source languages, or with `type=target` the target languages."""
    if type not in ("source", "target"):
        raise HTTPError(400, "Invalid request: type must be source or target")
    codes = dict.fromkeys(code for model in service.registry.text_models for code in getattr(model, f"{type}s"))
    return [{"language": code.upper(), "name": language_name(code)} for code in codes]
