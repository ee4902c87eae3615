"""Of a recipe that was run: quality against sentence length, and whether its models differ from its baseline.

    python -m recipes.lengths multi30k-en-de --data DIR --out runs/multi30k

Takes the translations and results that `recipes/run.py` left in --out, and does what `softgaze evaluate --by-length
--against` does: every model against the first of recipe.yaml, the baseline, by paired bootstrap and approximate
randomisation, over all sentences and in each bucket of lengths. All is written into the recipe's results.json, and the
pictures and documents that show it are made again. Nothing is trained or translated.
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
from softgaze.evaluation.buckets import make_buckets, source_lengths
from softgaze.evaluation.counts import count_system
from softgaze.evaluation.report import Evaluation, System, record

SAME = 0.005  # what rounding may make of one score


def with_lengths(recipe: Recipe) -> dict[str, Any]:
    """The results of all models that were run, in the order of the recipe, each with its quality by length."""
    path = recipe.out / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if recipe.baseline not in results:
        sys.exit(f"{path}: no results of the baseline, {recipe.baseline}; run recipes/run.py first")
    sources, references = ([*read_lines(side)] for side in recipe.files["test"])
    buckets = tuple(make_buckets(source_lengths(sources)))
    systems = {model: system(recipe, model, results[model], references) for model in recipe.models if model in results}
    first = systems[recipe.baseline]
    return {
        model: {**results[model], "lengths": record(Evaluation((own, first) if own is not first else (own,), buckets))}
        for model, own in systems.items()
    }


def system(recipe: Recipe, model: str, found: dict[str, Any], references: list[str]) -> System:
    """The translations of one model, which must be those that were scored."""
    path = recipe.out / f"{model}.test.txt"
    language = Bundle.open(recipe.out / model).description.target_language
    counted = count_system([*read_lines(path)], references, language=language)
    if abs(counted.score("bleu") - found["bleu"]) > SAME:
        sys.exit(f"{path} has BLEU {counted.score('bleu'):.2f}, and results.json {found['bleu']:.2f}; run it again")
    return System(model, counted)


def main() -> None:
    """One recipe."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recipe", choices=tables.recipes())
    parser.add_argument("--data", type=Path, required=True, help="directory with the recipe's text")
    parser.add_argument("--out", type=Path, required=True, help="where recipes/run.py put runs and results")
    chosen = parser.parse_args()
    recipe = Recipe(chosen.recipe, chosen.data, chosen.out)
    try:
        write_results(recipe.place / "results.json", with_lengths(recipe))
    except (SoftgazeError, ValueError) as error:
        sys.exit(f"{chosen.recipe}: {error}")
    tables.main()


if __name__ == "__main__":
    main()
