"""Put each recipe's results.json as a table wherever a document asks for it, so that no figure is ever typed in.

    python recipes/tables.py

A document asks with a pair of comments, `<!-- results: multi30k-en-de -->` and `<!-- end of results -->`.
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
ASKED = re.compile(r"(<!-- results: (?P<recipe>[\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
HEAD = """| model | parameters | minutes | BLEU | BLEU, lower-cased | chrF |
|---|---:|---:|---:|---:|---:|
"""


def row(model: str, found: dict[str, Any]) -> str:
    """One model."""
    training = found["training"]
    cells = (
        f"`{model}`",
        f"{training['parameters']:,}",
        f"{training['minutes']:.0f}",
        *(f"{score:.2f}" for score in (found["bleu"], found["lower_cased"]["bleu"], found["chrf"])),
    )
    return f"| {' | '.join(cells)} |\n"


def table(recipe: str) -> str:
    """All models of a recipe, with what makes the scores comparable."""
    results = json.loads((HERE / recipe / "results.json").read_text(encoding="utf-8"))
    signatures = {
        f"`{signature}`"
        for found in results.values()
        for signature in (found["signatures"]["bleu"], found["lower_cased"]["signature"], found["signatures"]["chrf"])
    }
    made = sorted({f"{found['date']}, commit {found['commit'][:7]}, {found['machine']}" for found in results.values()})
    rows = "".join(row(model, found) for model, found in results.items())
    return f"{HEAD}{rows}\n{'; '.join(made)}. Signatures: {', '.join(sorted(signatures))}.\n"


def filled(text: str) -> str:
    """A document with its tables as they are now."""
    return ASKED.sub(lambda asked: asked[1] + table(asked["recipe"]) + asked[3], text)


def documents() -> list[Path]:
    """Everything that may ask."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *HERE.rglob("*.md")]


if __name__ == "__main__":
    for path in documents():
        before = path.read_text(encoding="utf-8")
        if (after := filled(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(ROOT))
