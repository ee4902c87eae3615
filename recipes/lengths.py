"""Add quality by sentence length, and significance tests against the baseline, to the results of a recipe.

    python -m recipes.lengths multi30k-en-de --data DIR --out runs/multi30k

Reads the translations and results that `recipes/run.py` wrote to --out, and compares every model with the baseline
(the first of recipe.yaml) as `softgaze evaluate --by-length --against` does: paired bootstrap and approximate
randomisation, over all sentences and per length bucket. Updates the results.json of the recipe and the documents that
show it. Nothing is trained or translated.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from recipes import tables
from recipes.run import Recipe, write_results
from softgaze.bundle import Bundle
from softgaze.data.corpus import read_lines
from softgaze.errors import SoftgazeError
from softgaze.evaluation.by_length import make_buckets, source_lengths
from softgaze.evaluation.report import Evaluation, System, evaluation_record
from softgaze.evaluation.significance import count_ngrams

TOLERANCE = 0.005  # of a rounded score


def with_lengths(recipe: Recipe) -> dict[str, Any]:
    """Return the results of all finished models, in the order of the recipe, each with its quality by length."""
    path = recipe.out / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if recipe.baseline not in results:
        sys.exit(f"{path}: no results of the baseline, {recipe.baseline}; run recipes/run.py first")
    sources, references = ([*read_lines(side)] for side in recipe.files["test"])
    buckets = tuple(make_buckets(source_lengths(sources)))
    systems = {
        model: read_system(recipe, model, results[model], references) for model in recipe.models if model in results
    }
    first = systems[recipe.baseline]
    return {
        model: {
            **results[model],
            "lengths": evaluation_record(Evaluation((system, first) if system is not first else (system,), buckets)),
        }
        for model, system in systems.items()
    }


def read_system(recipe: Recipe, model: str, result: dict[str, Any], references: list[str]) -> System:
    """Return the translations of one model; exit if they are not those that were scored."""
    path = recipe.out / f"{model}.test.txt"
    language = Bundle.open(recipe.out / model).description.target_language
    counted = count_ngrams([*read_lines(path)], references, language=language)
    if abs(counted.score("bleu") - result["bleu"]) > TOLERANCE:
        scores = f"{counted.score('bleu'):.2f}, but results.json has {result['bleu']:.2f}"
        sys.exit(f"{path} has BLEU {scores}; run recipes/run.py again")
    return System(model, counted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recipe", choices=tables.recipes())
    parser.add_argument("--data", type=Path, required=True, help="directory with the recipe's text")
    parser.add_argument("--out", type=Path, required=True, help="--out of recipes/run.py")
    arguments = parser.parse_args()
    recipe = Recipe(arguments.recipe, arguments.data, arguments.out)
    try:
        write_results(recipe.path / "results.json", with_lengths(recipe))
    except (SoftgazeError, ValueError) as error:
        sys.exit(f"{arguments.recipe}: {error}")
    tables.main()


if __name__ == "__main__":
    main()
