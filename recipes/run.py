"""Run a recipe: train its models, score them on its test set, and record the results.

    python recipes/run.py multi30k-en-de --data DIR --out runs/multi30k
    python recipes/run.py multi30k-en-de --data DIR --out runs/multi30k --only transformer

DIR holds the files that `recipe.yaml` lists. Every command is printed before it runs. The same command resumes an
interrupted run and skips finished models. Results are written to the run directory, and with `--record` also to the
results.json of the recipe.

Papers tokenise text in different ways before they compute BLEU. A recipe with `words: moses` (needs sacremoses) or
`words: ko-mecab` (needs sacrebleu[ko]) also reports BLEU with that tokenizer, if it is installed.

Models under `augmented:` train on more text than the corpus has: the first model of the recipe is trained in both
directions, with two seeds each, and its translations of the training text are added (data diversification, Nguyen et
al. 2020).
"""

import argparse
import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from softgaze.data.corpus import language_of, read_lines, write_lines
from softgaze.data.tokenizer import normalise

HERE = Path(__file__).parent
SEEDS = (1, 2)  # of the teachers of each direction
TOKENIZERS = {"moses": "sacremoses", "ko-mecab": "mecab_ko"}  # tokenizer of BLEU -> package


class Recipe:
    """The contents of `recipe.yaml`, with the paths of this machine."""

    def __init__(self, name: str, data: Path, out: Path) -> None:
        self.path, self.out = HERE / name, out
        content = yaml.safe_load((self.path / "recipe.yaml").read_text(encoding="utf-8"))
        self.models: list[str] = content["models"]
        self.baseline = self.models[0]  # the others are compared with it, and trained on its translations if augmented
        self.augmented: list[str] = content.get("augmented", [])  # models that also train on machine translations
        self.words: str | None = content.get("words")  # tokenizer of papers on this text
        if self.words and find_spec(TOKENIZERS[self.words]) is None:
            print(f"no BLEU with {self.words}: {TOKENIZERS[self.words]} is not installed", file=sys.stderr)
            self.words = None
        self.files = {part: [data / name for name in content[part]] for part in ("train", "dev", "test")}
        missing = [str(path) for paths in self.files.values() for path in paths if not path.exists()]
        if missing:
            sys.exit(f"{name}: needs {', '.join(missing)}: see {self.path / 'README.md'} for the source of the text")

    def option(self, part: str, reverse: bool = False) -> list[str]:
        """Return `--train SRC TGT`, `--dev SRC TGT` or `--test SRC TGT`, or with the target language first."""
        return [f"--{part}", *map(str, self.files[part][:: -1 if reverse else 1])]

    def settings(self, model: str) -> list[str]:
        """Return the `--config` option of one model."""
        return ["--config", str(self.path / f"{model}.yaml")]


def softgaze(*arguments: str) -> str:
    """Print and run a softgaze command; return its standard output."""
    print("softgaze", shlex.join(arguments), file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", "softgaze", *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)  # the command printed its error
    return done.stdout


def augment(recipe: Recipe) -> list[str]:
    """Return `--train SRC TGT` with the pairs and machine translations of either side, without repeated pairs."""
    texts = [read_normalised(path) for path in recipe.files["train"]]
    pairs = [*zip(*texts, strict=True)]
    for reverse, seed in product((False, True), SEEDS):
        translated = translate_train(recipe, reverse, seed)
        pairs += zip(translated, texts[1], strict=True) if reverse else zip(texts[0], translated, strict=True)
    kept = dict.fromkeys(pair for pair in pairs if all(pair))
    paths = [recipe.out / f"augmented{path.name.removeprefix('train')}" for path in recipe.files["train"]]
    for path, side in zip(paths, zip(*kept, strict=True), strict=True):
        write_lines(path, side)
    return ["--train", *map(str, paths)]


def translate_train(recipe: Recipe, reverse: bool, seed: int) -> list[str]:
    """Train a teacher and return its translations of one side of the training text."""
    run = recipe.out / f"teacher-{'backward' if reverse else 'forward'}-{seed}"
    texts = (*recipe.option("train", reverse), *recipe.option("dev", reverse))
    softgaze("train", *recipe.settings(recipe.baseline), "--seed", str(seed), *texts, "--out", str(run))
    output = run.with_suffix(".txt")
    if not output.exists():  # it is written when all lines are translated
        softgaze("translate", str(run), "--input", str(recipe.files["train"][reverse]), "--output", str(output))
    return read_normalised(output)


def measure(recipe: Recipe, model: str) -> dict[str, Any]:
    """Train a model, translate the test set and score the translations."""
    run, output = recipe.out / model, recipe.out / f"{model}.test.txt"
    train = augment(recipe) if model in recipe.augmented else recipe.option("train")
    softgaze("train", *recipe.settings(model), *train, *recipe.option("dev"), "--out", str(run))
    command = ("evaluate", str(run), *recipe.option("test"), "--output", str(output), "--json")
    scores = json.loads(softgaze(*command))
    facts = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["facts"]
    names = ("bleu", "chrf", "ter", "exact", "signatures", "speed")
    texts = read_normalised(output), read_normalised(recipe.files["test"][1])
    return {
        **{name: scores[name] for name in names},
        "lower_cased": lower_cased(*texts),
        **({"words": in_words(*texts, recipe.words, target_language(recipe))} if recipe.words else {}),
        "training": {name: facts[name] for name in ("minutes", "step", "target_tokens", "parameters", "seed", "dev")},
        "course": read_course(run),
        **circumstances(),
    }


def read_course(run: Path) -> list[list[float]]:
    """Return update, loss and BLEU of each validation: they tell whether a model has converged."""
    rows = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [[row["step"], round(row["loss"], 3), round(row["bleu"], 1)] for row in rows if row["kind"] == "validation"]


def read_normalised(path: Path) -> list[str]:
    """Return the lines of a file, normalised as for scoring."""
    return [normalise(line) for line in read_lines(path)]


def lower_cased(outputs: list[str], references: list[str], tokenize: str = "13a") -> dict[str, Any]:
    """Return case-insensitive BLEU, which many papers on small corpora report."""
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(lowercase=True, force=True, tokenize=tokenize)
    return {"bleu": bleu.corpus_score(outputs, [references]).score, "signature": str(bleu.get_signature())}


def target_language(recipe: Recipe) -> str:
    """Return the target language, from the file ending of the test set."""
    return language_of(recipe.files["test"][1]) or "en"


def in_words(outputs: list[str], references: list[str], words: str, language: str) -> dict[str, Any]:
    """Return case-insensitive BLEU with the tokenizer of the papers; Moses is not part of sacreBLEU."""
    if words != "moses":
        return {"name": words, **lower_cased(outputs, references, words)}
    score = lower_cased(moses(outputs, language), moses(references, language), "none")
    by = f"tokenised by sacremoses {version('sacremoses')} for {language}"
    return {"name": words, **score, "signature": f"{score['signature']}, {by}"}


def moses(lines: list[str], language: str) -> list[str]:
    """Tokenise lines by the rules of Moses."""
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(line, return_str=True, escape=False) for line in lines]


def circumstances() -> dict[str, Any]:
    """Return date, commit, versions and machine."""
    import torch

    from softgaze.evaluation.benchmark import cpu_name

    threads = torch.get_num_threads()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit or None,
        "versions": {name: version(name) for name in ("softgaze", "torch", "sacrebleu")},
        "machine": f"{cpu_name()} {torch.backends.cpu.get_cpu_capability()}, {threads} thread{'s' * (threads > 1)}",
    }


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Merge into the stored results; drop stored comparisons with the models of `results`, which are outdated."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for result in before.values():
        if any(other["name"] in results for other in result.get("lengths", {}).get("against", ())):
            del result["lengths"]
    path.write_text(json.dumps({**before, **results}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Run all models of a recipe, or some."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recipe", choices=sorted(path.parent.name for path in HERE.glob("*/recipe.yaml")))
    parser.add_argument("--data", type=Path, required=True, help="directory with the recipe's text")
    parser.add_argument("--out", type=Path, required=True, help="directory for runs and results")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="some of the recipe's models")
    parser.add_argument("--record", action="store_true", help="also write the results.json of the recipe")
    arguments = parser.parse_args()
    recipe = Recipe(arguments.recipe, arguments.data, arguments.out)
    if unknown := set(arguments.only or ()) - set(recipe.models):
        parser.error(f"{arguments.recipe} has {', '.join(recipe.models)}, not {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for model in arguments.only or recipe.models:
        results = {model: measure(recipe, model)}
        write_results(arguments.out / "results.json", results)
        if arguments.record:
            write_results(recipe.path / "results.json", results)


if __name__ == "__main__":
    main()
