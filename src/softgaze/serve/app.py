"""The application: all addresses around one service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from softgaze import __version__
from softgaze.serve import captions, deepl, libretranslate, pages, v1, watch
from softgaze.serve.describing import with_asked
from softgaze.serve.errors import on_http_error
from softgaze.serve.limits import Guard
from softgaze.serve.service import Service
from softgaze.serve.settings import Settings
from softgaze.serve.shelf import Shelf
from softgaze.serve.upkeep import upkeep

ABOUT = (
    "Translations that can be seen: LibreTranslate's API, as much of DeepL's as its clients need, and one of our own "
    'with scores, alternatives and attention. Errors are {"error": one line}.'
)


def create() -> Any:
    """The application of a worker, whose settings its parent left in the environment."""
    settings = Settings.from_environment()
    return make_app(Service(settings, Shelf.open(settings.models, settings.device)))


def make_app(service: Service) -> FastAPI:
    """An application around a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with upkeep(service):
            yield

    app = Described(
        title="softgaze",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service, app.state.pages = service, pages.read_pages()
    for part in (libretranslate, deepl, v1, captions, watch, pages):
        app.include_router(part.router)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_middleware(Guard, service=service)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware, allow_origins=service.settings.cors, allow_methods=["*"], allow_headers=["*"]
        )
    return app


class Described(FastAPI):
    """An application whose description holds the bodies, too."""

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = with_asked(super().openapi())
        return self.openapi_schema
