"""All measurements of a comparison as one record, `report.json`; the other forms of the report show its numbers."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from softgaze.bundle import Bundle
from softgaze.data.corpus import Pair, read_pairs
from softgaze.evaluation.benchmark import describe_environment
from softgaze.evaluation.by_length import Bucket, length_curve, make_buckets, source_lengths
from softgaze.evaluation.compare.experiment import FAILED, Experiment, trained_lengths
from softgaze.evaluation.compare.jobs import (
    SELECTION_RULE,
    TRAINED,
    TRANSLATED,
    ModelJob,
    read_record,
    select_sentences,
)
from softgaze.evaluation.significance import TITLES, NgramStats, count_ngrams, difference, estimate, signature
from softgaze.metrics import sentence_scores
from softgaze.training.callbacks import read_metrics
from softgaze.training.preprocess import FACTS

OPTIONAL = ("device_memory", "measured_on")  # missing in records of older versions
MIN_BLEU = 1.0  # of the best model

Record = dict[str, Any]


@dataclass(frozen=True)
class TestSets:
    """The sentences that all models translate."""

    __test__ = False  # not a test class of pytest

    experiment: Experiment
    language: str  # of the target

    @cached_property
    def pairs(self) -> dict[str, list[Pair]]:
        return {name: list(read_pairs(*paths)) for name, paths in self.experiment.test_sets.items()}

    @cached_property
    def buckets(self) -> dict[str, list[Bucket]]:
        edges = {"test": self.experiment.edges, "beyond": self.experiment.beyond_edges}
        return {
            name: make_buckets(source_lengths([pair.source for pair in pairs]), edges[name])
            for name, pairs in self.pairs.items()
        }


@dataclass(frozen=True)
class ModelResult:
    job: ModelJob
    test_sets: TestSets

    @cached_property
    def trained(self) -> Record:
        return read_record(self.job.path / TRAINED)

    @cached_property
    def translated(self) -> Record:
        return read_record(self.job.path / TRANSLATED)

    @cached_property
    def stats(self) -> dict[str, NgramStats]:
        return {
            name: count_ngrams(
                self.translated["texts"][name], [pair.target for pair in pairs], language=self.test_sets.language
            )
            for name, pairs in self.test_sets.pairs.items()
        }

    def threads(self) -> set[int]:
        """Return the thread counts of both jobs; older records of translation have none."""
        measured_on = self.translated.get("measured_on", {})
        return {self.trained["threads"], measured_on.get("threads", self.trained["threads"])}

    def to_record(self) -> Record:
        bundle = Bundle.open(self.job.path)
        return {
            "name": self.job.name,
            "arch": bundle.description.arch,
            "size": bundle.description.size,
            "options": bundle.description.options,
            "parameters": bundle.facts["parameters"],
            "training": {**self._training(), "averaged": bundle.facts.get("averaged")},
            "translating": {
                **self.translated["speed"]["test"],
                **{name: self.translated[name] for name in ("memory", "memory_before", "device")},
                **{name: self.translated.get(name) for name in OPTIONAL},
            },
            "scores": {metric: asdict(estimate(self.stats["test"], metric)) for metric in TITLES},
            "by_length": {metric: self._by_length("test", metric) for metric in TITLES},
            "beyond": {metric: self._by_length("beyond", metric) for metric in TITLES}
            if "beyond" in self.stats
            else None,
            "learning": [
                {"minutes": entry["elapsed"] / 60, **{name: entry[name] for name in ("step", "loss", "bleu", "chrf")}}
                for entry in read_metrics(self.job.experiment.run(self.job.name).metrics)
                if entry["kind"] == "validation" and math.isfinite(entry["loss"])
            ],
        }

    def _training(self) -> Record:
        result = self.job.experiment.run(self.job.name).result() or {}
        settings = self.job.experiment.config(self.job.name).training
        return {
            **{name: result[name] for name in ("step", "minutes", "target_tokens", "best_step")},
            **{name: self.trained[name] for name in ("tokens_per_second", "memory", "memory_before", "threads")},
            **{name: getattr(settings, name) for name in ("learning_rate", "warmup", "batch_tokens")},
            **{name: self.trained.get(name) for name in OPTIONAL},
        }

    def _by_length(self, test_set: str, metric: str) -> list[Record]:
        curve = length_curve(self.job.name, self.stats[test_set], self.test_sets.buckets[test_set], metric)
        return [asdict(point) for point in curve.points]


def collect_results(experiment: Experiment) -> Record:
    """Return the record of the whole comparison; models whose job failed are only listed."""
    facts = json.loads((experiment.encoded / FACTS).read_text(encoding="utf-8"))
    test_sets = TestSets(experiment, facts["languages"][1])
    failed = read_record(experiment.out / FAILED)
    names = [model.name for model in experiment.models if model.name not in failed]
    models = [ModelResult(ModelJob(experiment, name), test_sets) for name in names]
    budget = experiment.config(experiment.models[0].name).budget
    stats = models[0].stats["test"]
    plain = {metric: stats.signatures[metric] for metric in TITLES}
    record: Record = {
        "format": "softgaze-compare 1",
        "reported_on": describe_environment(),
        "threads": sorted(set().union(*(model.threads() for model in models))),
        "device": sorted({model.translated["device"] for model in models}),
        "budget": {
            name: value for name in ("minutes", "steps", "epochs") if (value := getattr(budget, name)) is not None
        },
        "beam_size": experiment.beam_size,
        "seed": experiment.seed,
        "text": {
            "built_in": experiment.built_in,
            "train": [path.name for path in experiment.corpus.paths],
            "sha256": facts["made_from"]["train"],
            **{name: facts[name] for name in ("languages", "pairs", "left_out", "dev_pairs", "vocabulary")},
            "test": [path.name for path in experiment.test],
            "sentences": {name: len(pairs) for name, pairs in test_sets.pairs.items()},
        },
        "signatures": {
            "scores": {metric: signature(stats, metric) for metric in TITLES},
            "differences": {metric: signature(stats, metric, paired=True) for metric in TITLES},
            "learning": plain,
            "sentences": {metric: value.replace("|eff:no|", "|eff:yes|") for metric, value in plain.items()},
        },
        "failed": [{"name": name, **failure} for name, failure in failed.items()],
        "models": [model.to_record() for model in models],
        "differences": compare_pairs(models),
        "sentences": {"rule": SELECTION_RULE, "shown": _shown_sentences(models, test_sets)},
    }
    if experiment.built_in:
        buckets = [point for part in ("by_length", "beyond") for point in record["models"][0][part]["bleu"]]
        record["text"]["trained_lengths"] = trained_lengths(experiment, buckets)
    return record | {"warnings": list_warnings(record)}


def list_warnings(record: Record) -> list[str]:
    """Report failed jobs, models trained beyond the budget, and scores that are too low to compare."""
    budget = record["budget"].get("steps", math.inf)
    best = max(model["scores"]["bleu"]["score"] for model in record["models"])
    warnings = [
        f"{failure['name']} is not compared: its {failure['job']} job failed (exit code {failure['exit_code']})."
        for failure in record["failed"]
    ]
    warnings += [
        f"{model['name']} was trained for {model['training']['step']:,} updates; the budget is {budget:,}."
        for model in record["models"]
        if model["training"]["step"] > budget
    ]
    if best < MIN_BLEU:
        warnings.append(f"The highest BLEU is {best:.1f}, too low to compare models; increase the budget.")
    return warnings


def compare_pairs(models: Sequence[ModelResult]) -> list[Record]:
    """Compare every two models; `p` is the larger one of both tests, `holm` is corrected for the number of pairs."""
    records: list[Record] = []
    for one, other in combinations(models, 2):
        tests = {metric: difference(one.stats["test"], other.stats["test"], metric) for metric in TITLES}
        scores = {metric: {**asdict(test), "p": test.p} for metric, test in tests.items()}
        records.append({"one": one.job.name, "other": other.job.name, **scores})
    for metric in TITLES:
        for record, corrected in zip(records, holm([record[metric]["p"] for record in records]), strict=True):
            record[metric]["holm"] = corrected
    return records


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm 1979)."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = largest
    return corrected


def _shown_sentences(models: Sequence[ModelResult], test_sets: TestSets) -> list[Record]:
    pairs = test_sets.pairs["test"]
    shown = []
    for index, line in enumerate(select_sentences([pair.source for pair in pairs])):
        translations = []
        for model in models:
            text, path = model.translated["texts"]["test"][line], model.job.attention_path(index)
            scores = sentence_scores(text, pairs[line].target, language=test_sets.language)
            attention = path.relative_to(model.job.experiment.out).as_posix() if path.exists() else None
            translations.append({"model": model.job.name, "text": text, **scores, "attention": attention})
        source, reference = pairs[line]
        shown.append({"line": line + 1, "source": source, "reference": reference, "translations": translations})
    return shown
