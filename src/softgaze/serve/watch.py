"""For those who look after a server: is it there, is it ready, what has it done, and how is it spoken to."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from softgaze.serve import schemas
from softgaze.serve.describing import ERRORS, also
from softgaze.serve.manual import manual
from softgaze.serve.service import Service, service_of

router = APIRouter(tags=["server"])
Serving = Annotated[Service, Depends(service_of)]


@router.get("/health", response_model=schemas.Status)
async def health() -> Response:
    """The process answers, however busy its models are."""
    return JSONResponse({"status": "ok"})


@router.get("/ready", response_model=schemas.Status, responses={503: {"model": schemas.Status}})
async def ready(service: Serving) -> Response:
    """Whether to send requests here: not while the server is about to end."""
    return JSONResponse({"status": "ending"}, 503) if service.batcher.closing else JSONResponse({"status": "ready"})


@router.get("/metrics", responses={**also("text/plain", "Counts."), 403: ERRORS[403]})
async def metrics(request: Request, service: Serving) -> Response:
    """Counts for Prometheus; where there are keys, only for who has one."""
    service.keys.check(request, {})
    text = await asyncio.to_thread(service.metrics.text, len(service.batcher))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/spec", include_in_schema=False)
async def spec(request: Request) -> Response:
    """This API in OpenAPI's words."""
    return JSONResponse(request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The same for people."""
    return HTMLResponse(manual(request.app.openapi()), headers={"Content-Security-Policy": "frame-ancestors 'none'"})
