"""What goes wrong, as clients hear it: `{"error": one line}`. What a person sent is never logged."""

import logging
import traceback
from collections.abc import Mapping

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from softgaze.errors import DataError, UsageError
from softgaze.serve.batching import Full, Late

log = logging.getLogger("softgaze.serve")

DEEPL = "/v2/"  # whose clients read "message"
INSTEAD = {404: "there is nothing here", 405: "this address does not take that method"}
RETRY = 1  # seconds after which a full queue is worth another try


class Refused(Exception):  # noqa: N818 - named for what happens
    """A request that is not served, and why."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def missing(name: str) -> Refused:
    """In the words that clients of LibreTranslate test for."""
    return Refused(400, f"Invalid request: missing {name} parameter")


def busy(message: str) -> Refused:
    """Later, perhaps."""
    return Refused(429, message, {"Retry-After": str(RETRY)})


def error_response(path: str, refused: Refused) -> Response:
    """One line of JSON; for clients of DeepL it is called a message, too."""
    content = {"error": refused.message}
    if path.startswith(DEEPL):
        content["message"] = refused.message
    return JSONResponse(content, refused.status, refused.headers)


def refusal(error: Exception) -> Refused:
    """What to tell about any error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, ValidationError):
        return invalid(error)
    if isinstance(error, Full):
        return busy("Slowdown: too many texts are waiting; try again")
    if isinstance(error, Late):
        return busy("Slowdown: the text waited too long; try again")
    if isinstance(error, UsageError | DataError):  # about what was asked: files of models were checked at the start
        return Refused(400, " ".join(str(error).split()))
    return Refused(500, "this could not be done; the server's log says where it failed")


def invalid(error: ValidationError) -> Refused:
    """The first thing that does not fit, without repeating it."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = ".".join(map(str, first["loc"][:1]))
    if first["type"] == "missing":
        return missing(name)
    return Refused(400, f"Invalid request: {name}: {first['msg']}" if name else f"Invalid request: {first['msg']}")


# --- handlers of the application --------------------------------------------------------------------------------


async def on_error(request: Request, error: Exception) -> Response:
    """Anything that was raised while a request was served."""
    refused = refusal(error)
    if refused.status >= 500:
        log_unexpected(request.scope["path"] if request.scope.get("route") else "?", error)
    return error_response(request.url.path, refused)


async def on_http_error(request: Request, error: Exception) -> Response:
    """What the router refuses."""
    assert isinstance(error, HTTPException)
    message = INSTEAD.get(error.status_code, str(error.detail))
    return error_response(request.url.path, Refused(error.status_code, message, error.headers))


def log_unexpected(where: str, error: BaseException) -> None:
    """The kind of an error and where it arose; not its message, which may hold what a person wrote."""
    places = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed: %s\n%s", where, type(error).__name__, places)
