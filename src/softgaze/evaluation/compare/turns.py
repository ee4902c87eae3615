"""A model's turns: it is trained, then it translates. Each turn is a process of its own.

Only so is the peak of its memory its own, is the memory kept by training no burden on translating, and does a kill
leave nothing but the last checkpoint. What was done is kept with what it was done from; a turn that is done is skipped.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from softgaze.bundle import WEIGHTS, Bundle
from softgaze.data.corpus import read_pairs, sha256_of
from softgaze.devices import pick_device
from softgaze.evaluation.compare.plan import Plan
from softgaze.evaluation.compare.sentences import choose_sentences
from softgaze.evaluation.machine import surroundings
from softgaze.evaluation.speed import speed_of
from softgaze.files import remove, write_text
from softgaze.training.listeners import Listener, Listeners, Update, Validation
from softgaze.training.memory import peak_device_memory, peak_memory
from softgaze.training.run import RESULT

if TYPE_CHECKING:
    from softgaze.translator import Translation

TURNS = ("train", "translate")
TRAINED, TRANSLATED = "trained.json", "translated.json"
TIMED = 100  # sentences of a pass whose speed is measured
ROUNDS = 5  # passes: with three, one of two equal models would be ahead in all of them every tenth time

Advance = Callable[[int], None]  # told how many more sentences are done


@dataclass(frozen=True)
class Turn:
    """What one process is to do."""

    plan: Plan
    name: str

    @property
    def path(self) -> Path:
        """The run directory of the model."""
        return self.plan.run(self.name).path

    # --- training

    def wanted(self) -> dict[str, Any]:
        """What a training is made from, apart from the text, which is the same for all."""
        return self.plan.config(self.name).model_dump()

    def weights(self) -> str:
        """Which weights are the best so far, by their fingerprint."""
        return str(Bundle.open(self.path).files[WEIGHTS]["sha256"])

    def is_trained(self) -> bool:
        """Whether it was trained as it is wanted now, and its weights are still those that came of it."""
        found = read_record(self.path / TRAINED)
        ended = (self.path / RESULT).exists() and found.get("made_from") == self.wanted()
        return ended and found.get("weights") == self.weights()

    def train(self, listener: Listener) -> None:
        """Train until the budget is spent, going on where it stopped."""
        import torch

        from softgaze.training import train

        before, device = peak_memory(), str(pick_device(self.plan.device))
        pace = Pace(self.path / "pace.json")
        plan, config = self.plan, self.plan.config(self.name)
        try:
            train(
                config,
                plan.corpus,
                plan.held_out,
                self.path,
                device=plan.device,
                encoded=plan.encoded,
                listener=Listeners(listener, pace),
            )
        finally:
            if self.path.exists():  # also of a part: a later process may need less
                pace.keep(peak_memory(), peak_device_memory(device))
        facts = {"memory_before": before, "threads": torch.get_num_threads(), **pace.facts()}
        made = {"made_from": self.wanted(), "weights": self.weights(), "measured_on": pace.told["measured_on"]}
        write_record(self.path / TRAINED, {**made, **facts})

    # --- translating

    def texts(self) -> dict[str, tuple[Path, Path]]:
        """What is translated: the test set, and what is longer than anything in training."""
        beyond = {"beyond": self.plan.beyond} if self.plan.beyond else {}
        return {"test": self.plan.test, **beyond}

    def sources(self, name: str) -> list[str]:
        """One text, without what it should become."""
        return [pair.source for pair in read_pairs(*self.texts()[name])]

    def timed_sources(self) -> list[str]:
        """Evenly spaced lines of the test set: enough to tell a speed, and no long wait."""
        sources = self.sources("test")
        return sources[:: -(-len(sources) // TIMED)]

    def amount(self) -> int:
        """How many sentences are translated in all, those that are timed again and again among them."""
        return sum(len(self.sources(name)) for name in self.texts()) + ROUNDS * len(self.timed_sources())

    def read_from(self) -> dict[str, Any]:
        """What translations are made from."""
        return {
            "weights": self.weights(),
            "texts": {name: [sha256_of(path) for path in files] for name, files in self.texts().items()},
            "beam": self.plan.beam,
        }

    def is_translated(self) -> bool:
        """Whether these weights have translated this text in this way."""
        return read_record(self.path / TRANSLATED).get("made_from") == self.read_from()

    def translate(self, advance: Advance | None = None) -> None:
        """Translate everything, and look at the sentences that are shown."""
        import torch  # noqa: F401  before memory is counted

        from softgaze.translator import load

        before, made_from = peak_memory(), self.read_from()
        translator = load(self.path, self.plan.device)

        def translated(sources: Sequence[str]) -> "list[Translation]":
            return list(translator.translate_lines(sources, progress=advance, beam=self.plan.beam))

        texts: dict[str, list[str]] = {}
        for name in self.texts():
            sources = self.sources(name)
            found = translated(sources)
            texts[name] = [each.text for each in found]
            if name == "test":
                shown = [found[number] for number in choose_sentences(sources)]
        speeds = {"test": timed(translated, self.timed_sources())}  # all was translated once: that has warmed up
        held, on_device = peak_memory(), peak_device_memory(translator.device)  # before anything is looked at
        self.keep_looks(shown)
        memory = {"memory_before": before, "memory": held, "device_memory": on_device}
        facts = {**memory, "device": str(translator.device), "speed": speeds}
        made = {"made_from": made_from, "measured_on": here()}
        write_record(self.path / TRANSLATED, {**made, **facts, "texts": texts})

    def look(self, number: int) -> Path:
        """Where it is kept where the words of a shown sentence looked."""
        return self.path / "looks" / f"{number}.json"

    def keep_looks(self, shown: "Sequence[Translation]") -> None:
        """Keep the maps of some translations; a model without attention has none."""
        remove(self.path / "looks")
        (self.path / "looks").mkdir()
        for number, translation in enumerate(shown):
            if translation.attention is not None:
                translation.attention.to_json(self.look(number))


def timed(translate: "Callable[[Sequence[str]], list[Translation]]", sources: Sequence[str]) -> dict[str, Any]:
    """The median speed of some passes, and the slowest and fastest: two models may differ by no more than that."""
    rates = []
    for _ in range(ROUNDS):
        began = perf_counter()
        found = translate(sources)
        rates.append(speed_of(found, perf_counter() - began))
    tokens = sorted(each["tokens_per_second"] for each in rates)
    middle = {name: median(each[name] for each in rates) for name in rates[0]}
    return {**middle, "spread": [tokens[0], tokens[-1]], "rounds": ROUNDS, "sentences": len(sources)}


class Pace(Listener):
    """Tokens a second while learning: validations are not counted, but all processes a training took are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        nothing = {"tokens": 0, "seconds": 0.0, "memory": None, "device_memory": None, "measured_on": None}
        self.told: dict[str, Any] = {**nothing, **read_record(path)}
        self.since: float | None = None  # the clock when counting began, or went on

    def started(self, facts: dict[str, Any]) -> None:
        """Where and when; of several processes, the last that learnt anything."""
        self.told["measured_on"] = here()

    def updated(self, update: Update, share: float | None) -> None:
        """Count; the first update of a process only starts the clock."""
        if self.since is not None:
            self.told["tokens"] += update.tokens
            self.told["seconds"] += update.elapsed - self.since
        self.since = update.elapsed

    def validated(self, validation: Validation) -> None:
        """Nothing is learnt meanwhile; keep what was counted, for whoever goes on after a crash."""
        self.since = None
        self.keep()

    def keep(self, memory: int | None = None, device_memory: int | None = None) -> None:
        """Write it down, and the most memory that any process of this training held."""
        for name, held in (("memory", memory), ("device_memory", device_memory)):
            self.told[name] = max(filter(None, (held, self.told[name])), default=None)
        write_record(self.path, self.told)

    def facts(self) -> dict[str, Any]:
        """What is reported; a training of very few updates has no speed."""
        seconds = self.told["seconds"]
        return {
            "tokens_per_second": round(self.told["tokens"] / seconds, 1) if seconds else None,
            "memory": self.told["memory"],
            "device_memory": self.told["device_memory"],
        }


def here() -> dict[str, Any]:
    """Where and with what this process measures."""
    import torch

    return {**surroundings(), "threads": torch.get_num_threads()}


def read_record(path: Path) -> dict[str, Any]:
    """A JSON object; nothing where there is none."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace it in one move."""
    write_text(path, json.dumps(record, indent=1, ensure_ascii=False))


def stop_with_parent() -> None:
    """Ask this process to stop when the one that started it is gone, however it went: its end of the pipe closes."""

    def watch() -> None:
        while os.read(0, 1024):  # not through sys.stdin, whose lock would be held when Python ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
