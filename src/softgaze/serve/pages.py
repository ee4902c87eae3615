"""The web page: a few files that are packed with softgaze. No address reaches any other file."""

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from softgaze.gaze.shell import ASSETS
from softgaze.serve.errors import Refused

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
INDEX = "index.html"
SHARED = ("style.css", "page.css", "maps.js", "draw.js")  # of the pages that `explain` writes: one look for all

router = APIRouter(include_in_schema=False)


class Page(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str
    tag: str


def read(file: Traversable) -> Page:
    """One file."""
    content = file.read_bytes()
    kind = KINDS["." + file.name.rpartition(".")[2]]
    return Page(content, kind, f'"{hashlib.sha256(content).hexdigest()[:16]}"')


def read_pages() -> dict[str, Page]:
    """All files of the page, by name; read once, at the start."""
    own = [
        file for file in (files("softgaze.serve") / "static").iterdir() if "." + file.name.rpartition(".")[2] in KINDS
    ]
    return {file.name: read(file) for file in [*(ASSETS / name for name in SHARED), *own]}


@router.get("/")
async def index(request: Request) -> Response:
    """The page."""
    return sent(request, INDEX)


@router.get("/static/{name}")
async def static(request: Request, name: str) -> Response:
    """What it is made of."""
    return sent(request, name)


def sent(request: Request, name: str) -> Response:
    """A file, or word that the browser has it already."""
    pages: dict[str, Page] = request.app.state.pages
    if name not in pages:
        raise Refused(404, "there is nothing here")
    page = pages[name]
    headers = {"ETag": page.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == page.tag:
        return Response(status_code=304, headers=headers)
    return Response(page.content, media_type=page.kind, headers=headers)
