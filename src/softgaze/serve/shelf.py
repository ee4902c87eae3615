"""The models a server has: which there are, and which is meant."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from softgaze.bundle import Bundle
from softgaze.devices import behind_others, threads
from softgaze.engines import open_engine
from softgaze.errors import UsageError
from softgaze.serve.errors import Refused
from softgaze.serve.languages import name_of, primary, same
from softgaze.translator import Translator

TEXT, IMAGE = "text", "image"
APART = {"ctranslate2", "onnx"}  # whose libraries deadlock at exit when one process has loaded both


class Language(NamedTuple):
    """A language, and what it can be translated into."""

    code: str
    targets: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As LibreTranslate tells it."""
        return {"code": self.code, "name": name_of(self.code), "targets": [*self.targets]}


@dataclass(frozen=True, eq=False)
class Model:
    """One model, by the name under which it is asked."""

    id: str
    translator: Translator
    opening: Lock = field(default_factory=Lock, repr=False)

    @property
    def bundle(self) -> Bundle:
        """Its directory."""
        return self.translator.bundle

    @property
    def source(self) -> str:
        """The code of the language it reads."""
        return self.bundle.description.source_language

    @property
    def target(self) -> str:
        """The code of the language it writes."""
        return self.bundle.description.target_language

    @property
    def kind(self) -> str:
        """What it reads."""
        return str(getattr(self.bundle.tokenizers.source, "kind", TEXT))

    @property
    def looks(self) -> bool:
        """Whether it has attention to show."""
        return self.bundle.description.arch != "rnn"

    @property
    def looks_elsewhere(self) -> bool:
        """Whether its attention can be shown in full, and changed."""
        return self.looks and self.translator.can_look_elsewhere

    def ready_to_look(self) -> Translator:
        """Its translator; what it looks with, which may be torch, is opened once, when it is first asked for."""
        with self.opening:
            _ = self.translator.eyes, self.translator.choice
        return self.translator

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        engine = self.translator.engine
        return {
            "id": self.id,
            "kind": self.kind,
            "source": {"code": self.source, "name": name_of(self.source)},
            "target": {"code": self.target, "name": name_of(self.target)},
            "arch": self.bundle.description.arch,
            "engine": engine.name,
            "precision": engine.precision,
            "attention": self.looks,
            "full": self.looks_elsewhere and self.kind == TEXT,
            "what_if": self.looks_elsewhere and self.kind == TEXT,
        }


class Shelf:
    """All models of a server, in the order they were given."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = tuple(models)

    @classmethod
    def open(
        cls, paths: Sequence[str], device: str = "auto", tell: Callable[[str], None] = lambda line: None
    ) -> "Shelf":
        """Models of these directories, ready to translate."""
        bundles = [Bundle.open(Path(path)) for path in paths]
        check_engines(bundles)
        engines = behind_others(lambda: [open_engine(bundle, device) for bundle in bundles])
        translators = [Translator(*both) for both in zip(bundles, engines, strict=True)]
        models = [Model(name, each) for name, each in zip(names(bundles), translators, strict=True)]
        for model in models:
            tell(f"{model.id}: {model.source} → {model.target}, {model.translator.engine.name}")
        if any(each.engine.name == "torch" for each in translators):
            one_thread_for_each_batch()
        return cls(models)

    @cached_property
    def texts(self) -> tuple[Model, ...]:
        """Models that read text. The others read files by name, so that no text of a stranger may reach them."""
        return tuple(model for model in self.models if model.kind == TEXT)

    @cached_property
    def images(self) -> tuple[Model, ...]:
        """Models that read pictures."""
        return tuple(model for model in self.models if model.kind == IMAGE)

    @cached_property
    def languages(self) -> tuple[Language, ...]:
        """All that can be read or written."""
        codes = list(dict.fromkeys(code for model in self.texts for code in (model.source, model.target)))
        return tuple(
            Language(code, tuple(dict.fromkeys(model.target for model in self.texts if model.source == code)))
            for code in codes
        )

    # --- which is meant

    def named(self, name: str, kind: str = TEXT) -> Model:
        """By its id."""
        own = self.texts if kind == TEXT else self.images
        for model in own:
            if model.id == name:
                return model
        known = ", ".join(model.id for model in own) or "none"
        raise Refused(400, f"model {shortened(name)} is not there; there is {known}")

    def first(self, kind: str = TEXT) -> Model:
        """Where nobody says which."""
        own = self.texts if kind == TEXT else self.images
        if not own:
            raise Refused(400, f"no model for {'text' if kind == TEXT else 'pictures'} is loaded")
        return own[0]

    def language(self, code: str) -> str:
        """A language we have, as we write it; en-US is taken for en where only that is there."""
        codes = [language.code for language in self.languages]
        for alike in (same, lambda own, asked: primary(own) == primary(asked)):
            for own in codes:
                if alike(own, code):
                    return own
        raise Refused(400, f"{shortened(code)} is not supported")

    def pair(self, source: str, target: str) -> Model | None:
        """The first model for two languages of ours; None where they are the same, so that nothing is to be done."""
        for model in self.texts:
            if (model.source, model.target) == (source, target):
                return model
        if source == target:
            return None
        names = f"{name_of(target)} ({target})", f"{name_of(source)} ({source})"
        raise Refused(400, f"{names[0]} is not available as a target language from {names[1]}")


def shortened(text: str, most: int = 40) -> str:
    """What a stranger wrote, for an error of one line."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def names(bundles: Iterable[Bundle]) -> list[str]:
    """Those of the directories, with a number where one comes again."""
    found: list[str] = []
    for bundle in bundles:
        plain = re.sub(r"[^\w.-]+", "-", bundle.path.absolute().name) or "model"
        others = (f"{plain}-{number}" for number in count(2))
        found.append(plain if plain not in found else next(name for name in others if name not in found))
    return found


def check_engines(bundles: Iterable[Bundle]) -> None:
    """Two libraries must not meet."""
    if {bundle.engine["name"] for bundle in bundles} >= APART:
        raise UsageError("models for CTranslate2 and for ONNX cannot be served by one process; start two servers")


def one_thread_for_each_batch() -> None:
    """Batches run side by side; threads that share every operation would wait for each other at every operation."""
    import torch

    torch.set_num_threads(1)


def threads_for(models: Iterable[Model], workers: int) -> int:
    """Batches at the same time in each of so many processes.

    Only CTranslate2 searches outside of Python; others share one interpreter, where two batches at a time took 0.7
    times as many texts as one after the other (2 cores, docs/log.md). More `--workers` use more cores.
    """
    alone = all(model.translator.engine.name == "ctranslate2" for model in models)
    return max(1, threads() // workers) if alone else 1
