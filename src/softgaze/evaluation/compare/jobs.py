"""The jobs of a comparison: each model is trained, then translates; every job runs in its own process.

So the peak memory of a job is its own, and a killed job loses at most the work since its last checkpoint. A job records
its inputs with its results, and is skipped when both are up to date.
"""

import json
import os
import random
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from softgaze.atomic_io import remove, sha256_of, write_text
from softgaze.bundle import WEIGHTS, Bundle
from softgaze.data.corpus import read_pairs
from softgaze.evaluation.benchmark import describe_environment, translation_speed
from softgaze.evaluation.by_length import source_lengths
from softgaze.evaluation.compare.experiment import FAILED, Experiment
from softgaze.runtime import peak_device_memory, peak_memory, pick_device
from softgaze.training.callbacks import Callback, CallbackList, Update, Validation
from softgaze.training.preprocess import preprocess
from softgaze.training.run_directory import RESULT

if TYPE_CHECKING:
    from softgaze.translation import Translation
    from softgaze.translator import Translator

JOBS = ("train", "translate")
TRAINED, TRANSLATED = "trained.json", "translated.json"
TIMED_SENTENCES = 100
ROUNDS = 5  # with 3, one of two equal models would be faster in all of them every tenth time

SHOWN_SENTENCES = 5
MAX_SHOWN_WORDS = 16  # wider maps are not readable side by side
SELECTION_RULE = (
    f"selected by rule: the middle one of each fifth of the test sentences of at most {MAX_SHOWN_WORDS} words, sorted "
    "by length; sentences of the same length are ordered by seed"
)

Launch = Callable[[Experiment, str, str], int]  # runs a job (experiment, model, kind) in a process: its exit code
Log = Callable[[str], None]


def preprocess_shared(experiment: Experiment) -> None:
    """Train one tokenizer and encode the text once for all models."""
    config = experiment.config(experiment.models[0].name)
    preprocess(experiment.encoded, experiment.corpus, experiment.held_out, config.data, config.training.seed)


def run_jobs(experiment: Experiment, launch: Launch, log: Log) -> dict[str, dict[str, Any]]:
    """Run all jobs that are not up to date; return the failed ones by model, which do not stop the others."""
    failed: dict[str, dict[str, Any]] = {}
    for index, model in enumerate(experiment.models, start=1):
        job = ModelJob(experiment, model.name)
        is_done = {"train": job.is_trained, "translate": job.is_translated}
        for kind in JOBS:
            title = f"[{index}/{len(experiment.models)}] {model.name}: {kind}"
            if is_done[kind]():
                log(f"{title}: already done")
                continue
            log(title)
            if exit_code := launch(experiment, model.name, kind):
                log(f"{title}: failed")
                failed[model.name] = {"job": kind, "exit_code": exit_code}
                break
    write_record(experiment.out / FAILED, failed)
    return failed


@dataclass(frozen=True)
class ModelJob:
    experiment: Experiment
    name: str

    @property
    def path(self) -> Path:
        return self.experiment.run(self.name).path

    def attention_path(self, index: int) -> Path:
        """File with the attention map of a shown sentence."""
        return self.path / "attention" / f"{index}.json"

    def sources(self, name: str) -> list[str]:
        return [pair.source for pair in read_pairs(*self.experiment.test_sets[name])]

    def timed_sources(self) -> list[str]:
        """Return evenly spaced lines of the test set."""
        sources = self.sources("test")
        return sources[:: -(-len(sources) // TIMED_SENTENCES)]

    def sentence_count(self) -> int:
        return sum(len(self.sources(name)) for name in self.experiment.test_sets) + ROUNDS * len(self.timed_sources())

    def _weights(self) -> str:
        return str(Bundle.open(self.path).files[WEIGHTS]["sha256"])

    def _translation_inputs(self) -> dict[str, Any]:
        files = self.experiment.test_sets.items()
        return {
            "weights": self._weights(),
            "texts": {name: [sha256_of(path) for path in paths] for name, paths in files},
            "beam_size": self.experiment.beam_size,
        }

    def is_trained(self) -> bool:
        """Whether training ended with the current settings, and the weights are still its result."""
        record = read_record(self.path / TRAINED)
        settings = self.experiment.config(self.name).model_dump()
        has_ended = (self.path / RESULT).exists() and record.get("made_from") == settings
        return has_ended and record.get("weights") == self._weights()

    def is_translated(self) -> bool:
        """Whether these weights have translated these test sets with these options."""
        return read_record(self.path / TRANSLATED).get("made_from") == self._translation_inputs()

    def train(self, callback: Callback) -> None:
        """Train until the budget is spent; an interrupted training resumes."""
        import torch

        from softgaze.training.train import train

        experiment, config = self.experiment, self.experiment.config(self.name)
        memory_before, device = peak_memory(), str(pick_device(experiment.device))
        meter = TrainingSpeed(self.path / "speed.json")
        try:
            train(
                config,
                experiment.corpus,
                experiment.held_out,
                self.path,
                device=experiment.device,
                encoded=experiment.encoded,
                callback=CallbackList(callback, meter),
            )
        finally:
            if self.path.exists():  # also after an interruption: a later process may need less memory
                meter.save(peak_memory(), peak_device_memory(device))
        record = {
            "made_from": config.model_dump(),
            "weights": self._weights(),
            "measured_on": meter.totals["measured_on"],
            "memory_before": memory_before,
            "threads": torch.get_num_threads(),
            **meter.summary(),
        }
        write_record(self.path / TRAINED, record)

    def translate(self, progress: Callable[[int], None] | None = None) -> None:
        """Translate all test sets, measure speed and memory, and store the attention maps of some sentences."""
        import torch  # noqa: F401  imported before memory is measured

        from softgaze.translator import load

        memory_before, made_from = peak_memory(), self._translation_inputs()
        translator = load(self.path, self.experiment.device)

        def translate(model: "Translator", sources: Sequence[str]) -> "list[Translation]":
            beam_size = self.experiment.beam_size
            return list(model.translate_lines(sources, progress=progress, beam_size=beam_size))

        translations = {name: translate(translator, self.sources(name)) for name in self.experiment.test_sets}
        # On torch, which runs every arch: the comparison is of models, not of engines.
        timed = load(self.path, self.experiment.device, engine="torch")
        timed.translate([*self.timed_sources()], beam_size=self.experiment.beam_size)  # to warm up
        speed = measure_speed(partial(translate, timed), self.timed_sources())
        record = {
            "made_from": made_from,
            "measured_on": measured_on(),
            "memory_before": memory_before,
            "memory": peak_memory(),
            "device_memory": peak_device_memory(translator.device),
            "device": str(translator.device),
            "speed": {"test": speed},
            "texts": {name: [out.text for out in outputs] for name, outputs in translations.items()},
        }
        remove(self.attention_path(0).parent)
        self.attention_path(0).parent.mkdir()
        for index, sentence in enumerate(select_sentences(self.sources("test"))):
            attention = translations["test"][sentence].attention
            if attention is not None:
                attention.to_json(self.attention_path(index))
        write_record(self.path / TRANSLATED, record)


def measure_speed(translate: "Callable[[Sequence[str]], list[Translation]]", sources: Sequence[str]) -> dict[str, Any]:
    """Return the median speed of some rounds, with the slowest and the fastest one."""
    speeds = []
    for _ in range(ROUNDS):
        start = perf_counter()
        translations = translate(sources)
        speeds.append(translation_speed(translations, perf_counter() - start))
    tokens = sorted(speed["tokens_per_second"] for speed in speeds)
    medians = {name: median(speed[name] for speed in speeds) for name in speeds[0]}
    return {**medians, "spread": [tokens[0], tokens[-1]], "rounds": ROUNDS, "sentences": len(sources)}


def select_sentences(sources: Sequence[str], count: int = SHOWN_SENTENCES) -> list[int]:
    """Select sentences spread over lengths, shortest first; return their indices."""
    lengths = source_lengths(sources)
    readable = [index for index, length in enumerate(lengths) if 0 < length <= MAX_SHOWN_WORDS]
    candidates = readable or [index for index, length in enumerate(lengths) if length]
    rng = random.Random(0)
    candidates = sorted(candidates, key=lambda index: (lengths[index], rng.random()))
    count = min(count, len(candidates))
    return [candidates[(2 * part + 1) * len(candidates) // (2 * count)] for part in range(count)]


class TrainingSpeed(Callback):
    """Measure training tokens per second without validations, over all processes of a training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        empty = {"tokens": 0, "seconds": 0.0, "memory": None, "device_memory": None, "measured_on": None}
        self.totals: dict[str, Any] = {**empty, **read_record(path)}
        self.last: float | None = None  # time of the last counted update

    def on_start(self, facts: dict[str, Any]) -> None:
        self.totals["measured_on"] = measured_on()

    def on_update(self, update: Update, share: float | None) -> None:
        if self.last is not None:  # the first update of a process only starts the clock
            self.totals["tokens"] += update.tokens
            self.totals["seconds"] += update.elapsed - self.last
        self.last = update.elapsed

    def on_validation(self, validation: Validation) -> None:
        self.last = None
        self.save()

    def save(self, memory: int | None = None, device_memory: int | None = None) -> None:
        """Store the totals, and the peak memory over all processes."""
        for name, peak in (("memory", memory), ("device_memory", device_memory)):
            self.totals[name] = max(filter(None, (peak, self.totals[name])), default=None)
        write_record(self.path, self.totals)

    def summary(self) -> dict[str, Any]:
        """Return speed (None after very few updates) and memory."""
        seconds = self.totals["seconds"]
        return {
            "tokens_per_second": round(self.totals["tokens"] / seconds, 1) if seconds else None,
            "memory": self.totals["memory"],
            "device_memory": self.totals["device_memory"],
        }


def measured_on() -> dict[str, Any]:
    import torch

    return {**describe_environment(), "threads": torch.get_num_threads()}


def read_record(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if the file does not exist."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace a JSON file atomically."""
    write_text(path, json.dumps(record, indent=1, ensure_ascii=False))


def stop_with_parent() -> None:
    """Terminate this process when its parent ends for any reason, which closes the pipe at standard input."""

    def wait_for_end() -> None:
        while os.read(0, 1024):  # not through sys.stdin, whose lock would be held when Python exits
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, daemon=True).start()
