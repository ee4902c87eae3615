"""The ASGI application: all routes, the web page, health checks, and background tasks."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from softgaze import __version__
from softgaze.runtime import tune_cpu
from softgaze.serve import api_deepl, api_glossaries, api_libretranslate, api_v1, schemas
from softgaze.serve.errors import handle_router_error
from softgaze.serve.middleware import RequestMiddleware
from softgaze.serve.model_registry import ModelRegistry
from softgaze.serve.openapi import ERRORS, DescribedAPI, render_docs, text_response
from softgaze.serve.service import Service, ServiceDep
from softgaze.serve.settings import Settings

DESCRIPTION = (
    "Translation with attention: the LibreTranslate API, the part of the DeepL API that its clients need, and the "
    'softgaze API /v1 with scores, alternatives and attention. Errors are {"error": message}.'
)
BACKGROUND_SECONDS = 1.0  # between runs of the background task
SWITCH_SECONDS = 0.0005  # Python's thread switch interval: requests should not wait for threads that translate

router = APIRouter(tags=["server"])


def create_worker_app() -> FastAPI:
    """Build the application of a worker process, with the settings that its parent stored in the environment."""
    tune_cpu()
    settings = Settings.from_environment()
    return build_app(Service(settings, ModelRegistry.open(settings.models, settings.device, settings.engine)))


def build_app(service: Service) -> FastAPI:
    app = DescribedAPI(
        title="softgaze",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    for routes in (api_libretranslate.router, api_deepl.router, api_glossaries.router, api_v1.router, router):
        # Not `include_router`: FastAPI would search the routes of a router twice for each request.
        app.router.routes += routes.routes
    app.mount("/static", static_files)
    app.add_exception_handler(HTTPException, handle_router_error)
    app.add_middleware(RequestMiddleware, service=service)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware, allow_origins=service.settings.cors, allow_methods=["*"], allow_headers=["*"]
        )
    return app


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run the background task while the server runs; at shutdown, finish all queued texts."""
    service: Service = app.state.service
    task = asyncio.ensure_future(run_background(service))
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # models and routes: searching them for garbage would stop all threads for tens of milliseconds
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(switch_interval)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(service.batcher.close)


async def run_background(service: Service) -> None:
    """Publish metrics to the other workers and delete old files, again and again."""
    while True:
        await asyncio.to_thread(service.metrics.publish, len(service.batcher))
        with suppress(FileNotFoundError):  # another worker deleted the file first
            await asyncio.to_thread(service.files.delete_old)
        await asyncio.sleep(BACKGROUND_SECONDS)


# --- web page ---------------------------------------------------------------------------------------------------


class RevalidatedFiles(StaticFiles):
    """Static files that browsers keep but revalidate by ETag."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


# Style sheets and drawing code are shared with the pages that `softgaze explain` writes.
static_files = RevalidatedFiles(packages=[("softgaze.serve", "static"), ("softgaze.explain.render", "assets")])


@router.get("/", include_in_schema=False)
async def index(request: Request) -> Response:
    return await static_files.get_response("index.html", request.scope)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    return HTMLResponse(render_docs(request.app.openapi()))


@router.get("/spec", include_in_schema=False)
async def spec(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


# --- health -----------------------------------------------------------------------------------------------------


@router.get("/health", response_model=schemas.StatusResponse)
async def health() -> dict[str, str]:
    """Report that the process runs, however busy its models are."""
    return {"status": "ok"}


@router.get("/ready", response_model=schemas.StatusResponse, responses={503: {"model": schemas.StatusResponse}})
async def ready(service: ServiceDep) -> Any:
    """Report whether the server accepts requests: not while it shuts down."""
    return JSONResponse({"status": "ending"}, 503) if service.batcher.closing else {"status": "ready"}


@router.get(
    "/metrics", response_class=Response, responses={**text_response("text/plain", "Metrics."), 403: ERRORS[403]}
)
async def metrics(request: Request, service: ServiceDep) -> Response:
    """Return Prometheus metrics; requires an API key if the server has keys."""
    service.keys.check(request, {})
    text = await asyncio.to_thread(service.metrics.render, len(service.batcher))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
