"""The OpenAPI description: complete, and schemathesis finds no response that contradicts it."""

import json
import os
import re
import subprocess
import sys

import pytest

EXAMPLES = 12  # per operation; 20 times as many with SOFTGAZE_SOAK
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)
OPERATIONS = {
    "/translate": {"post"},
    "/detect": {"post"},
    "/languages": {"get"},
    "/translate_file": {"post"},
    "/download_file/{name}": {"get"},
    "/frontend/settings": {"get"},
    "/v2/translate": {"post"},
    "/v2/languages": {"get"},
    "/v2/glossaries": {"post", "get"},
    "/v2/glossaries/{glossary_id}": {"get", "delete"},
    "/v2/glossaries/{glossary_id}/entries": {"get"},
    "/v2/glossary-language-pairs": {"get"},
    "/v3/glossaries": {"post", "get"},
    "/v3/glossaries/{glossary_id}": {"get", "patch", "delete"},
    "/v3/glossaries/{glossary_id}/entries": {"get"},
    "/v3/glossaries/{glossary_id}/dictionaries": {"put", "delete"},
    "/v1/models": {"get"},
    "/v1/translate": {"post"},
    "/v1/what_if": {"post"},
    "/v1/alternatives": {"post"},
    "/v1/explain": {"post"},
    "/v1/caption": {"post"},
    "/health": {"get"},
    "/ready": {"get"},
    "/metrics": {"get"},
}


@pytest.fixture(scope="module")
def description(server):
    return server.get("/spec").json


def test_every_route_is_described(description):
    assert {path: {*methods} for path, methods in description["paths"].items()} == OPERATIONS


def test_every_reference_resolves(description):
    names = {*description["components"]["schemas"]}
    assert {*re.findall(r"#/components/schemas/(\w+)", str(description))} <= names


def test_docs_page_needs_no_network(server):
    page = server.get("/docs").body.decode()
    assert "POST /v1/what_if" in page
    assert "http://" not in page
    assert "https://" not in page


def with_languages(description):
    """Restrict languages and models to those of the server, so that requests are not all rejected."""
    for schema in description["components"]["schemas"].values():
        for name in {"source", "target", "source_lang", "target_lang"} & {*schema.get("properties", {})}:
            if "source_tokens" not in schema["properties"] and schema["properties"][name].get("$ref") is None:
                schema["properties"][name] = {"type": "string", "enum": ["en", "ko"]}
        if "q" in schema.get("properties", {}) and "model" in schema["properties"]:
            schema["properties"]["model"] = {"type": "string", "enum": ["tiny", "back"]}
    return description


def test_schemathesis(server, description, tmp_path):
    examples = EXAMPLES * (20 if os.environ.get("SOFTGAZE_SOAK") else 1)
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(with_languages(description)))
    command = ["run", path, "--url", server.url, "--checks", ",".join(CHECKS), "--max-examples", str(examples)]
    ran = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", *command, "--phases", "examples,coverage,fuzzing", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
