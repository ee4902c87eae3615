"""Fill the recorded figures in the text of documents: `<!-- = NAME -->VALUE`, with a value of a result file.

python -m docs.numbers        # after a benchmark or a recipe was recorded again
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from docs.results import ROOT, lines, medians

MARK = re.compile(r"(<!-- = ([\w.-]+) -->)[\d.,]*\d")
DOCUMENTS = ("*.md", "docs/**/*.md")
DECODING = "beam 5, all at once"


@cache
def figures() -> dict[str, str]:
    """Return every figure by name, as it is printed."""
    found = {
        f"install.{name}": f"{each['megabytes']:,}" for name, each in read("benchmarks/install-sizes.json").items()
    }
    speeds = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")["transformer tiny"]
    found |= {f"training.{name}": f"{speed:,.0f}" for name, speed in speeds.items()}
    speeds = medians(lines("benchmarks/decoding.jsonl"), "setting", "sentences_per_second")[DECODING]
    found |= {f"decoding.{name}": f"{speed:,.1f}" for name, speed in speeds.items()}
    for recipe in ("multi30k-en-de", "libreoffice-en-ko"):
        for model, result in read(f"recipes/{recipe}/results.json").items():
            found[f"{recipe}.{model}"] = f"{result['bleu']:.2f}"
    aligners = (ROOT / "benchmarks/aligners.md").read_text(encoding="utf-8")
    found["aer.hansards"] = re.search(r"^\| softgaze \| unseen \| ([\d.]+) \|", aligners, re.MULTILINE)[1]  # type: ignore[index]
    starts = read("benchmarks/learning-starts.json")
    best = max(each["bleu"] for each in starts if "quickstart" in each["corpus"])
    return found | {"quickstart.bleu": f"{best:.1f}"}


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
