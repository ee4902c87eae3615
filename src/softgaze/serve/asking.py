"""What a request asks, however it was sent: JSON, a form, a file, or the query string."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from softgaze.serve.errors import Refused, missing
from softgaze.serve.service import service_of

MOST_FIELDS = 1000
ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a character that JSON writes as a pair
Asked = TypeVar("Asked", bound=BaseModel)


def asked(kind: type[Asked], *, strict: bool = False) -> Callable[[Request], Awaitable[Asked]]:
    """A dependency: the fields of a request as `kind`, from somebody who may ask. Forms know only text, JSON more."""

    async def read(request: Request) -> Asked:
        fields, from_json = await fields_of(request)
        service_of(request).keys.check(request, fields)
        return kind.model_validate(fields, strict=strict and from_json)

    return read


async def fields_of(request: Request) -> tuple[dict[str, Any], bool]:
    """All fields, those of the body before those of the address; and whether they came as JSON."""
    found = gathered(query_fields(request))
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return {**found, **await multipart_fields(request)}, False
    body = await request.body()
    if kind == "application/json" or kind.endswith("+json"):
        return {**found, **json_fields(body)}, True
    if kind == "application/x-www-form-urlencoded":
        return {**found, **gathered(form_fields(body))}, False
    return found, False


def json_fields(body: bytes) -> dict[str, Any]:
    """The object that a body is."""
    try:
        found = json.loads(body or b"{}", parse_constant=no_number)
        if ESCAPED_HALF.search(body):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused(400, "Invalid request: the JSON holds half a character (a lone surrogate)") from None
    except (ValueError, RecursionError):
        raise Refused(400, "Invalid request: the body is not JSON that can be read") from None
    if not isinstance(found, dict):
        raise Refused(400, "Invalid request: the JSON must be an object")
    return found


def no_number(name: str) -> float:
    """Python reads NaN and Infinity, which JSON does not have."""
    raise ValueError(name)


def form_fields(body: bytes) -> list[tuple[str, str]]:
    """Names and values of a form."""
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:  # among them, bytes that are no UTF-8
        raise Refused(400, "Invalid request: the form cannot be read") from None


def query_fields(request: Request) -> list[tuple[str, str]]:
    """Names and values of the address."""
    return form_fields(request.scope["query_string"])


async def multipart_fields(request: Request) -> dict[str, Any]:
    """Fields and files of a form; files stay files."""
    try:
        form = await request.form(
            max_files=1, max_fields=MOST_FIELDS, max_part_size=service_of(request).settings.max_body
        )
    except HTTPException:
        raise Refused(400, "Invalid request: the form cannot be read") from None
    return gathered(form.multi_items())


def gathered(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """What comes once as it is, what comes again as a list."""
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


async def uploaded(request: Request, name: str) -> tuple[dict[str, Any], UploadFile]:
    """The fields of a form with a file, from somebody who may ask."""
    fields, _ = await fields_of(request)
    service_of(request).keys.check(request, fields)
    file = fields.get(name)
    if not isinstance(file, UploadFile):
        raise missing(name)
    return fields, file


def plain_field(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    """A field of text that must be there, unless there is a default."""
    value = fields.get(name, default)
    if not isinstance(value, str) or not value:
        raise missing(name)
    return value
