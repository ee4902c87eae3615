"""The OpenAPI description at /spec, with the request bodies that request_parsing.py accepts, and its page at /docs."""

import json
from typing import Any

from fastapi import FastAPI
from jinja2 import Environment, PackageLoader
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from softgaze.serve.schemas import ErrorResponse

REF_TEMPLATE = "#/components/schemas/{model}"
JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "Invalid request",
        403: "Missing or invalid API key",
        408: "Request not received in time",
        413: "Body too large",
        429: "Queue full or deadline exceeded",
        500: "Internal server error",
    }.items()
}

request_models: dict[str, type[BaseModel]] = {}  # filled by `request_body`


def request_body(model: type[BaseModel], *content_types: str) -> dict[str, Any]:
    """Return `openapi_extra` for a route that parses `model` from these content types."""
    request_models[model.__name__] = model
    schema = {"$ref": REF_TEMPLATE.format(model=model.__name__)}
    content = {content_type: {"schema": schema} for content_type in content_types or (JSON, FORM)}
    return {"requestBody": {"required": True, "content": content}}


def file_body(file: str, description: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """Return `openapi_extra` for a route that parses a form with a file; fields marked `required` are required."""
    required = [file, *(name for name, field in fields.items() if field.pop("required", False))]
    upload = {"type": "string", "contentMediaType": "application/octet-stream", "description": description}
    schema = {"type": "object", "properties": {file: upload, **fields}, "required": required}
    return {"requestBody": {"required": True, "content": {MULTIPART: {"schema": schema}}}}


def text_response(content_type: str, description: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return `responses` for a response that is not JSON; a schema of a stream would describe its events."""
    schema = {} if content_type == "text/event-stream" else {"schema": {"type": "string"}}
    return {status: {"description": description, "content": {content_type: schema}}}


class DescribedAPI(FastAPI):
    """FastAPI with the request bodies of request_parsing.py in its description."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description, computed once."""
        if self.openapi_schema is None:
            models: Any = [(model, "validation") for model in request_models.values()]
            _, schemas = models_json_schema(models, ref_template=REF_TEMPLATE)
            self.openapi_schema = super().openapi()
            self.openapi_schema.setdefault("components", {}).setdefault("schemas", {}).update(schemas.get("$defs", {}))
        return self.openapi_schema


# --- page -------------------------------------------------------------------------------------------------------


def render_docs(description: dict[str, Any]) -> str:
    """Render the description as a page that needs no network, unlike Swagger UI."""
    schemas = description["components"]["schemas"]
    operations = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            response = operation["responses"].get("200", {}).get("content", {}).get(JSON, {}).get("schema")
            operations.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "description": operation.get("description", ""),
                    "content_types": [*body],
                    "request": field_rows(next(iter(body.values()))["schema"], schemas) if body else [],
                    "response": field_rows(response, schemas) if response else [],
                    "is_list": bool(response) and response.get("type") == "array",
                }
            )
    environment = Environment(loader=PackageLoader("softgaze.serve"), autoescape=True)
    return environment.get_template("docs.html").render(info=description["info"], operations=operations)


def field_rows(schema: dict[str, Any], schemas: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, type and description of each field of an object, or of the objects of a list."""
    while "$ref" in schema or schema.get("type") == "array":
        schema = schema["items"] if "items" in schema else schemas[schema["$ref"].rpartition("/")[2]]
    rows = []
    for name, field in schema.get("properties", {}).items():
        required = "Required." if name in schema.get("required", []) and "default" not in field else ""
        default = f"Default {json.dumps(field['default'])}." if field.get("default") is not None else ""
        notes = " ".join(filter(None, (required, field.get("description", ""), default)))
        rows.append((name, type_name(field, schemas), notes))
    return rows


def type_name(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return a JSON schema type in a few words."""
    if "$ref" in schema:
        fields = schemas[schema["$ref"].rpartition("/")[2]].get("properties", {})
        return "{" + ", ".join(fields) + "}"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_name(option, schemas) for option in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {type_name(schema.get('items', {}), schemas)}"
    return str(schema.get("type", schema.get("const", "any")))
