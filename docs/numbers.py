"""Fill the recorded figures in the text of documents: `<!-- = NAME -->VALUE`, with a value of a result file.

python -m docs.numbers        # after a benchmark or a recipe was recorded again
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from docs.results import RECIPES, ROOT, decoding_medians, lines, medians

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
    speeds = decoding_medians()[DECODING]
    found |= {f"decoding.{name}": f"{speed:,.1f}" for name, speed in speeds.items()}
    for recipe in RECIPES:
        for model, result in read(f"recipes/{recipe}/results.json").items():
            found[f"{recipe}.{model}"] = f"{result['bleu']:.2f}"
    found |= by_length(read("recipes/multi30k-attention/results.json"))
    aligners = (ROOT / "benchmarks/aligners.md").read_text(encoding="utf-8")
    found["aer.hansards"] = re.search(r"^\| softgaze \| unseen \| ([\d.]+) \|", aligners, re.MULTILINE)[1]  # type: ignore[index]
    starts = read("benchmarks/learning-starts.json")
    best = max(each["bleu"] for each in starts if "quickstart" in each["corpus"])
    return found | {"quickstart.bleu": f"{best:.1f}"}


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
