"""String files in JSON (also ARB of Flutter): every string value is a segment; keys and numbers stay as they are."""

import json
import re

from softgaze.documents.base import DocumentOptions, Part, TextDocument, decode, line_parts
from softgaze.errors import DataError

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^"{}\[\],:]+')


def escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def parse(content: bytes, options: DocumentOptions) -> TextDocument:
    """Open a JSON file. Keys that start with @ hold metadata in ARB: their values are kept."""
    file = decode(content)
    try:
        json.loads(file.text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}") from None
    parts: list[Part] = []
    key, kept = "", 0  # kept: open brackets within metadata
    tokens = TOKEN.findall(file.text)
    for index, token in enumerate(tokens):
        if token[0] == '"':
            following = next((other for other in tokens[index + 1 :][:2] if not other.isspace()), "")
            if following == ":":
                key = json.loads(token)
            elif not kept and not key.startswith("@"):
                parts += ['"', *line_parts(json.loads(token), escape, token[1:-1]), '"']
                continue
        elif token in "{[" and (kept or key.startswith("@")):
            kept += 1
        elif token in "}]" and kept:
            kept -= 1
            key = key if kept else ""
        parts.append(token)
    return TextDocument(parts, file)
