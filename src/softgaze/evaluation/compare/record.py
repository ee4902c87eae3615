"""Everything that was found, as one record: `report.json`. Page and Markdown show its numbers and no others."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from softgaze.bundle import Bundle
from softgaze.data.corpus import Pair, read_pairs
from softgaze.evaluation.buckets import make_buckets, source_lengths
from softgaze.evaluation.compare.findings import findings, missing, overspent
from softgaze.evaluation.compare.plan import FAILED, Plan
from softgaze.evaluation.compare.sentences import RULE, choose_sentences
from softgaze.evaluation.compare.turns import TRAINED, TRANSLATED, Turn, read_record
from softgaze.evaluation.counts import TITLES, SystemCounts, count_system
from softgaze.evaluation.lengths import Curve, length_curve
from softgaze.evaluation.machine import surroundings
from softgaze.evaluation.significance import difference, estimate, signature
from softgaze.metrics import sentence_scores
from softgaze.training.journal import read_journal
from softgaze.training.prepare import FACTS

LATER = ("device_memory", "measured_on")  # what records of older versions do not tell

Record = dict[str, Any]


@dataclass(frozen=True)
class Texts:
    """What all models translated, cut into lengths."""

    plan: Plan
    language: str  # of the target

    @cached_property
    def pairs(self) -> dict[str, list[Pair]]:
        """Test, and beyond if there is any."""
        files = {"test": self.plan.test, **({"beyond": self.plan.beyond} if self.plan.beyond else {})}
        return {name: list(read_pairs(*paths)) for name, paths in files.items()}

    @cached_property
    def buckets(self) -> dict[str, Any]:
        """Sentences by length."""
        edges = {"test": self.plan.edges, "beyond": self.plan.beyond_edges}
        return {
            name: make_buckets(source_lengths([pair.source for pair in pairs]), edges[name])
            for name, pairs in self.pairs.items()
        }

    def counted(self, written: Mapping[str, Sequence[str]]) -> dict[str, SystemCounts]:
        """One model's translations against the references."""
        return {
            name: count_system(written[name], [pair.target for pair in pairs], language=self.language)
            for name, pairs in self.pairs.items()
        }


@dataclass(frozen=True)
class Measured:
    """One model, as its turns left it."""

    turn: Turn
    texts: Texts

    @property
    def name(self) -> str:
        """As it was asked for."""
        return self.turn.name

    @cached_property
    def bundle(self) -> Bundle:
        """Its best weights."""
        return Bundle.open(self.turn.path)

    @cached_property
    def trained(self) -> Record:
        """What its training left."""
        return read_record(self.turn.path / TRAINED)

    @cached_property
    def translated(self) -> Record:
        """What its translating left."""
        return read_record(self.turn.path / TRANSLATED)

    @cached_property
    def counted(self) -> dict[str, SystemCounts]:
        """Its translations, counted."""
        return self.texts.counted(self.translated["texts"])

    def threads(self) -> set[int]:
        """On how many it was trained, and on how many it translated; of the latter, old records tell nothing."""
        measured_on = self.translated.get("measured_on", {})
        return {self.trained["threads"], measured_on.get("threads", self.trained["threads"])}

    def to_record(self) -> Record:
        """For JSON."""
        return {
            "name": self.name,
            "arch": self.bundle.description.arch,
            "size": self.bundle.description.size,
            "options": self.bundle.description.options,
            "parameters": self.bundle.facts["parameters"],
            "training": self.training(),
            "translating": self.translating(),
            "scores": self.scores(),
            "by_length": {score: self.points("test", score) for score in TITLES},
            "beyond": {score: self.points("beyond", score) for score in TITLES} if self.turn.plan.beyond else None,
            "learning": self.learning(),
        }

    def training(self) -> Record:
        """How long, how fast, with how much memory; which weights were kept."""
        result = self.turn.plan.run(self.name).result() or {}
        settings = self.turn.plan.config(self.name).training
        return {
            **{name: result[name] for name in ("step", "minutes", "target_tokens", "best_step")},
            "averaged": self.bundle.facts.get("averaged"),
            **{name: self.trained[name] for name in ("tokens_per_second", "memory", "memory_before", "threads")},
            **{name: getattr(settings, name) for name in ("learning_rate", "warmup", "batch_tokens")},
            **{name: self.trained.get(name) for name in LATER},
        }

    def translating(self) -> Record:
        """How fast, with how much memory."""
        kept = {name: self.translated[name] for name in ("memory", "memory_before", "device")}
        return {**self.translated["speed"]["test"], **kept, **{name: self.translated.get(name) for name in LATER}}

    def scores(self) -> Record:
        """Of the whole test set, with bands."""
        return {score: asdict(estimate(self.counted["test"], score)) for score in TITLES}

    def curves(self, score: str) -> list[Curve]:
        """Quality against length by one score; beyond what was trained it is another curve."""
        return [
            length_curve(self.name, counted, self.texts.buckets[name], score, is_beyond=name == "beyond")
            for name, counted in self.counted.items()
        ]

    def points(self, text: str, score: str) -> list[Record]:
        """One curve for JSON."""
        [found] = [curve for curve in self.curves(score) if curve.is_beyond == (text == "beyond")]
        return [asdict(point) for point in found.points]

    def learning(self) -> list[Record]:
        """What each validation found, against the minutes of training until then."""
        kept = ("step", "loss", "bleu", "chrf")
        return [
            {"minutes": entry["elapsed"] / 60, **{name: entry[name] for name in kept}}
            for entry in read_journal(self.turn.plan.run(self.name).journal)
            if entry["kind"] == "validation" and math.isfinite(entry["loss"])
        ]


def collect(plan: Plan) -> Record:
    """All of it."""
    prepared = json.loads((plan.encoded / FACTS).read_text(encoding="utf-8"))
    texts = Texts(plan, prepared["languages"][1])
    failed = read_record(plan.out / FAILED)
    models = [Measured(Turn(plan, each.name), texts) for each in plan.variants if each.name not in failed]
    record: Record = {
        "format": "softgaze-compare 1",
        "reported_on": surroundings(),
        "threads": sorted(set().union(*(model.threads() for model in models))),
        "device": sorted({model.translated["device"] for model in models}),
        "budget": budget_of(plan),
        "beam": plan.beam,
        "seed": plan.seed,
        "text": text_facts(plan, prepared, texts),
        "signatures": signatures(models[0].counted["test"]),
        "failed": [{"name": name, **facts} for name, facts in failed.items()],
        "models": [model.to_record() for model in models],
        "differences": differences(models),
        "sentences": {"rule": RULE, "shown": shown_sentences(models, texts)},
    }
    return record | {"findings": [*missing(record["failed"]), *overspent(record), *findings(record)]}


def budget_of(plan: Plan) -> Record:
    """What ends a training; nothing else does unless it was asked for."""
    budget = plan.config(plan.variants[0].name).budget
    return {name: value for name in ("minutes", "steps", "epochs") if (value := getattr(budget, name)) is not None}


def text_facts(plan: Plan, prepared: Record, texts: Texts) -> Record:
    """What was trained and tested on, by name and fingerprint."""
    return {
        "built_in": plan.built_in,
        "languages": prepared["languages"],
        "train": [path.name for path in plan.corpus.paths],
        "sha256": prepared["made_from"]["train"],
        "pairs": prepared["pairs"],
        "left_out": prepared["left_out"],
        "dev_pairs": prepared["dev_pairs"],
        "vocabulary": prepared["vocabulary"],
        "test": [path.name for path in plan.test],
        "sentences": {name: len(pairs) for name, pairs in texts.pairs.items()},
    }


def signatures(counted: SystemCounts) -> Record:
    """Without them two scores cannot be compared; those of validations and of single sentences are not resampled."""
    plain = {score: counted.signatures[score] for score in TITLES}
    return {
        "scores": {score: signature(counted, score) for score in TITLES},
        "differences": {score: signature(counted, score, paired=True) for score in TITLES},
        "learning": plain,
        "sentences": {score: own.replace("|eff:no|", "|eff:yes|") for score, own in plain.items()},
    }


def differences(models: Sequence[Measured]) -> list[Record]:
    """Every two models on the same sentences; `p` is the larger of both tests, `holm` allows for all those pairs."""
    found: list[Record] = []
    for one, other in combinations(models, 2):
        tests = {score: difference(one.counted["test"], other.counted["test"], score) for score in TITLES}
        scores = {
            score: {**asdict(each), "p": max(each.bootstrap_p, each.randomisation_p)} for score, each in tests.items()
        }
        found.append({"one": one.name, "other": other.name, **scores})
    for score in TITLES:
        for each, corrected in zip(found, holm([each[score]["p"] for each in found]), strict=True):
            each[score]["holm"] = corrected
    return found


def holm(values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979): the least is multiplied by all, the next by one less."""
    corrected, largest = [0.0] * len(values), 0.0
    for rank, number in enumerate(sorted(range(len(values)), key=lambda each: values[each])):
        largest = max(largest, min(1.0, values[number] * (len(values) - rank)))
        corrected[number] = largest
    return corrected


def shown_sentences(models: Sequence[Measured], texts: Texts) -> list[Record]:
    """The same few sentences, translated by every model."""
    pairs = texts.pairs["test"]
    numbers = choose_sentences([pair.source for pair in pairs])
    return [
        {
            "line": number + 1,
            "source": pairs[number].source,
            "reference": pairs[number].target,
            "translations": [
                translation(model, place, model.translated["texts"]["test"][number], pairs[number].target)
                for model in models
            ],
        }
        for place, number in enumerate(numbers)
    ]


def translation(model: Measured, place: int, text: str, reference: str) -> Record:
    """What one model made of a sentence, and where its map is kept."""
    path = model.turn.look(place)
    scores = sentence_scores(text, reference, language=model.texts.language)
    kept = path.relative_to(model.turn.plan.out).as_posix() if path.exists() else None
    return {"model": model.name, "text": text, **scores, "attention": kept}
