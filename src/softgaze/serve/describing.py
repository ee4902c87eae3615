"""How an address is described at /spec, where its body is read by `asking` and not by FastAPI."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from softgaze.serve.schemas import Error

REFERENCE = "#/components/schemas/{model}"
JSON, FORM, FILES = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
STATUSES = {
    400: "What was asked makes no sense",
    403: "No key, or a wrong one",
    408: "The request took too long to arrive",
    413: "The body is too large",
    429: "Too many texts are waiting",
    500: "It failed",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": text} for status, text in STATUSES.items()
}
NOT_THERE: dict[int | str, dict[str, Any]] = {404: {"model": Error, "description": "It is not there"}}

asked_models: dict[str, type[BaseModel]] = {}  # whose schemas the description must hold


def body_of(kind: type[BaseModel], *ways: str) -> dict[str, Any]:
    """The body of a request, in the ways it can be sent."""
    asked_models[kind.__name__] = kind
    schema = {"$ref": REFERENCE.format(model=kind.__name__)}
    return {"requestBody": {"required": True, "content": {way: {"schema": schema} for way in ways or (JSON, FORM)}}}


def also(kind: str, about: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Another kind of answer."""
    return {status: {"description": about, "content": {kind: {"schema": {"type": "string"}}}}}


def file_body(name: str, about: str, **others: dict[str, Any]) -> dict[str, Any]:
    """A form with a file."""
    properties = {
        name: {"type": "string", "contentMediaType": "application/octet-stream", "description": about},
        **others,
    }
    required = [name, *(key for key, own in others.items() if own.pop("required", False))]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"requestBody": {"required": True, "content": {FILES: {"schema": schema}}}}


def with_asked(description: dict[str, Any]) -> dict[str, Any]:
    """A description that holds the schemas of all bodies."""
    wanted: Any = [(kind, "validation") for kind in asked_models.values()]
    _, schemas = models_json_schema(wanted, ref_template=REFERENCE)
    description.setdefault("components", {}).setdefault("schemas", {}).update(schemas.get("$defs", {}))
    return description
