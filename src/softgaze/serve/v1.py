"""Our own API: everything a translation knows. Scores, tokens, alternatives, where each word looked, what if."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from softgaze import __version__
from softgaze.serve import schemas
from softgaze.serve.asking import asked
from softgaze.serve.describing import ERRORS, FORM, JSON, also, body_of
from softgaze.serve.detection import Detected
from softgaze.serve.errors import Refused
from softgaze.serve.looks import Gaze, Look, WhatIf
from softgaze.serve.service import AUTO, Service, service_of
from softgaze.serve.shelf import Model
from softgaze.serve.streaming import events
from softgaze.serve.texts import Translate, told

router = APIRouter(prefix="/v1", tags=["softgaze"], responses=ERRORS)
Serving = Annotated[Service, Depends(service_of)]
NO_PAGE = "There is no such picture: the model has no attention or no torch weights, or the text is empty or too long."


@router.get("/models", response_model=schemas.Models)
async def models(service: Serving) -> Response:
    """The models that are loaded, and what may be asked of them."""
    settings = service.settings
    limits = {
        name: getattr(settings, f"max_{name}") for name in ("characters", "texts", "beam", "alternatives", "body")
    }
    return JSONResponse(
        {
            "models": [model.to_dict() for model in service.shelf.models],
            "limits": limits,
            "languages": [language.to_dict() for language in service.shelf.languages],
            "detects": service.detection is not None,
            "key_required": service.keys.required,
            "version": __version__,
        }
    )


@router.post(
    "/translate",
    response_model=schemas.Answer,
    openapi_extra=body_of(schemas.Translate, JSON, FORM),
    responses=also("text/event-stream", "The translation; with `stream`, its words as they are written."),
)
async def translate(
    request: Request,
    service: Serving,
    wish: Annotated[schemas.Translate, Depends(asked(schemas.Translate, strict=True))],
) -> Response:
    """Translate a text, or several; with `attention`, tell where each word looked; with `stream`, word by word."""
    begun = time.perf_counter()
    texts = service.texts(wish.q)
    model, found = await chosen(service, texts, wish.model, wish.source, wish.target)
    head = {"model": model.id, "source": model.source, "target": model.target, "detected": found and found.to_dict()}
    if wish.stream:
        if not isinstance(wish.q, str) or (wish.beam or 1) > 1 or wish.alternatives:
            raise Refused(400, "Invalid request: a stream is of one text, with beam 1 and no alternatives")
        stream = streamed(request, service, model, wish, head, begun)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    search = service.search(wish.beam, wish.alternatives)
    if wish.attention:
        translations = await service.do(request, Look(model, search), texts)
    else:
        translations = [told(each) for each in await service.do(request, Translate(model, search), texts)]
    return JSONResponse({**head, "translations": translations, "milliseconds": since(begun)})


async def streamed(
    request: Request, service: Service, model: Model, wish: schemas.Translate, head: dict[str, Any], begun: float
) -> AsyncIterator[str]:
    """Words, and at last the answer that would have come without a stream."""
    async for event, content in events(service, request, model, str(wish.q), wish.attention):
        if event == "done":
            content = {**head, "translations": [content], "milliseconds": since(begun)}
        yield f"event: {event}\ndata: {json.dumps(content, ensure_ascii=False, allow_nan=False)}\n\n"


@router.post("/what_if", response_model=schemas.WhatIfAnswer, openapi_extra=body_of(schemas.WhatIf, JSON))
async def what_if(
    request: Request, service: Serving, wish: Annotated[schemas.WhatIf, Depends(asked(schemas.WhatIf, strict=True))]
) -> Response:
    """What would be written if the model looked elsewhere."""
    begun = time.perf_counter()
    texts = service.texts(wish.q)
    model, _ = await chosen(service, texts, wish.model, wish.source, wish.target)
    question = {
        "mask": wish.mask,
        "attend": {number_of(word): wanted for word, wanted in wish.attend.items()},
        "ablate": wish.ablate,
        "sharpen": wish.sharpen,
        "where": wish.where,
    }
    [found] = await service.do(request, WhatIf(model, service.search(wish.beam), question), texts)
    head = {"model": model.id, "source": model.source, "target": model.target}
    return JSONResponse({**head, **found, "milliseconds": since(begun)})


@router.post(
    "/gaze",
    response_model=schemas.GazeAnswer,
    openapi_extra=body_of(schemas.GazeAsked, JSON, FORM),
    responses={**also("text/html", "The page."), **also("text/html", "There is no page.", 404)},
)
async def gaze(
    request: Request, service: Serving, wish: Annotated[schemas.GazeAsked, Depends(asked(schemas.GazeAsked))]
) -> Response:
    """The page of all layers and heads that `softgaze explain` writes: in JSON, or to a form as it is."""
    texts = service.texts(wish.q)
    model, _ = await chosen(service, texts, wish.model, wish.source, wish.target)
    [page] = await service.do(request, Gaze(model, service.search(wish.beam), wish.what_if), texts)
    if "json" in request.headers.get("content-type", ""):
        return JSONResponse({"html": page})
    # The page has a policy of its own, by which nothing but its own script runs.
    return page_response(page) if page else HTMLResponse(NO_PAGE, 404)


def page_response(page: str) -> Response:
    """A page that brings its own policy."""
    return HTMLResponse(page, headers={"Content-Security-Policy": "frame-ancestors 'none'"})


async def chosen(
    service: Service, texts: Sequence[str], name: str | None, source: str, target: str | None
) -> tuple[Model, Detected | None]:
    """The model that is named, or the first for the languages, or the first of all; and the language if it was told."""
    if name is not None:
        return service.shelf.named(name), None
    if target is None and source == AUTO:
        return service.shelf.first(), None
    if target is None:
        code = service.shelf.language(source)
        targets = next(language.targets for language in service.shelf.languages if language.code == code)
        if not targets:
            raise Refused(400, f"{code} is not available as a source language")
        target = targets[0]
    model, code, _, found = await service.choose(texts, source, target)
    if model is None:
        raise Refused(400, f"the text is already in {code}")
    return model, found


def number_of(word: str) -> int:
    """The key of an output word: JSON has only texts for keys."""
    if not word.isdecimal() or not word.isascii():
        raise Refused(400, "Invalid request: attend: output words are given by number")
    return int(word[:9])


def since(begun: float) -> float:
    """Milliseconds."""
    return round(1000 * (time.perf_counter() - begun), 1)
