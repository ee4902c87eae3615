"""HTTP errors. Every error response is `{"error": message}`; the contents of requests are never logged."""

import logging
import traceback
from collections.abc import Mapping

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from softgaze.errors import DataError, UsageError
from softgaze.serve.batching import DeadlineExceeded, QueueFull

log = logging.getLogger("softgaze.serve")

DEEPL_PREFIXES = ("/v2/", "/v3/")
ROUTER_MESSAGES = {404: "Not found", 405: "Method not allowed"}
RETRY_AFTER = {"Retry-After": "1"}  # seconds


class HTTPError(Exception):
    """An error with the status, message and headers that the client receives."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def missing_parameter(name: str) -> HTTPError:
    """Return the error for a missing field, in the wording that LibreTranslate clients test for."""
    return HTTPError(400, f"Invalid request: missing {name} parameter")


def to_http_error(error: BaseException) -> HTTPError:
    """Map an exception to the error that the client receives."""
    match error:
        case HTTPError():
            return error
        case ValidationError():
            # Only the first problem, and without the input: it may be long or private.
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "missing":
                return missing_parameter(name)
            return HTTPError(400, f"Invalid request: {name + ': ' if name else ''}{first['msg']}")
        case QueueFull():
            return HTTPError(429, "Slowdown: the queue is full; try again later", RETRY_AFTER)
        case DeadlineExceeded():
            return HTTPError(429, "Slowdown: the text waited longer than the deadline; try again later", RETRY_AFTER)
        case UsageError() | DataError():  # about the request: the model files were checked at startup
            return HTTPError(400, " ".join(str(error).split()))
    return HTTPError(500, "Internal server error; see the server log")


def error_response(path: str, error: HTTPError) -> Response:
    """Return the JSON response for an error; DeepL clients read `message` instead of `error`."""
    content = {"error": error.message}
    if path.startswith(DEEPL_PREFIXES):
        content["message"] = error.message
    return JSONResponse(content, error.status, error.headers)


async def handle_router_error(request: Request, error: Exception) -> Response:
    """Convert 404 and 405 of the router to the common error format."""
    assert isinstance(error, HTTPException)
    message = ROUTER_MESSAGES.get(error.status_code, str(error.detail))
    return error_response(request.url.path, HTTPError(error.status_code, message, error.headers))


def log_error(route: str, error: BaseException) -> None:
    """Log the type and stack of an error, but not its message, which may contain text of the request."""
    log.error("%s failed: %s\n%s", route, type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
