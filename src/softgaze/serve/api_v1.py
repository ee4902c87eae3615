"""The softgaze API: translations with scores, alternatives, attention and confidence; what-if edits; captions."""

import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse

from softgaze import __version__
from softgaze.glossary import Glossary
from softgaze.serve import schemas
from softgaze.serve.errors import HTTPError, missing_parameter
from softgaze.serve.explain_jobs import (
    AlternativesJob,
    CaptionJob,
    Explained,
    ExplainJob,
    ExplainPageJob,
    WhatIfJob,
    explain_all,
)
from softgaze.serve.languages import Detected
from softgaze.serve.model_registry import IMAGE, ServedModel
from softgaze.serve.openapi import ERRORS, JSON, file_body, request_body, text_response
from softgaze.serve.request_parsing import authorized_fields, parse_as
from softgaze.serve.service import AUTO, Service, ServiceDep
from softgaze.serve.translate_jobs import Event, TranslateJob, stream_events, translation_json

router = APIRouter(prefix="/v1", tags=["softgaze"], responses=ERRORS)
NO_PAGE = "No attention to show: the model has no attention or no torch weights, or the text is empty or too long."
CAPTION_FIELDS = schemas.CaptionRequest.model_json_schema()["properties"]


@router.get("/models", response_model=schemas.ModelsResponse)
async def models(service: ServiceDep) -> dict[str, Any]:
    """List the loaded models and the limits of requests."""
    settings, registry = service.settings, service.registry
    return {
        "models": [model.to_json() for model in registry.models],
        "limits": {
            "characters": settings.max_characters,
            "texts": settings.max_texts,
            "beam_size": settings.max_beam_size,
            "num_hypotheses": settings.max_hypotheses,
            "body": settings.max_body,
            "file": settings.max_file,
        },
        "languages": registry.languages_json(),
        "detects": service.detector is not None,
        "key_required": service.keys.required,
        "version": __version__,
    }


@router.post(
    "/translate",
    response_model=schemas.TranslateResponse,
    openapi_extra=request_body(schemas.TranslateRequest),
    responses=text_response("text/event-stream", "The translation; with `stream`, each word as it is generated."),
)
async def translate(
    request: Request,
    service: ServiceDep,
    fields: Annotated[schemas.TranslateRequest, Depends(parse_as(schemas.TranslateRequest, strict=True))],
) -> Any:
    """Translate a text or a list of texts, with `attention` and word `confidence` if set; `stream` streams it.

    Placeholders and tags in a text are kept. With `attention`, `confidence` or `support`, the words of `text` are those
    of the model, and `protected_text` keeps the placeholders; a stream has only the words of the model.
    """
    start = time.perf_counter()
    texts = service.check_texts(fields.q)
    model, detected = await select_model(service, texts, fields)
    head = {**model_fields(model), "detected": detected and detected._asdict()}
    explained = Explained(fields.attention, fields.confidence, fields.support)
    if fields.stream:
        if not isinstance(fields.q, str) or (fields.beam_size or 1) > 1 or fields.num_hypotheses > 1:
            raise HTTPError(400, "Invalid request: stream needs one text, beam_size 1 and num_hypotheses 1")
        to_json = (lambda best: explain_all(model, [best], explained)[0]) if any(explained) else translation_json
        glossary = service.search_options(model, glossary=glossary_of(service, model, fields)).glossary
        words = stream_events(service, request, model, fields.q, to_json, glossary)
        events = server_sent_events(words, head, start)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    glossary = glossary_of(service, model, fields)
    options = service.search_options(model, fields.beam_size, fields.num_hypotheses, glossary)
    if any(explained):
        translations = await service.run(request, ExplainJob(model, options, explained), texts)
    else:
        best = await service.run(request, TranslateJob(model, options, keeps_placeholders=True), texts)
        translations = [translation_json(translation) for translation in best]
    return {**head, "translations": translations, "milliseconds": milliseconds_since(start)}


async def server_sent_events(events: AsyncIterator[Event], head: dict[str, Any], start: float) -> AsyncIterator[str]:
    """Yield a `word` event per word, then a `done` event with the same content as a response without a stream."""
    async for event, content in events:
        data = {"error" if event == "error" else "text": content}
        if event == "done":
            data = {**head, "translations": [content], "milliseconds": milliseconds_since(start)}
        yield f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False, allow_nan=False)}\n\n"


@router.post(
    "/alternatives",
    response_model=schemas.AlternativesResponse,
    openapi_extra=request_body(schemas.AlternativesRequest, JSON),
)
async def alternatives(
    request: Request,
    service: ServiceDep,
    fields: Annotated[schemas.AlternativesRequest, Depends(parse_as(schemas.AlternativesRequest, strict=True))],
) -> dict[str, Any]:
    """Return other words for a word of a translation, each with the translation that continues from it."""
    start = time.perf_counter()
    texts = service.check_texts(fields.q)
    if not fields.translation:
        raise missing_parameter("translation")
    service.check_texts(fields.translation)
    model, _ = await select_model(service, texts, fields)
    options = service.search_options(model, fields.beam_size)
    job = AlternativesJob(model, options, fields.translation, fields.word, fields.count, fields.attention)
    [found] = await service.run(request, job, texts)
    return {**model_fields(model), "alternatives": found, "milliseconds": milliseconds_since(start)}


@router.post("/what_if", response_model=schemas.WhatIfResponse, openapi_extra=request_body(schemas.WhatIfRequest, JSON))
async def what_if(
    request: Request,
    service: ServiceDep,
    fields: Annotated[schemas.WhatIfRequest, Depends(parse_as(schemas.WhatIfRequest, strict=True))],
) -> dict[str, Any]:
    """Translate a text again with changed attention."""
    start = time.perf_counter()
    texts = service.check_texts(fields.q)
    if not all(index.isdecimal() and index.isascii() and len(index) < 10 for index in fields.attend):
        raise HTTPError(400, "Invalid request: attend: target words must be given by index")
    change = {
        "mask": fields.mask,
        "attend": {int(index): word for index, word in fields.attend.items()},
        "ablate": [tuple(head) for head in fields.ablate],
        "sharpen": fields.sharpen,
        "where": [tuple(head) for head in fields.where] or None,
    }
    model, _ = await select_model(service, texts, fields)
    options = service.search_options(model, fields.beam_size, glossary=glossary_of(service, model, fields))
    job = WhatIfJob(model, options, change)
    [result] = await service.run(request, job, texts)
    return {**model_fields(model), **result, "milliseconds": milliseconds_since(start)}


@router.post(
    "/explain",
    response_model=schemas.ExplainResponse,
    openapi_extra=request_body(schemas.ExplainRequest),
    responses={**text_response("text/html", "The page."), **text_response("text/html", "No attention to show.", 404)},
)
async def explain(
    request: Request,
    service: ServiceDep,
    fields: Annotated[schemas.ExplainRequest, Depends(parse_as(schemas.ExplainRequest))],
) -> Any:
    """Render the page of `softgaze explain`, with all layers and heads: in JSON, or as HTML if a form was sent."""
    texts = service.check_texts(fields.q)
    model, _ = await select_model(service, texts, fields)
    options = service.search_options(model, fields.beam_size, glossary=glossary_of(service, model, fields))
    job = ExplainPageJob(model, options, fields.what_if)
    [page] = await service.run(request, job, texts)
    if "json" in request.headers.get("content-type", ""):
        return {"html": page}
    if page is None:
        return HTMLResponse(NO_PAGE, 404)
    # The page contains its own policy, which allows only its own script.
    return HTMLResponse(page, headers={"Content-Security-Policy": "frame-ancestors 'none'"})


@router.post(
    "/caption",
    response_model=schemas.CaptionResponse,
    openapi_extra=file_body("image", "An image.", **CAPTION_FIELDS),
)
async def caption(request: Request, service: ServiceDep) -> dict[str, Any]:
    """Caption an image: a form with a file, or JSON with the image in base64."""
    start = time.perf_counter()
    raw, _ = await authorized_fields(request)
    image = raw.get("image")
    if isinstance(image, UploadFile):
        content = await image.read()
    elif isinstance(image, str) and image:
        try:
            content = base64.b64decode(image, validate=True)
        except (binascii.Error, ValueError):
            raise HTTPError(400, "Invalid request: image is not base64") from None
    else:
        raise missing_parameter("image")
    fields = schemas.CaptionRequest.model_validate(raw)
    model = service.registry.get(fields.model, IMAGE)
    options = service.search_options(model, fields.beam_size, fields.num_hypotheses)
    mask = tuple(map(int, filter(None, fields.mask.split(","))))
    job = CaptionJob(model, options, fields.attention, Path(service.settings.shared_dir), mask)
    captions = await service.run(request, job, [content], lengths=[0])
    return {"model": model.id, "captions": captions, "milliseconds": milliseconds_since(start)}


async def select_model(
    service: Service, texts: Sequence[str], fields: schemas.TextSelection
) -> tuple[ServedModel, Detected | None]:
    """Return the model of the given id, else the first one for the languages, and the detected language."""
    target = fields.target
    if fields.model is not None or (target is None and fields.source == AUTO):
        return pair_of(service, service.registry.get(fields.model), fields), None
    if target is None:
        code = service.registry.match_language(fields.source)
        targets = service.registry.languages[code]
        if not targets:
            raise HTTPError(400, f"{code} is not available as a source language")
        target = targets[0]
    model, source, _, detected = await service.select_model(texts, fields.source, target)
    if model is None:
        raise HTTPError(400, f"source and target language are both {source}")
    return model, detected


def pair_of(service: Service, model: ServedModel, fields: schemas.TextSelection) -> ServedModel:
    """Return a model for the languages of a request; a multilingual one needs both."""
    if model.translator.languages is None:
        return model
    about = model.bundle.description
    if fields.source == AUTO and fields.target is None and about.source_language and about.target_language:
        return model.for_pair(model.source, model.target)  # the pair that the import stored
    if fields.source == AUTO or fields.target is None:
        raise HTTPError(400, f"{model.id} translates between many languages; give source and target")
    source, target = (service.registry.match_language(code) for code in (fields.source, fields.target))
    if source not in model.sources or target not in model.targets:
        raise HTTPError(400, f"{model.id} does not translate {source} to {target}")
    return model.for_pair(source, target)


def glossary_of(service: Service, model: ServedModel, fields: schemas.TextSelection) -> Glossary | None:
    return service.find_glossary(model, fields.glossary, fields.glossary_id)


def model_fields(model: ServedModel) -> dict[str, str]:
    """Return the fields that say which model translated."""
    return {"model": model.id, "source": model.source, "target": model.target}


def milliseconds_since(start: float) -> float:
    return round(1000 * (time.perf_counter() - start), 1)
