"""Run a caption recipe: train its captioners on a directory of photos, score them, and write a report.

    python -m recipes.captions flickr8k --images DIR --captions Flickr8k.token.txt --out runs/flickr8k
    python -m recipes.captions flickr8k --images DIR --captions dataset_flickr8k.json --out runs/flickr8k --only rnn

The caption file has `image#k<TAB>caption` on each line, and the official split lists (`*trainImages.txt`,
`*devImages.txt`, `*testImages.txt`) are in its directory or in `--splits DIR`; or it is Karpathy's JSON, which has the
splits. Training captions are lower-cased and without punctuation, as in papers; `evaluate` compares with the captions
as written. Every command is printed before it runs. The same command resumes. `report.md` and `results.json` are in the
output directory.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from recipes.run import HERE, circumstances, softgaze
from softgaze.caption_metrics import TITLES, caption_splitter
from softgaze.data.captions import CaptionError, scan_captions
from softgaze.data.corpus import read_text
from softgaze.errors import DataError, SoftgazeError

PARTS = {"train": "train", "restval": "train", "val": "dev", "dev": "dev", "test": "test"}  # names of splits
BEAMS = (1, 3, 5)
Captions = dict[str, list[str]]  # by file name


def read_karpathy(path: Path) -> dict[str, Captions]:
    """Return the captions of each part of Karpathy's JSON."""
    parts: dict[str, Captions] = {"train": {}, "dev": {}, "test": {}}
    try:
        for image in json.loads(read_text(path))["images"]:
            texts = [" ".join(sentence["raw"].split()) for sentence in image["sentences"]]
            parts[PARTS[image["split"]]][image["filename"]] = [text for text in texts if text]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not Karpathy's JSON of images, sentences and splits ({error})") from error
    return parts


def read_lists(images: Path, captions: Path, splits: Path) -> dict[str, Captions]:
    """Return the captions of each part, given a caption file and the lists of the images of each part."""
    errors: list[DataError] = []
    entries = scan_captions(images, captions, errors.append)
    for error in errors[:3]:
        print(f"left out: {error}", file=sys.stderr)
    if len(errors) > 3:
        kinds = {error.kind for error in errors if isinstance(error, CaptionError)}
        print(f"left out: {len(errors):,} captions in all ({', '.join(sorted(kinds))})", file=sys.stderr)
    known = {entry.path.relative_to(images).as_posix(): list(entry.captions) for entry in entries}
    parts: dict[str, Captions] = {}
    for part in ("train", "dev", "test"):
        lists = sorted(splits.glob(f"*{part}Images.txt"))
        if len(lists) != 1:
            raise DataError(f"{splits}: expected one list *{part}Images.txt, found {len(lists)}; give --splits DIR")
        names = [line.strip() for line in read_text(lists[0]).splitlines() if line.strip()]
        parts[part] = {name: known[name] for name in names if name in known}
        if not parts[part]:
            raise DataError(f"{lists[0]}: none of its {len(names):,} images has a caption in {captions}")
        if missing := [name for name in names if name not in known]:
            counted = f"{len(missing):,} of {len(names):,} images"
            print(f"left out: {counted} of {lists[0]} have no caption, such as {missing[0]}", file=sys.stderr)
    return parts


def write_captions(parts: dict[str, Captions], out: Path, language: str) -> dict[str, Path]:
    """Write one caption file per part; those to train on in the words that scores are computed from."""
    _, words = caption_splitter(language)
    files = {}
    for part, captions in parts.items():
        files[part] = out / f"{part}.{language}.tsv"
        lines = [
            f"{name}#{number}\t{text if part == 'test' else ' '.join(words(text))}\n"
            for name, texts in captions.items()
            for number, text in enumerate(texts)
        ]
        files[part].write_text("".join(lines), encoding="utf-8")  # a resumed run rejects other captions
    return files


def measure(name: str, config: Path, images: Path, files: dict[str, Path], arguments: Any) -> dict[str, Any]:
    """Train one captioner and score it with every beam size."""
    run = arguments.out / name
    limit = ("--minutes", str(arguments.minutes)) if arguments.minutes else ()
    dev = ("--dev", str(images), str(files["dev"]))
    extra = [option for setting in arguments.set or () for option in ("--set", setting)]
    data = ("--images", str(images), "--captions", str(files["train"]), *dev)
    softgaze("train", "--config", str(config), *data, *limit, *extra, "--out", str(run))
    test = ("--images", str(images), "--captions", str(files["test"]))
    extras = ("--boxes", str(arguments.boxes)) if arguments.boxes else ()
    if arguments.attention and not name.endswith("-mean"):
        extras = (*extras, "--attention")
    scores = {}
    for beam in BEAMS:
        output = arguments.out / f"{name}.beam{beam}.txt"
        command = ("evaluate", str(run), *test, "--beam-size", str(beam), "--output", str(output), "--json")
        scores[beam] = json.loads(softgaze(*command, *(extras if beam == BEAMS[1] else ())))
    facts = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["facts"]
    kept = (
        *TITLES,
        "exact",
        "signatures",
        "images",
        "references",
        "speed",
        "pointing",
        "self_attention",
        "faithfulness",
    )
    training = {key: facts[key] for key in ("minutes", "step", "parameters", "pairs", "seed", "dev")}
    beams = {str(beam): {key: result.get(key) for key in kept} for beam, result in scores.items()}
    return {"beams": beams, "training": training, **circumstances()}


def report(recipe: str, results: dict[str, Any]) -> str:
    """Return the results as a Markdown table, one row per captioner and beam size."""
    header = ["model", "parameters", "minutes", "beam", *TITLES.values()]
    lines = [f"# {recipe}", "", f"| {' | '.join(header)} |", f"| --- |{' ---: |' * (len(header) - 1)}"]
    for name, result in results.items():
        for beam, scores in result["beams"].items():
            training = result["training"]
            cells = [f"`{name}`", f"{training['parameters']:,}", f"{training['minutes']:.0f}", beam]
            cells += [f"{scores[metric]:.1f}" for metric in TITLES]
            lines.append(f"| {' | '.join(cells)} |")
    first = next(iter(results.values()))
    scores = next(iter(first["beams"].values()))
    signatures = "; ".join(dict.fromkeys(scores["signatures"].values()))
    counts = f"{scores['images']:,} test images, {scores['references']:,} references"
    return "\n".join([*lines, "", f"{counts}. {first['date']}, {first['machine']}. Signatures: `{signatures}`", ""])


def main() -> None:
    """Run all captioners of a recipe, or some."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recipe", choices=sorted(path.parent.name for path in HERE.glob("*/captions.yaml")))
    parser.add_argument("--images", type=Path, required=True, help="directory of photos")
    parser.add_argument("--captions", type=Path, required=True, help="caption file")
    parser.add_argument("--splits", type=Path, help="directory of the split lists; default: that of the captions")
    parser.add_argument("--boxes", type=Path, help="COCO JSON of object boxes of the test photos")
    parser.add_argument("--language", help="code of the language of the captions; default: that of the recipe")
    parser.add_argument("--attention", action="store_true", help="test the attention by occluding regions")
    parser.add_argument("--out", type=Path, required=True, help="directory for runs and results")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="some of the recipe's captioners")
    parser.add_argument("--minutes", type=float, help="training time of each captioner; default: that of the recipe")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE", help="another setting of training")
    arguments = parser.parse_args()
    recipe = yaml.safe_load((HERE / arguments.recipe / "captions.yaml").read_text(encoding="utf-8"))
    if unknown := set(arguments.only or ()) - set(recipe["models"]):
        parser.error(f"{arguments.recipe} has {', '.join(recipe['models'])}, not {', '.join(sorted(unknown))}")
    try:
        is_json = arguments.captions.suffix.lower() == ".json"
        splits = arguments.splits or arguments.captions.parent
        parts = (
            read_karpathy(arguments.captions) if is_json else read_lists(arguments.images, arguments.captions, splits)
        )
    except SoftgazeError as error:
        sys.exit(str(error))
    arguments.out.mkdir(parents=True, exist_ok=True)
    files = write_captions(parts, arguments.out, arguments.language or recipe["language"])
    path = arguments.out / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in arguments.only or recipe["models"]:
        config = HERE / arguments.recipe / f"{name}.yaml"
        results[name] = measure(name, config, arguments.images, files, arguments)
        path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (arguments.out / "report.md").write_text(report(arguments.recipe, results), encoding="utf-8")
    print((arguments.out / "report.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
