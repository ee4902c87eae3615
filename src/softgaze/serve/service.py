"""State that all routes share: models, queue, API keys, metrics and translated files. It does not depend on an API."""

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Depends
from starlette.requests import Request

from softgaze.errors import DataError
from softgaze.glossary import Glossary
from softgaze.runtime import threads
from softgaze.search.options import SearchOptions
from softgaze.serve.batching import Batcher, BatchJob
from softgaze.serve.errors import HTTPError, missing_parameter
from softgaze.serve.glossaries import GlossaryStore, parsed_lines
from softgaze.serve.languages import CombinedDetector, Detected
from softgaze.serve.metrics import Metrics
from softgaze.serve.model_registry import ModelRegistry, ServedModel
from softgaze.serve.settings import Settings

AUTO = "auto"
AUTH_SCHEMES = ("bearer ", "deepl-auth-key ")
MAX_FILES = 256
FILE_NAME = re.compile(r"[A-Za-z0-9_-]{32}\.[a-z]{2,10}")


class Disconnected(Exception):  # noqa: N818
    """The client closed the connection before the response."""


class SelectedModel(NamedTuple):
    """The model for a request, or None where source and target language are the same."""

    model: ServedModel | None
    source: str
    target: str
    detected: Detected | None


class Service:
    """The models and everything around them."""

    def __init__(self, settings: Settings, registry: ModelRegistry) -> None:
        shared_dir = Path(settings.shared_dir)
        self.settings, self.registry = settings, registry
        self.keys = ApiKeys.read(settings.api_keys)
        bilingual = [model.bundle for model in registry.text_models if model.translator.languages is None]
        self.detector = CombinedDetector.of(bilingual) if bilingual else None
        self.metrics = Metrics(shared_dir if settings.workers > 1 else None)
        self.glossary = Glossary.read(settings.glossary) if settings.glossary else None
        self.glossaries = GlossaryStore(Path(settings.glossary_dir or shared_dir / "glossaries"))
        self.files = FileStore(shared_dir / "files", 60 * settings.keep_files)
        # Only CTranslate2 searches outside of Python. With the other engines, two concurrent batches had 0.7 times the
        # throughput of one (2 cores, docs/log.md); `--workers` uses more cores there. One batch more than it has
        # threads is prepared or answered meanwhile.
        is_parallel = all(model.translator.engine.name == "ctranslate2" for model in registry.models)
        batches = settings.threads or (max(1, threads() // settings.workers) + 1 if is_parallel else 1)
        self.batcher = Batcher(
            batches, settings.window / 1000, settings.batch, settings.queue, self.metrics.count_batch
        )

    def check_texts(self, texts: str | list[str]) -> list[str]:
        """Return the texts of a request as a list, or raise if they exceed the limits."""
        if not texts:
            raise missing_parameter("q")
        texts = [texts] if isinstance(texts, str) else texts
        max_texts, max_characters = self.settings.max_texts, self.settings.max_characters
        if len(texts) > max_texts:
            raise HTTPError(400, f"Invalid request: {len(texts)} texts exceed the limit of {max_texts}")
        longest = max(map(len, texts))
        if longest > max_characters:
            raise HTTPError(400, f"Invalid request: request ({longest}) exceeds text limit ({max_characters})")
        return texts

    def search_options(
        self,
        model: ServedModel | None,
        beam_size: int | None = None,
        num_hypotheses: int = 1,
        glossary: Glossary | None = None,
    ) -> SearchOptions:
        """Return the search options of a model within the limits; the beam is as wide as the number of hypotheses.

        Without a glossary, that of the server applies.
        """
        settings = self.settings
        if beam_size is not None and not 1 <= beam_size <= settings.max_beam_size:
            raise HTTPError(400, f"Invalid request: beam_size must be from 1 to {settings.max_beam_size}")
        if not 1 <= num_hypotheses <= settings.max_hypotheses:
            limit = settings.max_hypotheses
            raise HTTPError(
                400, f"Invalid request: num_hypotheses must be from 1 to {limit} (alternatives from 0 to {limit - 1})"
            )
        defaults = SearchOptions() if model is None else model.translator.search_defaults
        beam_size = beam_size or settings.beam_size or min(defaults.beam_size, settings.max_beam_size)
        return replace(
            defaults,
            beam_size=max(beam_size, num_hypotheses),
            num_hypotheses=num_hypotheses,
            glossary=self.glossary if glossary is None else glossary,
        )

    def find_glossary(
        self, model: ServedModel | None, text: str | None = None, ids: str | Sequence[str] | None = None
    ) -> Glossary | None:
        """Return the glossary of a request: the lines of a file, or the stored ones; None if it has none."""
        if text and ids:
            raise HTTPError(400, "Invalid request: give glossary or glossary_id, not both")
        if text:
            try:
                return parsed_lines(text)
            except DataError as error:
                raise HTTPError(400, f"Invalid request: {error}") from None
        if not ids or model is None:
            return None
        ids = ids.split(",") if isinstance(ids, str) else ids
        try:
            return self.glossaries.terms(ids, model.source, model.target)
        except HTTPError as error:
            raise HTTPError(400, f"Invalid request: glossary_id: {error.message}") from None

    def require_detector(self) -> CombinedDetector:
        if self.detector is None:
            raise HTTPError(400, "language detection needs a model of one language pair, and none is loaded")
        return self.detector

    async def select_model(self, texts: Sequence[str], source: str, target: str) -> SelectedModel:
        """Select the model for a language pair; the source language `auto` is detected from the texts."""
        detected = None
        if source == AUTO:  # in a thread: it takes milliseconds
            detected = await asyncio.to_thread(self.require_detector().detect_joint, texts)
            source = detected.language
        source, target = self.registry.match_language(source), self.registry.match_language(target)
        return SelectedModel(self.registry.for_pair(source, target), source, target, detected)

    async def run(
        self, request: Request, job: BatchJob, items: Sequence[Any], lengths: Sequence[int] | None = None
    ) -> list[Any]:
        """Queue the items and return their results; if the client disconnects, cancel those not started.

        Items without `lengths` are texts.
        """
        if lengths is None:
            self.metrics.count_texts(items)
            lengths = [len(item) for item in items]
        if not items:
            return []
        futures = self.batcher.submit(job, items, lengths, self.settings.deadline)
        results: asyncio.Future[Any] = asyncio.gather(*map(asyncio.wrap_future, futures))
        # asyncio logs the exception of a cancelled future that is not read.
        results.add_done_callback(lambda done: done.cancelled() or done.exception())
        disconnect: asyncio.Future[Any] = asyncio.ensure_future(wait_for_disconnect(request))
        try:
            await asyncio.wait({results, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            if results.done():
                return list(results.result())
            raise Disconnected
        finally:
            disconnect.cancel()
            results.cancel()


async def wait_for_disconnect(request: Request) -> None:
    """Wait until the client closes the connection, after its body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def get_service(request: Request) -> Service:
    """Return the service of the application; async, since FastAPI runs plain functions in a thread."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(get_service)]


class ApiKeys:
    """The accepted API keys; None accepts every request."""

    def __init__(self, keys: tuple[bytes, ...] | None) -> None:
        self.keys = keys
        self.required = keys is not None

    @classmethod
    def read(cls, path: str | None) -> "ApiKeys":
        """Read one key per line; empty lines and lines that start with # are skipped."""
        if path is None:
            return cls(None)
        try:
            lines = [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot read the API keys: {error}") from error
        keys = tuple(line.encode() for line in lines if line and not line.startswith("#"))
        if not keys:
            raise DataError(f"{path}: contains no API key; write one key per line")
        return cls(keys)

    def check(self, request: Request, fields: Mapping[str, Any]) -> None:
        """Raise unless the request has a valid key in a field or a header."""
        if self.keys is None:
            return
        key = fields.get("api_key")
        if not isinstance(key, str) or not key:
            header = request.headers.get("authorization", "")
            scheme = next((scheme for scheme in AUTH_SCHEMES if header.lower().startswith(scheme)), None)
            key = header[len(scheme) :].strip() if scheme else request.headers.get("x-api-key", "")
        if not key:
            raise HTTPError(403, "Please contact the server operator to get an API key")
        # Every key is compared, so that the time does not depend on which one matches.
        if not sum([hmac.compare_digest(key.encode(errors="replace"), valid) for valid in self.keys]):
            raise HTTPError(403, "Invalid API key")


class FileStore:
    """Translated files under random names, deleted after some time; the oldest first if there are too many."""

    def __init__(self, directory: Path, max_age: float) -> None:
        self.directory, self.max_age = directory, max_age

    def save(self, content: bytes, suffix: str = ".txt") -> str:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.delete_old(MAX_FILES - 1)
        name = f"{secrets.token_urlsafe(24)}{suffix}"
        (self.directory / name).write_bytes(content)
        return name

    def load(self, name: str) -> bytes | None:
        """Return a stored file, or None if there is none of this name or it has expired."""
        path = self.directory / name
        if not FILE_NAME.fullmatch(name) or not path.is_file() or self.is_expired(path):
            return None
        return path.read_bytes()

    def delete_old(self, max_files: int = MAX_FILES) -> None:
        """Delete expired files, and the oldest ones beyond `max_files`."""
        paths = sorted(self.directory.glob("*.*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for index, path in enumerate(paths):
            if index >= max_files or self.is_expired(path):
                path.unlink(missing_ok=True)

    def is_expired(self, path: Path) -> bool:
        return time.time() - path.stat().st_mtime > self.max_age
