"""Pictures in words, for a server that has a captioner."""

import base64
import binascii
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from softgaze.errors import SoftgazeError
from softgaze.search.settings import Search
from softgaze.serve import schemas
from softgaze.serve.asking import fields_of
from softgaze.serve.describing import ERRORS, file_body
from softgaze.serve.errors import Refused, missing
from softgaze.serve.service import Service, service_of
from softgaze.serve.shelf import IMAGE, Model
from softgaze.serve.texts import brief

if TYPE_CHECKING:
    from softgaze.gaze import Attention

router = APIRouter(prefix="/v1", tags=["softgaze"], responses=ERRORS)
Serving = Annotated[Service, Depends(service_of)]
DIGITS = 6
OPTIONS: dict[str, dict[str, Any]] = {
    "model": {"type": "string", "description": "The id of a captioner."},
    "beam": {"type": "integer"},
    "alternatives": {"type": "integer"},
    "attention": {"type": "boolean", "description": "Tell where each word looked."},
}


@router.post(
    "/caption", response_model=schemas.CaptionAnswer, openapi_extra=file_body("image", "A picture.", **OPTIONS)
)
async def caption(request: Request, service: Serving) -> Response:
    """Say what a picture shows: a form with a file, or JSON with the picture in base64."""
    begun = time.perf_counter()
    fields, _ = await fields_of(request)
    service.keys.check(request, fields)
    content = await picture_of(fields)
    wish = schemas.CaptionAsked.model_validate(fields)
    model = service.shelf.named(wish.model, IMAGE) if wish.model else service.shelf.first(IMAGE)
    work = Caption(model, service.search(wish.beam, wish.alternatives), wish.attention, Path(service.settings.shared))
    found = await service.results(request, work, [content], [0])
    took = round(1000 * (time.perf_counter() - begun), 1)
    return JSONResponse({"model": model.id, "captions": found, "milliseconds": took})


async def picture_of(fields: dict[str, Any]) -> bytes:
    """The bytes of a picture, however they were sent."""
    image = fields.get("image")
    if isinstance(image, UploadFile):
        return await image.read()
    if not isinstance(image, str) or not image:
        raise missing("image")
    try:
        return base64.b64decode(image, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(400, "Invalid request: image is not base64") from None


@dataclass(frozen=True)
class Caption:
    """Pictures in, captions out."""

    model: Model
    search: Search
    attention: bool
    directory: Path

    def run(self, pictures: Sequence[bytes]) -> list[dict[str, Any]]:
        """The model reads files, so each picture is one for as long as it is looked at, by a name of our own."""
        paths = [self.directory / f"picture-{secrets.token_hex(16)}" for _ in pictures]
        try:
            for path, content in zip(paths, pictures, strict=True):
                path.write_bytes(content)
            return self.captions([str(path) for path in paths])
        except SoftgazeError as error:
            raise Refused(400, unnamed(str(error), paths)) from error
        finally:
            for path in paths:
                path.unlink(missing_ok=True)

    def captions(self, paths: list[str]) -> list[dict[str, Any]]:
        """As JSON has them."""
        translator = self.model.ready_to_look()
        found = list(translator.translate_block(paths, self.search))
        looks = translator.attentions(found) if self.attention and self.model.looks else [None] * len(found)
        return [
            {
                **brief(each),
                "alternatives": [brief(own) for own in each.alternatives],
                "attention": pictured(look, self.seen(each.source)) if look else None,
            }
            for each, look in zip(found, looks, strict=True)
        ]

    def seen(self, path: str) -> list[float]:
        """The part of the photo that the model sees, in shares of it: left, top, right, bottom."""
        reader: Any = self.model.bundle.tokenizers.source
        return [*map(float, reader.picture(path).framing.crop)]


def pictured(attention: "Attention", crop: Sequence[float]) -> dict[str, Any] | None:
    """Where in the picture each word looked."""
    grid = getattr(attention, "grid", None)
    if grid is None:
        return None
    weights = attention.words().word_weights()  # (T, rows · columns)
    return {
        "target_words": [*attention.recording.target.words],
        "grid": {"rows": grid[0], "columns": grid[1], "crop": [*crop]},
        "weights": weights.round(DIGITS).tolist(),
        "shows": attention.shows,
    }


def unnamed(message: str, paths: Sequence[Path]) -> str:
    """Without the names of our own files."""
    for path in paths:
        message = message.replace(str(path), "the picture")
    return " ".join(message.split())
