"""Parse the fields of a request from JSON, a form or the query string.

FastAPI's body parameters accept one content type per route, and report errors in another format than LibreTranslate.
Its clients send the same fields as JSON, as either kind of form, or in the query string, hence this parser.
"""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request

from softgaze.serve.errors import HTTPError
from softgaze.serve.service import get_service

MAX_FIELDS = 1000
ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
Fields = TypeVar("Fields", bound=BaseModel)


def parse_as(model: type[Fields], *, strict: bool = False) -> Callable[[Request], Awaitable[Fields]]:
    """Return a dependency that checks the API key and validates the fields; `strict` applies to JSON only."""

    async def parse(request: Request) -> Fields:
        fields, is_json = await authorized_fields(request)
        return model.model_validate(fields, strict=strict and is_json)

    return parse


async def authorized_fields(request: Request) -> tuple[dict[str, Any], bool]:
    """Check the API key; return the fields, those of the body over those of the query, and whether it was JSON."""
    service = await get_service(request)
    fields = collect(parse_form(request.scope["query_string"]))
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    is_json = content_type == "application/json" or content_type.endswith("+json")
    if is_json:
        fields |= parse_json(await request.body())
    elif content_type == "application/x-www-form-urlencoded":
        fields |= collect(parse_form(await request.body()))
    elif content_type == "multipart/form-data":
        try:
            form = await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=service.settings.max_body)
        except HTTPException:
            raise HTTPError(400, "Invalid request: the form cannot be parsed") from None
        fields |= collect(form.multi_items())
    service.keys.check(request, fields)
    return fields, is_json


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; reject NaN, Infinity and lone surrogates, which Python accepts."""

    def reject_constant(name: str) -> float:
        raise ValueError(name)

    try:
        fields = json.loads(body or b"{}", parse_constant=reject_constant)
        if ESCAPED_SURROGATE.search(body):
            json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HTTPError(400, "Invalid request: the JSON contains a lone surrogate") from None
    except (ValueError, RecursionError):
        raise HTTPError(400, "Invalid request: the body is not valid JSON") from None
    if not isinstance(fields, dict):
        raise HTTPError(400, "Invalid request: the JSON must be an object")
    return fields


def parse_form(body: bytes) -> list[tuple[str, str]]:
    """Parse a form or a query string."""
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:  # also raised for invalid UTF-8
        raise HTTPError(400, "Invalid request: the form cannot be parsed") from None


def collect(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields as a dict; the values of a repeated field form a list."""
    fields: dict[str, list[Any]] = {}
    for name, value in items:
        fields.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
