"""Image encoders and captioners on pictures that can be had without a licence agreement.

    python -m benchmarks.photos album --stamps DIR --out DIR
    python -m benchmarks.photos stamps --stamps DIR --out DIR
    python -m benchmarks.photos split --stamps DIR --language ko --out DIR
    python -m benchmarks.photos coco --coco DIR --out DIR
    python -m benchmarks.photos karpathy --images DIR --captions dataset_coco.json --count 1104 --out DIR
    python -m benchmarks.photos encoders --stamps DIR --coco DIR --encoder efficientnet --record
    python -m benchmarks.photos speed --coco DIR --encoder efficientnet --record
    python -m benchmarks.photos extract --images DIR --out CACHE

`--stamps` is `usr/share/tuxpaint/stamps` of Debian's tuxpaint-stamps-default; `--coco` has COCO's `val2017` and
`boxes_val2017.json`. An album has composed pictures: one or two stamps on a coloured ground, with five captions each
and the boxes of the stamps. `stamps` writes the stamps themselves with their Korean captions. `split` writes each stamp
once, with splits by picture, and `coco` the photos of COCO, both in the files of Flickr8k for `recipes.captions`.
`karpathy` splits those photos of Karpathy's COCO test set that a directory has, such as `train2017`, in the same way.
"""

import argparse
import json
import random
import time
from functools import cache
from itertools import pairwise
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from recipes.run import circumstances
from softgaze.data.captions import scan_captions

HERE = Path(__file__).parent
LEFT_OUT = ("symbols",)  # letters, coins and signs
SPLITS = {"train": 2000, "val": 250, "test": 250}
KARPATHY_HELD_OUT = (300, 800)  # photos up to the end of dev, and of test
SIDE = (360, 300)  # pixels of a composed picture
GROUNDS = {
    "red": (190, 60, 60),
    "green": (90, 160, 90),
    "blue": (90, 120, 200),
    "yellow": (225, 205, 90),
    "white": (240, 240, 240),
    "grey": (140, 140, 140),
    "brown": (140, 100, 70),
}
SINGLE = (
    "{A} on a {c} background.",
    "There is {a} in front of a {c} wall.",
    "{A} {s} a {c} picture.",
    "A picture of {a} on {c}.",
    "A {c} background with {a}.",
)
DOUBLE = (
    "{A} and {b} on a {c} background.",
    "{A} is to the left of {b}.",
    "{B} is to the right of {a} on a {c} ground.",
    "There is {a} next to {b}.",
    "A {c} picture of {a} and {b}.",
)


def read_stamps(directory: Path) -> list[dict[str, str]]:
    """Return picture, English name and Korean name of every stamp with both and with an article."""
    stamps = []
    for path in sorted(directory.rglob("*.txt")):
        picture, lines = path.with_suffix(".png"), path.read_text(encoding="utf-8", errors="replace").splitlines()
        korean = next((line.partition("=")[2] for line in lines if line.startswith("ko.utf8=")), "")
        name = lines[0].strip().rstrip(".") if lines else ""
        category = path.relative_to(directory).parts[0]
        if category not in LEFT_OUT and picture.exists() and korean and 2 <= len(name.split()) <= 5:
            stamps.append({"file": str(picture), "en": name, "ko": korean.strip(), "category": category})
    return stamps


# --- pictures ----------------------------------------------------------------------------------------------------


@cache
def read_stamp(file: str) -> Image.Image:
    """Return a stamp, reduced: some are posters."""
    stamp = Image.open(file).convert("RGBA")
    stamp.thumbnail((300, 300))
    return stamp


def paste(canvas: Image.Image, file: str, center: float, size: int, rng: random.Random) -> list[int]:
    """Draw a stamp around a horizontal position; return its box in pixels: left, top, width, height."""
    stamp = read_stamp(file).copy()
    stamp.thumbnail((size, size))
    left = int(center * canvas.width - stamp.width / 2 + rng.uniform(-10, 10))
    top = int(rng.uniform(0.05, 0.95) * max(1, canvas.height - stamp.height))
    left = min(max(left, 0), canvas.width - stamp.width)
    canvas.paste(stamp, (left, top), stamp)
    return [left, top, stamp.width, stamp.height]


def compose(stamps: list[dict[str, str]], rng: random.Random) -> tuple[Image.Image, list[str], list[Any]]:
    """Draw one or two stamps; return the picture, five captions and the boxes."""
    color = rng.choice(sorted(GROUNDS))
    noise = np.random.default_rng(rng.getrandbits(32)).normal(0, 12, (SIDE[1], SIDE[0], 3))
    canvas = Image.fromarray((np.array(GROUNDS[color]) + noise).clip(0, 255).astype(np.uint8))
    chosen = rng.sample(stamps, rng.choice((1, 2)))
    centers = (0.5,) if len(chosen) == 1 else (0.25, 0.75)
    size = 260 if len(chosen) == 1 else 170
    boxes = [
        (stamp["en"], paste(canvas, stamp["file"], x, size, rng)) for stamp, x in zip(chosen, centers, strict=True)
    ]
    names = [stamp["en"][0].lower() + stamp["en"][1:] for stamp in chosen]
    words = {"a": names[0], "b": names[-1], "A": names[0].capitalize(), "B": names[-1].capitalize(), "c": color}
    captions = [form.format(**words, s="fills") for form in (SINGLE if len(chosen) == 1 else DOUBLE)]
    return canvas, captions, boxes


def write_album(stamps: list[dict[str, str]], out: Path) -> None:
    """Write pictures, `captions.token`, the split lists and COCO boxes, as Flickr8k has them."""
    rng = random.Random(7)
    (out / "images").mkdir(parents=True, exist_ok=True)
    tokens, images, annotations, number = [], [], [], 0
    categories = {name: index for index, name in enumerate(sorted({stamp["en"] for stamp in stamps}))}
    for split, count in SPLITS.items():
        names = []
        for _ in range(count):
            picture, captions, boxes = compose(stamps, rng)
            name = f"{number:05d}.jpg"
            picture.save(out / "images" / name, quality=88)
            tokens += [f"{name}#{k}\t{text}\n" for k, text in enumerate(captions)]
            images.append({"id": number, "file_name": name, "width": SIDE[0], "height": SIDE[1]})
            annotations += [{"image_id": number, "category_id": categories[label], "bbox": box} for label, box in boxes]
            names.append(f"{name}\n")
            number += 1
        part = {"train": "train", "val": "dev", "test": "test"}[split]
        (out / f"Flickr_8k.{part}Images.txt").write_text("".join(names))
    (out / "Flickr8k.token.txt").write_text("".join(tokens))
    listed = [{"id": index, "name": name} for name, index in categories.items()]
    record = {"images": images, "annotations": annotations, "categories": listed}
    (out / "boxes.json").write_text(json.dumps(record))


def write_korean(stamps: list[dict[str, str]], out: Path) -> None:
    """Write every stamp four times, slightly varied, with its Korean caption; a fifth variant is for dev and test."""
    rng = random.Random(3)
    (out / "images").mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for index, stamp in enumerate(stamps):
        for variant in range(5):
            canvas = Image.new("RGB", SIDE, rng.choice(sorted(GROUNDS.values())))
            paste(canvas, stamp["file"], rng.uniform(0.4, 0.6), rng.randint(180, 280), rng)
            name = f"{index:04d}-{variant}.jpg"
            canvas.save(out / "images" / name, quality=88)
            part = "train" if variant < 4 else "dev" if index % 2 else "test"
            rows[part].append(f"{name}#0\t{stamp['ko']}\n")
    for part, lines in rows.items():
        (out / f"{part}.ko.tsv").write_text("".join(lines), encoding="utf-8")


def write_split(stamps: list[dict[str, str]], language: str, out: Path) -> None:
    """Write every stamp once with its caption; a tenth of the pictures each is for dev and test."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    stamps = sorted(stamps, key=lambda stamp: stamp["file"])
    random.Random(11).shuffle(stamps)
    names: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    captions = []
    for index, stamp in enumerate(stamps):
        canvas = Image.new("RGB", SIDE, (240, 240, 240))
        paste(canvas, stamp["file"], 0.5, 280, random.Random(index))
        name = f"{index:04d}.jpg"
        canvas.save(out / "images" / name, quality=88)
        captions.append(f"{name}#0\t{stamp[language]}\n")
        names[{0: "dev", 1: "test"}.get(index % 10, "train")].append(name)
    write_lists(out, captions, names)


def write_coco(coco: Path, out: Path) -> None:
    """Write the photos of `train2017` as train, and those of `val2017` in turn as dev and test."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    names: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    lines = []
    for part in ("train2017", "val2017"):
        captions = scan_captions(coco / part, coco / f"captions_{part}.json", print)
        for index, entry in enumerate(sorted(captions, key=lambda entry: entry.path)):
            path, texts = entry.path, entry.captions
            copyfile(path, out / "images" / path.name)
            lines += [f"{path.name}#{k}\t{text}\n" for k, text in enumerate(texts)]
            names["train" if part == "train2017" else ("dev", "test")[index % 2]].append(path.name)
    write_lists(out, lines, names)
    boxes = json.loads((coco / "boxes_val2017.json").read_text())
    images = json.loads((coco / "captions_val2017.json").read_text())["images"]
    (out / "boxes.json").write_text(json.dumps({**boxes, "images": images}))


def write_karpathy(images: Path, captions: Path, out: Path, count: int) -> None:
    """Split the photos of the test set at hand: 300 for dev, 500 for test and at most `count` others for training."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    texts = {}
    for image in json.loads(captions.read_text(encoding="utf-8"))["images"]:
        name = image["filename"].rpartition("_")[2]  # of COCO 2014 without COCO_val2014_, as in COCO 2017
        if image["split"] == "test" and (images / name).is_file():
            texts[name] = [" ".join(sentence["raw"].split()) for sentence in image["sentences"]]
            copyfile(images / name, out / "images" / name)
    names = [*texts]
    random.Random(5).shuffle(names)
    first, second = KARPATHY_HELD_OUT
    parts = {"dev": sorted(names[:first]), "test": sorted(names[first:second]), "train": sorted(names[second:])[:count]}
    kept = [name for part in parts.values() for name in part]
    lines = [f"{name}#{number}\t{text}\n" for name in kept for number, text in enumerate(texts[name])]
    write_lists(out, lines, parts)


def write_lists(out: Path, captions: list[str], names: dict[str, list[str]]) -> None:
    """Write a caption file and the lists of the images of each part, named as those of Flickr8k."""
    (out / "Flickr8k.token.txt").write_text("".join(captions), encoding="utf-8")
    for part, files in names.items():
        (out / f"Flickr_8k.{part}Images.txt").write_text("".join(f"{name}\n" for name in files))


# --- encoders ----------------------------------------------------------------------------------------------------


def encode(encoder: str, files: list[Path]) -> tuple[np.ndarray, float]:
    """Return the mean feature vector of each picture, and pictures per second with decoding."""
    from softgaze.data.processors import BackboneProcessor, image_processor_for

    processor = image_processor_for(encoder, True, None)
    assert isinstance(processor, BackboneProcessor)
    processor.encode([str(files[0])])
    started = time.perf_counter()
    rows = [np.asarray(items).mean(0) for items in processor.encode([*map(str, files)])]
    return np.stack(rows), len(files) / (time.perf_counter() - started)


def probe(features: np.ndarray, labels: np.ndarray, folds: int = 5) -> float:
    """Return the cross-validated accuracy of ridge regression to one-hot labels."""
    order = np.random.default_rng(0).permutation(len(labels))
    features = (features - features.mean(0)) / (features.std(0) + 1e-6)
    targets, correct = np.eye(labels.max() + 1)[labels], 0
    edges = np.linspace(0, len(order), folds + 1).astype(int)
    for start, end in pairwise(edges):
        test = order[start:end]
        train = np.setdiff1d(order, test)
        kernel = features[train] @ features[train].T / features.shape[1]
        weights = np.linalg.solve(kernel + np.eye(len(train)), targets[train] - targets[train].mean(0))
        scores = features[test] @ features[train].T / features.shape[1] @ weights
        correct += int((scores.argmax(1) == labels[test]).sum())
    return correct / len(order)


def retrieval(features: np.ndarray, labels: list[set[str]]) -> float:
    """Return the mean Jaccard overlap of the objects of each photo and of its nearest other photo."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    similarity = unit @ unit.T - 2 * np.eye(len(unit))
    pairs = enumerate(similarity.argmax(1))
    return float(np.mean([len(labels[i] & labels[j]) / max(1, len(labels[i] | labels[j])) for i, j in pairs]))


def measure_encoder(encoder: str, stamps: list[dict[str, str]], coco: Path) -> dict[str, Any]:
    """Return the linear-probe accuracy on stamp categories and retrieval of COCO photos by object."""
    from softgaze.data.captions import read_boxes

    with TemporaryDirectory() as directory:
        files = [Path(directory) / f"{index:04d}.png" for index in range(len(stamps))]
        for file, stamp in zip(files, stamps, strict=True):
            read_stamp(stamp["file"]).save(file)
        features, _ = encode(encoder, files)
    names = sorted({stamp["category"] for stamp in stamps})
    labels = np.array([names.index(stamp["category"]) for stamp in stamps])
    objects: dict[str, set[str]] = {}
    for part in ("val2017", "train2017"):
        boxes = read_boxes(coco / f"boxes_{part}.json", coco / f"captions_{part}.json")
        objects |= {str(coco / part / name): {label.name for label in own} for name, own in boxes.items()}
    photos, _ = encode(encoder, [Path(name) for name in objects])
    return {
        "stamps": len(stamps),
        "probe_accuracy": round(100 * probe(features, labels), 1),
        "majority": round(100 * np.bincount(labels).max() / len(labels), 1),
        "photos": len(objects),
        "retrieval_overlap": round(100 * retrieval(photos, list(objects.values())), 1),
    }


def measure_extraction(encoder: str, images: Path, cache: Path) -> dict[str, Any]:
    """Extract the features of a directory into a new cache, then again from the cache."""
    from softgaze.data.feature_cache import extract_features
    from softgaze.data.processors import BACKBONE_BATCH, BackboneProcessor, image_processor_for

    processor = image_processor_for(encoder, True, None)
    assert isinstance(processor, BackboneProcessor)
    processor.use_cache(cache)
    files, seconds = sorted(images.glob("*.jpg")), []
    for _ in range(2):
        started = time.perf_counter()
        extract_features(processor, files, BACKBONE_BATCH, lambda amount: None)
        seconds.append(round(time.perf_counter() - started, 1))
    rate = round(len(files) / seconds[0], 1)
    return {"images": len(files), "seconds": seconds[0], "images_per_second": rate, "from_cache": seconds[1]}


def main() -> None:
    """Write an album or measure encoders."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "what", choices=("album", "stamps", "split", "coco", "karpathy", "encoders", "speed", "extract")
    )
    parser.add_argument("--language", choices=("en", "ko"), default="en", help="language of the captions of a split")
    parser.add_argument("--images", type=Path, help="directory of pictures")
    parser.add_argument("--captions", type=Path, help="Karpathy's JSON of COCO")
    parser.add_argument("--count", type=int, default=10**6, help="training pictures of karpathy")
    parser.add_argument("--stamps", type=Path)
    parser.add_argument("--coco", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["efficientnet"])
    parser.add_argument("--record", action="store_true", help="write photos-encoders.json")
    arguments = parser.parse_args()
    stamps = read_stamps(arguments.stamps) if arguments.stamps else []
    if arguments.what in ("album", "stamps"):
        (write_album if arguments.what == "album" else write_korean)(stamps, arguments.out)
        return
    if arguments.what == "split":
        write_split(stamps, arguments.language, arguments.out)
        return
    if arguments.what == "coco":
        write_coco(arguments.coco, arguments.out)
        return
    if arguments.what == "karpathy":
        write_karpathy(arguments.images, arguments.captions, arguments.out, arguments.count)
        return
    if arguments.what == "extract":
        print(json.dumps(measure_extraction(arguments.encoder[0], arguments.images, arguments.out), indent=2))
        return
    path = HERE / "photos-encoders.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for encoder in arguments.encoder:
        name = Path(encoder).name
        if arguments.what == "speed":
            photos = sorted((arguments.coco / "train2017").glob("*.jpg"))[:64]
            measured = {
                "images_per_second": round(encode(encoder, photos)[1], 1),
                "threads": circumstances()["machine"],
            }
        else:
            measured = {**measure_encoder(encoder, stamps, arguments.coco), **circumstances()}
        results[name] = {**results.get(name, {}), **measured}
        print(name, json.dumps(measured))
    if arguments.record:
        path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
