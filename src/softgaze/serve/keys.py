"""Who may ask: a file of keys, compared in constant time and never written anywhere."""

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request

from softgaze.errors import DataError
from softgaze.serve.errors import Refused

SCHEMES = ("bearer ", "deepl-auth-key ")


class Keys:
    """The keys that are good; None of them means that anybody may ask."""

    def __init__(self, keys: tuple[bytes, ...] | None) -> None:
        self.keys = keys

    @classmethod
    def read(cls, path: str | None) -> "Keys":
        """One key a line; empty lines and lines that begin with # do not count."""
        if path is None:
            return cls(None)
        try:
            lines = [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the file of API keys cannot be read: {error}") from error
        keys = tuple(line.encode() for line in lines if line and not line.startswith("#"))
        if not keys:
            raise DataError(f"{path}: holds no API key, so nobody could ask anything; write one a line")
        return cls(keys)

    @property
    def required(self) -> bool:
        """Whether one is needed."""
        return self.keys is not None

    def check(self, request: Request, fields: Mapping[str, Any]) -> None:
        """Refuse who has none."""
        if self.keys is None:
            return
        given = given_key(request, fields)
        if not given:
            raise Refused(403, "Please contact the server operator to get an API key")
        # Every key is compared, whichever fits, so that time tells nothing.
        if not sum([hmac.compare_digest(given, key) for key in self.keys]):
            raise Refused(403, "Invalid API key")


def given_key(request: Request, fields: Mapping[str, Any]) -> bytes:
    """As a field, or in a header."""
    own = fields.get("api_key")
    if isinstance(own, str) and own:
        return own.encode(errors="replace")
    header = request.headers.get("authorization", "")
    for scheme in SCHEMES:
        if header.lower().startswith(scheme):
            return header[len(scheme) :].strip().encode(errors="replace")
    return request.headers.get("x-api-key", "").encode(errors="replace")
