"""The models of a server, and the selection of one by id or languages."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, count
from pathlib import Path
from threading import Lock
from typing import Any

from softgaze.bundle import Bundle
from softgaze.engines import Engine, open_engine
from softgaze.errors import UsageError
from softgaze.runtime import run_low_priority
from softgaze.serve.errors import HTTPError
from softgaze.serve.languages import common_code, language_name, normalize_code, primary_code
from softgaze.translator import Translator

TEXT, IMAGE = "text", "image"
FIRST_LANGUAGE = "en"  # source of a multilingual model where none was chosen
INCOMPATIBLE_ENGINES = {"ctranslate2", "onnx"}  # their libraries deadlock at exit when loaded in one process


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model and the id that requests name it by."""

    id: str
    translator: Translator
    lock: Lock = field(default_factory=Lock, repr=False)
    pairs: dict[tuple[str, str], "ServedModel"] = field(default_factory=dict, repr=False)  # of a multilingual model

    @property
    def bundle(self) -> Bundle:
        return self.translator.bundle

    @cached_property
    def sources(self) -> dict[str, str]:
        """Languages it translates from, and the model's own code of each."""
        languages = self.translator.languages
        return common_codes(languages.source if languages else (), self.bundle.description.source_language)

    @cached_property
    def targets(self) -> dict[str, str]:
        """Languages it translates into, and the model's own code of each."""
        languages = self.translator.languages
        return common_codes(languages.target if languages else (), self.bundle.description.target_language)

    @property
    def source(self) -> str:
        """The language it translates from; of a multilingual model, one to start with."""
        own = self.bundle.description.source_language
        first = FIRST_LANGUAGE if FIRST_LANGUAGE in self.sources else next(iter(self.sources))
        return next((code for code, stored in self.sources.items() if stored == own), first)

    @property
    def target(self) -> str:
        """The language it translates into; of a multilingual model, one to start with."""
        own = self.bundle.description.target_language
        chosen = next((code for code, stored in self.targets.items() if stored == own), None)
        return chosen or next((code for code in self.targets if code != self.source), self.source)

    def for_pair(self, source: str, target: str) -> "ServedModel":
        """Return this model for one of its language pairs; a multilingual one is shared by all pairs."""
        if self.translator.languages is None:
            return self
        with self.lock:
            if (source, target) not in self.pairs:
                chosen = self.translator.with_languages(self.sources[source], self.targets[target])
                self.pairs[source, target] = ServedModel(self.id, chosen, self.lock)
            return self.pairs[source, target]

    @property
    def kind(self) -> str:
        """The kind of source: text or image."""
        return str(getattr(self.bundle.tokenizers.source, "kind", TEXT))

    @property
    def has_attention(self) -> bool:
        return self.translator.has_attention

    @property
    def supports_what_if(self) -> bool:
        """Whether the attention of all layers and heads can be recorded and changed."""
        return self.has_attention and self.translator.supports_interventions

    def prepare_attention(self) -> Translator:
        """Return the translator with its attention engine loaded, which may be torch: once, on first use."""
        with self.lock:
            _ = self.translator.scorer, self.translator.selected_map
        return self.translator

    def to_json(self) -> dict[str, Any]:
        """Return the entry of GET /v1/models."""
        engine = self.translator.engine
        explains = self.supports_what_if and self.kind == TEXT
        return {
            "id": self.id,
            "kind": self.kind,
            "source": code_and_name(self.source),
            "target": code_and_name(self.target),
            "sources": [*map(code_and_name, self.sources)],
            "targets": [*map(code_and_name, self.targets)],
            "arch": self.bundle.description.arch,
            "engine": engine.name,
            "precision": engine.precision,
            "attention": self.has_attention,
            "explain": explains,
            "what_if": explains,
        }


class ModelRegistry:
    """All models of a server, in the order of the command line."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = tuple(models)

    @classmethod
    def open(
        cls,
        paths: Sequence[str],
        device: str = "auto",
        engine: str = "auto",
        echo: Callable[[str], None] = lambda line: None,
    ) -> "ModelRegistry":
        """Load the models of these directories."""
        bundles = [Bundle.open(Path(path)) for path in paths]
        check_engines(bundles)
        # The engines' own threads get a low priority, so that small requests are answered while all cores translate.
        # The threads of the batcher do not: they hold the interpreter's lock, for which the event loop would wait.
        engines = run_low_priority(lambda: open_engines(bundles, device, engine))
        models = [
            ServedModel(model_id, Translator(bundle, engine))
            for model_id, bundle, engine in zip(unique_ids(bundles), bundles, engines, strict=True)
        ]
        for model in models:
            echo(f"{model.id}: {describe_pairs(model)}, {model.translator.engine.name}")
        if any(engine.name == "torch" for engine in engines):
            import torch

            # Batches run in parallel; operations that share threads would wait for each other.
            torch.set_num_threads(1)
        return cls(models)

    @cached_property
    def text_models(self) -> tuple[ServedModel, ...]:
        """Models that read text; the others read files, so no text of a request may reach them."""
        return tuple(model for model in self.models if model.kind == TEXT)

    @cached_property
    def image_models(self) -> tuple[ServedModel, ...]:
        return tuple(model for model in self.models if model.kind == IMAGE)

    @cached_property
    def languages(self) -> dict[str, tuple[str, ...]]:
        """Each language and the languages that it can be translated into."""
        codes = dict.fromkeys(code for model in self.text_models for code in (*model.sources, *model.targets))
        targets: dict[str, dict[str, None]] = {code: {} for code in codes}
        for model in self.text_models:
            for source in model.sources:
                targets[source] |= dict.fromkeys(target for target in model.targets if target != source)
        return {code: tuple(found) for code, found in targets.items()}

    def languages_json(self) -> list[dict[str, Any]]:
        """Return the languages in LibreTranslate's format."""
        return [
            {"code": code, "name": language_name(code), "targets": [*targets]}
            for code, targets in self.languages.items()
        ]

    def get(self, model_id: str | None, kind: str = TEXT) -> ServedModel:
        """Return the model of this id, or the first one if it is None."""
        models = self.text_models if kind == TEXT else self.image_models
        if not models:
            raise HTTPError(400, f"no {kind} model is loaded")
        for model in models:
            if model_id in (None, model.id):
                return model
        known = ", ".join(model.id for model in models)
        raise HTTPError(400, f"unknown model {shorten(str(model_id))}; loaded: {known}")

    def match_language(self, code: str) -> str:
        """Return the code of a loaded language; en-US matches en where only that is loaded."""
        for key in (normalize_code, partial(common_code, keep_region=False), primary_code):
            for language in self.languages:
                if key(language) == key(code):
                    return language
        raise HTTPError(400, f"{shorten(code)} is not supported")

    def for_pair(self, source: str, target: str) -> ServedModel | None:
        """Return the first model for a language pair, or None if both languages are the same."""
        for model in self.text_models:
            if source in model.sources and target in model.targets:
                return model.for_pair(source, target)
        if source == target:
            return None
        raise HTTPError(
            400,
            f"{language_name(target)} ({target}) is not available as a target language "
            f"from {language_name(source)} ({source})",
        )


def common_codes(codes: Iterable[str], only: str) -> dict[str, str]:
    """Return {code that clients use: the model's own} of a side; `only` is the language of a side without a choice."""
    table: dict[str, str] = {}
    for code in codes:
        common = common_code(code, keep_region=False)
        table[code if common in table else common] = code  # two of its languages may have one common code
    return table or {common_code(only): only}


def code_and_name(code: str) -> dict[str, str]:
    return {"code": code, "name": language_name(code)}


def describe_pairs(model: ServedModel) -> str:
    """Return the language pair of a model, or how many languages it has."""
    sides = (
        next(iter(side)) if len(side) == 1 else f"{len(side)} languages" for side in (model.sources, model.targets)
    )
    return " → ".join(sides)


def shorten(text: str) -> str:
    """Return text of a request as one short printable line for an error message."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= 40 else f"{line[:39]}…"


def unique_ids(bundles: Iterable[Bundle]) -> list[str]:
    """Return the directory names, with a number appended where one repeats."""
    ids: list[str] = []
    for bundle in bundles:
        name = re.sub(r"[^\w.-]+", "-", bundle.path.absolute().name) or "model"
        candidates = chain([name], (f"{name}-{suffix}" for suffix in count(2)))
        ids.append(next(candidate for candidate in candidates if candidate not in ids))
    return ids


def open_engines(bundles: Sequence[Bundle], device: str, engine: str) -> list[Engine]:
    """Open all models, exported ones first: a trained model can run on torch if their engine excludes another."""
    exported_first = sorted(range(len(bundles)), key=lambda index: bundles[index].engine["name"] == "torch")
    engines = {index: open_engine(bundles[index], device, engine) for index in exported_first}
    return [engines[index] for index in range(len(bundles))]


def check_engines(bundles: Iterable[Bundle]) -> None:
    """Raise if the engines of the models cannot share a process."""
    if {bundle.engine["name"] for bundle in bundles} >= INCOMPATIBLE_ENGINES:
        raise UsageError("CTranslate2 and ONNX models cannot share a process; start two servers")
