"""The caption recipe is run on a few drawn pictures, from Flickr8k's files and from Karpathy's JSON."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from albums import SMALL, write_pictures
from recipes.captions import read_karpathy, read_lists, report
from softgaze.config import parse_config, read_config, resolve
from softgaze.errors import DataError
from softgaze.models import check_options

RECIPES = Path(__file__).parents[2] / "recipes"
PARTS = {"train": range(8), "dev": range(8, 10), "test": range(10, 12)}


def write_album(place):
    """Twelve pictures with two captions each, and the official files of Flickr8k."""
    rows = write_pictures(place, count=12, captions=2).read_text().splitlines()[1:]
    captions = [row.partition(",") for row in rows]
    lines = [f"{name}#{index % 2}\t{text.strip(chr(34))}\n" for index, (name, _, text) in enumerate(captions)]
    (place / "captions.token.txt").write_text("".join(lines))
    for part, numbers in PARTS.items():
        names = "".join(f"{number:03d}.png\n" for number in numbers)
        (place / f"Flickr_8k.{part}Images.txt").write_text(names)


def test_both_forms_of_the_data_give_the_same_parts(tmp_path):
    write_album(tmp_path)
    parts = read_lists(tmp_path / "images", tmp_path / "captions.token.txt", tmp_path)
    assert {part: len(captions) for part, captions in parts.items()} == {"train": 8, "dev": 2, "test": 2}
    names = {"train": "train", "dev": "val", "test": "test"}
    images = [
        {"filename": name, "split": names[part], "sentences": [{"raw": text} for text in texts]}
        for part, captions in parts.items()
        for name, texts in captions.items()
    ]
    (tmp_path / "dataset.json").write_text(json.dumps({"images": images}))
    assert read_karpathy(tmp_path / "dataset.json") == parts
    (tmp_path / "dataset.json").write_text(json.dumps({"images": [{"split": "train"}]}))
    with pytest.raises(DataError, match="Karpathy"):
        read_karpathy(tmp_path / "dataset.json")


def test_a_missing_list_is_one_clear_line(tmp_path):
    write_album(tmp_path)
    (tmp_path / "Flickr_8k.devImages.txt").unlink()
    with pytest.raises(DataError, match=r"devImages.txt, found 0"):
        read_lists(tmp_path / "images", tmp_path / "captions.token.txt", tmp_path)


def test_one_command_trains_scores_and_reports(tmp_path):
    write_album(tmp_path)
    (tmp_path / "recipes/toy").mkdir(parents=True)
    for name in ("run.py", "captions.py", "__init__.py"):
        shutil.copy(RECIPES / name, tmp_path / "recipes")
    (tmp_path / "recipes/toy/captions.yaml").write_text(yaml.safe_dump({"language": "en", "models": ["mean"]}))
    model = {"arch": "captioner", "options": {**SMALL, "pooling": "mean"}}
    settings = {"model": model, "data": {"image_size": 32}, "budget": {"steps": 2}}
    (tmp_path / "recipes/toy/mean.yaml").write_text(yaml.safe_dump(settings))
    data = ("--images", "images", "--captions", "captions.token.txt", "--out", "runs")
    command = [sys.executable, "-m", "recipes.captions", "toy", *data]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "runs/results.json").read_text())
    assert list(results["mean"]["beams"]) == ["1", "3", "5"]
    assert results["mean"]["beams"]["3"]["images"] == 2
    assert (tmp_path / "runs/report.md").read_text() == report("toy", results)
    assert done.stdout.count("| `mean` |") == 3
    captions = [line.split("\t")[1] for line in (tmp_path / "runs/train.en.tsv").read_text().splitlines()]
    assert captions
    assert not any("." in caption for caption in captions)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("flickr8k/*.yaml")), ids=lambda path: path.stem)
def test_settings_of_the_recipe_are_valid(path):
    if path.stem == "captions":
        assert {*yaml.safe_load(path.read_text())["models"]} == {each.stem for each in path.parent.glob("*n*.yaml")} - {
            "captions"
        }
        return
    config = resolve(parse_config(read_config(path)))
    check_options(config.model.arch, config.model.size, config.model.options)
    assert (config.training.batch_tokens, config.training.warmup, config.validation.metric) == (2048, 200, "cider")
