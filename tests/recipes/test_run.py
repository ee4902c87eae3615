"""A recipe is run as a person would run it, on a small corpus."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from corpora import SMALL, write_corpus
from recipes import tables
from recipes.run import Recipe, in_words, lower_cased, write_results
from softgaze.cli import command
from softgaze.config import parse_config, read_config, resolve
from softgaze.models import build_model

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A recipe of two small models, and its text."""
    place = tmp_path_factory.mktemp("recipes")
    (place / "toy").mkdir()
    shutil.copy(RECIPES / "run.py", place)
    (place / "data").mkdir()
    for part, pairs in (("train", 40), ("dev", 6), ("test", 5)):
        write_corpus(place / "data", pairs=pairs, name=part)
    recipe = {part: [f"{part}.en", f"{part}.de"] for part in ("train", "dev", "test")}
    said = {**recipe, "models": ["transformer", "rnn-luong"], "words": "moses"}
    (place / "toy/recipe.yaml").write_text(yaml.safe_dump(said))
    for arch in ("transformer", "rnn-luong"):
        settings = {"model": {"arch": arch, "options": SMALL[arch]}, "budget": {"steps": 3}}
        (place / f"toy/{arch}.yaml").write_text(yaml.safe_dump(settings))
    return place


def run(place, *arguments):
    command = [sys.executable, str(place / "run.py"), *arguments]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300)


def test_a_recipe_is_trained_scored_and_written_down_once(place):
    order = ("toy", "--data", "data", "--out", "runs", "--record")
    first = run(place, *order)
    assert first.returncode == 0, first.stderr
    results = json.loads((place / "toy/results.json").read_text())
    assert list(results) == ["transformer", "rnn-luong"]
    assert json.loads((place / "runs/results.json").read_text()) == results
    assert all(found["training"]["step"] == 3 for found in results.values())
    assert results["rnn-luong"]["signatures"]["bleu"].count("case:mixed") == 1
    assert "case:lc" in results["rnn-luong"]["lower_cased"]["signature"]
    assert results["rnn-luong"]["words"]["name"] == "moses"
    assert [step for step, _, _ in results["rnn-luong"]["course"]] == [3]

    weights = {path: path.stat().st_mtime_ns for path in (place / "runs").rglob("*.safetensors")}
    assert run(place, *order, "--only", "rnn-luong").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in weights} == weights  # nothing is trained again
    again = json.loads((place / "toy/results.json").read_text())
    assert again["rnn-luong"]["bleu"] == results["rnn-luong"]["bleu"]
    assert again["transformer"] == results["transformer"]


def test_augmented_text_keeps_every_pair_and_one_true_side_of_each_other(place):
    recipe = yaml.safe_load((place / "toy/recipe.yaml").read_text())
    (place / "augmented").mkdir()
    (place / "augmented/recipe.yaml").write_text(yaml.safe_dump(recipe | {"augmented": ["transformer"]}))
    shutil.copy(place / "toy/transformer.yaml", place / "augmented")
    order = ("augmented", "--data", "data", "--out", "more", "--only", "transformer")
    first = run(place, *order)
    assert first.returncode == 0, first.stderr

    def read_pairs(directory, name):
        sides = [(place / f"{directory}/{name}.{side}").read_text().splitlines() for side in ("en", "de")]
        return list(zip(*sides, strict=True))

    real, augmented = read_pairs("data", "train"), read_pairs("more", "augmented")
    assert set(real) < set(augmented)
    assert len(set(augmented)) == len(augmented)
    sources, targets = map(set, zip(*real, strict=True))
    added = set(augmented) - set(real)
    assert all(source in sources or target in targets for source, target in added)
    assert any(target not in targets for _, target in added)
    assert any(source not in sources for source, _ in added)

    weights = {path: path.stat().st_mtime_ns for path in (place / "more").rglob("*.safetensors")}
    assert len(weights) >= 5
    assert run(place, *order).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in weights} == weights  # nothing is trained again


def test_what_was_compared_with_another_model_is_forgotten(tmp_path):
    path = tmp_path / "results.json"
    against = {"lengths": {"against": [{"name": "rnn"}]}}
    path.write_text(json.dumps({"rnn": {"bleu": 1, "lengths": {}}, "luong": against, "conv": {"bleu": 3}}))
    write_results(path, {"rnn": {"bleu": 2}})
    assert json.loads(path.read_text()) == {"rnn": {"bleu": 2}, "luong": {}, "conv": {"bleu": 3}}


@pytest.mark.parametrize(
    ("words", "language", "pair", "by_hand"),
    [
        ("moses", "de", ("Er sah z.B. Hunde.", "er sah z.B. Katzen."), ("er sah z.b. hunde .", "er sah z.b. katzen .")),
        ("ko-mecab", "ko", ("개가 집에 가요.", "개가 책을 봐요."), ("개 가 집 에 가요 .", "개 가 책 을 봐요 .")),
    ],
)
def test_words_are_counted_as_papers_cut_them(words, language, pair, by_hand):
    found = in_words([pair[0]], [pair[1]], words, language)
    assert found["bleu"] == pytest.approx(lower_cased([by_hand[0]], [by_hand[1]], "none")["bleu"])
    assert found["bleu"] != pytest.approx(lower_cased([pair[0]], [pair[1]])["bleu"])  # sacreBLEU's own cut is another
    assert ("sacremoses" if words == "moses" else "tok:ko-mecab") in found["signature"]


def test_without_what_cuts_words_the_other_scores_are_still_counted(monkeypatch, capsys):
    monkeypatch.setattr("recipes.run.find_spec", lambda name: None)
    monkeypatch.setattr(Path, "exists", lambda path: True)  # its text
    assert Recipe("multi30k-en-de", Path("data"), Path("runs")).words is None
    assert "sacremoses" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("toy", "--data", "nowhere", "--out", "runs"), "needs nowhere/train.en"),
        (("toy", "--data", "data", "--out", "runs", "--only", "lstm"), "has transformer, rnn-luong, not lstm"),
        (("toys", "--data", "data", "--out", "runs"), "invalid choice"),
    ],
)
def test_mistakes_are_said_in_one_line(place, arguments, said):
    done = run(place, *arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*/recipe.yaml")), ids=lambda path: path.parent.name)
def test_every_model_of_a_recipe_can_be_built(path):
    for model in yaml.safe_load(path.read_text())["models"]:
        settings = resolve(parse_config(read_config(path.parent / f"{model}.yaml"))).model
        with torch.device("meta"):
            sizes = {"source_vocabulary": 500, "target_vocabulary": 500}
            assert build_model(settings.arch, settings.size, **sizes, **settings.options)


@pytest.mark.parametrize("recipe", tables.recipes())
def test_every_recipe_has_a_page_whose_commands_lack_nothing(recipe):
    page = (RECIPES / recipe / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    assert f"python recipes/run.py {recipe} --data DIR --out runs/" in page
    for line in re.findall(r"^(?:torchrun .* -m )?softgaze (.*)$", page, re.MULTILINE):
        name, *arguments = shlex.split(line, comments=True)
        command(name).make_context(name, arguments)


def test_the_paper_s_models_have_the_paper_s_settings():
    base, big = (resolve(parse_config(read_config(RECIPES / f"wmt14-en-de/{size}.yaml"))) for size in ("base", "big"))
    for settings, width in ((base, 512), (big, 1024)):
        assert settings.training.learning_rate == pytest.approx(width**-0.5 * settings.training.warmup**-0.5, rel=0.01)
        assert settings.training.batch_tokens == 25_000
    assert (base.budget.steps, big.budget.steps) == (100_000, 300_000)
