"""The results page is generated from the result files; the migration page names settings and options that exist."""

import json
import re
from pathlib import Path

import pytest

from docs import numbers, results
from softgaze import cli
from softgaze.config import setting_names
from softgaze.models import MODELS, model_options

ROOT = Path(__file__).parents[2]
MIGRATION = (ROOT / "docs/migration.md").read_text(encoding="utf-8")


def test_the_result_page_is_current():
    assert results.PAGE.read_text(encoding="utf-8") == results.page()


@pytest.mark.parametrize("name", results.TABLES)
def test_the_tables_of_a_page_are_current(name):
    page = results.PAGES / name
    assert page.read_text(encoding="utf-8") == results.filled(page), "run python -m docs.results"


def test_the_figures_in_the_text_are_current():
    documents = numbers.documents()
    assert {ROOT / "README.md", ROOT / "README.ko.md"} <= {*documents}
    for page in documents:
        text = page.read_text(encoding="utf-8")
        assert numbers.filled(text) == text, f"{page}: run python -m docs.numbers"
        assert not re.search("^<!-- = ", text, re.MULTILINE), "a line that begins with a comment is no paragraph"


def test_an_old_figure_is_replaced():
    assert (
        numbers.filled("<!-- = install.base -->1 MB")
        == f"<!-- = install.base -->{numbers.figures()['install.base']} MB"
    )
    with pytest.raises(KeyError):
        numbers.filled("<!-- = no.figure -->1")


def test_a_changed_result_changes_the_page(tmp_path, monkeypatch):
    for path in [*ROOT.glob("recipes/*/results.json"), *ROOT.glob("benchmarks/*.json*")]:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    before, recipe = results.page(), tmp_path / "recipes/multi30k-en-de/results.json"
    changed = json.loads(recipe.read_text())
    changed["rnn"]["lengths"]["confidence_intervals"]["scores"]["rnn"]["bleu"]["score"] = 99.0
    recipe.write_text(json.dumps(changed))
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert "99.00" in results.page()
    assert "99.00" not in before


def test_every_setting_of_the_migration_page_exists():
    options = {f"model.options.{name}" for model in MODELS.values() for name in model_options(model)}
    named = set(re.findall(r"`((?:training|model|budget|validation|data)\.[\w.]+)`", MIGRATION))
    assert len(named) > 20
    assert named <= {*setting_names(), *options}


def test_every_option_of_the_migration_page_exists():
    known = {option for name in cli.COMMANDS for each in cli.command(name).params for option in each.opts}
    last = [row.rstrip(" |").rpartition(" | ")[2] for row in MIGRATION.splitlines() if row.startswith("|")]
    named = {option for cell in last for option in re.findall(r"`(--[\w-]+)`", cell)}
    assert len(named) >= 6
    assert named <= known
