"""The numbers of a comparison as tables of text: page and Markdown show the same cells."""

from collections.abc import Callable, Sequence
from typing import Any

from softgaze.evaluation.compare.findings import LUCK, banded, bleu, words
from softgaze.evaluation.counts import TITLES
from softgaze.evaluation.report import chance
from softgaze.evaluation.tables import Table

NOTHING = "—"

Record = dict[str, Any]


def scores(record: Record) -> Table:
    """Each model's scores with their bands, and its distance to the best."""
    models = record["models"]
    first = max(models, key=bleu)["name"]
    rows = [
        (each["name"], *(banded(each["scores"][score]) for score in TITLES), *distance(record, first, each["name"]))
        for each in models
    ]
    pairs = len(record["differences"])
    corrected = f", corrected for the {pairs} pairs of models (Holm)" if pairs > 1 else ""
    note = (
        "In brackets, the 95 % bootstrap band. p is the larger of paired bootstrap and approximate randomisation"
        f"{corrected}; below {LUCK} a difference is more than the luck of these test sentences. Another seed of "
        "training may still change it."
    )
    return Table("Scores", ("model", *TITLES.values(), "BLEU against the best", "p"), rows, note)


def distance(record: Record, best: str, name: str) -> tuple[str, str]:
    """How far below the best, and how likely by luck."""
    if name == best:
        return "best", NOTHING
    found, sign = pair(record, name, best)
    return signed(sign * found["bleu"]["score"]), chance(found["bleu"]["holm"])


def pair(record: Record, name: str, other: str) -> tuple[Record, int]:
    """The difference of two models, and 1 or −1, whichever makes it the first less the other."""
    for each in record["differences"]:
        if {each["one"], each["other"]} == {name, other}:
            return each, 1 if each["one"] == name else -1
    raise KeyError(f"{name} and {other} were not compared")


def signed(value: float) -> str:
    """+1.2, −1.2; what rounds to nothing has no sign."""
    rounded = round(value, 1)
    return f"{rounded:+.1f}".replace("-", "−") if rounded else "0.0"


def every_pair(record: Record) -> Table:
    """Row less column, in BLEU, with the corrected p-value."""
    names = [each["name"] for each in record["models"]]

    def cell(name: str, other: str) -> str:
        if name == other:
            return NOTHING
        found, sign = pair(record, name, other)
        return f"{signed(sign * found['bleu']['score'])} (p {chance(found['bleu']['holm'])})"

    rows = [(name, *(cell(name, other) for other in names)) for name in names]
    return Table("Every pair: BLEU of the row less that of the column", ("", *names), rows)


def costs(record: Record) -> Table:
    """Size, time, speed and memory."""
    headings = (
        "model",
        "parameters",
        "updates",
        "minutes",
        "tokens/s training",
        "tokens/s translating",
        "peak memory training",
        "peak memory translating",
    )
    rows = [(each["name"], *costs_of(each)) for each in record["models"]]
    before = [each["training"]["memory_before"] for each in record["models"]]
    base = (
        f" Of the memory, about {mebibytes(max(before))} is Python and torch before a model is there."
        if all(before)
        else ""
    )
    note = (
        "Target tokens learnt from a second, validations not counted; subwords written a second with a beam of "
        f"{record['beam']}, many sentences at once{passes(record)}. Minutes count validations, as does the budget. "
        f"Memory is the most that the model's own process held{on_device(record)}.{base} Speeds are of the machine "
        "they were measured on, as busy as it was."
    )
    return Table("Size, speed and memory", headings, rows, note)


def passes(record: Record) -> str:
    """How translating was timed, where it was timed more than once."""
    rounds = {each["translating"]["rounds"] for each in record["models"] if each["translating"].get("rounds")}
    return f", the median of {max(rounds)} passes with the slowest and the fastest in brackets" if rounds else ""


def costs_of(model: Record) -> tuple[str, ...]:
    """One row, without the name."""
    training, translating = model["training"], model["translating"]
    return (
        f"{model['parameters']:,}",
        f"{training['step']:,}",
        f"{training['minutes']:.2f}",
        rate(training["tokens_per_second"]),
        rate(translating["tokens_per_second"], translating.get("spread")),
        memory(training),
        memory(translating),
    )


def rate(value: float | None, spread: Sequence[float] | None = None) -> str:
    """Whole tokens a second, 840 (812–866) where it was measured some times; a training of a few updates has none."""
    if value is None:
        return NOTHING
    return f"{value:,.0f} ({spread[0]:,.0f}–{spread[1]:,.0f})" if spread else f"{value:,.0f}"


def memory(turn: Record) -> str:
    """Of the machine; and of the GPU, where there was one."""
    held = mebibytes(turn["memory"])
    return f"{held}, GPU {mebibytes(turn['device_memory'])}" if turn.get("device_memory") else held


def on_device(record: Record) -> str:
    """Which memory is shown, where there are two."""
    turns = [each[turn] for each in record["models"] for turn in ("training", "translating")]
    if not any(turn.get("device_memory") for turn in turns):
        return ""
    return " of the machine's, and behind it the most that its tensors took of the GPU's"


def mebibytes(size: int | None) -> str:
    """Memory, where the system tells."""
    return NOTHING if size is None else f"{size / 2**20:,.0f} MiB"


def by_length(record: Record) -> list[Table]:
    """A table for each score; and again, apart, for lengths beyond training."""
    made = [length_table(record, "by_length", score, f"{title} by length") for score, title in TITLES.items()]
    if record["models"][0]["beyond"]:
        made += [
            length_table(record, "beyond", score, f"{title} beyond the trained lengths")
            for score, title in TITLES.items()
        ]
    return made


def length_table(record: Record, part: str, score: str, title: str) -> Table:
    """Models down, lengths across."""
    points: Sequence[Record] = record["models"][0][part][score]
    headings = ("words of the source", *(words(point) for point in points))
    counts = ("sentences", *(f"{point['sentences']:,}" for point in points))
    rows = [(each["name"], *(banded(point["estimate"]) for point in each[part][score])) for each in record["models"]]
    return Table(title, headings, [counts, *rows])


def surroundings(record: Record) -> list[tuple[str, str]]:
    """How, where and when; a figure means little without it."""
    threads = f"{', '.join(map(str, record['threads']))} thread{'' if record['threads'] == [1] else 's'}"
    return [
        (
            "budget",
            f"{budget(record)} for each model, one after the other; the weights that were best on held-out text count",
        ),
        ("text", text_words(record["text"])),
        ("machine", f"{then_and_now(record, machine_words)}; {', '.join(record['device'])}, {threads}"),
        ("software", then_and_now(record, software_words)),
        ("date", then_and_now(record, lambda place: str(place["date"]))),
        ("search", f"beam {record['beam']}"),
        ("seed", str(record["seed"])),
        *((TITLES[score], name) for score, name in record["signatures"]["scores"].items()),
        *((f"{TITLES[score]} differences", name) for score, name in record["signatures"]["differences"].items()),
    ]


def then_and_now(record: Record, words_of: Callable[[Record], str]) -> str:
    """Of where it was measured; and of where the report was written, if that is another or the former is not known."""
    turns = [each[turn].get("measured_on") for each in record["models"] for turn in ("training", "translating")]
    measured = list(dict.fromkeys(words_of(place) for place in turns if place))
    written = words_of(record["reported_on"])
    if measured == [written]:
        return written
    return " / ".join([*([f"measured: {'; '.join(measured)}"] if measured else []), f"report of: {written}"])


def machine_words(place: Record) -> str:
    """Processor and memory."""
    size = f", {place['memory_bytes'] / 2**30:.0f} GiB" if place["memory_bytes"] else ""
    return f"{place['processor']}, {place['cores']} cores{size}"


def software_words(place: Record) -> str:
    """What it ran with."""
    commit = f", commit {place['commit']}" if place["commit"] else ""
    packages = ", ".join(f"{name} {version}" for name, version in place["packages"].items())
    return f"softgaze {place['softgaze']}{commit}, Python {place['python']}, {packages}"


def budget(record: Record) -> str:
    """5 minutes, or 400 updates."""
    units = {"minutes": "minute", "steps": "update", "epochs": "epoch"}
    return ", at most ".join(
        f"{value:,g} {units[name]}{'' if value == 1 else 's'}" for name, value in record["budget"].items()
    )


def text_words(text: Record) -> str:
    """What was learnt from and tested on."""
    source, target = text["languages"]
    kind = "the built-in phrasebook" if text["built_in"] else ", ".join(text["train"])
    sizes = sorted(set(text["vocabulary"]))
    beyond = f", and {text['sentences']['beyond']:,} longer than any of them" if "beyond" in text["sentences"] else ""
    return (
        f"{source} → {target}: {text['pairs']:,} pairs of {kind}, one vocabulary of "
        f"{' and '.join(f'{size:,}' for size in sizes)} subwords for all models; validated on {text['dev_pairs']:,}, "
        f"tested on {text['sentences']['test']:,} sentences{beyond}"
    )
