"""Write docs/results.md from the recorded result files: recipes/*/results.json and benchmarks/*.json*.

python -m docs.results
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from docs.reference import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/results.md"
CHOICE = ROOT / "docs/howto/choose-arch-and-size.md"
RECIPES = {
    "multi30k-en-de": ("Multi30k, English–German", "29,000 pairs, 1,000 test sentences"),
    "multi30k-attention": ("Multi30k, with and without attention", "29,000 pairs, 1,000 test sentences"),
    "libreoffice-en-ko": ("LibreOffice, English–Korean", "14,558 pairs, 141 test sentences"),
}
COMPARISON = "multi30k-attention"  # its models differ in attention alone
ARCH_OPTIONS = {  # where the name of a model is not its arch, or a default is switched off
    (COMPARISON, "rnn-bahdanau"): "`--arch rnn-bahdanau --set model.options.shortcut=false`",
    (COMPARISON, "rnn-luong"): "`--arch rnn-luong --set model.options.shortcut=false`",
    (COMPARISON, "rnn-bahdanau-shortcut"): "`--arch rnn-bahdanau`",
}
CONTENDERS = {
    "softgaze": "softgaze",
    "torch": "softgaze, torch",
    "default": "softgaze by default, text to text",
    "float32": "softgaze, CTranslate2 float32",
    "int8": "softgaze, CTranslate2 int8",
    "direct-float32": "CTranslate2 float32, direct",
    "direct-int8": "CTranslate2 int8, direct",
    "joeynmt": "JoeyNMT",
    "sockeye": "Sockeye",
    "opennmt_py": "OpenNMT-py",
    "eole": "eole",
    "marian": "Hugging Face Marian",
    "torch_transformer": "plain nn.Transformer",
}


def page() -> str:
    """Return the page about results."""
    texts = [
        "# Results",
        "Made by `python -m docs.results` from the result files of the repository; every number is the current one. "
        "The linked pages have signatures, commands, machines and ranges.",
    ]
    for name, (title, size) in RECIPES.items():
        texts += [f"## {title}", quality(name, size)]
    texts += ["## Training speed", training_speed(), "## Decoding speed", decoding_speed()]
    texts += ["## Start from corpus statistics", starts(), "## Translation over Ray", over_ray()]
    return "\n\n".join(texts) + "\n"


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]


def recipe_results(recipe: str) -> dict[str, Any]:
    """Return the recorded results of a recipe by model: empty before it was run, without `lengths` before these."""
    path = ROOT / f"recipes/{recipe}/results.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def quality(recipe: str, size: str) -> str:
    """Return the scores of a recipe with their 95 % confidence intervals."""
    rows = []
    for name, result in recipe_results(recipe).items():
        if "lengths" not in result:
            continue
        scores = result["lengths"]["confidence_intervals"]["scores"][name]
        ranges = [
            f"{scores[key]['score']:.2f} ({scores[key]['low']:.2f}–{scores[key]['high']:.2f})"
            for key in ("bleu", "chrf")
        ]
        facts = result["training"]
        rows.append((f"`{name}`", *ranges, f"{facts['parameters']:,}", f"{facts['step']:,}", f"{facts['minutes']:.0f}"))
    if not rows:
        return f"Not measured yet. [Recipe](../recipes/{recipe}/README.md)."
    header = ("model", "BLEU (95 % confidence interval)", "chrF", "parameters", "best after updates", "minutes")
    about = f"{size}; one thread of a shared machine, so minutes do not compare speed."
    return f"{table(header, rows)}\n\n{about} [Recipe](../recipes/{recipe}/README.md)."


def medians(records: Iterable[dict[str, Any]], group: str, value: str) -> dict[str, dict[str, float]]:
    """Return {group: {contender: median of its rounds}}."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        found.setdefault(record[group], {}).setdefault(record["contender"], []).append(record[value])
    return {name: {each: median(values) for each, values in rows.items()} for name, rows in found.items()}


def speed_table(groups: dict[str, dict[str, float]], digits: int) -> str:
    names = [name for name in CONTENDERS if any(name in rows for rows in groups.values())]
    cells = [
        [f"{groups[group][name]:,.{digits}f}" if name in groups[group] else "–" for group in groups] for name in names
    ]
    return table(("", *groups), [(CONTENDERS[name], *row) for name, row in zip(names, cells, strict=True)])


def training_speed() -> str:
    groups = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")
    about = "Target tokens per second, median of the rounds, Multi30k, 2 CPU cores."
    return f"{speed_table(groups, 0)}\n\n{about} [Ranges and versions](../benchmarks/results.md)."


def decoding_medians() -> dict[str, dict[str, float]]:
    """Return the sentences per second of Transformer-tiny by setting and contender."""
    records = [
        each for each in lines("benchmarks/decoding.jsonl") if each["case"].startswith("transformer tiny, pre-norm")
    ]
    return medians(records, "setting", "sentences_per_second")


def decoding_speed() -> str:
    groups = decoding_medians()
    about = (
        "Sentences per second, median of the rounds, Transformer-tiny with the same weights for all, Multi30k, "
        "2 CPU cores. [Ranges and versions](../benchmarks/decoding.md)."
    )
    return f"{speed_table(groups, 1)}\n\n{about}"


def starts() -> str:
    records = json.loads((ROOT / "benchmarks/learning-starts.json").read_text(encoding="utf-8"))
    keys = ("corpus", "arch", "updates", "start")
    rows = [
        (*(str(record[key]) for key in keys), f"{record['loss']:.2f}", f"{record['bleu']:.1f}") for record in records
    ]
    header = ("corpus", "arch", "updates", "first weights", "validation loss", "validation BLEU")
    return f"{table(header, rows)}\n\nOne seed each. [How it works](warm-start.md)."


def over_ray() -> str:
    record = json.loads((ROOT / "benchmarks/over_ray.json").read_text(encoding="utf-8"))
    rows = [(name, f"{median(rates):.0f}") for name, rates in record["rates"].items()]
    about = f"{record['lines']:,} lines on one machine with 2 cores; the output is the same. [Scale](scale.md)."
    return f"{table(('', 'lines per second'), rows)}\n\n{about}"


# --- the page about choosing a model ----------------------------------------------------------------------------


def choice_page() -> str:
    """Return the page with its two tables filled in."""
    text = CHOICE.read_text(encoding="utf-8")
    for name, content in (("sizes", sizes()), ("speeds", speeds())):
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(start)
        text = before + start + content + "\n" + end + rest.split(end)[1]
    return text


def sizes() -> str:
    """Return pairs, settings, minutes and BLEU of every recorded run."""
    rows = []
    for recipe, (title, size) in RECIPES.items():
        for name, result in recipe_results(recipe).items():
            facts = result["training"]
            settings = f"{ARCH_OPTIONS.get((recipe, name), f'`--arch {name}`')}, best after {facts['step']:,} updates"
            rows.append(
                (size.partition(" ")[0], title, settings, f"{facts['minutes']:.0f}", f"{result['bleu']:.1f}", "test")
            )
    pairs = {"Multi30k en-de": "29,000", "LibreOffice en-ko": "14,558", "phrasebook en-ko, quickstart model": "20,000"}
    for record in json.loads((ROOT / "benchmarks/learning-starts.json").read_text(encoding="utf-8")):
        if record["start"] == "statistics" and record["bleu"] > 10:
            settings = f"`--arch {record['arch']}`, {record['updates']:,} updates"
            minutes = f"{record['cpu_seconds'] / 60:.1f}"
            rows.append(
                (pairs[record["corpus"]], record["corpus"], settings, minutes, f"{record['bleu']:.1f}", "validation")
            )
    rows.sort(key=lambda row: (int(row[0].replace(",", "")), float(row[3])))
    return table(("pairs", "corpus", "settings", "minutes", "BLEU", "measured on"), rows)


def speeds() -> str:
    """Return the parameters of each size, and its recorded training speed."""
    import torch

    from softgaze.models import build_model

    groups = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")
    rows = []
    for arch, size in [("transformer", each) for each in ("tiny", "small", "base", "big")] + [("rnn-luong", "tiny")]:
        with torch.device("meta"):
            model = build_model(arch, size, source_vocabulary=8_000)
        case = f"{arch} {size}" if arch == "transformer" else arch
        speed = f"{groups[case]['softgaze']:,.0f}" if case in groups else "not measured"
        rows.append(
            (f"`{arch}`", f"`{size}`", f"{sum(each.numel() for each in model.parameters()) / 1e6:.1f} M", speed)
        )
    return table(("arch", "size", "parameters", "target tokens/s"), rows)


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    CHOICE.write_text(choice_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
