"""Fill the recorded figures in the text of documents: `<!-- = NAME -->VALUE`, with a value of a result file.

python -m docs.numbers        # after a benchmark or a recipe was recorded again
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from docs.results import RECIPES, ROOT, decoding_medians, lines, medians, recorded_rows

MARK = re.compile(r"(<!-- = ([\w.-]+) -->)[\d.,]*\d")
DOCUMENTS = ("*.md", "docs/**/*.md")
DECODING = "beam 5, all at once"


@cache
def figures() -> dict[str, str]:
    """Map the name of each figure to its printed form."""
    found = {
        f"install.{name}": f"{each['megabytes']:,}" for name, each in read("benchmarks/install-sizes.json").items()
    }
    speeds = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")["transformer tiny"]
    found |= {f"training.{name}": f"{speed:,.0f}" for name, speed in speeds.items()}
    for arch in ("rnn-bahdanau", "rnn-luong"):
        speeds = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")[arch]
        found[f"training.{arch}"] = f"{speeds['softgaze']:,.0f}"
    speeds = decoding_medians()[DECODING]
    found |= {f"decoding.{name}": f"{speed:,.1f}" for name, speed in speeds.items()}
    speeds = medians(lines("benchmarks/decoding-default.jsonl"), "setting", "sentences_per_second")[DECODING]
    found["decoding.default-to-eole"] = f"{speeds['default'] / speeds['eole']:.1f}"
    for recipe in RECIPES:
        for model, result in read(f"recipes/{recipe}/results.json").items():
            found[f"{recipe}.{model}"] = f"{result['bleu']:.2f}"
    found |= by_length(read("recipes/multi30k-en-de/results.json"))
    aligners = (ROOT / "benchmarks/aligners.md").read_text(encoding="utf-8")
    found["aer.hansards"] = re.search(r"^\| softgaze \| unseen \| ([\d.]+) \|", aligners, re.MULTILINE)[1]  # type: ignore[index]
    for row in recorded_rows("benchmarks/guided.md"):
        if row.get("guided") == "yes" and row.get("seed") == "1":
            found[f"guided.aer.{row['corpus'].split()[0].lower()}"] = row["AER % of its own map"]
    starts = read("benchmarks/learning-starts.json")
    best = max(each["bleu"] for each in starts if "quickstart" in each["corpus"])
    return found | {"quickstart.bleu": f"{best:.1f}"} | short_run() | fine_tuning() | confidence() | terms() | process()


def by_length(results: dict[str, Any]) -> dict[str, str]:
    """Return how far attention raises BLEU, and the BLEU of the longest bucket in per cent of that of the shortest."""
    models = ("rnn", "rnn-bahdanau", "rnn-luong")
    scores = {
        model: [bucket["scores"][model]["bleu"]["score"] for bucket in results[model]["lengths"]["by_length"]]
        for model in models
    }
    raised = [
        with_ - without for model in models[1:] for with_, without in zip(scores[model], scores["rnn"], strict=True)
    ]
    kept = {f"m30k.keep.{model}": f"{100 * row[-1] / row[0]:.0f}" for model, row in scores.items()}
    return kept | {"m30k.least": f"{min(raised):.0f}", "m30k.most": f"{max(raised):.0f}"}


def short_run() -> dict[str, str]:
    """Return budget, BLEU and minutes of the shortest run of the whole command: of several, the last recorded."""
    run = min(reversed(read("benchmarks/learning-budgets.json")), key=lambda each: each["minutes"])
    minutes = f"{run['wall_seconds'] / 60:.1f}"
    return {"budget.minutes": f"{run['minutes']:g}", "budget.bleu": f"{run['bleu']:.1f}", "budget.total": minutes}


def fine_tuning() -> dict[str, str]:
    record = read("benchmarks/fine-tuning.json")
    found = {f"fine-tuning.{name}": f"{count:,}" for name, count in record["pairs"].items()}
    found |= {"fine-tuning.general": f"{record['general']}", "fine-tuning.minutes": f"{record['minutes']:g}"}
    for name, result in record["runs"].items():
        kept = result["unseen"]
        found[f"fine-tuning.kept.{name.partition(' ')[0]}"] = f"{kept['exact']:.0f}"
        found["fine-tuning.unseen"] = f"{kept['sentences']}"
    return found


def confidence() -> dict[str, str]:
    """Return the calibration errors of word confidence, in per cent."""
    rows = recorded_rows("benchmarks/confidence.md")
    return {f"confidence.{row[''].split()[0].lower()}": row["error, calibrated"].removesuffix(" %") for row in rows}


def terms() -> dict[str, str]:
    """Return the share of glossary terms in translations and at the right word, in per cent, and the cost."""
    rows = {row["method"]: row for row in recorded_rows("benchmarks/terms.md")}
    without, constrained = rows["no glossary, torch"], rows["constrained beam search, torch"]
    ours = rows["terms by attention, torch"]
    return {
        "terms.placed": f"{float(ours['placed %']):.0f}",
        "terms.constrained": f"{float(constrained['placed %']):.0f}",
        "terms.without": f"{float(without['terms %']):.0f}",
        "terms.cost": f"{float(ours['CPU s']) / float(without['CPU s']):.1f}",
    }


def process() -> dict[str, str]:
    """Return the seconds of a whole process with the default engine and with torch."""
    first = recorded_rows("benchmarks/engines.md")[0]
    seconds = {name: int(first[f"{name}, wall ms"].replace(",", "")) / 1000 for name in ("default", "torch")}
    return {f"process.{name}": f"{value:.2f}" for name, value in seconds.items()}


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def filled(text: str) -> str:
    """Return a document with the recorded figures; raise `KeyError` for an unknown name."""
    return MARK.sub(lambda match: match[1] + figures()[match[2]], text)


def documents() -> list[Path]:
    """Return the documents with figures."""
    paths = sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})
    return [path for path in paths if MARK.search(path.read_text(encoding="utf-8"))]


def main() -> int:
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if filled(text) != text:
            path.write_text(filled(text), encoding="utf-8")
            print(f"changed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
