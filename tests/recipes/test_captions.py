"""The caption recipe is run on a few drawn pictures, from Flickr8k's files and from Karpathy's JSON."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from albums import SMALL, write_pictures
from recipes.captions import BEAMS, measure, read_karpathy, read_lists, report, write_captions
from softgaze.caption_metrics import TITLES, caption_splitter
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


@pytest.mark.parametrize(
    ("language", "text"), [("en", "A dog, running!"), ("ko", "개가 달려요."), ("de", "Ein Hund, der läuft.")]
)
def test_captions_to_train_on_are_the_words_that_are_scored(tmp_path, language, text):
    parts = {part: {"a.png": [text, text.upper()]} for part in PARTS}
    files = write_captions(parts, tmp_path, language)
    lines = {part: path.read_text().splitlines() for part, path in files.items()}
    assert [line.split("\t") for line in lines["test"]] == [["a.png#0", text], ["a.png#1", text.upper()]]
    _, words = caption_splitter(language)
    for part in ("train", "dev"):
        assert all(line.partition("\t")[2].split() == words(text) for line in lines[part])
    write_captions({part: {"b.png": ["other"]} for part in PARTS}, tmp_path, language)
    assert files["train"].read_text() == "b.png#0\tother\n"  # never the captions of an earlier command


def test_listed_photos_without_a_caption_are_one_line(tmp_path, capsys):
    write_album(tmp_path)
    with (tmp_path / "Flickr_8k.trainImages.txt").open("a") as file:
        file.write("uncaptioned.png\nanother.png\n")
    assert len(read_lists(tmp_path / "images", tmp_path / "captions.token.txt", tmp_path)["train"]) == 8
    [line] = capsys.readouterr().err.splitlines()
    assert "2 of 10 images" in line
    assert "uncaptioned.png" in line


def test_many_captions_without_a_photo_are_a_few_lines(tmp_path, capsys):
    write_album(tmp_path)
    with (tmp_path / "captions.token.txt").open("a") as file:
        file.writelines(f"gone{number}.png#0\ta caption\n" for number in range(50))
    parts = read_lists(tmp_path / "images", tmp_path / "captions.token.txt", tmp_path)
    assert sum(map(len, parts.values())) == 12
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 5
    assert "50" in lines[-1]


@pytest.mark.parametrize("name", ["rnn", "rnn-mean"])
def test_attention_is_measured_once_and_only_where_there_is_any(tmp_path, monkeypatch, name):
    commands = []

    def run(*command):
        commands.append(command)
        return json.dumps(dict.fromkeys(TITLES, 1.0))

    facts = dict.fromkeys(("minutes", "step", "parameters", "pairs", "seed", "dev"), 1)
    (tmp_path / name).mkdir()
    (tmp_path / name / "manifest.json").write_text(json.dumps({"facts": facts}))
    monkeypatch.setattr("recipes.captions.softgaze", run)
    arguments = SimpleNamespace(out=tmp_path, minutes=2, set=["a.b=1"], boxes=Path("boxes.json"), attention=True)
    files = {part: tmp_path / f"{part}.tsv" for part in PARTS}
    result = measure(name, tmp_path / "x.yaml", tmp_path, files, arguments)
    train, *evaluations = commands
    assert train[train.index("--minutes") :][:2] == ("--minutes", "2")
    assert train[train.index("--set") :][:2] == ("--set", "a.b=1")
    assert [command[command.index("--beam-size") + 1] for command in evaluations] == [str(beam) for beam in BEAMS]
    assert sum("--boxes" in command for command in evaluations) == 1
    assert sum("--attention" in command for command in evaluations) == (not name.endswith("-mean"))
    assert set(result["beams"]) == {str(beam) for beam in BEAMS}
