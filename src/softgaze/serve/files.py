"""Text files, translated line by line, a few at a time, so that a long one leaves room for others."""

from pathlib import PurePosixPath

from starlette.datastructures import UploadFile
from starlette.requests import Request

from softgaze.serve.errors import Refused
from softgaze.serve.service import Service
from softgaze.serve.texts import Translate

ENDINGS = (".txt",)
AT_ONCE = 64  # lines that wait in the queue together


async def translate_file(request: Request, service: Service, file: UploadFile, source: str, target: str) -> str:
    """The name under which the translation is kept; it has a line for each line."""
    lines = (await text_of(file)).splitlines(keepends=True)
    model, *_ = await service.choose(lines or [""], source, target)
    search = service.search()
    written = [] if model else lines
    for start in range(0, len(lines) if model else 0, AT_ONCE):
        some = lines[start : start + AT_ONCE]
        written += [each.text for each in await service.do(request, Translate(model, search), some)]  # type: ignore[arg-type]
    return service.store.keep("".join(written).encode())


async def text_of(file: UploadFile) -> str:
    """What was sent, if it is text; of its name only the ending counts."""
    if PurePosixPath(file.filename or "").suffix.lower() not in ENDINGS:
        raise Refused(400, "Invalid request: file format not supported")
    content = await file.read()
    if not content:
        raise Refused(400, "Invalid request: empty file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(400, f"Invalid request: the file is not UTF-8 at byte {error.start + 1}") from None
