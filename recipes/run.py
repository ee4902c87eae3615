"""Run a recipe: train its models, score them on its test set, and write down what was measured.

    python recipes/run.py multi30k-en-de --data DIR --out runs/multi30k
    python recipes/run.py multi30k-en-de --data DIR --out runs/multi30k --only transformer

DIR holds the files that the recipe's `recipe.yaml` names. Every command is printed before it is run; the same command
goes on where it was stopped, and a model that is done is not trained again. Results go into the run directory, and with
`--record` into the recipe's own results.json, beside those of its other models.

Papers cut words in ways of their own before they count them. A recipe that says `words: moses` (needs sacremoses) or
`words: ko-mecab` (needs sacrebleu[ko]) has its BLEU counted that way too; without them that column is left out.
"""

import argparse
import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
CUTTERS = {"moses": "sacremoses", "ko-mecab": "mecab_ko"}  # ways to cut text into words, and what does it


class Recipe:
    """What `recipe.yaml` says, with the places of this machine filled in."""

    def __init__(self, name: str, data: Path, out: Path) -> None:
        self.place, self.out = HERE / name, out
        said = yaml.safe_load((self.place / "recipe.yaml").read_text(encoding="utf-8"))
        self.models: list[str] = said["models"]
        self.baseline = self.models[0]  # what the others are compared with
        self.words: str | None = said.get("words")  # how papers on this text cut it
        if self.words and find_spec(CUTTERS[self.words]) is None:
            print(f"not counted: BLEU of words by {self.words}; {CUTTERS[self.words]} is missing", file=sys.stderr)
            self.words = None
        self.files = {part: [data / each for each in said[part]] for part in ("train", "dev", "test")}
        missing = [str(path) for paths in self.files.values() for path in paths if not path.exists()]
        if missing:
            sys.exit(
                f"{name}: needs {', '.join(missing)}: see {self.place / 'README.md'} for where the text comes from"
            )

    def option(self, part: str) -> list[str]:
        """`--train SRC TGT` and the like."""
        return [f"--{part}", *map(str, self.files[part])]

    def settings(self, model: str) -> list[str]:
        """The file of settings of one model."""
        return ["--config", str(self.place / f"{model}.yaml")]


def softgaze(*arguments: str) -> str:
    """Run a command of softgaze, showing it; what it prints on standard output comes back."""
    print("softgaze", shlex.join(arguments), file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", "softgaze", *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)  # it has said why
    return done.stdout


def measure(recipe: Recipe, model: str) -> dict[str, Any]:
    """Train, translate the test set, score."""
    run, written = recipe.out / model, recipe.out / f"{model}.test.txt"
    softgaze("train", *recipe.settings(model), *recipe.option("train"), *recipe.option("dev"), "--out", str(run))
    asked = ("evaluate", str(run), *recipe.option("test"), "--output", str(written), "--json")
    scores = json.loads(softgaze(*asked))
    facts = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["facts"]
    names = ("bleu", "chrf", "ter", "exact", "signatures", "speed")
    texts = read_normal(written), read_normal(recipe.files["test"][1])
    return {
        **{name: scores[name] for name in names},
        "lower_cased": lower_cased(*texts),
        **({"words": in_words(*texts, recipe.words, target_language(recipe))} if recipe.words else {}),
        "training": {name: facts[name] for name in ("minutes", "step", "target_tokens", "parameters", "seed", "dev")},
        **circumstances(),
    }


def read_normal(path: Path) -> list[str]:
    """The lines of a file, as everything that is scored is first brought to one form."""
    from softgaze.data.corpus import read_lines
    from softgaze.data.tokens import normalise

    return [normalise(line) for line in read_lines(path)]


def lower_cased(written: list[str], references: list[str], tokenize: str = "13a") -> dict[str, Any]:
    """BLEU without regard to case, as many papers on small corpora report it."""
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(lowercase=True, force=True, tokenize=tokenize)
    return {"bleu": bleu.corpus_score(written, [references]).score, "signature": str(bleu.get_signature())}


def target_language(recipe: Recipe) -> str:
    """By the ending of its test set."""
    from softgaze.data.corpus import language_of

    return language_of(recipe.files["test"][1]) or "en"


def in_words(written: list[str], references: list[str], words: str, language: str) -> dict[str, Any]:
    """The same, of words as papers on this text cut them; what sacreBLEU cannot cut is cut before."""
    if words != "moses":
        return {"name": words, **lower_cased(written, references, words)}
    score = lower_cased(moses(written, language), moses(references, language), "none")
    by = f"tokenised by sacremoses {version('sacremoses')} for {language}"
    return {"name": words, **score, "signature": f"{score['signature']}, {by}"}


def moses(lines: list[str], language: str) -> list[str]:
    """Words and marks with a space between, by the rules of Moses' tokenizer."""
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(line, return_str=True, escape=False) for line in lines]


def circumstances() -> dict[str, Any]:
    """When, with what, on what."""
    import torch

    from softgaze.evaluation.machine import processor

    threads = torch.get_num_threads()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit or None,
        "versions": {name: version(name) for name in ("softgaze", "torch", "sacrebleu")},
        "machine": f"{processor()} {torch.backends.cpu.get_cpu_capability()}, {threads} thread{'s' * (threads > 1)}",
    }


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Add to what is there: models may be measured one at a time. What compares others with these is forgotten."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for found in before.values():
        if any(other["name"] in results for other in found.get("lengths", {}).get("against", ())):
            del found["lengths"]
    path.write_text(json.dumps({**before, **results}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """All models of a recipe, or some."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recipe", choices=sorted(path.parent.name for path in HERE.glob("*/recipe.yaml")))
    parser.add_argument("--data", type=Path, required=True, help="directory with the recipe's text")
    parser.add_argument("--out", type=Path, required=True, help="where runs and results go")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="some of the recipe's models")
    parser.add_argument("--record", action="store_true", help="write into the recipe's own results.json too")
    chosen = parser.parse_args()
    recipe = Recipe(chosen.recipe, chosen.data, chosen.out)
    if unknown := set(chosen.only or ()) - set(recipe.models):
        parser.error(f"{chosen.recipe} has {', '.join(recipe.models)}, not {', '.join(sorted(unknown))}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for model in chosen.only or recipe.models:
        found = {model: measure(recipe, model)}
        write_results(chosen.out / "results.json", found)
        if chosen.record:
            write_results(recipe.place / "results.json", found)


if __name__ == "__main__":
    main()
