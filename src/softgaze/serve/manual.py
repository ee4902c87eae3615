"""The API for people to read, from its description: one page, offline, like every page of softgaze."""

import html
import json
from collections.abc import Iterator
from typing import Any

from softgaze.gaze.shell import document


def manual(description: dict[str, Any]) -> str:
    """The page."""
    title = f"{description['info']['title']} {description['info']['version']}"
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(description['info']['description'])}</p>"]
    parts += operations(description)
    parts.append('<p><a href="/spec">/spec</a> is the same in the words of OpenAPI.</p>')
    return document(title, "<main>" + "\n".join(parts) + "</main>", styles=("manual.css",))


def operations(description: dict[str, Any]) -> Iterator[str]:
    """One section for each address and method."""
    schemas = description["components"]["schemas"]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield f"<section><h2><code>{method.upper()} {html.escape(path)}</code></h2>"
            yield f"<p>{html.escape(operation.get('description', ''))}</p>"
            yield from body(operation, schemas)
            yield from answer(operation, schemas)
            yield "</section>"


def body(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    """What is asked."""
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        ways = ", ".join(content)
        yield f"<h3>asks <small>({html.escape(ways)})</small></h3>"
        yield table(next(iter(content.values()))["schema"], schemas)


def answer(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    """What comes back."""
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    if content.get("schema"):
        yield "<h3>answers</h3>"
        yield table(content["schema"], schemas)


def table(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Fields, their types and what they mean."""
    own = resolved(schema, schemas)
    rows = [
        f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(kind(field, schemas))}</td>"
        f"<td>{html.escape(about(name, field, own))}</td></tr>"
        for name, field in own.get("properties", {}).items()
    ]
    several = "<p>a list of:</p>" if schema.get("type") == "array" else ""
    return f"{several}<table>{''.join(rows)}</table>"


def resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """What a reference points to; of a list, what it is a list of."""
    if "$ref" in schema:
        return resolved(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    return resolved(schema["items"], schemas) if schema.get("type") == "array" and "items" in schema else schema


def kind(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        own = schemas[schema["$ref"].rpartition("/")[2]]
        return "{" + ", ".join(own.get("properties", {})) + "}"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(each, schemas) for each in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}), schemas)}"
    return str(schema.get("type", schema.get("const", "anything")))


def about(name: str, field: dict[str, Any], schema: dict[str, Any]) -> str:
    """What a field means, and what it is if nobody says."""
    default = f"Default {json.dumps(field['default'])}." if field.get("default") is not None else ""
    needed = "Required." if name in schema.get("required", []) and "default" not in field else ""
    return " ".join(filter(None, (needed, field.get("description", ""), default)))
